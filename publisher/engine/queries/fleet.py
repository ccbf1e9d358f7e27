"""Worker runs, and how many jobs stand where."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, DateTime, func, select

from publisher.engine.job import State
from publisher.engine.schema import deployment, incarnations, jobs


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """One run of a worker process; ``seen_at`` is its last sign of life."""

    id: int
    host: str
    pid: int
    started_at: datetime
    seen_at: datetime
    ended_at: datetime | None
    end_reason: str | None
    declared_gone_at: datetime | None
    now: datetime


_now = func.clock_timestamp(type_=DateTime(timezone=True)).label("now")


def worker_rows(conn: Connection) -> list[WorkerRow]:
    """Worker runs that have not ended, the newest first."""
    query = (
        select(*(incarnations.c[name] for name in WorkerRow.__slots__ if name != "now"), _now)
        .where(incarnations.c.ended_at.is_(None), incarnations.c.declared_gone_at.is_(None))
        .order_by(incarnations.c.id.desc())
    )
    return [WorkerRow(**row) for row in conn.execute(query).mappings()]


def counts_by_state(conn: Connection) -> Counter[State]:
    """How many jobs stand in each state, due or not."""
    query = select(jobs.c.state, func.count()).group_by(jobs.c.state)
    return Counter({State(state): count for state, count in conn.execute(query)})


def deployment_id(conn: Connection) -> str:
    """Which deployment this database is; credentials are sealed for it."""
    return str(conn.execute(select(deployment.c.id)).scalar_one())
