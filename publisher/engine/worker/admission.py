"""Whether this connection's database may be claimed from: what the witness says of it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import structlog

from publisher.engine.adapter import boottime
from publisher.engine.guard import Guard
from publisher.engine.ledger import Conn
from publisher.engine.witness import WitnessUnreachable
from publisher.engine.worker.station import Station

log = structlog.get_logger(__name__)

_BETWEEN_TRIES = 2.0
"""Seconds between two tries to reach the witness."""


class WentBackError(Exception):
    """The database was restored under this connection; what was due is in quarantine."""


@dataclass(slots=True)
class Admission:
    """One worker run's ``guard``; without one a restored backup goes unnoticed."""

    guard: Guard | None
    station: Station
    admitted: Conn | None = None
    tried_at: float = -math.inf
    begun: int = 0

    def hold(self, conn: Conn) -> bool:
        """Compare a new connection's database with the witness, and later let both go on.

        Returns False: nothing was moved. Raises ``WentBackError``, ``PublisherError``,
        ``psycopg.Error``.
        """
        if self.guard is None:
            return False
        if self.admitted is conn:
            has_sent, self.begun = self.station.begun > self.begun, self.station.begun
            try:
                went_back = not self.guard.beat(conn, has_sent=has_sent)
            except WitnessUnreachable as error:
                # What was seen stays known to the guard, and is held against it once it is back.
                self.admitted = None
                _say(error)
                return False
            self.station.floor = self.guard.floor
            if went_back:
                raise WentBackError
        elif boottime() - self.tried_at >= _BETWEEN_TRIES:
            self.tried_at = boottime()
            self._admit(conn, self.guard)
        return False

    def may_claim(self, conn: Conn | None) -> bool:
        """Whether the witness knows this connection's database and allows it to go on."""
        return self.guard is None or (self.admitted is conn and self.guard.may_claim)

    def close(self, conn: Conn | None) -> None:
        """Tell the witness last, at a clean end."""
        if self.guard is not None:
            self.guard.close(conn if self.admitted is conn else None)

    def _admit(self, conn: Conn, guard: Guard) -> None:
        self.admitted = None
        try:
            guard.admit(conn)
        except WitnessUnreachable as error:
            _say(error)
            return
        self.admitted = conn
        self.station.floor = guard.floor


def _say(error: WitnessUnreachable) -> None:
    log.critical("witness.unreachable", error=str(error), claims="none", alert=True)
