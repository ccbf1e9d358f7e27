"""One post, held by one transaction while it is changed.

Everybody locks in one order: the post, then its jobs from the oldest, then keys. A lock is waited
for briefly, so that a worker is never kept for long and an editor is told instead of left waiting.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import psycopg
from sqlalchemy import Connection, func, select, text
from sqlalchemy.exc import DBAPIError

from publisher.editorial.schema import post_drafts, post_versions, posts
from publisher.editorial.spelling import is_one_line
from publisher.engine import ledger
from publisher.engine.errors import Conflict, NotFound

PATIENCE_MS: Final = 3_000
_LARGEST: Final = 2**63 - 1
_TOO_LATE: Final = ("55P03", "40P01")


@dataclass(frozen=True, slots=True)
class LockedPost:
    """A post nobody else changes until the transaction ends, and its workspace's rules.

    ``newest``: the number of its newest version, 0 before the first. ``revision``: of its draft, 0
    while there is none. ``holds_edited``: what is scheduled waits for the approval of an edit.
    """

    id: int
    ref: str | None
    trashed_at: datetime | None
    newest: int
    revision: int
    holds_edited: bool
    approval_by_other: bool

    @property
    def name(self) -> str:
        """As commands take it."""
        return self.ref or str(self.id)

    def require_not_trashed(self) -> None:
        """Raise ``Conflict`` (``in-trash``) where it is in the trash."""
        if self.trashed_at is not None:
            message = (
                f"Post {self.name} is in the trash since {self.trashed_at:%Y-%m-%d %H:%M %Z}. "
                f"Nothing was changed. Restore it first: publisher posts restore {self.name}"
            )
            raise Conflict(message, code="in-trash")

    def require_version(self) -> None:
        """Raise ``Conflict`` (``no-version``) before the first save."""
        if self.newest == 0:
            message = f"Post {self.name} is a draft that was never saved. Save it first."
            raise Conflict(message, code="no-version")


def lock(conn: Connection, post_id: int) -> LockedPost:
    """Hold the post and every job of it until the transaction of ``conn`` ends.

    Raises ``NotFound``; ``Conflict`` (``busy``) where somebody else holds it for longer than
    ``PATIENCE_MS``. The transaction is over then.
    """
    if not 0 < post_id <= _LARGEST:
        raise _no_post(post_id)
    conn.execute(select(func.set_config("lock_timeout", str(PATIENCE_MS), True)))
    try:
        held = conn.execute(
            select(posts.c.id).where(posts.c.id == post_id).with_for_update(key_share=True)
        ).first()
        if held is None:
            raise _no_post(post_id)
        ledger.lock_jobs_of(conn, post_id)
    except DBAPIError as error:
        if isinstance(error.orig, psycopg.Error) and error.orig.sqlstate in _TOO_LATE:
            message = (
                f"Somebody else is changing post {post_id} just now. Nothing was changed. Ask "
                "again in a moment."
            )
            raise Conflict(message, code="busy") from error
        raise
    # Read in a statement of its own: the one that waited saw the post as it was before.
    return _read(conn, post_id)


def find_post(conn: Connection, name: str) -> int:
    """The post with that ref, or that number. Raises ``NotFound``."""
    wanted = name.strip()
    found: Sequence[int] = ()
    if is_one_line(wanted):
        by_ref = select(posts.c.id).where(posts.c.ref == wanted).limit(2)
        found = conn.scalars(by_ref).all()
    if len(found) > 1:
        numbers = ", ".join(map(str, found))
        message = f"{wanted} is a ref in more than one workspace. Give a number: {numbers}."
        raise NotFound(message)
    if found:
        return int(found[0])
    if wanted.isascii() and wanted.isdigit() and len(wanted) < len(str(2**63)):
        number = conn.scalar(select(posts.c.id).where(posts.c.id == int(wanted)))
        if number is not None:
            return int(number)
    message = (
        f"There is no post with the ref or number {wanted[:80] if is_one_line(wanted) else '…'}."
        " `publisher posts list` shows what there is."
    )
    raise NotFound(message)


def _read(conn: Connection, post_id: int) -> LockedPost:
    newest = (
        select(func.coalesce(func.max(post_versions.c.number), 0))
        .where(post_versions.c.post_id == post_id)
        .scalar_subquery()
    )
    revision = (
        select(post_drafts.c.revision).where(post_drafts.c.post_id == post_id).scalar_subquery()
    )
    row = conn.execute(
        select(
            posts.c.id,
            posts.c.ref,
            posts.c.trashed_at,
            newest.label("newest"),
            func.coalesce(revision, 0).label("revision"),
            text("w.edit_rule"),
            text("w.approval_by_other"),
        )
        .select_from(posts)
        .join(text("publisher.workspaces AS w"), text("w.id = posts.workspace_id"))
        .where(posts.c.id == post_id)
    ).one()
    return LockedPost(
        id=row.id,
        ref=row.ref,
        trashed_at=row.trashed_at,
        newest=row.newest,
        revision=row.revision,
        holds_edited=row.edit_rule == "hold",
        approval_by_other=row.approval_by_other,
    )


def _no_post(post_id: int) -> NotFound:
    return NotFound(f"There is no post {post_id}. `publisher posts list` shows what there is.")
