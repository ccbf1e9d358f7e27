"""A post as the API tells of it: what it says, where it stands, what became of it where."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, Literal

from pydantic import Field

from publisher.api.strict import Instant, Told
from publisher.api.told_jobs import Job, MediaItem, Page, StateWord, media
from publisher.editorial.documents import Document, Part, Variant
from publisher.editorial.edits import Change
from publisher.editorial.examination import ChannelLength, ChannelProblem
from publisher.editorial.listing import Listed
from publisher.editorial.post_pages import PostPage, Review
from publisher.editorial.version_rows import StoredVersion
from publisher.engine.content import Post
from publisher.engine.job import public_id

StatusWord = Literal["draft", "in review", "approved", "in the trash"]


class PostListed(Told):
    """A post in its newest version."""

    id: int
    external_reference: str | None
    text: str
    version: int
    approved_at: Instant | None
    approved_by: str | None
    jobs: dict[str, StateWord] = Field(description="State of its newest job, by channel's number.")
    url: str


class PostList(Page):
    """Posts, the newest first."""

    posts: list[PostListed]


class VariantTold(Told):
    """What is its own on one channel; what it leaves out is as for all."""

    channel: int
    own: list[Literal["text", "link", "media", "first_comment"]]
    text: str | None
    link: str | None
    media: list[MediaItem]
    first_comment: str | None


class Words(Told):
    """What a post says, for all channels and on each."""

    text: str
    link: str | None
    media: list[MediaItem]
    first_comment: str | None
    variants: list[VariantTold]


class Version(Told):
    """One revision, which never changes."""

    number: int
    words: Words
    sha256: str = Field(description="Of everything it sends anywhere.")
    created_at: Instant
    created_by: str
    approved: bool = Field(description="Whether its approval stands.")
    approved_at: Instant | None
    approved_by: str | None
    withdrawn_at: Instant | None
    withdrawn_by: str | None


class VersionList(Told):
    """Every version, the oldest first."""

    versions: list[Version]


class ReviewTold(Told):
    """What was asked for, and what came of it."""

    version: int
    submitted_at: Instant
    submitted_by: str
    approver: str | None
    decided_at: Instant | None
    decided_by: str | None
    decision: str | None
    comment: str | None


class PostEventTold(Told):
    """One line of a post's journal."""

    at: Instant
    who: str
    event: str
    version: int | None
    detail: dict[str, Any]


class ProblemTold(Told):
    """Something to fix before it is approved, or worth knowing."""

    channel: int | None = Field(description="Null: wherever it goes.")
    field: str
    code: str
    detail: str
    must_be_fixed: bool


class LengthTold(Told):
    """How long the text is on one channel, as its platform counts."""

    channel: int
    used: int
    limit: int
    excess_at: int | None = Field(description="Code points that fit; null: all do.")


class Target(Told):
    """A channel that it is meant for."""

    id: int
    name: str


class PostWhole(Told):
    """A post with everything about it."""

    id: int
    external_reference: str | None
    status: StatusWord
    revision: int = Field(description="Of the draft; the ETag names it.")
    words: Words = Field(description="The draft: what the next version will say.")
    unsaved: bool = Field(description="The draft differs from the newest version.")
    channels: list[Target]
    newest_version: int | None
    approved: bool = Field(description="The approval of the newest version stands.")
    review: ReviewTold | None
    problems: list[ProblemTold]
    lengths: list[LengthTold] = Field(description="Of the draft, where it goes.")
    labels: list[str]
    assignees: list[str]
    jobs: list[Job]
    deletions: list[Job] = Field(description="Jobs that take, or took, a post of these jobs down.")
    created_at: Instant
    created_by: str
    trashed_at: Instant | None
    trashed_by: str | None
    events: list[PostEventTold]
    url: str


class JobChange(Told):
    """What was done with one job of the post."""

    job: str
    act: Literal["held", "replaced", "succeeded", "released", "left"]
    successor: str | None
    code: str | None = Field(description="Why it was left as it is.")
    detail: str | None


class PostChanged(Told):
    """A post after a person's act."""

    post: PostWhole
    new: bool = Field(description="False: it was so already.")
    changes: list[JobChange] = Field(description="What it did to jobs that there were.")


class Scheduled(Told):
    """Jobs that were added.

    Where they replace what was refused there, that refusal may have been a lie. ``looks_first``:
    channels whose page is looked at for it before anything is sent. ``cannot_look``: channels where
    nothing can be seen, and the platform's word has to do.
    """

    version: int
    jobs: list[Job]
    looks_first: list[int]
    cannot_look: list[int]
    problems: list[ProblemTold] = Field(
        description="What to know of these channels at these times; it keeps it from nothing."
    )


class Deletion(Told):
    """A deletion that was asked for, and the job whose post goes by it."""

    job: Job
    removes: Job


def listed(post: Listed) -> PostListed:
    """One, as lists have it."""
    return PostListed(
        id=post.id,
        external_reference=post.ref,
        text=post.post.text,
        version=post.version,
        approved_at=post.approved_at,
        approved_by=post.approved_by,
        jobs={str(at.channel_id): at.state.value for at in post.placed if at.state is not None},
        url=f"/api/v1/posts/{post.id}",
    )


def whole(
    page: PostPage,
    problems: Collection[ChannelProblem],
    counted: Collection[ChannelLength],
    jobs: Iterable[Job],
    deletions: Iterable[Job],
) -> PostWhole:
    """One with everything about it."""
    newest = page.newest
    return PostWhole(
        id=page.id,
        external_reference=page.ref,
        status=page.status.value,
        revision=page.draft.revision,
        words=words(page.draft.document),
        unsaved=page.has_unsaved_changes,
        channels=[Target(id=number, name=name) for number, name in page.channels.items()],
        newest_version=None if newest is None else newest.number,
        approved=newest is not None and newest.is_approved,
        review=None if page.review is None else _review(page.review),
        problems=[problem(one) for one in problems],
        lengths=[
            LengthTold(
                channel=one.channel_id,
                used=one.extent.used,
                limit=one.extent.limit,
                excess_at=one.extent.excess_at,
            )
            for one in counted
        ],
        labels=list(page.labels),
        assignees=list(page.assignees),
        jobs=list(jobs),
        deletions=list(deletions),
        created_at=page.created_at,
        created_by=page.created_by,
        trashed_at=page.trashed_at,
        trashed_by=page.trashed_by,
        events=[
            PostEventTold(
                at=one.at,
                who=one.who,
                event=one.event,
                version=one.version,
                detail=dict(one.detail),
            )
            for one in page.events
        ],
        url=f"/api/v1/posts/{page.id}",
    )


def version(stored: StoredVersion) -> Version:
    """One revision."""
    return Version(
        number=stored.number,
        words=words(stored.document),
        sha256=stored.sha256.hex(),
        created_at=stored.created_at,
        created_by=stored.created_by,
        approved=stored.is_approved,
        approved_at=stored.approved_at,
        approved_by=stored.approved_by,
        withdrawn_at=stored.withdrawn_at,
        withdrawn_by=stored.withdrawn_by,
    )


def words(document: Document) -> Words:
    """What is written."""
    return Words(
        text=document.post.text,
        link=document.post.link,
        media=media(document.post),
        first_comment=document.first_comment,
        variants=[_variant(number, one) for number, one in sorted(document.variants.items())],
    )


def change(one: Change) -> JobChange:
    """What was done with one job."""
    return JobChange(
        job=public_id(one.job.id),
        act=one.act.value,
        successor=None if one.successor is None else public_id(one.successor),
        code=None if one.refusal is None else one.refusal.code,
        detail=None if one.refusal is None else str(one.refusal),
    )


def _variant(number: int, one: Variant) -> VariantTold:
    return VariantTold(
        channel=number,
        own=[part.value for part in sorted(one.own)],
        text=one.text if Part.TEXT in one.own else None,
        link=one.link if Part.LINK in one.own else None,
        media=media(Post("", None, one.media)) if Part.MEDIA in one.own else [],
        first_comment=one.first_comment if Part.FIRST_COMMENT in one.own else None,
    )


def _review(one: Review) -> ReviewTold:
    return ReviewTold(
        version=one.version,
        submitted_at=one.submitted_at,
        submitted_by=one.submitted_by,
        approver=one.approver,
        decided_at=one.decided_at,
        decided_by=one.decided_by,
        decision=one.decision,
        comment=one.comment,
    )


def problem(one: ChannelProblem) -> ProblemTold:
    """Something to fix, or worth knowing."""
    return ProblemTold(
        channel=one.channel_id,
        field=one.field,
        code=one.problem.code,
        detail=one.problem.message,
        must_be_fixed=one.stands_in_the_way,
    )
