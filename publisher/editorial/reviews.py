"""Reviews: ask for an approval, give it, ask for changes instead, take it back.

One version is approved, never a post. The approval is of its bytes: what is sent on each channel
has the hash of the approved version's form for it, and the database refuses anything else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import psycopg
from sqlalchemy import Connection, func, insert, select, update
from sqlalchemy.exc import DBAPIError

from publisher.editorial import drafts, edits, post_events, versions
from publisher.editorial.actor import Actor, Who
from publisher.editorial.edits import Change
from publisher.editorial.examination import ChannelProblem, examine, require_good
from publisher.editorial.post_events import Event
from publisher.editorial.post_lock import LockedPost, lock
from publisher.editorial.posts import OWN_WORK
from publisher.editorial.schema import approvals, post_versions, reviews
from publisher.editorial.version_rows import StoredVersion, read_version
from publisher.engine import queries
from publisher.engine.errors import Conflict
from publisher.engine.job import Hold
from publisher.engine.registry import Registry

COMMENT_LONGEST: Final = 10_000


@dataclass(frozen=True, slots=True)
class Approved:
    """What an approval came to. ``is_new`` False: it stood already.

    ``changes``: what it did to the post's jobs; a refusal among them says where it came too late.
    ``problems``: what is worth knowing of what was approved just now.
    """

    version: StoredVersion
    is_new: bool
    changes: tuple[Change, ...]
    problems: tuple[ChannelProblem, ...] = ()

    @property
    def refusals(self) -> tuple[Conflict, ...]:
        """Where a job keeps the older version."""
        return edits.refusals(self.changes)


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """Approvals that do not stand any more, by number of version, and what that did to jobs."""

    numbers: tuple[int, ...]
    changes: tuple[Change, ...]

    @property
    def refusals(self) -> tuple[Conflict, ...]:
        """What was begun already. Should it come back unsent, it is held."""
        return edits.refusals(self.changes)


def submit(
    conn: Connection,
    post_id: int,
    *,
    who: Who,
    number: int | None = None,
    approver: str | None = None,
    comment: str = "",
) -> bool:
    """Ask for the newest version to be approved, by ``approver`` or by anybody who may.

    ``number``: the version whoever asks has seen. False: it was asked for already, by whomever;
    nothing was changed. Raises ``Conflict`` (``already-approved``, ``version-is-old``,
    ``no-version``, ``in-trash``, ``busy``), ``NotFound``.
    """
    comment, approver = _kept(comment), _kept(approver or "")
    post = lock(conn, post_id)
    version = _newest(conn, post, number)
    if version.is_approved:
        message = (
            f"Version {version.number} of post {post.name} is approved already. Nothing was "
            f"changed. Schedule it: publisher posts schedule {post.name}"
        )
        raise Conflict(message, code="already-approved")
    is_open = select(reviews.c.id).where(
        reviews.c.post_id == post.id, reviews.c.decided_at.is_(None)
    )
    if conn.execute(is_open).first() is not None:
        return False
    conn.execute(
        insert(reviews).values(
            post_id=post.id,
            version_id=version.id,
            submitted_by=Actor.of(who).name,
            approver=approver or None,
        )
    )
    post_events.tell(
        conn, post.id, Event.SUBMITTED, who=who, version=version.number, approver=approver,
        comment=comment,
    )  # fmt: skip
    return True


def request_changes(
    conn: Connection, post_id: int, *, who: Who, comment: str, number: int | None = None
) -> StoredVersion:
    """Give a version back to its author, and say why. It need not have been asked for.

    Raises ``Conflict`` (``comment-missing``, ``already-approved`` and as ``submit``).
    """
    comment = _kept(comment)
    if not comment:
        message = "Say what should change. Nothing was recorded."
        raise Conflict(message, code="comment-missing")
    post = lock(conn, post_id)
    version = _newest(conn, post, number)
    if version.is_approved:
        message = (
            f"Version {version.number} of post {post.name} is approved. Nothing was recorded. "
            f"Take the approval back first: publisher posts withdraw {post.name}"
        )
        raise Conflict(message, code="already-approved")
    versions.end_review(conn, post, "changes_requested", who=who, comment=comment)
    post_events.tell(
        conn, post.id, Event.CHANGES_REQUESTED, who=who, version=version.number, comment=comment
    )
    return version


def approve(
    conn: Connection,
    post_id: int,
    *,
    who: Who,
    registry: Registry,
    number: int | None = None,
    comment: str = "",
) -> Approved:
    """Approve the newest version, and bring what is scheduled to it.

    ``number``: the version whoever approves has read. A job that was not begun takes the new
    content, one that is certainly not on the page is succeeded, and what an edit held goes on;
    where a send has begun, or may have put it on the page, the job keeps its version and the
    refusal says so. Asked again, it does what is left of this.

    Raises ``PostRefused`` where something must be fixed first; ``Conflict``: ``approval-by-other``,
    ``version-is-old``, ``no-version``, ``in-trash``, ``busy``. Nothing was changed then.
    """
    comment = _kept(comment)
    post = lock(conn, post_id)
    version = _newest(conn, post, number)
    is_new = not version.is_approved
    problems: tuple[ChannelProblem, ...] = ()
    if is_new:
        if post.approval_by_other:
            _require_other(version, who)
        targets = drafts.targets_of(conn, post.id)
        problems = examine(conn, registry, version.document, targets, post_id=post.id)
        require_good(problems, "Nothing was approved.")
        record_approval(conn, version, who)
        versions.end_review(conn, post, "approved", who=who, comment=comment)
        post_events.tell(
            conn, post.id, Event.APPROVED, who=who, version=version.number, comment=comment,
            sha256=version.sha256.hex(),
        )  # fmt: skip
    now = queries.clock(conn)
    changes = edits.take_over(conn, post, version, who=who, registry=registry, now=now)
    return Approved(read_version(conn, post.id, version.number), is_new, changes, problems)


def withdraw(
    conn: Connection, post_id: int, *, who: Who, reason: str = "", number: int | None = None
) -> Withdrawn:
    """Take approvals back: of one version, or all that stand. What waits by them is held.

    What is being sent, or may be live, is beyond it; should that come back unsent, it is held,
    too. Raises ``Conflict`` (``not-approved``, ``busy``), ``NotFound``.
    """
    reason = _kept(reason)
    post = lock(conn, post_id)
    standing = {
        row.id: row.number
        for row in conn.execute(
            select(post_versions.c.id, post_versions.c.number)
            .join(approvals, approvals.c.version_id == post_versions.c.id)
            .where(post_versions.c.post_id == post.id, approvals.c.withdrawn_at.is_(None))
            .order_by(post_versions.c.number)
        )
        if number is None or row.number == number
    }
    if not standing:
        what = "No version" if number is None else f"Version {number}"
        verb = "is" if number is None else "is not"
        message = f"{what} of post {post.name} {verb} approved. Nothing was changed."
        raise Conflict(message, code="not-approved")
    changes = edits.hold_back(
        conn, post, who=who, kind=Hold.APPROVAL, reason=reason or "approval withdrawn",
        version_ids=standing,
    )  # fmt: skip
    conn.execute(
        update(approvals)
        .where(approvals.c.version_id.in_(standing))
        .values(withdrawn_at=func.clock_timestamp(), withdrawn_by=Actor.of(who).name)
    )
    for at in standing.values():
        post_events.tell(
            conn, post.id, Event.APPROVAL_WITHDRAWN, who=who, version=at, reason=reason
        )
    return Withdrawn(tuple(standing.values()), changes)


def comment_on(
    conn: Connection, post_id: int, *, who: Who, comment: str, number: int | None = None
) -> None:
    """Say something about a post, or one version of it. Raises ``Conflict``, ``NotFound``."""
    comment = _kept(comment)
    if not comment:
        message = "The comment is empty. Nothing was recorded."
        raise Conflict(message, code="comment-missing")
    post = lock(conn, post_id)
    if number is not None:
        read_version(conn, post.id, number)
    post_events.tell(conn, post.id, Event.COMMENTED, who=who, version=number, comment=comment)


def record_approval(conn: Connection, version: StoredVersion, who: Who) -> None:
    """Let the approval stand. Raises ``Conflict`` (``approval-by-other``)."""
    actor = Actor.of(who)
    values = {"approved_by": actor.name, "approver_id": actor.user_id}
    try:
        with conn.begin_nested():
            again = conn.execute(
                update(approvals)
                .where(approvals.c.version_id == version.id)
                .values(
                    approved_at=func.clock_timestamp(),
                    withdrawn_at=None,
                    withdrawn_by=None,
                    **values,
                )
            ).rowcount
            if not again:
                conn.execute(insert(approvals).values(version_id=version.id, **values))
    except DBAPIError as error:
        if isinstance(error.orig, psycopg.Error) and error.orig.sqlstate == OWN_WORK:
            raise _own_work(version.number) from error
        raise


def _newest(conn: Connection, post: LockedPost, number: int | None) -> StoredVersion:
    post.require_not_trashed()
    post.require_version()
    if number is not None and number != post.newest:
        message = (
            f"Version {number} of post {post.name} is not the newest: version {post.newest} is. "
            f"Nothing was changed. Read that one: publisher posts show {post.name}"
        )
        raise Conflict(message, code="version-is-old")
    return read_version(conn, post.id, post.newest)


def _require_other(version: StoredVersion, who: Who) -> None:
    if Actor.of(who).is_same(version.created_by, version.author_id):
        raise _own_work(version.number)


def _own_work(number: int) -> Conflict:
    message = (
        f"Version {number} is yours, and this workspace wants another person to approve it. "
        "Nothing was approved. Ask for approval: publisher posts submit"
    )
    return Conflict(message, code="approval-by-other")


def _kept(comment: str) -> str:
    """A comment as it is stored. Raises ``Conflict`` for one that cannot be."""
    comment = comment.strip()
    if len(comment) > COMMENT_LONGEST:
        message = f"A comment has at most {COMMENT_LONGEST:,} characters. Nothing was recorded."
        raise Conflict(message, code="comment-too-long")
    if "\0" in comment or any("\ud800" <= character <= "\udfff" for character in comment):
        message = "The comment holds a character that cannot be stored. Nothing was recorded."
        raise Conflict(message, code="comment-refused")
    return comment
