"""Delete a post from a page where it is live, by a job of its own.

The post, its versions and the job that published it stay as they are; what goes is what readers
see. The removal names the job whose post it takes down, and that one says from then on that its
post was live and is gone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection

from publisher.editorial import post_events
from publisher.editorial.actor import Actor, Who
from publisher.editorial.post_events import Event
from publisher.editorial.post_lock import LockedPost, lock
from publisher.editorial.posts import KIND
from publisher.engine import ledger, queries
from publisher.engine.errors import Conflict
from publisher.engine.job import DELETE, JobId, NewJob, State, public_id, removal_key
from publisher.engine.ledger import Enqueued
from publisher.engine.queries import LiveJob, PostJob
from publisher.engine.registry import Registry
from publisher.engine.removal import Removal
from publisher.engine.sender import Sender


@dataclass(frozen=True, slots=True)
class Asked:
    """A removal that was asked for, and the published job whose post it takes down."""

    job: Enqueued
    removes: PostJob


def delete(  # noqa: PLR0913 - what goes, from where, and by whose word
    conn: Connection,
    post_id: int,
    channel_id: int,
    *,
    who: Who,
    registry: Registry,
    horizon: timedelta,
    reason: str = "",
    job_id: JobId | None = None,
) -> Asked:
    """Ask for the post to be deleted from one channel's page, as soon as a worker comes to it.

    ``job_id``: the job whose post goes; by default the newest that is live there. ``horizon``: how
    long what a worker wrote may take to land.

    Raises ``Conflict``: ``not-live`` where nothing of it is live there, ``unknown-not-retryable``
    and ``sending-now`` where that is not known yet, ``already-deleted`` (or
    ``AlreadyDeleted``, where that happens just then), ``no-link`` where nobody
    knows which post it is, ``cannot-delete`` where the platform deletes nothing,
    ``send-may-arrive`` while an earlier send of it could put it back, ``open-job-exists`` where
    it is asked for already; ``busy``, ``NotFound``. Nothing was added then.
    """
    post = lock(conn, post_id)
    placed = [
        job
        for job in queries.jobs_of_post(conn, post.id, kind=KIND)
        if job.channel_id == channel_id and job_id in (None, job.id)
    ]
    job = _live(post, placed)
    live = queries.live_job(conn, job.id)
    _require_removable(conn, job, live, registry)
    now = queries.clock(conn)
    _require_arrived(job, live.senders, now, horizon)
    _require_not_asked(conn, post, job)
    new = new_job(live, now=now, who=who, registry=registry, reason=reason)
    (added,) = ledger.enqueue(conn, [new])
    post_events.tell(
        conn, post.id, Event.DELETION_ASKED, who=who, channel=channel_id, reason=reason.strip(),
        job=public_id(added.job_id), removes=public_id(job.id),
    )  # fmt: skip
    return Asked(added, job)


def new_job(
    live: LiveJob, *, now: datetime, who: Who, registry: Registry, reason: str = ""
) -> NewJob:
    """The job that takes down the post of ``live``; due at once, and never too late."""
    removal = Removal(
        job=public_id(live.id),
        key=live.key,
        remote_id=live.remote_id or "",
        content=live.content,
        asked_by=Actor.of(who).name,
        answer=live.answer,
        platform_key=live.platform_key,
        reason=reason.strip(),
    )
    key = removal_key(live.id, live.channel_id, now)
    return NewJob(
        key=key,
        kind=DELETE,
        queue=live.queue,
        channel_id=live.channel_id,
        content=removal.to_json(),
        run_at=now,
        platform_key=registry.adapter(live.platform).platform_key(key, now),
        removes=live.id,
    )


def _live(post: LockedPost, placed: Sequence[PostJob]) -> PostJob:
    """The newest that is live and not deleted. Raises ``Conflict`` where there is none."""
    published = [job for job in placed if job.state is State.PUBLISHED]
    there = [job for job in published if job.deleted_at is None]
    if there:
        return there[-1]
    if published:
        gone = published[-1]
        message = (
            f"Post {post.name} was deleted from {gone.channel} by "
            f"{gone.deleted_at:%Y-%m-%d %H:%M %Z} (job {public_id(gone.id)}). Nothing was added."
        )
        raise Conflict(message, code="already-deleted", state=gone.state)
    doubtful = [job for job in placed if job.may_be_live]
    if not doubtful:
        message = (
            f"Post {post.name} is not live on that channel, so there is nothing to delete. Nothing "
            f"was added. See where it stands: publisher posts show {post.name}"
        )
        raise Conflict(message, code="not-live")
    job = doubtful[-1]
    name = public_id(job.id)
    if job.state is State.SENDING:
        message = (
            f"Post {post.name} is being sent to {job.channel} (job {name}). Nothing was added. "
            "Wait for its end, then delete it."
        )
        raise Conflict(message, code="sending-now", state=job.state)
    message = (
        f"Post {post.name} may be live on {job.channel} (job {name}, {job.state}), and nobody "
        "knows under which id. Nothing was added. Look at the page and record what you see: "
        f"publisher unknowns show {name}"
    )
    raise Conflict(message, code="unknown-not-retryable", state=job.state)


def _require_removable(conn: Connection, job: PostJob, live: LiveJob, registry: Registry) -> None:
    name = public_id(job.id)
    can = registry.adapter(queries.platform_of(conn, job.channel_id)).capabilities(live.content)
    if not can.can_delete:
        message = (
            f"{can.name or live.platform} deletes nothing for us, so job {name} stays where it is. "
            "Nothing was added."
        )
        raise Conflict(message, code="cannot-delete", state=job.state)
    if live.remote_id is None:
        message = (
            f"A person saw job {name} on {job.channel} and gave no link, so nobody knows which "
            "post to delete. Nothing was added. Delete it by hand, on the page itself."
        )
        raise Conflict(message, code="no-link", state=job.state)


def _require_arrived(
    job: PostJob, senders: Sequence[Sender], now: datetime, horizon: timedelta
) -> None:
    """A repeat that was safe while the post was there would put it back once it is gone."""
    for sender in senders:
        unlocks_at = sender.unlocks_at(horizon)
        if unlocks_at is not None and unlocks_at <= now:
            continue
        run = f"worker run {sender.run} on {sender.host}"
        when = (
            f"once {run} is proved stopped: publisher workers list"
            if unlocks_at is None
            else f"after {unlocks_at:%Y-%m-%d %H:%M:%S %Z}"
        )
        message = (
            f"An earlier send of job {public_id(job.id)} may still arrive on {job.channel}, and "
            f"would put the post back. Nothing was added. Delete it {when}"
        )
        raise Conflict(message, code="send-may-arrive", state=job.state)


def _require_not_asked(conn: Connection, post: LockedPost, job: PostJob) -> None:
    """For the sentence; what holds is the database's own index."""
    for removal in queries.removals_of_post(conn, post.id):
        if removal.removes == job.id and removal.is_open:
            name = public_id(removal.id)
            message = (
                f"Post {post.name} is being deleted from {job.channel} already (job {name}, "
                f"{removal.state}). Nothing was added. See: publisher jobs show {name}"
            )
            raise Conflict(message, code="open-job-exists", state=removal.state)
