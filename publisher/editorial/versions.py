"""Versions: save what is written as the next one, and go back to an earlier one.

A version is made by a person's save, never by itself. What it does to jobs that are scheduled is
the workspace's rule: ``hold`` keeps them until the new version is approved, ``keep`` lets them go
out in the version that is.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import Connection, func, insert, update

from publisher.editorial import drafts, edits, post_events
from publisher.editorial.actor import Actor, Who
from publisher.editorial.documents import Document
from publisher.editorial.edits import Change
from publisher.editorial.examination import ChannelProblem, examine
from publisher.editorial.post_events import Event
from publisher.editorial.post_lock import LockedPost, lock
from publisher.editorial.schema import approvals, reviews
from publisher.editorial.version_rows import StoredVersion, read_version, write_version
from publisher.engine import queries
from publisher.engine.errors import Conflict
from publisher.engine.job import Hold
from publisher.engine.registry import Registry


@dataclass(frozen=True, slots=True)
class Saved:
    """What a save came to. ``is_new`` False: it was equal to the newest version already.

    ``changes``: what it did to the post's jobs; the refusals among them say where it was too late.
    ``problems``: what must be fixed before it is approved, and what is worth knowing.
    ``revision``: what the next save must name.
    """

    version: StoredVersion
    is_new: bool
    revision: int
    changes: tuple[Change, ...]
    problems: tuple[ChannelProblem, ...]

    @property
    def refusals(self) -> tuple[Conflict, ...]:
        """Where the edit came too late; the text is kept all the same."""
        return edits.refusals(self.changes)


def save(
    conn: Connection,
    post_id: int,
    document: Document,
    *,
    revision: int | None,
    who: Who,
    registry: Registry,
    channel_ids: Collection[int] | None = None,
) -> Saved:
    """Make ``document`` the next version of the post, if it was written on ``revision``.

    None: on whatever there is. A review that was asked for an older version ends. Nothing is
    approved by this. Raises ``EditConflict`` with both texts, ``DocumentRefused``, ``NotFound``,
    ``Conflict`` (``in-trash``, ``busy``); nothing was stored then.
    """
    document.to_json()
    post = lock(conn, post_id)
    post.require_not_trashed()
    drafts.require_revision(conn, post, document, revision)
    if channel_ids is not None:
        drafts.aim(conn, post_id, channel_ids, variants=document.variants)
    else:
        drafts.require_channels(conn, post_id, sorted(document.variants))
    version, is_new = _write(conn, post, document, who)
    changes = _supersede(conn, post, version, who) if is_new else ()
    if is_new:
        # After the holds, so that by this line's time nothing goes out in the older version.
        post_events.tell(conn, post.id, Event.SAVED, who=who, version=version.number)
    return _saved(conn, post, version, changes, registry, is_new=is_new)


def go_back(
    conn: Connection,
    post_id: int,
    number: int,
    *,
    revision: int | None,
    who: Who,
    registry: Registry,
) -> Saved:
    """Make the next version equal to version ``number``.

    Where that one's approval stands it is taken over, for it is of the same bytes; jobs that an
    edit held go on. Not where the workspace wants another person than the author to approve, and
    who goes back is who approved. Raises as ``save``.
    """
    post = lock(conn, post_id)
    post.require_not_trashed()
    source = read_version(conn, post_id, number)
    drafts.require_revision(conn, post, source.document, revision)
    version, is_new = _write(conn, post, source.document, who)
    if not is_new:
        return _saved(conn, post, version, (), registry, is_new=False)
    post_events.tell(
        conn, post.id, Event.WENT_BACK, who=who, version=version.number, to=source.number
    )
    if _carries(post, source, who):
        changes = _carry(conn, post, source, version, who, registry)
    else:
        changes = _supersede(conn, post, version, who)
    return _saved(conn, post, version, changes, registry, is_new=is_new)


def end_review(
    conn: Connection, post: LockedPost, decision: str, *, who: Who, comment: str = ""
) -> bool:
    """Decide the open review of the post, if there is one."""
    return bool(
        conn.execute(
            update(reviews)
            .where(reviews.c.post_id == post.id, reviews.c.decided_at.is_(None))
            .values(
                decided_at=func.clock_timestamp(),
                decided_by=Actor.of(who).name,
                decision=decision,
                comment=comment or None,
            )
        ).rowcount
    )


def _write(
    conn: Connection, post: LockedPost, document: Document, who: Who
) -> tuple[StoredVersion, bool]:
    """The next version, unless the newest is equal; the draft is that version then."""
    newest = read_version(conn, post.id) if post.newest else None
    if newest is not None and newest.document == document:
        version, is_new = newest, False
    else:
        version = write_version(conn, post.id, post.newest + 1, document, who=who)
        is_new = True
    drafts.keep(conn, post, document, who=who, based_on=version.number)
    if is_new:
        end_review(conn, post, "superseded", who=who)
    return version, is_new


def _supersede(
    conn: Connection, post: LockedPost, version: StoredVersion, who: Who
) -> tuple[Change, ...]:
    """Hold what waits in an older version, where the workspace's rule says so."""
    if not post.holds_edited:
        return ()
    reason = f"version {version.number} is not approved yet"
    return edits.hold_back(conn, post, who=who, kind=Hold.EDITED, reason=reason)


def _carries(post: LockedPost, source: StoredVersion, who: Who) -> bool:
    if not source.is_approved or source.approved_by is None:
        return False
    is_own = Actor.of(who).is_same(source.approved_by, source.approver_id)
    return not (post.approval_by_other and is_own)


def _carry(
    conn: Connection,
    post: LockedPost,
    source: StoredVersion,
    version: StoredVersion,
    who: Who,
    registry: Registry,
) -> tuple[Change, ...]:
    """Approve the new version as the old one was, and bring the jobs to it."""
    conn.execute(
        insert(approvals).values(
            version_id=version.id,
            approved_by=source.approved_by,
            approver_id=source.approver_id,
        )
    )
    post_events.tell(
        conn, post.id, Event.APPROVED, who=who, version=version.number,
        as_version=source.number, approved_by=source.approved_by,
    )  # fmt: skip
    now = queries.clock(conn)
    return edits.take_over(conn, post, version, who=who, registry=registry, now=now)


def _saved(
    conn: Connection,
    post: LockedPost,
    version: StoredVersion,
    changes: tuple[Change, ...],
    registry: Registry,
    *,
    is_new: bool,
) -> Saved:
    draft = drafts.read(conn, post.id)
    version = read_version(conn, post.id, version.number)
    problems = examine(conn, registry, version.document, draft.channel_ids, post_id=post.id)
    return Saved(version, is_new, draft.revision, changes, problems)
