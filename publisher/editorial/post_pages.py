"""A post as its page shows it: where it stands, who did what, and what may be done where."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from sqlalchemy import Connection, select

from publisher.editorial import drafts, labels, post_events, schedules
from publisher.editorial.drafts import Draft
from publisher.editorial.post_events import PostEvent
from publisher.editorial.posts import KIND
from publisher.editorial.schedules import Next
from publisher.editorial.schema import post_versions, posts, reviews
from publisher.editorial.version_rows import StoredVersion, versions_of
from publisher.engine import queries
from publisher.engine.errors import NotFound
from publisher.engine.queries import PostJob, RemovalRow
from publisher.engine.schema import channels


class Status(StrEnum):
    """Where the newest version of a post stands; its jobs say the rest, channel by channel."""

    DRAFT = "draft"
    IN_REVIEW = "in review"
    APPROVED = "approved"
    TRASHED = "in the trash"


@dataclass(frozen=True, slots=True)
class Review:
    """What was asked for and what came of it; ``decision`` None: nothing yet."""

    version: int
    submitted_at: datetime
    submitted_by: str
    approver: str | None
    decided_at: datetime | None
    decided_by: str | None
    decision: str | None
    comment: str | None


@dataclass(frozen=True, slots=True)
class PostPage:
    """One post. ``options``: for each channel it has jobs on, what may be done, and its job.

    ``removals``: jobs that take, or took, a post of these jobs down.
    """

    id: int
    ref: str | None
    created_at: datetime
    created_by: str
    trashed_at: datetime | None
    trashed_by: str | None
    draft: Draft
    versions: tuple[StoredVersion, ...]
    review: Review | None
    channels: Mapping[int, str]
    jobs: tuple[PostJob, ...]
    removals: tuple[RemovalRow, ...]
    labels: tuple[str, ...]
    assignees: tuple[str, ...]
    events: tuple[PostEvent, ...]

    @property
    def name(self) -> str:
        """As commands take it."""
        return self.ref or str(self.id)

    @property
    def newest(self) -> StoredVersion | None:
        """Its newest version; None before the first save."""
        return self.versions[-1] if self.versions else None

    @property
    def status(self) -> Status:
        """Where its newest version stands."""
        if self.trashed_at is not None:
            return Status.TRASHED
        if self.newest is not None and self.newest.is_approved:
            return Status.APPROVED
        if self.review is not None and self.review.decision is None:
            return Status.IN_REVIEW
        return Status.DRAFT

    @property
    def has_unsaved_changes(self) -> bool:
        """Whether the draft differs from the newest version."""
        return self.newest is None or self.newest.document != self.draft.document

    @property
    def due(self) -> Mapping[int, datetime]:
        """When it is to go out on each channel where its send has not begun."""
        return {job.channel_id: job.due_at for job in self.jobs if job.is_waiting}

    @property
    def options(self) -> Mapping[int, tuple[Next, PostJob]]:
        """What may be done on each channel where it has a job."""
        return schedules.options(self.jobs)


def read(conn: Connection, post_id: int) -> PostPage:
    """Read everything about a post. Raises ``NotFound``."""
    post = conn.execute(select(posts).where(posts.c.id == post_id)).one_or_none()
    if post is None:
        message = f"There is no post {post_id}. `publisher posts list` shows what there is."
        raise NotFound(message)
    draft = drafts.read(conn, post_id)
    named = select(channels.c.id, channels.c.name).where(channels.c.id.in_(draft.channel_ids))
    return PostPage(
        id=post.id,
        ref=post.ref,
        created_at=post.created_at,
        created_by=post.created_by,
        trashed_at=post.trashed_at,
        trashed_by=post.trashed_by,
        draft=draft,
        versions=versions_of(conn, post_id),
        review=_review(conn, post_id),
        channels={row.id: row.name for row in conn.execute(named.order_by(channels.c.id))},
        jobs=tuple(queries.jobs_of_post(conn, post_id, kind=KIND)),
        removals=tuple(queries.removals_of_post(conn, post_id)),
        labels=labels.labels_of(conn, post_id),
        assignees=labels.assignees_of(conn, post_id),
        events=post_events.of_post(conn, post_id),
    )


def _review(conn: Connection, post_id: int) -> Review | None:
    """The newest one."""
    row = conn.execute(
        select(reviews, post_versions.c.number)
        .join(post_versions, post_versions.c.id == reviews.c.version_id)
        .where(reviews.c.post_id == post_id)
        .order_by(reviews.c.id.desc())
        .limit(1)
    ).one_or_none()
    if row is None:
        return None
    return Review(
        row.number,
        row.submitted_at,
        row.submitted_by,
        row.approver,
        row.decided_at,
        row.decided_by,
        row.decision,
        row.comment,
    )
