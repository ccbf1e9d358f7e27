"""A job as the API tells of it: the four answers first, then what they rest on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from publisher.api.problems import OnPageWord
from publisher.api.strict import Instant, Told
from publisher.engine.content import ContentError, Post
from publisher.engine.job import State, public_id
from publisher.engine.queries import (
    AttemptDetail,
    JobDetail,
    JobRow,
    LookDetail,
    Moment,
)
from publisher.standing import OnPage, Standing, stand

StateWord = Literal[
    "scheduled", "claimed", "sending", "published", "failed", "unknown", "missed", "cancelled",
    "dropped",
]  # fmt: skip
FINAL = frozenset({State.PUBLISHED, State.FAILED, State.MISSED, State.CANCELLED, State.DROPPED})
_VERDICT = "verdict"
_OPERATIONS: Mapping[str, str] = {
    "wait": "POST /api/v1/jobs/{id}/wait",
    "cancel": "POST /api/v1/jobs/{id}/cancel",
    "hold": "POST /api/v1/jobs/{id}/hold",
    "release": "POST /api/v1/jobs/{id}/release",
    "reschedule": "POST /api/v1/jobs/{id}/reschedule",
    "requeue": "POST /api/v1/jobs/{id}/requeue",
    "restore": "POST /api/v1/jobs/{id}/restore",
    "unknowns show": "GET /api/v1/unknowns/{id}",
    "channels reconnect": "POST /api/v1/channels/{channel}/reconnect",
    "channels resume": "POST /api/v1/channels/{channel}/resume",
}


class ChannelName(Told):
    """Which channel, as lists name it."""

    id: int
    name: str
    platform: str


class Job(Told):
    """One post on its way to one channel."""

    id: str = Field(examples=["8f3a01bc24"])
    key: str
    external_reference: str | None
    kind: str
    queue: str
    channel: ChannelName
    post_id: int | None
    state: StateWord
    label: str = Field(
        description="The state as people read it.", examples=["May be live: checking"]
    )
    final: bool = Field(description="Nothing changes any more by itself.")
    on_page: OnPageWord = Field(description="Is it on the page?")
    why: str = Field(description="Why we say so: a sentence of fact.")
    by_itself: str = Field(description="What happens by itself.")
    next_check_at: Instant | None = Field(
        description="When what happens by itself is due: the next try, or the next look."
    )
    safe_to_repeat: bool = Field(
        description="It is certainly not on the page and nothing more will be sent: the post may be"
        " published anew without doubling it."
    )
    needs_a_person: bool
    may: list[str] = Field(description="What may be done, the safe thing first.")
    attempts: int = Field(description="How many sends were begun.")
    failures: int
    due_at: Instant
    run_at: Instant
    useful_until: Instant | None
    settled_at: Instant | None
    hold_reason: str | None
    remote_id: str | None
    permalink: str | None
    reason: str | None
    removes: str | None = Field(
        description="Of kind delete: the published job whose post it takes down."
    )
    deleted_at: Instant | None = Field(
        description="It was live, and was deleted from its page by then."
    )
    url: str


class Page(Told):
    """Where a page of a list ends."""

    next_cursor: str | None = Field(description="For the next page; null at the end.")


class JobPage(Page):
    """Jobs, the newest first."""

    jobs: list[Job]


class MediaItem(Told):
    """One picture or video."""

    kind: str
    type: str
    alt: str
    sha256: str | None
    url: str | None
    name: str | None


class Content(Told):
    """What is sent, frozen into the job."""

    text: str | None = Field(description="Null for what is no post.")
    link: str | None
    media: list[MediaItem]
    sha256: str = Field(description="Of the bytes that every attempt is sent from.")
    version: int | None
    approved_at: Instant | None
    approved_by: str | None


class Attempt(Told):
    """One send that was begun. Its row was there before the first byte was."""

    number: int
    worker_run: int
    version: int | None
    content_sha256: str
    claimed_at: Instant
    begun_at: Instant
    settled_at: Instant | None
    outcome: str | None
    reason: str | None
    detail: str | None
    remote_id: str | None
    answer: dict[str, Any] | None = Field(description="What came back, as far as it came.")
    proof: str | None = Field(description="Why a further send is allowed; null until there is one.")
    proof_detail: str | None
    proved_by: str | None
    proved_at: Instant | None


class Look(Told):
    """One look at the page, and what it found."""

    attempt: int
    by: str
    begun_at: Instant
    ended_at: Instant
    evidence: dict[str, Any]


class Line(Told):
    """One line of the timeline."""

    at: Instant
    event: str
    who: str
    attempt: int | None
    detail: dict[str, Any]


class JobWhole(Job):
    """A job with everything that is known about it."""

    content: Content
    replaces: str | None
    repeats: str | None
    sends: list[Attempt]
    looks: list[Look]
    verdicts: list[Line] = Field(description="What was decided of its doubts, and by whom.")
    timeline: list[Line]


class MovedJob(Told):
    """A job before and after a person's act."""

    was: StateWord
    job: Job


def standing(row: JobRow, tries: int) -> Standing:
    """Where it stands, in the words of every surface."""
    return stand(row, tries=tries)


def job(row: JobRow, tries: int) -> Job:
    """One job, as lists have it."""
    return Job(**_parts(row, tries))


def job_whole(detail: JobDetail, tries: int) -> JobWhole:
    """One job with its evidence."""
    timeline = [_line(moment) for moment in detail.timeline]
    return JobWhole(
        **_parts(detail.row, tries),
        content=_content(detail),
        replaces=None if detail.replaces is None else public_id(detail.replaces),
        repeats=None if detail.repeats is None else public_id(detail.repeats),
        sends=[_attempt(one) for one in detail.attempts],
        looks=[_look(one) for one in detail.looks],
        verdicts=[line for line in timeline if line.event == _VERDICT],
        timeline=timeline,
    )


def next_step(row: JobRow, at: Standing) -> str:
    """The safe thing to do, as an operation."""
    return next(iter(_may(row, at)), f"GET /api/v1/jobs/{public_id(row.id)}")


def is_safe(row: JobRow, at: Standing) -> bool:
    """Whether the post may be published anew without doubling it."""
    return row.state in FINAL and at.on_page is OnPage.NO


def _parts(row: JobRow, tries: int) -> dict[str, Any]:
    at = stand(row, tries=tries)
    name = public_id(row.id)
    return {
        "id": name,
        "key": row.key,
        "external_reference": row.ref,
        "kind": row.kind,
        "queue": row.queue,
        "channel": ChannelName(id=row.channel_id, name=row.channel, platform=row.platform),
        "post_id": row.post_id,
        "state": row.state.value,
        "label": at.label,
        "final": row.state in FINAL,
        "on_page": at.on_page.value,
        "why": at.why,
        "by_itself": at.by_itself,
        "next_check_at": at.next_at,
        "safe_to_repeat": is_safe(row, at),
        "needs_a_person": at.needs_a_person,
        "may": _may(row, at),
        "attempts": row.attempts,
        "failures": row.failures,
        "due_at": row.due_at,
        "run_at": row.run_at,
        "useful_until": row.useful_until,
        "settled_at": row.settled_at,
        "hold_reason": row.hold_reason,
        "remote_id": row.remote_id,
        "permalink": row.permalink,
        "reason": row.reason,
        "removes": None if row.removes is None else public_id(row.removes),
        "deleted_at": row.deleted_at,
        "url": f"/api/v1/jobs/{name}",
    }


def _may(row: JobRow, at: Standing) -> list[str]:
    """The verbs of ``standing``, which are those of the commands, as operations."""
    named = []
    for verb in at.verbs:
        known = _OPERATIONS.get(verb) or _OPERATIONS.get(verb.partition(" ")[0])
        if known is not None:
            named.append(known.format(id=public_id(row.id), channel=row.channel_id))
    return named


def _content(detail: JobDetail) -> Content:
    try:
        post: Post | None = Post.from_json(detail.content)
    except ContentError:
        post = None
    return Content(
        text=None if post is None else post.text,
        link=None if post is None else post.link,
        media=[] if post is None else media(post),
        sha256=detail.content_sha256.hex(),
        version=detail.version,
        approved_at=detail.approved_at,
        approved_by=detail.approved_by,
    )


def media(post: Post) -> list[MediaItem]:
    """A post's pictures and videos."""
    return [
        MediaItem(
            kind=one.kind, type=one.type, alt=one.alt, sha256=one.sha256, url=one.url, name=one.name
        )
        for one in post.media
    ]


def _attempt(one: AttemptDetail) -> Attempt:
    return Attempt(
        number=one.number,
        worker_run=one.incarnation,
        version=one.version,
        content_sha256=one.content_sha256.hex(),
        claimed_at=one.claimed_at,
        begun_at=one.begun_at,
        settled_at=one.settled_at,
        outcome=one.outcome,
        reason=one.reason,
        detail=one.detail,
        remote_id=one.remote_id,
        answer=None if one.answer is None else dict(one.answer),
        proof=one.proof,
        proof_detail=one.proof_detail,
        proved_by=one.proved_by,
        proved_at=one.proved_at,
    )


def _look(one: LookDetail) -> Look:
    return Look(
        attempt=one.attempt,
        by=one.by,
        begun_at=one.begun_at,
        ended_at=one.ended_at,
        evidence=dict(one.evidence),
    )


def _line(one: Moment) -> Line:
    return Line(
        at=one.at, event=one.event, who=one.who, attempt=one.attempt, detail=dict(one.detail)
    )
