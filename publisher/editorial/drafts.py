"""Drafts: the one text of a post that is being written, saved by itself, without versions.

Each save names the revision it was written on. Somebody who saved meanwhile is not written over:
the later one is told, and holds both texts.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import Connection, delete, func, insert, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from publisher.editorial import post_events, walls
from publisher.editorial.actor import Actor, Who
from publisher.editorial.documents import Document, DocumentRefused
from publisher.editorial.post_events import Event
from publisher.editorial.post_lock import LockedPost, lock
from publisher.editorial.schema import post_channels, post_drafts, post_targets
from publisher.editorial.schema import posts as posts_table
from publisher.editorial.spelling import is_one_line
from publisher.editorial.version_rows import read_version
from publisher.engine.errors import Conflict, NotFound, PublisherError
from publisher.engine.schema import channels

REF_LONGEST: Final = 200


class RefTaken(PublisherError):
    """Another post has that ref."""

    code = "ref-taken"
    exit_code = 4
    field = "ref"


class EditConflict(Conflict):
    """Somebody saved since this text was opened; both texts are here, and neither is lost.

    ``yours`` is what was refused, ``theirs`` what is stored now, with its ``revision``.
    """

    def __init__(self, yours: Document, theirs: Draft) -> None:
        by = theirs.saved_by or "somebody"
        when = "" if theirs.saved_at is None else f" at {theirs.saved_at:%H:%M:%S %Z}"
        message = (
            f"{by} saved this post{when}, after you opened it. Yours was not saved. Take what you "
            "need from both texts, and save again."
        )
        super().__init__(message, code="edited-meanwhile")
        self.yours = yours
        self.theirs = theirs


@dataclass(frozen=True, slots=True)
class Draft:
    """What is being written. ``based_on``: the number of the version it was last equal to.

    ``revision`` is what the next save must name; 0 where nothing was saved but versions.
    """

    post_id: int
    document: Document
    revision: int
    based_on: int | None
    saved_at: datetime | None
    saved_by: str | None
    channel_ids: tuple[int, ...]


def new(
    conn: Connection,
    document: Document,
    *,
    who: Who,
    channel_ids: Collection[int] = (),
    ref: str | None = None,
) -> Draft:
    """Begin a post: a draft without a version, meant for these channels.

    Raises ``RefTaken``, ``DocumentRefused``, ``NotFound`` for a channel that is none, and
    ``WorkspaceUnnamed``. Nothing was stored then.
    """
    written = document.to_json()
    if ref is not None and not (0 < len(ref.strip()) <= REF_LONGEST and is_one_line(ref)):
        message = f"A ref is one line of 1 to {REF_LONGEST} characters. Nothing was stored."
        raise DocumentRefused(message, field="ref", code="ref-refused")
    workspace = walls.own(conn)
    actor = Actor.of(who)
    post_id = conn.scalar(
        upsert(posts_table)
        .values(ref=ref, created_by=actor.name, workspace_id=workspace)
        .on_conflict_do_nothing()
        .returning(posts_table.c.id)
    )
    if post_id is None:
        message = f"There is already a post with the ref {ref}. Nothing was stored. Give another."
        raise RefTaken(message)
    conn.execute(insert(post_drafts).values(post_id=post_id, document=written, saved_by=actor.name))
    aim(conn, post_id, channel_ids, variants=document.variants)
    post_events.tell(conn, post_id, Event.CREATED, who=who)
    return read(conn, post_id)


def read(conn: Connection, post_id: int) -> Draft:
    """The draft, or what a draft would begin with: the newest version. Raises ``NotFound``."""
    targets = targets_of(conn, post_id)
    row = conn.execute(select(post_drafts).where(post_drafts.c.post_id == post_id)).one_or_none()
    if row is not None:
        return Draft(
            post_id,
            Document.from_json(row.document),
            row.revision,
            row.based_on,
            row.saved_at,
            row.saved_by,
            targets,
        )
    version = read_version(conn, post_id)
    return Draft(
        post_id,
        version.document,
        0,
        version.number,
        version.created_at,
        version.created_by,
        targets,
    )


def autosave(
    conn: Connection,
    post_id: int,
    document: Document,
    *,
    revision: int,
    who: Who,
    channel_ids: Collection[int] | None = None,
) -> Draft:
    """Keep ``document`` as the draft, if it was written on ``revision``; no version is made.

    Raises ``EditConflict`` with both texts, ``DocumentRefused``, ``NotFound``, ``Conflict``
    (``in-trash``, ``busy``).
    """
    document.to_json()
    post = lock(conn, post_id)
    post.require_not_trashed()
    require_revision(conn, post, document, revision)
    if channel_ids is not None:
        aim(conn, post_id, channel_ids, variants=document.variants)
    based_on = read(conn, post_id).based_on
    keep(conn, post, document, who=who, based_on=based_on)
    return read(conn, post_id)


def require_revision(
    conn: Connection, post: LockedPost, document: Document, revision: int | None
) -> None:
    """Raise ``EditConflict`` where somebody saved since; None: whatever there is."""
    if revision is not None and revision != post.revision:
        raise EditConflict(document, read(conn, post.id))


def keep(
    conn: Connection, post: LockedPost, document: Document, *, who: Who, based_on: int | None
) -> None:
    """Write the draft's row, and raise its revision."""
    values = {
        "document": document.to_json(),
        "based_on": based_on,
        "saved_by": Actor.of(who).name,
    }
    moved = conn.execute(
        update(post_drafts)
        .where(post_drafts.c.post_id == post.id)
        .values(revision=post_drafts.c.revision + 1, saved_at=func.clock_timestamp(), **values)
    ).rowcount
    if moved == 0:
        conn.execute(insert(post_drafts).values(post_id=post.id, **values))


def aim(
    conn: Connection,
    post_id: int,
    channel_ids: Collection[int],
    *,
    variants: Collection[int] = (),
) -> None:
    """Say which channels the post is meant for; those with a variant are among them.

    Raises ``NotFound`` for a channel that is none, or another workspace's.
    """
    wanted = sorted({*channel_ids, *variants})
    require_channels(conn, post_id, wanted)
    conn.execute(
        delete(post_targets).where(
            post_targets.c.post_id == post_id, post_targets.c.channel_id.not_in(wanted)
        )
    )
    if wanted:
        conn.execute(
            upsert(post_targets)
            .values([{"post_id": post_id, "channel_id": channel_id} for channel_id in wanted])
            .on_conflict_do_nothing()
        )


def require_channels(conn: Connection, post_id: int, channel_ids: Sequence[int]) -> None:
    """Raise ``NotFound`` naming what is no channel of the post's workspace."""
    if not channel_ids:
        return
    possible = [at for at in channel_ids if 0 < at < 2**31]
    known = set(
        conn.scalars(
            select(channels.c.id)
            .join(posts_table, posts_table.c.workspace_id == channels.c.workspace_id)
            .where(posts_table.c.id == post_id, channels.c.id.in_(possible))
        )
    )
    missing = [str(at) for at in channel_ids if at not in known]
    if missing:
        message = f"There is no channel {', '.join(missing)} here. Nothing was stored."
        raise NotFound(message)


def targets_of(conn: Connection, post_id: int) -> tuple[int, ...]:
    """The channels it is meant for or was scheduled on, by id."""
    meant = select(post_targets.c.channel_id).where(post_targets.c.post_id == post_id)
    placed = select(post_channels.c.channel_id).where(post_channels.c.post_id == post_id)
    return tuple(sorted(conn.scalars(meant.union(placed))))
