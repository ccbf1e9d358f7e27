"""Schedule an approved version, channel by channel; fix what was refused, publish again on purpose.

What may be done on a channel follows from its newest job there. Nothing is scheduled beside one
that is open; after one that is certainly not on the page the new job takes its place; after one
that is live it must be asked for by that name; and where nobody knows, not at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum
from typing import Final

from sqlalchemy import Connection
from sqlalchemy.dialects.postgresql import insert as upsert

from publisher.editorial import channel_rules, drafts, edits, post_events
from publisher.editorial.actor import Who
from publisher.editorial.examination import ChannelProblem, examine, require_good
from publisher.editorial.post_events import Event
from publisher.editorial.post_lock import LockedPost, lock
from publisher.editorial.posts import KIND, Destination, useful_until
from publisher.editorial.schema import post_channels
from publisher.editorial.version_rows import StoredVersion, read_version, versions_of
from publisher.engine import ledger, queries
from publisher.engine.errors import Conflict, OpenJobExists
from publisher.engine.job import JobId, NewJob, State, public_id
from publisher.engine.ledger import Enqueued
from publisher.engine.queries import PostJob
from publisher.engine.registry import Registry


class Next(StrEnum):
    """What may be done with a post on one channel."""

    SCHEDULE = "schedule"
    FIX = "fix"
    """It was refused for what it says: change it, and schedule it again."""
    AGAIN = "again"
    """It is live, or was and is deleted; a repeat is a deliberate new time."""
    CHANGE = "change"
    """It is scheduled, and may still be moved, changed or cancelled."""
    WAIT = "wait"
    """It is being sent."""
    DECIDE = "decide"
    """It may be live: a person looks at the page."""


@dataclass(frozen=True, slots=True)
class Scheduled:
    """A version that was scheduled, and its new jobs in the order of the places.

    Where an earlier send was refused, and is replaced now, a refusal may have been a lie:
    ``looks_first``: channels whose page is looked at for it before the new job is sent;
    ``cannot_look``: those where nothing can be seen, so that the platform's word has to do.
    """

    version: StoredVersion
    jobs: tuple[Enqueued, ...]
    looks_first: tuple[int, ...] = ()
    cannot_look: tuple[int, ...] = ()
    problems: tuple[ChannelProblem, ...] = ()
    """What to know of these channels at these times; none of it stood in the way."""


def schedule(
    conn: Connection,
    post_id: int,
    places: Sequence[Destination],
    *,
    who: Who,
    registry: Registry,
    useful_for: timedelta,
    number: int | None = None,
) -> Scheduled:
    """Add one publish job for each place, due at its own time.

    It is useful until the place says, for as long as its channel says, or for ``useful_for``.

    ``number``: an approved version; by default the newest. Where the workspace holds what was
    edited, only the newest will do. A job that failed, missed its time or was cancelled on that
    channel, and is certainly not on the page, is what the new one ``replaces``.

    Raises ``Conflict``: ``needs-approval``, ``already-live``, ``unknown-not-retryable``,
    ``sending-now``, ``in-trash``, ``busy``; ``OpenJobExists``; ``PostRefused`` where the platform
    would refuse it; ``KeyConflict`` for a time the post had on that channel before. Nothing was
    added then.
    """
    post = lock(conn, post_id)
    post.require_not_trashed()
    version = _approved(conn, post, number)
    newest = _newest_jobs(conn, post.id)
    _require_places(post, places)
    links: dict[int, JobId | None] = {}
    for place in places:
        links[place.channel_id] = _replaced(newest.get(place.channel_id), post)
    notes = _checked(conn, version, places, registry)
    new = _jobs(conn, version, places, registry, useful_for, replaces=links)
    done = _add(conn, post, version, places, new, who=who, links=links, what="replaces")
    begun = {job.channel_id for job in queries.jobs_of_post(conn, post.id, kind=KIND)
             if job.attempts}  # fmt: skip
    sent = [at for at, before in links.items() if before is not None and at in begun]
    seen = {at for at in sent if _can_look(conn, registry, version, at)}
    return replace(
        done,
        looks_first=tuple(at for at in sent if at in seen),
        cannot_look=tuple(at for at in sent if at not in seen),
        problems=notes,
    )


def _can_look(
    conn: Connection, registry: Registry, version: StoredVersion, channel_id: int
) -> bool:
    adapter = registry.adapter(queries.platform_of(conn, channel_id))
    return adapter.capabilities(version.document.post_for(channel_id).to_json()).can_look


def again(
    conn: Connection,
    post_id: int,
    place: Destination,
    *,
    who: Who,
    registry: Registry,
    useful_for: timedelta,
) -> Scheduled:
    """Publish the approved version once more on a channel where it is live already.

    The new job names the one it ``repeats``. Raises ``Conflict`` (``unknown-not-retryable`` while
    it is not known whether the first is live, ``not-live`` where it is not), and as ``schedule``.
    """
    post = lock(conn, post_id)
    post.require_not_trashed()
    version = _approved(conn, post, None)
    _require_places(post, [place])
    first = _newest_jobs(conn, post.id).get(place.channel_id)
    if first is None or (first.certainly_not_published and not first.is_open):
        message = (
            f"Post {post.name} is not live on that channel, so there is nothing to repeat. Nothing "
            f"was added. Schedule it: publisher posts schedule {post.name}"
        )
        raise Conflict(message, code="not-live")
    if first.state is not State.PUBLISHED:
        raise _in_the_way(first, post)
    notes = _checked(conn, version, [place], registry)
    (job,) = _jobs(conn, version, [place], registry, useful_for, repeats=first.id)
    links: dict[int, JobId | None] = {place.channel_id: first.id}
    done = _add(conn, post, version, [place], [job], who=who, links=links, what="repeats")
    return replace(done, problems=notes)


def options(jobs: Iterable[PostJob]) -> dict[int, tuple[Next, PostJob]]:
    """For each channel the post has jobs on: what may be done there, and the newest job."""
    return {channel_id: (_next(job), job) for channel_id, job in _newest_of(jobs).items()}


def require_fixable(conn: Connection, post_id: int, channel_id: int) -> PostJob:
    """The job on that channel that was not published for certain, to be fixed and sent anew.

    Raises ``Conflict``: ``not-refused`` where there is none, ``edited-meanwhile`` where the draft
    has text that is in no version, for it would be approved unread; otherwise as ``schedule``.
    """
    post = lock(conn, post_id)
    post.require_not_trashed()
    job = _newest_jobs(conn, post_id).get(channel_id)
    if job is None or _replaced(job, post) is None:
        message = (
            f"Post {post.name} has no job on that channel to be fixed. Nothing was changed. "
            f"Schedule it: publisher posts schedule {post.name}"
        )
        raise Conflict(message, code="not-refused")
    draft = drafts.read(conn, post_id)
    if draft.document != read_version(conn, post_id, post.newest).document:
        message = (
            f"{draft.saved_by} has text in post {post.name} that is in no version yet, and a fix "
            "would approve it unread. Nothing was changed. Save it as a version first, or go back: "
            f"publisher posts edit {post.name} --back-to {post.newest}"
        )
        raise Conflict(message, code="edited-meanwhile")
    return job


def _approved(conn: Connection, post: LockedPost, number: int | None) -> StoredVersion:
    post.require_version()
    version = read_version(conn, post.id, number or post.newest)
    if not version.is_approved or (post.holds_edited and version.number < post.newest):
        raise _needs_approval(conn, post)
    return version


def _needs_approval(conn: Connection, post: LockedPost) -> Conflict:
    newest = read_version(conn, post.id, post.newest)
    if newest.is_approved:
        message = (
            f"Version {newest.number} of post {post.name} is the newest; an older one is not "
            "scheduled. Nothing was added. Schedule the newest, or go back to the older one."
        )
        return Conflict(message, code="version-is-old")
    older = [one.number for one in versions_of(conn, post.id) if one.is_approved]
    before = f" Version {older[-1]} was approved, then changed." if older else ""
    back = f", or go back: publisher posts edit {post.name} --back-to {older[-1]}" if older else ""
    message = (
        f"Version {newest.number} of post {post.name} is not approved.{before} Nothing was "
        f"scheduled. Ask for approval: publisher posts submit {post.name}{back}"
    )
    return Conflict(message, code="needs-approval")


def _require_places(post: LockedPost, places: Sequence[Destination]) -> None:
    if not places:
        message = f"Post {post.name} goes nowhere yet. Nothing was added. Name a channel."
        raise Conflict(message, code="channel-missing")
    if len({place.channel_id for place in places}) < len(places):
        message = "A channel is named twice. Nothing was added. One time for each."
        raise Conflict(message, code="channel-twice")


def _newest_jobs(conn: Connection, post_id: int) -> dict[int, PostJob]:
    return _newest_of(queries.jobs_of_post(conn, post_id, kind=KIND))


def _newest_of(jobs: Iterable[PostJob]) -> dict[int, PostJob]:
    """By channel: the open job, else the newest that is live or may be, else the newest.

    A repeat that was cancelled, or refused, does not make the first one any less live; nor does
    what was to take its place, and was called off since it may be live.
    """
    newest: dict[int, PostJob] = {}
    for job in jobs:
        before = newest.get(job.channel_id)
        if before is None or _weight(job) >= _weight(before):
            newest[job.channel_id] = job
    return newest


def _weight(job: PostJob) -> int:
    return 2 if job.is_open else int(not job.certainly_not_published)


_NEXT: Final[Mapping[State, Next]] = {
    State.SCHEDULED: Next.CHANGE,
    State.CLAIMED: Next.CHANGE,
    State.SENDING: Next.WAIT,
    State.PUBLISHED: Next.AGAIN,
    State.UNKNOWN: Next.DECIDE,
    State.DROPPED: Next.DECIDE,
    State.FAILED: Next.FIX,
    State.MISSED: Next.SCHEDULE,
    State.CANCELLED: Next.SCHEDULE,
}
_ENDED_UNSENT: Final = (Next.FIX, Next.SCHEDULE)


def _next(job: PostJob) -> Next:
    found = _NEXT[job.state]
    is_doubtful = found in _ENDED_UNSENT and not job.certainly_not_published
    return Next.DECIDE if is_doubtful else found


def _replaced(job: PostJob | None, post: LockedPost) -> JobId | None:
    """The job that a new one replaces on its channel. Raises where none may be added there."""
    if job is None:
        return None
    if job.is_open or job.state is State.PUBLISHED or not job.certainly_not_published:
        raise _in_the_way(job, post)
    return job.id


def _in_the_way(job: PostJob, post: LockedPost) -> Conflict | OpenJobExists:
    name = public_id(job.id)
    if job.state is State.PUBLISHED:
        is_live = "is live on" if job.deleted_at is None else "was live, and is deleted, on"
        message = (
            f"Post {post.name} {is_live} {job.channel} already (job {name}). Nothing was added. "
            f"To post it once more on purpose: publisher posts again {post.name}"
        )
        return Conflict(message, code="already-live", state=job.state)
    if job.is_waiting:
        return OpenJobExists(job.key, job.id, job.state)
    if job.state is State.SENDING:
        message = (
            f"Post {post.name} is being sent to {job.channel} (job {name}). Nothing was added. "
            "Wait for its end."
        )
        return Conflict(message, code="sending-now", state=job.state)
    message = (
        f"Post {post.name} may already be live on {job.channel} (job {name}, {job.state}), so it "
        "is not sent once more. Nothing was added. Look at the page and record what you see."
    )
    return Conflict(message, code="unknown-not-retryable", state=job.state)


def _checked(
    conn: Connection, version: StoredVersion, places: Sequence[Destination], registry: Registry
) -> tuple[ChannelProblem, ...]:
    """What is worth knowing of it there. Raises ``PostRefused``, ``NotFound``."""
    due = {place.channel_id: place.publish_at for place in places}
    drafts.require_channels(conn, version.post_id, sorted(due))
    problems = examine(conn, registry, version.document, [*due], post_id=version.post_id, due=due)
    require_good(problems, "Nothing was scheduled.")
    return problems


def _jobs(
    conn: Connection,
    version: StoredVersion,
    places: Sequence[Destination],
    registry: Registry,
    useful_for: timedelta,
    *,
    replaces: Mapping[int, JobId | None] | None = None,
    repeats: JobId | None = None,
) -> list[NewJob]:
    own = channel_rules.useful_for(conn, [place.channel_id for place in places])
    return [
        edits.new_job(
            conn,
            version,
            place.channel_id,
            place.publish_at,
            registry=registry,
            useful_until=place.useful_until
            or useful_until(place.publish_at, own.get(place.channel_id, useful_for)),
            replaces=(replaces or {}).get(place.channel_id),
            repeats=repeats,
        )
        for place in places
    ]


def _add(  # noqa: PLR0913 - what is added, and what is told of it
    conn: Connection,
    post: LockedPost,
    version: StoredVersion,
    places: Sequence[Destination],
    new: Sequence[NewJob],
    *,
    who: Who,
    links: Mapping[int, JobId | None],
    what: str,
) -> Scheduled:
    added = ledger.enqueue(conn, new)
    statement = upsert(post_channels).values(
        [
            {
                "post_id": post.id,
                "channel_id": place.channel_id,
                "publish_at": place.publish_at,
                "zone": place.zone,
                "useful_until": place.useful_until,
            }
            for place in places
        ]
    )
    conn.execute(
        statement.on_conflict_do_update(
            index_elements=["post_id", "channel_id"],
            set_={
                "publish_at": statement.excluded.publish_at,
                "zone": statement.excluded.zone,
                "useful_until": statement.excluded.useful_until,
            },
        )
    )
    for place, job in zip(places, added, strict=True):
        before = links.get(place.channel_id)
        detail = {} if before is None else {what: public_id(before)}
        post_events.tell(
            conn, post.id, Event.SCHEDULED, who=who, version=version.number,
            channel=place.channel_id, at=place.publish_at.isoformat(), job=public_id(job.job_id),
            **detail,
        )  # fmt: skip
    return Scheduled(version, tuple(added))
