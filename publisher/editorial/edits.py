"""What an edit, an approval or its withdrawal does to the jobs a post has already.

A job whose send has not begun is held, or takes the new content. One that was begun keeps its
content for ever: where it is certain that it is not on the page, a successor takes its place in the
same transaction; where it is not, it is left alone and its editor is told. Of any job that waits
the database itself makes sure that it goes out only in a version whose approval stands.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from sqlalchemy import Connection, update

from publisher.editorial.actor import Actor, Who
from publisher.editorial.post_lock import LockedPost
from publisher.editorial.posts import KIND, QUEUE
from publisher.editorial.schema import post_channels
from publisher.editorial.version_rows import StoredVersion
from publisher.engine import ledger, queries
from publisher.engine.errors import Conflict
from publisher.engine.job import Hold, JobId, NewJob, State, post_key, public_id
from publisher.engine.queries import PostJob
from publisher.engine.registry import Registry

BY_APPROVAL = (Hold.APPROVAL, Hold.EDITED)
"""Holds that the approval of the newest version lifts; a person's own is theirs."""


class Act(StrEnum):
    """What came of one job."""

    HELD = "held"
    REPLACED = "replaced"
    """It has the new content."""
    SUCCEEDED = "succeeded"
    """Another job has its place."""
    RELEASED = "released"
    LEFT = "left"
    """Too late, or not certain enough; the refusal says which."""


@dataclass(frozen=True, slots=True)
class Change:
    """What was done with one job of the post, ``refusal`` where nothing could be."""

    job: PostJob
    act: Act
    successor: JobId | None = None
    refusal: Conflict | None = None


def refusals(changes: Iterable[Change]) -> tuple[Conflict, ...]:
    """Why some jobs were left as they are."""
    return tuple(change.refusal for change in changes if change.refusal is not None)


def hold_back(
    conn: Connection,
    post: LockedPost,
    *,
    who: Who,
    kind: Hold,
    reason: str,
    version_ids: Iterable[int] | None = None,
) -> tuple[Change, ...]:
    """Hold what waits, of these versions or of any; say what is beyond holding.

    What somebody holds already stays as it is: when they let it go, the database asks for the
    approval again. What may be live is not held for an edit: its repeat is of the same post.
    """
    wanted = None if version_ids is None else set(version_ids)
    changes = []
    for job in queries.jobs_of_post(conn, post.id, kind=KIND):
        if wanted is not None and job.version_id not in wanted:
            continue
        goes_on = kind is Hold.EDITED and job.has_uncertain_attempt
        if job.is_waiting and not goes_on:
            if job.hold_reason is None:
                ledger.hold(conn, job.id, who=Actor.of(who).name, reason=reason, kind=kind)
            changes.append(Change(job, Act.HELD))
        elif job.is_open:
            changes.append(Change(job, Act.LEFT, refusal=too_late(job, "change")))
    return tuple(changes)


def take_over(
    conn: Connection,
    post: LockedPost,
    version: StoredVersion,
    *,
    who: Who,
    registry: Registry,
    now: datetime,
) -> tuple[Change, ...]:
    """Bring every open job of the post to ``version``, as far as that is safe; it is approved."""
    name = Actor.of(who).name
    changes = []
    for job in queries.jobs_of_post(conn, post.id, kind=KIND):
        if not job.is_open:
            continue
        if job.version_id != version.id:
            changes.append(_taken_over(conn, job, version, name, registry, now))
        elif job.hold_reason in BY_APPROVAL:
            refusal = _release(conn, job, name)
            act = Act.RELEASED if refusal is None else Act.LEFT
            changes.append(Change(job, act, refusal=refusal))
    return tuple(changes)


def _release(conn: Connection, job: PostJob, who: str) -> Conflict | None:
    """Let it go on; why not, where the post stands there already by another job."""
    try:
        ledger.release_hold(conn, job.id, who=who)
    except Conflict as refusal:
        if refusal.code != "already-live":
            raise
        return refusal
    return None


def too_late(job: PostJob, verb: str) -> Conflict:
    """Why a job that was begun is beyond this; ``verb`` is what was asked for."""
    name = public_id(job.id)
    if job.state is State.SENDING:
        message = (
            f"Too late to {verb}: {job.channel} is being sent this post (job {name}). What you "
            "wrote is kept. Wait for its end; afterwards the post can be fixed or copied."
        )
        return Conflict(message, code="sending-now", state=job.state)
    message = (
        f"It may already be live on {job.channel} (job {name}), so nothing takes its place. What "
        "you wrote is kept. Look at the page and record what you see: "
        f"publisher unknowns show {name}"
    )
    return Conflict(message, code="unknown-not-retryable", state=job.state)


def _taken_over(
    conn: Connection,
    job: PostJob,
    version: StoredVersion,
    who: str,
    registry: Registry,
    now: datetime,
) -> Change:
    if job.hold_reason == Hold.QUARANTINE:
        return Change(job, Act.LEFT, refusal=_in_quarantine(job))
    if not job.is_waiting or not job.certainly_not_published:
        return Change(job, Act.LEFT, refusal=too_late(job, "change"))
    if job.attempts and job.useful_until is not None and job.useful_until <= now:
        return Change(job, Act.LEFT, refusal=_not_useful(job))
    if job.attempts:
        return Change(job, Act.SUCCEEDED, _succeed(conn, job, version, who, registry, now))
    if job.state is State.CLAIMED:
        # Out of its worker's hand, for that holds the old content.
        ledger.hold(conn, job.id, who=who, reason="a new version", kind=Hold.EDITED)
    ledger.replace(
        conn,
        job.id,
        content=version.document.post_for(job.channel_id).to_json(),
        who=who,
        version_id=version.id,
        version=version.number,
    )
    refusal = None
    if job.state is State.CLAIMED or job.hold_reason in BY_APPROVAL:
        refusal = _release(conn, job, who)
    return Change(job, Act.REPLACED, refusal=refusal)


def _succeed(
    conn: Connection,
    job: PostJob,
    version: StoredVersion,
    who: str,
    registry: Registry,
    now: datetime,
) -> JobId:
    """Cancel a job that was begun and is not on the page, and put another in its place."""
    ledger.cancel(conn, job.id, who=who, reason=f"version {version.number} takes its place")
    at = max(job.due_at, now)
    conn.execute(
        update(post_channels)
        .where(
            post_channels.c.post_id == version.post_id,
            post_channels.c.channel_id == job.channel_id,
        )
        .values(publish_at=at, useful_until=job.useful_until)
    )
    new = new_job(
        conn, version, job.channel_id, at, registry=registry, useful_until=job.useful_until,
        replaces=job.id,
    )  # fmt: skip
    (added,) = ledger.enqueue(conn, [new])
    if job.hold_reason == Hold.PERSON:
        ledger.hold(conn, added.job_id, who=who, reason=f"as job {public_id(job.id)} was")
    return added.job_id


def new_job(  # noqa: PLR0913 - a job is all of these; each is named at its callers
    conn: Connection,
    version: StoredVersion,
    channel_id: int,
    at: datetime,
    *,
    registry: Registry,
    useful_until: datetime | None,
    replaces: JobId | None = None,
    repeats: JobId | None = None,
) -> NewJob:
    """The job that puts a version on a channel at ``at``, its content frozen in it."""
    key = post_key(version.post_id, channel_id, at)
    adapter = registry.adapter(queries.platform_of(conn, channel_id))
    return NewJob(
        key=key,
        kind=KIND,
        queue=QUEUE,
        channel_id=channel_id,
        content=version.document.post_for(channel_id).to_json(),
        run_at=at,
        useful_until=useful_until,
        post_id=version.post_id,
        version_id=version.id,
        version=version.number,
        platform_key=adapter.platform_key(key, at),
        replaces=replaces,
        repeats=repeats,
    )


def _not_useful(job: PostJob) -> Conflict:
    message = (
        f"Job {public_id(job.id)} on {job.channel} stopped being useful at "
        f"{job.useful_until:%Y-%m-%d %H:%M %Z}, so nothing takes its place. Schedule the post at a "
        "new time when it is over."
    )
    return Conflict(message, code="too-late", state=job.state)


def _in_quarantine(job: PostJob) -> Conflict:
    message = (
        f"Job {public_id(job.id)} on {job.channel} is in quarantine: the database may lack a send "
        "of it, so it keeps its content until it was looked for. See: publisher quarantine status"
    )
    return Conflict(message, code="in-quarantine", state=job.state)
