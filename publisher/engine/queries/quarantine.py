"""What a database that may lack sends holds back, and what was seen of it so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, DateTime, func, select

from publisher.engine.job import JobId
from publisher.engine.queries.names import posts
from publisher.engine.schema import channels, job_contents, jobs, quarantined, quarantines


@dataclass(frozen=True, slots=True)
class QuarantineRow:
    """One time at which the database was found to lack sends, or said to.

    ``since``: when the first of them may have been made. ``absent_after``: from then on nothing of
    them can arrive. ``held`` jobs it holds still, ``asked`` of them need a person.
    """

    id: int
    at: datetime
    cause: str
    strict: bool
    since: datetime
    absent_after: datetime
    who: str
    held: int
    asked: int
    now: datetime


@dataclass(frozen=True, slots=True)
class SuspectRow:
    """One job in quarantine. ``last_look``: what was seen; ``asked_at``: a person must decide."""

    id: JobId
    key: str
    ref: str | None
    quarantine_id: int
    channel_id: int
    channel: str
    platform: str
    content: str
    state: str
    due_at: datetime
    useful_until: datetime | None
    strict: bool
    looks: int
    last_look: str | None
    next_look_at: datetime | None
    asked_at: datetime | None
    absent_after: datetime
    now: datetime


_NOW = func.clock_timestamp(type_=DateTime(timezone=True)).label("now")


def quarantine_rows(conn: Connection, *, limit: int = 20) -> list[QuarantineRow]:
    """The latest quarantines, the newest first, those that are over too."""
    is_open = quarantined.c.released_at.is_(None)
    query = (
        select(
            quarantines.c.id,
            quarantines.c.at,
            quarantines.c.cause,
            quarantines.c.strict,
            quarantines.c.since,
            quarantines.c.absent_after,
            quarantines.c.who,
            func.count(quarantined.c.job_id).filter(is_open).label("held"),
            func.count(quarantined.c.job_id)
            .filter(is_open, quarantined.c.asked_at.is_not(None))
            .label("asked"),
            _NOW,
        )
        .select_from(quarantines)
        .outerjoin(quarantined, quarantined.c.quarantine_id == quarantines.c.id)
        .group_by(quarantines.c.id)
        .order_by(quarantines.c.id.desc())
        .limit(limit)
    )
    return [QuarantineRow(**row) for row in conn.execute(query).mappings()]


def suspect_rows(conn: Connection, *, channel_id: int | None = None) -> list[SuspectRow]:
    """The jobs in quarantine, on one channel or on all; those that need a person first."""
    query = (
        select(
            jobs.c.id,
            job_contents.c.key,
            posts.c.ref,
            quarantined.c.quarantine_id,
            jobs.c.channel_id,
            channels.c.name.label("channel"),
            channels.c.platform,
            job_contents.c.content,
            jobs.c.state,
            jobs.c.due_at,
            jobs.c.useful_until,
            quarantined.c.strict,
            quarantined.c.looks,
            quarantined.c.last_look,
            quarantined.c.next_look_at,
            quarantined.c.asked_at,
            quarantines.c.absent_after,
            _NOW,
        )
        .select_from(quarantined)
        .join(quarantines, quarantines.c.id == quarantined.c.quarantine_id)
        .join(jobs, jobs.c.id == quarantined.c.job_id)
        .join(job_contents, job_contents.c.job_id == jobs.c.id)
        .join(channels, channels.c.id == jobs.c.channel_id)
        .outerjoin(posts, posts.c.id == jobs.c.post_id)
        .where(quarantined.c.released_at.is_(None), jobs.c.state == "scheduled")
        .order_by(quarantined.c.asked_at.is_(None), jobs.c.due_at, jobs.c.id)
    )
    if channel_id is not None:
        query = query.where(jobs.c.channel_id == channel_id)
    rows: list[Mapping[str, Any]] = [dict(row) for row in conn.execute(query).mappings()]
    return [SuspectRow(**{**row, "id": JobId(row["id"])}) for row in rows]
