"""What can be done on the wire, to a connection or to the process at its end."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Blow(StrEnum):
    """What the relay does when the time has come."""

    CUT = "cut"
    """Both sides are closed with RST. After a statement was answered: the answer is lost."""
    HOLD = "hold"
    """It is let through only after some seconds, even if whoever sent it is dead by then."""
    HOLD_AND_CUT = "hold and cut"
    """As long, and then cut."""
    KILL = "kill"
    FREEZE = "freeze"
    TERM = "term"
    TERMINATE = "terminate backend"
    """End the server process of this connection, as ``pg_terminate_backend`` does."""
    OUTAGE = "server away"
    """As a restart, but longer than a publish lease lasts."""
    RESTART = "restart server"
    """Immediate stop of PostgreSQL, and start: whoever holds the strings does it."""


PEOPLE = "p"
"""What the names of people who settle doubts begin with."""


@dataclass(slots=True)
class Rule:
    """The ``nth`` time ``worker`` is at ``place``: ``blow``. ``when``: before or after it.

    ``worker`` empty: whoever comes there, but people.
    """

    worker: str
    place: str
    when: str
    blow: Blow
    nth: int = 1
    seconds: float = 0.0
    seen: int = 0

    def strikes(self, worker: str, place: str, when: str) -> bool:
        """Count one visit; whether it is the rule's turn."""
        if self.worker != worker and (self.worker or worker.startswith(PEOPLE)):
            return False
        if (self.place, self.when) != (place, when):
            return False
        self.seen += 1
        return self.seen == self.nth
