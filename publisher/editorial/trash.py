"""The trash: posts that nobody wants to see, with nothing of theirs under way."""

from __future__ import annotations

from sqlalchemy import Connection, func, update

from publisher.editorial import post_events, versions
from publisher.editorial.actor import Actor, Who
from publisher.editorial.post_events import Event
from publisher.editorial.post_lock import LockedPost, lock
from publisher.editorial.schema import posts
from publisher.engine import queries
from publisher.engine.errors import Conflict
from publisher.engine.job import State, public_id
from publisher.engine.queries import PostJob


def trash(conn: Connection, post_id: int, *, who: Who) -> bool:
    """Put a post into the trash. False: it is there already.

    Nothing of it is scheduled or brought back from then on. Raises ``Conflict``
    (``open-job-exists``, ``sending-now``, ``unknown-not-retryable``) for one with a job that is
    open or may be live; ``busy``, ``NotFound``.
    """
    post = lock(conn, post_id)
    if post.trashed_at is not None:
        return False
    for job in queries.jobs_of_post(conn, post.id):
        if job.is_open or job.may_be_live:
            raise _in_the_way(post, job)
    conn.execute(
        update(posts)
        .where(posts.c.id == post.id)
        .values(trashed_at=func.clock_timestamp(), trashed_by=Actor.of(who).name)
    )
    versions.end_review(conn, post, "trashed", who=who)
    post_events.tell(conn, post.id, Event.TRASHED, who=who)
    return True


def restore(conn: Connection, post_id: int, *, who: Who) -> bool:
    """Take a post out of the trash, as it was. False: it was not there. ``busy``, ``NotFound``."""
    post = lock(conn, post_id)
    if post.trashed_at is None:
        return False
    conn.execute(
        update(posts).where(posts.c.id == post.id).values(trashed_at=None, trashed_by=None)
    )
    post_events.tell(conn, post.id, Event.RESTORED, who=who)
    return True


def _in_the_way(post: LockedPost, job: PostJob) -> Conflict:
    name = public_id(job.id)
    if job.is_waiting and not job.may_be_live:
        message = (
            f"Post {post.name} has a job that is {job.state} on {job.channel}. Nothing was "
            f"changed. Cancel it first: publisher jobs cancel {name}"
        )
        return Conflict(message, code="open-job-exists", state=job.state)
    if job.state is State.SENDING:
        message = (
            f"Post {post.name} is being sent to {job.channel} (job {name}). Nothing was changed. "
            "Wait for its end."
        )
        return Conflict(message, code="sending-now", state=job.state)
    message = (
        f"Post {post.name} may be live on {job.channel} (job {name}, {job.state}). Nothing was "
        "changed. Look at the page and record what you see."
    )
    return Conflict(message, code="unknown-not-retryable", state=job.state)
