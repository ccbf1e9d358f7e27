"""Doubts as a list shows them: those that need a person first, the oldest first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, DateTime, func, select

from publisher.engine.job import JobId
from publisher.engine.queries.names import posts
from publisher.engine.schema import channels, doubts, job_contents, jobs, looks


@dataclass(frozen=True, slots=True)
class DoubtRow:
    """One job that may be live.

    ``reason`` is the journal's word for why it is in doubt, ``asked_reason`` says why a person
    must decide; None while looks remain that may. ``evidence`` is what the last look found, as
    JSON, and ``looked_at`` when it ended.
    """

    id: JobId
    key: str
    ref: str | None
    channel_id: int
    channel: str
    platform: str
    content: str
    progress: Mapping[str, Any] | None
    reason: str | None
    useful_until: datetime | None
    since: datetime
    looks: int
    last_look: str | None
    next_look_at: datetime | None
    asked_at: datetime | None
    asked_reason: str | None
    taken_by: str | None
    taken_at: datetime | None
    snoozed_until: datetime | None
    looked_at: datetime | None
    evidence: Mapping[str, Any] | None
    now: datetime

    @property
    def needs_a_person(self) -> bool:
        """No machine can decide it, as far as is known."""
        return self.asked_at is not None


def doubt_rows(conn: Connection) -> list[DoubtRow]:
    """Every doubt there is."""
    newest = (
        select(looks.c.ended_at.label("looked_at"), looks.c.evidence)
        .where(looks.c.job_id == doubts.c.job_id)
        .order_by(looks.c.id.desc())
        .limit(1)
        .lateral("newest")
    )
    query = (
        select(
            doubts.c.job_id.label("id"),
            job_contents.c.key,
            posts.c.ref,
            jobs.c.channel_id,
            channels.c.name.label("channel"),
            channels.c.platform,
            job_contents.c.content,
            job_contents.c.progress,
            jobs.c.reason,
            jobs.c.useful_until,
            doubts.c.since,
            doubts.c.looks,
            doubts.c.last_look,
            doubts.c.next_look_at,
            doubts.c.asked_at,
            doubts.c.asked_reason,
            doubts.c.taken_by,
            doubts.c.taken_at,
            doubts.c.snoozed_until,
            newest.c.looked_at,
            newest.c.evidence,
            func.clock_timestamp(type_=DateTime(timezone=True)).label("now"),
        )
        .select_from(doubts)
        .join(jobs, jobs.c.id == doubts.c.job_id)
        .join(job_contents, job_contents.c.job_id == doubts.c.job_id)
        .join(channels, channels.c.id == jobs.c.channel_id)
        .outerjoin(posts, posts.c.id == jobs.c.post_id)
        .outerjoin(newest, doubts.c.job_id.is_not(None))
        .order_by(doubts.c.asked_at.is_(None), doubts.c.since, doubts.c.job_id)
    )
    rows = conn.execute(query).mappings()
    return [DoubtRow(**{**row, "id": JobId(row["id"])}) for row in rows]
