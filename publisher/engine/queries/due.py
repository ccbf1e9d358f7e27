"""What is due, for whoever waits until nothing is under way any more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, DateTime, func, select

from publisher.engine.job import REHEARSAL, JobId, State
from publisher.engine.schema import jobs

_UNSETTLED = frozenset({State.SCHEDULED, State.CLAIMED, State.SENDING})
_NOT_PUBLISHED = frozenset({State.FAILED, State.MISSED})


@dataclass(frozen=True, slots=True)
class DueCounts:
    """How many jobs whose due time has come stand in which state.

    Due is what an editor asked for (``due_at``). A retry that waits its turn, a hold or a closed
    gate moves ``run_at`` or keeps the job back; it does not make it less due.
    """

    by_state: Counter[State]
    held: int
    retrying: int

    @property
    def unsettled(self) -> int:
        """Scheduled, claimed or sending: more will happen by itself."""
        return sum(self.by_state[state] for state in _UNSETTLED)

    @property
    def live(self) -> int:
        """Proved to be on the page."""
        return self.by_state[State.PUBLISHED]

    @property
    def unknown(self) -> int:
        """May be live; needs a person or a look."""
        return self.by_state[State.UNKNOWN]

    @property
    def not_published(self) -> int:
        """Failed or missed. What a person cancelled or dropped is as they wished."""
        return sum(self.by_state[state] for state in _NOT_PUBLISHED)


def due_counts(conn: Connection, *, only: Collection[JobId] | None = None) -> DueCounts:
    """Count the jobs whose due time has come, by the database's clock; ``only``: among these.

    Without ``only`` a rehearsal's are left out: no editor waits for them.
    """
    query = (
        select(
            jobs.c.state,
            func.count(),
            func.count(jobs.c.hold_reason),
            func.count().filter(jobs.c.failures > 0),
        )
        .where(jobs.c.due_at <= func.clock_timestamp())
        .group_by(jobs.c.state)
    )
    if only is None:
        query = query.where(jobs.c.queue != REHEARSAL)
    else:
        query = query.where(jobs.c.id.in_(only))
    by_state: Counter[State] = Counter()
    held = retrying = 0
    for state, count, of_them_held, of_them_failing in conn.execute(query):
        by_state[State(state)] = count
        if state == State.SCHEDULED:
            held, retrying = of_them_held, of_them_failing
    return DueCounts(by_state, held, retrying)


def clock(conn: Connection) -> datetime:
    """What time it is: the database's clock, the only one that counts."""
    now: datetime = conn.execute(
        select(func.clock_timestamp(type_=DateTime(timezone=True)))
    ).scalar_one()
    return now
