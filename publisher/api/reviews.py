"""``/posts/…``: approve one version, schedule it, publish it again on purpose, delete it again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Request, Response
from pydantic import Field

from publisher.api import told_jobs, told_posts
from publisher.api.calls import Answer, Caller, Here, OptionalKey, RequiredKey, once
from publisher.api.jobs import named
from publisher.api.operations import operation
from publisher.api.posts import ChannelNumber, PostNumber, changed, read
from publisher.api.problems import Problem, Refusal
from publisher.api.strict import INTEGER, Body, JobName, Time, Zone
from publisher.api.told_posts import Deletion, PostChanged, Scheduled
from publisher.editorial import approval, removals, reviews, schedules, times
from publisher.editorial.people.roles import Permission
from publisher.editorial.posts import Destination
from publisher.engine import queries

if TYPE_CHECKING:
    from sqlalchemy import Connection

router = APIRouter(tags=["posts"])
VersionNumber = Annotated[int, Field(ge=1, le=INTEGER)]
Comment = Annotated[str, Field(max_length=20_000, description="Kept in the post's journal.")]
Seconds = Annotated[int, Field(ge=1, le=10 * 366 * 86_400)]


class Asked(Body):
    """Who is asked, about which version."""

    version: VersionNumber | None = Field(default=None, description="The one you have seen.")
    approver: Annotated[str, Field(max_length=200)] = Field(
        default="", description="Empty: whoever may."
    )
    comment: Comment = ""


class Approval(Body):
    """The version that was read."""

    version: VersionNumber = Field(description="Refused where there is a newer one.")
    comment: Comment = ""


class Changes(Body):
    """What should change."""

    comment: Comment
    version: VersionNumber | None = None


class Withdrawal(Body):
    """Which approval does not stand any more, and why."""

    version: VersionNumber | None = Field(default=None, description="Left out: all that stand.")
    reason: Comment = ""


class Said(Body):
    """Something to say about a post."""

    comment: Comment
    version: VersionNumber | None = None


class Place(Body):
    """Where it goes, and when."""

    channel: ChannelNumber
    at: Time
    zone: Zone = ""


class Schedule(Body):
    """Where an approved version goes, and when."""

    places: Annotated[list[Place], Field(min_length=1, max_length=100)]
    version: VersionNumber | None = Field(default=None, description="Left out: the newest.")
    useful_for_seconds: Seconds | None = Field(
        default=None, description="So long after its time it is still sent."
    )


class Repeat(Place):
    """Where it is published once more, and when."""

    useful_for_seconds: Seconds | None = None


class Delete(Body):
    """Where it is live, and is not to be."""

    channel: ChannelNumber
    reason: Comment = ""
    job: JobName | None = Field(
        default=None, description="The job whose post goes; left out: the newest live there."
    )


@operation(
    router,
    "POST",
    "/posts/{post}/submit",
    Permission.POSTS_WRITE,
    PostChanged,
    example={"version": 3, "comment": "for Monday"},
)
def submit_post(
    post: PostNumber, here: Here, request: Request, body: Asked | None = None,
    key: OptionalKey = None,
) -> Response:  # fmt: skip
    """Ask for the newest version to be approved."""
    asked = body or Asked()

    def submit(conn: Connection) -> Answer:
        read(conn, here, post)
        new = reviews.submit(
            conn,
            post,
            who=here.person,
            number=asked.version,
            approver=asked.approver,
            comment=asked.comment,
        )
        return changed(conn, here, post, new=new)

    return once(here, request, key, submit)


@operation(
    router,
    "POST",
    "/posts/{post}/approve",
    Permission.POSTS_APPROVE,
    PostChanged,
    example={"version": 3},
)
def approve_post(
    post: PostNumber, here: Here, request: Request, body: Approval, key: RequiredKey
) -> Response:
    """Approve one version, and bring what is scheduled to it.

    What has a time and no job, as posts of a file have, is scheduled by that.
    """

    def approve(conn: Connection) -> Answer:
        read(conn, here, post)
        (approved,), _enqueued = approval.approve_all(
            conn,
            [post],
            who=here.person,
            useful_for=here.desk.useful_for,
            registry=here.desk.registry,
            number=body.version,
            comment=body.comment,
        )
        return changed(conn, here, post, new=approved.is_new, changes=approved.changes)

    return once(here, request, key, approve)


@operation(
    router,
    "POST",
    "/posts/{post}/request-changes",
    Permission.POSTS_APPROVE,
    PostChanged,
    example={"version": 3, "comment": "the time is wrong"},
)
def request_changes(
    post: PostNumber, here: Here, request: Request, body: Changes, key: RequiredKey
) -> Response:
    """Give a version back to its author, and say why."""

    def give_back(conn: Connection) -> Answer:
        read(conn, here, post)
        reviews.request_changes(
            conn, post, who=here.person, comment=body.comment, number=body.version
        )
        return changed(conn, here, post, new=True)

    return once(here, request, key, give_back)


@operation(
    router,
    "POST",
    "/posts/{post}/withdraw",
    Permission.POSTS_APPROVE,
    PostChanged,
    example={"reason": "it was cancelled"},
)
def withdraw_approval(
    post: PostNumber, here: Here, request: Request, body: Withdrawal | None = None,
    key: OptionalKey = None,
) -> Response:  # fmt: skip
    """Take an approval back. What waits by it is held; what is being sent is beyond it."""
    asked = body or Withdrawal()

    def withdraw(conn: Connection) -> Answer:
        read(conn, here, post)
        withdrawn = reviews.withdraw(
            conn, post, who=here.person, reason=asked.reason, number=asked.version
        )
        return changed(conn, here, post, new=True, changes=withdrawn.changes)

    return once(here, request, key, withdraw)


@operation(
    router,
    "POST",
    "/posts/{post}/comments",
    Permission.POSTS_WRITE,
    PostChanged,
    example={"comment": "Is the street name right?"},
)
def comment_on_post(
    post: PostNumber, here: Here, request: Request, body: Said, key: RequiredKey
) -> Response:
    """Say something about a post, or one version of it."""

    def say(conn: Connection) -> Answer:
        read(conn, here, post)
        reviews.comment_on(conn, post, who=here.person, comment=body.comment, number=body.version)
        return changed(conn, here, post, new=True)

    return once(here, request, key, say)


@operation(
    router,
    "POST",
    "/posts/{post}/schedule",
    Permission.POSTS_SCHEDULE,
    Scheduled,
    status=201,
    example={"places": [{"channel": 7, "at": "2026-12-07 09:00", "zone": "Asia/Ho_Chi_Minh"}]},
)
def schedule_post(
    post: PostNumber, here: Here, request: Request, body: Schedule, key: RequiredKey
) -> Response:
    """Schedule an approved version: one job for each place, all of them or none.

    After a refusal this is *fix and schedule again*: the new job replaces the refused one. Where
    the page can be looked at, it is looked at for that one first; found there, it becomes live, the
    new job is on hold for good, and people are told.
    """

    def schedule(conn: Connection) -> schedules.Scheduled:
        span = _span(here, body.useful_for_seconds)
        places = [
            _place(conn, place, f"places.{number}", span)
            for number, place in enumerate(body.places)
        ]
        return schedules.schedule(
            conn,
            post,
            places,
            who=here.person,
            registry=here.desk.registry,
            useful_for=span,
            number=body.version,
        )

    return _scheduled(here, request, post, key, schedule)


@operation(
    router,
    "POST",
    "/posts/{post}/again",
    Permission.POSTS_SCHEDULE,
    Scheduled,
    status=201,
    example={"channel": 7, "at": "2026-12-14T09:00:00+07:00"},
)
def publish_again(
    post: PostNumber, here: Here, request: Request, body: Repeat, key: RequiredKey
) -> Response:
    """Publish the approved version once more, on a channel where it is live.

    Refused while it is not known whether the first is live.
    """

    def again(conn: Connection) -> schedules.Scheduled:
        span = _span(here, body.useful_for_seconds)
        return schedules.again(
            conn,
            post,
            _place(conn, body, "", span),
            who=here.person,
            registry=here.desk.registry,
            useful_for=span,
        )

    return _scheduled(here, request, post, key, again)


@operation(
    router,
    "POST",
    "/posts/{post}/delete",
    Permission.POSTS_DELETE_LIVE,
    Deletion,
    status=201,
    example={"channel": 7, "reason": "the price is wrong"},
)
def delete_live_post(
    post: PostNumber, here: Here, request: Request, body: Delete, key: RequiredKey
) -> Response:
    """Have a post deleted from one channel's page, by a job of its own.

    The post, its versions and the job that published it stay. Wait for the deletion's own job to
    know that it is gone.
    """

    def delete(conn: Connection) -> Answer:
        read(conn, here, post)
        asked = removals.delete(
            conn,
            post,
            body.channel,
            who=here.person,
            registry=here.desk.registry,
            horizon=here.desk.horizon,
            reason=body.reason,
            job_id=None if body.job is None else named(body.job),
        )
        ids = [asked.job.job_id, asked.removes.id]
        tries = here.desk.settings.tries
        rows = {row.id: told_jobs.job(row, tries) for row in queries.job_rows(conn, only=ids)}
        return Answer(Deletion(job=rows[ids[0]], removes=rows[ids[1]]), status=201)

    return once(here, request, key, delete)


def _scheduled(
    here: Caller,
    request: Request,
    post: int,
    key: str,
    act: Callable[[Connection], schedules.Scheduled],
) -> Response:
    def add(conn: Connection) -> Answer:
        read(conn, here, post)
        done = act(conn)
        rows = queries.job_rows(conn, only=[job.job_id for job in done.jobs])
        tries = here.desk.settings.tries
        told: Sequence[told_jobs.Job] = [told_jobs.job(row, tries) for row in rows]
        scheduled = Scheduled(
            version=done.version.number,
            jobs=list(told),
            looks_first=list(done.looks_first),
            cannot_look=list(done.cannot_look),
            problems=[told_posts.problem(one) for one in done.problems],
        )
        return Answer(scheduled, status=201)

    return once(here, request, key, add)


def _place(conn: Connection, place: Place, where: str, span: timedelta) -> Destination:
    try:
        moment = times.read(place.at, place.zone, now=queries.clock(conn), useful_for=span)
    except times.TimeRefused as refused:
        name = "at" if refused.field == "publish_at" else refused.field
        field = f"{where}.{name}".lstrip(".")
        raise Refusal(Problem.of(refused.code, str(refused), field=field)) from refused
    return Destination(place.channel, moment.at, moment.zone)


def _span(here: Caller, seconds: int | None) -> timedelta:
    return here.desk.useful_for if seconds is None else timedelta(seconds=seconds)
