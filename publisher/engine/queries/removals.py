"""What is needed to take a post down, and what became of that."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from sqlalchemy import Connection, select, text

from publisher.engine.errors import NotFound
from publisher.engine.job import OPEN, JobId, State, public_id
from publisher.engine.schema import attempts, channels, job_contents, jobs
from publisher.engine.sender import Sender


@dataclass(frozen=True, slots=True)
class LiveJob:
    """A job whose post may be asked down. ``senders``: whose sends of it may still arrive.

    ``answer``: the body of the platform's answer that named the post; empty where a look or a
    person did.
    """

    id: JobId
    key: str
    channel_id: int
    platform: str
    content: str = field(repr=False)
    remote_id: str | None
    platform_key: str | None
    queue: str
    answer: str = field(repr=False)
    senders: tuple[Sender, ...]


@dataclass(frozen=True, slots=True)
class RemovalRow:
    """One job that takes, or took, the post of job ``removes`` down."""

    id: JobId
    removes: JobId
    channel_id: int
    channel: str
    state: State
    due_at: datetime
    settled_at: datetime | None
    reason: str | None

    @property
    def is_open(self) -> bool:
        """Whether its end is not known yet."""
        return self.state in OPEN


# A repeat that was safe may arrive after the post was deleted, and would put it back: the key by
# which the platform would have known it is gone with the post. As in ``ledger.doubts``, a hand
# returned when its own worker settled the attempt.
_SENDERS: Final = text(
    """
SELECT a.incarnation AS run, coalesce(i.host, 'an unknown host') AS host,
       CASE WHEN a.reason IS DISTINCT FROM 'worker_died' AND a.reason IS DISTINCT FROM 'drained'
            THEN greatest(a.settled_at,
                          (SELECT max(e.at) FROM publisher.job_events e
                            WHERE e.job_id = a.job_id AND e.attempt = a.number
                              AND e.event IN ('late_answer', 'spool_read'))) END AS returned_at,
       i.ended_at, i.declared_gone_at
  FROM publisher.attempts a LEFT JOIN publisher.incarnations i ON i.id = a.incarnation
 WHERE a.job_id = :job_id
   AND (a.proof IN ('repeat_safe', 'forced')
        OR a.proof IS NULL AND a.outcome IS DISTINCT FROM 'published')
"""
)


def live_job(conn: Connection, job_id: JobId) -> LiveJob:
    """What a removal of that job's post is made of. Raises ``NotFound``."""
    row = (
        conn.execute(
            select(
                jobs.c.id,
                job_contents.c.key,
                jobs.c.channel_id,
                channels.c.platform,
                job_contents.c.content,
                jobs.c.remote_id,
                job_contents.c.platform_key,
                jobs.c.queue,
            )
            .join(job_contents, job_contents.c.job_id == jobs.c.id)
            .join(channels, channels.c.id == jobs.c.channel_id)
            .where(jobs.c.id == job_id)
        )
        .mappings()
        .one_or_none()
    )
    if row is None:
        message = f"There is no job {public_id(job_id)}."
        raise NotFound(message)
    body = conn.scalar(
        select(attempts.c.answer["body"].astext)
        .where(attempts.c.job_id == job_id, attempts.c.remote_id == row["remote_id"])
        .order_by(attempts.c.number.desc())
        .limit(1)
    )
    senders = [Sender(**sent) for sent in conn.execute(_SENDERS, {"job_id": job_id}).mappings()]
    return LiveJob(**row, answer=body or "", senders=tuple(senders))


def removals_of_post(conn: Connection, post_id: int) -> list[RemovalRow]:
    """Every job that was to take one of the post's own jobs off its page, the oldest first."""
    own = jobs.alias("own")
    query = (
        select(
            jobs.c.id, jobs.c.removes, jobs.c.channel_id, channels.c.name.label("channel"),
            jobs.c.state, jobs.c.due_at, jobs.c.settled_at, jobs.c.reason,
        )
        .join(own, own.c.id == jobs.c.removes)
        .join(channels, channels.c.id == jobs.c.channel_id)
        .where(own.c.post_id == post_id)
        .order_by(jobs.c.id)
    )  # fmt: skip
    rows = conn.execute(query).mappings()
    return [RemovalRow(**{**row, "state": State(row["state"])}) for row in rows]
