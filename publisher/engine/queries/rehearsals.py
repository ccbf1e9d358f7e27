"""Jobs of rehearsals on real pages, and the real jobs that a rehearsal there must not meet."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, func, not_, or_

from publisher.engine.job import REHEARSAL, State
from publisher.engine.queries.listing import JobRow, job_row, row_query
from publisher.engine.schema import job_contents, jobs

_UNDER_WAY = (State.CLAIMED, State.SENDING, State.UNKNOWN)


def jobs_in_the_way(conn: Connection, channel_id: int, *, within: timedelta) -> tuple[JobRow, ...]:
    """The channel's real jobs that are scheduled ``within`` so long, or whose end is not known.

    The ones due first come first.
    """
    soon = and_(jobs.c.state == State.SCHEDULED, jobs.c.run_at <= func.clock_timestamp() + within)
    query = (
        row_query()
        .where(
            jobs.c.channel_id == channel_id,
            or_(soon, jobs.c.state.in_([str(state) for state in _UNDER_WAY])),
            not_(_is_rehearsed()),
        )
        .order_by(jobs.c.run_at, jobs.c.id)
    )
    return tuple(job_row(row) for row in conn.execute(query).mappings())


def _is_rehearsed() -> ColumnElement[Any]:
    return job_contents.c.key.startswith(f"{REHEARSAL}:", autoescape=True)
