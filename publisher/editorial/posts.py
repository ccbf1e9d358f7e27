"""Posts: write one and its versions, approve a version, schedule it.

Everything takes many at once, because an import writes thousands; one post is a list of one. All
of it happens within the caller's transaction, jobs included, so a post never stands there without
its job or a job without its post.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import psycopg
from sqlalchemy import (
    BigInteger,
    Connection,
    DateTime,
    Integer,
    Text,
    func,
    literal,
    select,
    text,
)
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql.dml import ReturningInsert

from publisher.editorial import channel_rules, post_events, walls
from publisher.editorial.actor import Actor, Who
from publisher.editorial.post_events import Event
from publisher.editorial.rows import batches, unnest
from publisher.editorial.schema import approvals, post_channels, post_versions
from publisher.engine import ledger
from publisher.engine.adapter import Adapter
from publisher.engine.errors import Conflict, NotFound
from publisher.engine.job import NewJob, post_key
from publisher.engine.ledger import Enqueued
from publisher.engine.registry import Registry
from publisher.engine.schema import channels

KIND: Final = "publish"
QUEUE: Final = "publish"
OWN_WORK: Final = "PB052"
"""What the database says of an author who approves, where a workspace wants another person."""
_LAST: Final = datetime(9999, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Destination:
    """Where a post goes and when: an instant, and the zone it is shown in.

    ``useful_until``: when it is no longer sent; None: as its channel has it.
    """

    channel_id: int
    publish_at: datetime
    zone: str
    useful_until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Draft:
    """A post to be written; ``content`` is ``Post.to_json``, ``ref`` its author's name for it."""

    content: str
    destinations: tuple[Destination, ...]
    ref: str | None = None


@dataclass(frozen=True, slots=True)
class Version:
    """One immutable revision of a post."""

    id: int
    post_id: int
    number: int
    content: str


def create(conn: Connection, drafts: Sequence[Draft], *, who: Who) -> list[Version | None]:
    """Write posts with their first version; None, in its place, where the ``ref`` was taken.

    Ids rise in the order of ``drafts``. Waits for a transaction that is writing the same refs.
    Raises ``WorkspaceUnnamed``.
    """
    walls.own(conn)
    ids = sorted(conn.scalars(text(_NEXT_IDS), {"count": len(drafts)}))
    # By ref, so that two callers with the same refs wait for one another in one order.
    by_ref = sorted(zip(ids, drafts, strict=True), key=lambda pair: pair[1].ref or "")
    written: set[int] = set()
    for batch in batches(by_ref):
        new: dict[str, object] = {
            "ids": [at for at, _ in batch],
            "refs": [draft.ref for _, draft in batch],
        }
        new["who"] = Actor.of(who).name
        written.update(conn.scalars(text(_INSERT_POSTS), new))
    fresh = [
        (post_id, draft) for post_id, draft in zip(ids, drafts, strict=True) if post_id in written
    ]
    versions = _write_versions(conn, [(at, 1, draft.content) for at, draft in fresh], who)
    _write_destinations(conn, [(at, place) for at, draft in fresh for place in draft.destinations])
    post_events.tell_many(conn, [(at, 1) for at, _ in fresh], Event.CREATED, who=who)
    return [versions.get(post_id) for post_id in ids]


def revise(conn: Connection, post_id: int, content: str, *, who: Who) -> Version:
    """Write the next version of a post; it is not approved. Raises ``NotFound``.

    What waits in an older version is the caller's to hold or replace in the same transaction, or
    its commit is refused; ``versions.save`` is what an editor does.
    """
    # Only a share lock is within the role's rights; the number is unique, and the loser is told.
    newest = conn.scalar(
        select(func.max(post_versions.c.number)).where(post_versions.c.post_id == post_id)
    )
    if newest is None:
        message = f"There is no post {post_id}."
        raise NotFound(message)
    return _write_versions(conn, [(post_id, newest + 1, content)], who)[post_id]


def approve(conn: Connection, versions: Sequence[Version], *, who: Who) -> None:
    """Record that ``who`` approved these versions. A first approval that stands stays as it was.

    Raises ``Conflict`` (``approval-by-other``) where a workspace wants another person than the
    author; nothing was approved then.
    """
    actor = Actor.of(who)
    for batch in batches(versions):
        ids = unnest(version_id=(BigInteger(), [version.id for version in batch]))
        columns = ["version_id", "approved_by", "approver_id"]
        source = select(ids.c.version_id, literal(actor.name), literal(actor.user_id, Integer))
        statement = insert(approvals).from_select(columns, source)
        statement = statement.on_conflict_do_update(
            index_elements=["version_id"],
            set_={
                "approved_at": func.clock_timestamp(),
                "approved_by": statement.excluded.approved_by,
                "approver_id": statement.excluded.approver_id,
                "withdrawn_at": None,
                "withdrawn_by": None,
            },
            where=approvals.c.withdrawn_at.is_not(None),
        )
        fresh = set(_approved(conn, statement.returning(approvals.c.version_id)))
        told = [(one.post_id, one.number) for one in batch if one.id in fresh]
        post_events.tell_many(conn, told, Event.APPROVED, who=who)


def schedule(
    conn: Connection,
    versions: Sequence[Version],
    *,
    useful_for: timedelta,
    registry: Registry,
) -> list[Enqueued]:
    """Add one publish job for each channel of each version's post, the content frozen in it.

    A job is due at its channel's ``publish_at`` and useful until the post says, or for as long as
    its channel says, or for ``useful_for``. Jobs that are due at the same instant go out in the
    order of ``versions``. The adapters of ``registry`` mint the key by which their platform knows
    the job for ever.

    Raises ``Conflict`` (``needs-approval``) for a version nobody approved, and what
    ``ledger.enqueue`` raises. Nothing was added then.
    """
    _require_approval(conn, versions)
    places = _destinations(conn, [version.post_id for version in versions])
    minting = _adapters(conn, registry, places)
    own = channel_rules.useful_for(conn, list(minting))
    new = [
        _job(version, place, own.get(place.channel_id, useful_for), minting[place.channel_id])
        for version in versions
        for place in places.get(version.post_id, ())
    ]
    return [
        enqueued
        for batch in batches(new, size=lambda job: len(job.content))
        for enqueued in ledger.enqueue(conn, batch)
    ]


def useful_until(publish_at: datetime, useful_for: timedelta) -> datetime:
    """When a post is no longer sent."""
    return publish_at + min(useful_for, _LAST - publish_at)


def _approved(conn: Connection, statement: ReturningInsert[Any]) -> list[int]:
    try:
        with conn.begin_nested():
            return [*conn.scalars(statement)]
    except DBAPIError as error:
        if isinstance(error.orig, psycopg.Error) and error.orig.sqlstate == OWN_WORK:
            message = (
                "This workspace wants another person than the author to approve a version. Nothing "
                "was approved. Import as drafts, or ask for approval: publisher posts submit"
            )
            raise Conflict(message, code="approval-by-other") from error
        raise


_NEXT_IDS: Final = """
SELECT nextval(pg_get_serial_sequence('publisher.posts', 'id')) FROM generate_series(1, :count)
"""
# Their ids were drawn before, so that ids follow the file while the rows are locked by ref.
_INSERT_POSTS: Final = """
INSERT INTO publisher.posts (id, ref, created_by) OVERRIDING SYSTEM VALUE
SELECT new.id, new.ref, :who
  FROM unnest(CAST(:ids AS bigint[]), CAST(:refs AS text[])) AS new (id, ref)
ON CONFLICT DO NOTHING
RETURNING id
"""


def _write_versions(
    conn: Connection, new: Sequence[tuple[int, int, str]], who: Who
) -> dict[int, Version]:
    """Write (post id, number, content); return the versions by post id."""
    written: dict[int, Version] = {}
    actor = Actor.of(who)
    for batch in batches(new, size=lambda row: len(row[2])):
        rows = unnest(
            post_id=(BigInteger(), [post_id for post_id, _, _ in batch]),
            number=(Integer(), [number for _, number, _ in batch]),
            content=(Text(), [content for _, _, content in batch]),
        )
        columns = ["post_id", "number", "content", "content_sha256", "created_by", "author_id"]
        hashed = func.sha256(func.convert_to(rows.c.content, "UTF8"))
        author = (literal(actor.name), literal(actor.user_id, Integer))
        source = select(rows.c.post_id, rows.c.number, rows.c.content, hashed, *author)
        ids = conn.execute(
            insert(post_versions)
            .from_select(columns, source)
            .returning(post_versions.c.post_id, post_versions.c.id)
        )
        id_of = {row.post_id: row.id for row in ids}
        for post_id, number, content in batch:
            written[post_id] = Version(id_of[post_id], post_id, number, content)
    return written


def _write_destinations(conn: Connection, new: Sequence[tuple[int, Destination]]) -> None:
    for batch in batches(new):
        rows = unnest(
            post_id=(BigInteger(), [post_id for post_id, _ in batch]),
            channel_id=(Integer(), [place.channel_id for _, place in batch]),
            publish_at=(DateTime(timezone=True), [place.publish_at for _, place in batch]),
            zone=(Text(), [place.zone for _, place in batch]),
            useful_until=(DateTime(timezone=True), [place.useful_until for _, place in batch]),
        )
        columns = ["post_id", "channel_id", "publish_at", "zone", "useful_until"]
        conn.execute(insert(post_channels).from_select(columns, select(*rows.c)))


def _job(version: Version, place: Destination, useful_for: timedelta, adapter: Adapter) -> NewJob:
    key = post_key(version.post_id, place.channel_id, place.publish_at)
    return NewJob(
        key=key,
        kind=KIND,
        queue=QUEUE,
        channel_id=place.channel_id,
        content=version.content,
        run_at=place.publish_at,
        useful_until=place.useful_until or useful_until(place.publish_at, useful_for),
        post_id=version.post_id,
        version_id=version.id,
        version=version.number,
        platform_key=adapter.platform_key(key, place.publish_at),
    )


def _adapters(
    conn: Connection, registry: Registry, places: Mapping[int, Sequence[Destination]]
) -> dict[int, Adapter]:
    """The adapter of each channel that is a destination."""
    ids = {place.channel_id for several in places.values() for place in several}
    rows = conn.execute(
        select(channels.c.id, channels.c.platform).where(channels.c.id == func.any([*ids]))
    )
    return {row.id: registry.adapter(row.platform) for row in rows}


def _require_approval(conn: Connection, versions: Sequence[Version]) -> None:
    ids = [version.id for version in versions]
    approved = set(
        conn.scalars(
            select(approvals.c.version_id).where(
                approvals.c.version_id == func.any(ids), approvals.c.withdrawn_at.is_(None)
            )
        )
    )
    for version in versions:
        if version.id not in approved:
            message = (
                f"Version {version.number} of post {version.post_id} is not approved. "
                "Nothing was scheduled. Approve it first."
            )
            raise Conflict(message, code="needs-approval")


def _destinations(conn: Connection, post_ids: list[int]) -> dict[int, list[Destination]]:
    rows = conn.execute(
        select(post_channels)
        .where(post_channels.c.post_id == func.any(post_ids))
        .order_by(post_channels.c.post_id, post_channels.c.channel_id)
    )
    places: dict[int, list[Destination]] = {}
    for row in rows:
        place = Destination(row.channel_id, row.publish_at, row.zone, row.useful_until)
        places.setdefault(row.post_id, []).append(place)
    return places
