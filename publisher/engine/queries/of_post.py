"""The jobs of one post, as its editors must know them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import Connection, and_, exists, or_, select

from publisher.engine.errors import NotFound
from publisher.engine.job import OPEN, JobId, State
from publisher.engine.outcome import Proof
from publisher.engine.queries.listing import deleted_at
from publisher.engine.schema import attempts, channels, job_contents, jobs

_CERTAIN: Final = (Proof.NOT_SENT, Proof.REFUSED, Proof.ABSENT)
"""Proofs that say it is not on the page; ``forced`` and ``repeat_safe`` only allow a send."""


@dataclass(frozen=True, slots=True)
class PostJob:
    """One job of a post. ``version``: the number of the version whose content it holds.

    ``has_uncertain_attempt``: one that may be live, or is: without a proof, or with one that only
    allows a further send.
    """

    id: JobId
    key: str
    channel_id: int
    channel: str
    kind: str
    state: State
    due_at: datetime
    useful_until: datetime | None
    hold_reason: str | None
    attempts: int
    reason: str | None
    remote_id: str | None
    replaces: JobId | None
    repeats: JobId | None
    version_id: int | None
    version: int | None
    content_sha256: bytes
    has_uncertain_attempt: bool
    deleted_at: datetime | None = None
    """Since when it is known to be gone from its page, by a job that was to take it down."""

    @property
    def is_open(self) -> bool:
        """Whether its end is not known yet."""
        return self.state in OPEN

    @property
    def is_waiting(self) -> bool:
        """Whether its send has not begun, so that it may still be changed."""
        return self.state in (State.SCHEDULED, State.CLAIMED)

    @property
    def may_be_live(self) -> bool:
        """Whether it may be on the page, without our knowing."""
        if self.state is State.PUBLISHED:
            return False
        doubtful = self.state in (State.SENDING, State.UNKNOWN, State.DROPPED)
        return doubtful or self.has_uncertain_attempt

    @property
    def certainly_not_published(self) -> bool:
        """Whether it is not on the page for certain."""
        return self.state is not State.PUBLISHED and not self.may_be_live


def jobs_of_post(conn: Connection, post_id: int, *, kind: str | None = None) -> list[PostJob]:
    """Every job of the post, or those of one kind, the oldest first."""
    uncertain = exists().where(
        and_(
            attempts.c.job_id == jobs.c.id,
            or_(
                attempts.c.proof.is_(None),
                attempts.c.proof.not_in([str(proof) for proof in _CERTAIN]),
                attempts.c.outcome == "published",
            ),
        )
    )
    query = (
        select(
            jobs.c.id, job_contents.c.key, jobs.c.channel_id, channels.c.name.label("channel"),
            jobs.c.kind, jobs.c.state, jobs.c.due_at, jobs.c.useful_until, jobs.c.hold_reason,
            jobs.c.attempts, jobs.c.reason, jobs.c.remote_id, jobs.c.replaces, jobs.c.repeats,
            job_contents.c.version_id, job_contents.c.version, job_contents.c.content_sha256,
            uncertain.label("has_uncertain_attempt"), deleted_at().label("deleted_at"),
        )
        .join(job_contents, job_contents.c.job_id == jobs.c.id)
        .join(channels, channels.c.id == jobs.c.channel_id)
        .where(jobs.c.post_id == post_id)
        .order_by(jobs.c.id)
    )  # fmt: skip
    if kind is not None:
        query = query.where(jobs.c.kind == kind)
    return [
        PostJob(
            **{
                **row,
                "state": State(row["state"]),
                "content_sha256": bytes(row["content_sha256"]),
            }
        )
        for row in conn.execute(query).mappings()
    ]


def platform_of(conn: Connection, channel_id: int) -> str:
    """The platform of a channel. Raises ``NotFound``."""
    found = conn.scalar(select(channels.c.platform).where(channels.c.id == channel_id))
    if found is None:
        message = f"There is no channel {channel_id}."
        raise NotFound(message)
    return str(found)
