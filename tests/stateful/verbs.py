"""Each verb of the ledger, with what a test needs around it: a pause, a fault, and a record.

The verbs are the real ones. Before each its actor comes to a pause, where no transaction is open;
a fault that was ordered breaks the connection before the statement or after its commit; and what
a trigger of the test's own noted of moved jobs is told by the event that moved them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from functools import wraps
from typing import Any, Final
from unittest import mock

import psycopg
from psycopg import pq
from psycopg.rows import tuple_row

from publisher.engine import ledger
from publisher.engine.job import State
from publisher.engine.ledger.driver import driver_of
from publisher.engine.transitions import TABLE, Event
from tests.engine.ground import Driver
from tests.stateful.baton import current, pause

E = Event

NOTED: Final = """
CREATE TABLE clockwork.moves (
    at bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, job_id bigint, was text, became text);
GRANT SELECT ON clockwork.moves TO PUBLIC;
CREATE FUNCTION clockwork.note() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    INSERT INTO clockwork.moves (job_id, was, became) VALUES (NEW.id, OLD.state, NEW.state);
    RETURN NULL;
END $$;
CREATE TRIGGER zz_noted AFTER UPDATE ON publisher.jobs FOR EACH ROW
EXECUTE FUNCTION clockwork.note();
"""

_LATE = (E.LATE_PUBLISH, E.PUBLISH, E.REPEAT_ENDED)
_BY_VERB: Final[Mapping[str, tuple[Event, ...]]] = {
    "claim": (E.CLAIM,),
    "begin_send": (E.BEGIN_SEND,),
    "rescue": (E.LEASE_EXPIRED, E.REPEAT_ENDED),
    "forsake": (E.LEASE_EXPIRED, E.REPEAT_ENDED),
    "expire": (E.EXPIRE, E.REPEAT_ENDED),
    "spool_found": (E.SPOOL_FOUND,),
    "publish_lost": (E.LATE_PUBLISH,),
    "found_live": (E.CONFIRM_PUBLISHED,),
    "confirm_published": (E.CONFIRM_PUBLISHED,),
    "confirm_absent": (E.CONFIRM_ABSENT,),
    "repeat": (E.REPEAT,),
    "drop": (E.DROP,),
    "cancel": (E.CANCEL, E.REPEAT_ENDED),
    "hold": (E.HOLD,),
    "release_hold": (E.RELEASE_HOLD,),
    "reschedule": (E.RESCHEDULE,),
    "replace": (E.REPLACE,),
    "requeue": (E.REQUEUE,),
    "restore": (E.RESTORE,),
    "open_quarantine": (E.HOLD,),
    "settle": (),
    "record_late": (),
}
_PAUSED: Final = (
    "channels", "earlier_attempts", "bound_elsewhere", "start_hands", "still_ours",
    "save_progress", "extend_leases", "unbegun", "record_look", "rest_channels", "unsettled_of",
    "known_attempts", "held_by", "end", "beat", "register", "is_registered", "look_again",
    "holds_look", "claim_doubts", "doubts", "claim_suspects", "look_for_again",
    "release_suspects", "ask_about_suspect", "raise_tick", "stands", "note_mark",
    "newest_loss",
)  # fmt: skip


class Cut(StrEnum):
    """How a connection breaks."""

    BEFORE = "before"
    """The statement never arrived."""
    AFTER = "after"
    """It was committed; its answer was lost."""
    WARNED = "warned"
    """It was committed, and the wait for a standby was cancelled."""


@dataclass(slots=True)
class Verbs:
    """``taken``: how often each row of the table was gone through."""

    taken: Counter[tuple[State, Event]] = field(default_factory=Counter)
    faults: dict[int, tuple[str, Cut]] = field(default_factory=dict)
    """By the identity of a seat: at which verb its connection breaks next."""
    broke: Counter[str] = field(default_factory=Counter)
    _last: int = 0

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Put all this around the verbs."""
        with ExitStack() as stack:
            for name in (*_BY_VERB, *_PAUSED):
                real = getattr(ledger, name)
                stack.enter_context(mock.patch.object(ledger, name, self._around(name, real)))
            yield

    def _around(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(real)
        def verb(conn: Any, *arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - as the real one
            actor = current()
            if actor is None:
                # In the test's own thread: a person, whose connection may be SQLAlchemy's.
                answer = real(conn, *arguments, **named)
                self._tell(name, driver_of(conn), arguments, answer)
                return answer
            if _is_idle(conn):
                pause(f"before {name}")
            fault = self.faults.get(id(actor.of))
            if fault is None or fault[0] != name or not _is_idle(conn):
                answer = real(conn, *arguments, **named)
                self._tell(name, conn, arguments, answer)
                return answer
            del self.faults[id(actor.of)]
            self.broke[f"{name} {fault[1]}"] += 1
            if fault[1] is not Cut.BEFORE:
                self._tell(name, conn, arguments, real(conn, *arguments, **named))
            if fault[1] is Cut.WARNED and name == "begin_send":
                message = "01000 the wait for a standby was cancelled"
                raise ledger.BeginUnacknowledgedError(message)
            conn.close()
            message = "the connection was cut"
            raise psycopg.OperationalError(message)

        return verb

    def _tell(self, name: str, conn: Driver, arguments: tuple[Any, ...], answer: Any) -> None:  # noqa: ANN401 - of any verb
        if name == "look_again" and answer:
            self.taken[State.UNKNOWN, E.LOOK_AGAIN] += 1
        if name not in _BY_VERB or conn.info.transaction_status is pq.TransactionStatus.INERROR:
            return
        with conn.cursor(row_factory=tuple_row) as cursor:
            rows = cursor.execute(
                "SELECT at, job_id, was, became FROM clockwork.moves WHERE at > %s ORDER BY at",
                [self._last],
            ).fetchall()
        for at, job_id, was, became in rows:
            self._last = at
            event = _event(name, job_id, State(was), State(became), arguments)
            if event is not None:
                self.taken[State(was), event] += 1

    def begin(self) -> None:
        """Forget faults; rows are counted on."""
        self.faults.clear()


def _is_idle(conn: Any) -> bool:  # noqa: ANN401 - whichever library's
    return (
        isinstance(conn, psycopg.Connection)
        and not conn.closed
        and conn.info.transaction_status is pq.TransactionStatus.IDLE
    )


def _event(
    name: str, job_id: int, was: State, became: State, arguments: tuple[Any, ...]
) -> Event | None:
    """Which row of the table a move was: of those that its verb may go through, what fits."""
    candidates = _BY_VERB[name]
    if name == "settle":
        end = next((end for key, end in arguments[0].items() if key[0] == job_id), None)
        if end is None:
            return None  # a test's own hand was at it
        candidates = (end.event, E.LATE_PUBLISH, E.LOSE_ANSWER, E.LOOK_UNCLEAR, E.REPEAT_ENDED)
        if end.event in {E.REJECT, E.DEFER, E.EXPIRE, E.UNAUTHORIZED}:
            candidates = (end.event, E.LATE_PUBLISH, E.REPEAT_ENDED)
    elif name == "record_late":
        end = arguments[2]
        candidates = (end.event, *_LATE)
    return next((e for e in candidates if became in TABLE.get((was, e), ())), None)
