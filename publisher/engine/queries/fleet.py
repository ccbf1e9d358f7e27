"""Worker runs, and how many jobs stand where."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, DateTime, func, or_, select

from publisher.engine.job import State
from publisher.engine.schema import attempts, deployment, doubts, incarnations, jobs


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


@dataclass(frozen=True, slots=True)
class WorkerRun:
    """A worker run with what it holds, and the doubts that its sends left."""

    row: WorkerRow
    holds: int
    doubts: int


_now = func.clock_timestamp(type_=DateTime(timezone=True)).label("now")


def worker_rows(conn: Connection) -> list[WorkerRow]:
    """Worker runs that have not ended, the newest first."""
    query = (
        select(*(incarnations.c[name] for name in WorkerRow.__slots__ if name != "now"), _now)
        .where(incarnations.c.ended_at.is_(None), incarnations.c.declared_gone_at.is_(None))
        .order_by(incarnations.c.id.desc())
    )
    return [WorkerRow(**row) for row in conn.execute(query).mappings()]


def worker_runs(conn: Connection, *, every: bool = False) -> list[WorkerRun]:
    """Worker runs that are not over or left a doubt, or ``every`` one; the newest first."""
    holds = (
        select(func.count())
        .where(jobs.c.incarnation.is_not(None), jobs.c.incarnation == incarnations.c.id)
        .scalar_subquery()
    )
    begun = (
        select(attempts.c.incarnation, func.count(func.distinct(attempts.c.job_id)).label("doubts"))
        .select_from(doubts)
        .join(attempts, attempts.c.job_id == doubts.c.job_id)
        .where(
            or_(attempts.c.proof.is_(None), attempts.c.proof.not_in(["not_sent", "repeat_safe"]))
        )
        .group_by(attempts.c.incarnation)
        .subquery()
    )
    query = (
        select(
            *(incarnations.c[name] for name in WorkerRow.__slots__ if name != "now"),
            _now,
            holds.label("holds"),
            func.coalesce(begun.c.doubts, 0).label("doubts"),
        )
        .outerjoin(begun, begun.c.incarnation == incarnations.c.id)
        .order_by(incarnations.c.id.desc())
    )
    if not every:
        query = query.where(or_(incarnations.c.ended_at.is_(None), begun.c.doubts > 0))
    return [
        WorkerRun(
            WorkerRow(**{name: row[name] for name in WorkerRow.__slots__}),
            row["holds"],
            row["doubts"],
        )
        for row in conn.execute(query).mappings()
    ]


def counts_by_state(conn: Connection) -> Counter[State]:
    """How many jobs stand in each state, due or not."""
    query = select(jobs.c.state, func.count()).group_by(jobs.c.state)
    return Counter({State(state): count for state, count in conn.execute(query)})


def deployment_id(conn: Connection) -> str:
    """Which deployment this database is; credentials are sealed for it."""
    return str(conn.execute(select(deployment.c.id)).scalar_one())
