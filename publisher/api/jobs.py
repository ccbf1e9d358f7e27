"""``/jobs``: see what stands where, wait for it, and move what may still be moved."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Final

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool

from publisher.api import told_jobs
from publisher.api.calls import Answer, Caller, Here, OptionalKey, RequiredKey, answered, once
from publisher.api.operations import operation
from publisher.api.problems import Problem, Refusal, of_refusal
from publisher.api.strict import (
    INTEGER,
    Body,
    Cursor,
    JobName,
    Limit,
    Reason,
    Time,
    Told,
    When,
    Zone,
)
from publisher.api.told_jobs import FINAL, Job, JobPage, JobWhole, MovedJob, StateWord
from publisher.editorial import times
from publisher.editorial.people.roles import Permission
from publisher.engine import ledger, queries
from publisher.engine.errors import NotFound, PublisherError
from publisher.engine.job import JobId, State, of_public_id, public_id
from publisher.engine.ledger import Moved
from publisher.engine.queries import JobFilter, JobRow
from publisher.standing import stand
from publisher.words import _

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import Connection

router = APIRouter(tags=["jobs"])
_POLL_SECONDS: Final = 0.25
_SETTLED: Final = FINAL | {State.UNKNOWN}


class JobQuery(BaseModel):
    """Which jobs; what is left out leaves nothing out."""

    model_config = ConfigDict(extra="forbid")

    state: list[StateWord] = Field(default=[], max_length=9, description="In any of these states.")
    channel: int | None = Field(default=None, ge=1, le=INTEGER, description="Of this channel.")
    queue: str | None = Field(default=None, max_length=100)
    post: int | None = Field(default=None, ge=1, le=2**62, description="Of this post.")
    key: str | None = Field(default=None, max_length=500, description="With exactly this key.")
    external_reference: str | None = Field(
        default=None, max_length=200, description="Of the post's."
    )
    due_from: When | None = Field(default=None, description="Due at or after this.")
    due_until: When | None = Field(default=None, description="Due before this.")
    limit: Limit = 50
    cursor: Cursor = None


class Because(Body):
    """Why, where somebody wants to say it."""

    reason: Reason = ""


class To(Body):
    """Another time."""

    at: Time
    zone: Zone = ""


class Again(Body):
    """Until when it is useful from now on."""

    useful_until: Time | None = None
    zone: Zone = ""


class Patience(Body):
    """How long to wait."""

    seconds: int = Field(default=20, ge=0, le=30, description="At most so many.")


class Waited(Told):
    """How a wait ended."""

    settled: bool = Field(description="False: the time was over before its end was known.")
    job: Job


@operation(router, "GET", "/jobs", Permission.JOBS_READ, JobPage)
def list_jobs(query: Annotated[JobQuery, Query()], here: Here) -> Response:
    """List jobs, the newest first."""
    before = _before(query.cursor)
    wanted = JobFilter(
        states=[State(state) for state in query.state],
        channel_id=query.channel,
        queue=query.queue,
        post_id=query.post,
        key=query.key,
        ref=query.external_reference,
        due_from=query.due_from,
        due_until=query.due_until,
    )
    with here.transaction() as conn:
        rows = queries.job_page(conn, wanted, limit=query.limit + 1, before=before)
    shown = rows[: query.limit]
    more = public_id(shown[-1].id) if len(rows) > query.limit else None
    tries = here.desk.settings.tries
    return answered(
        JobPage(jobs=[told_jobs.job(row, tries) for row in shown], next_cursor=more),
    )


@operation(router, "GET", "/jobs/{job}", Permission.JOBS_READ, JobWhole)
def show_job(job: JobName, here: Here) -> Response:
    """Show one job with every attempt, look and verdict.

    Is it on the page, and why do we say so?
    """
    with here.transaction() as conn:
        return answered(whole(conn, here, named(job)))


@operation(router, "POST", "/jobs/{job}/cancel", Permission.JOBS_MANAGE, MovedJob)
def cancel_job(
    job: JobName, here: Here, request: Request, body: Because | None = None, key: OptionalKey = None
) -> Response:
    """Call a job off that has not begun to be sent."""
    reason = "" if body is None else body.reason
    return _move(
        here, request, job, key,
        lambda conn, job_id: ledger.cancel(conn, job_id, who=here.who, reason=reason),
    )  # fmt: skip


@operation(router, "POST", "/jobs/{job}/hold", Permission.JOBS_MANAGE, MovedJob)
def hold_job(
    job: JobName, here: Here, request: Request, body: Because | None = None, key: OptionalKey = None
) -> Response:
    """Keep a job from being sent until it is released. Its useful time runs on."""
    reason = "" if body is None else body.reason
    return _move(
        here, request, job, key,
        lambda conn, job_id: ledger.hold(conn, job_id, who=here.who, reason=reason),
    )  # fmt: skip


@operation(router, "POST", "/jobs/{job}/release", Permission.JOBS_MANAGE, MovedJob)
def release_job(job: JobName, here: Here, request: Request, key: OptionalKey = None) -> Response:
    """Let a held job go on."""
    return _move(
        here, request, job, key,
        lambda conn, job_id: ledger.release_hold(conn, job_id, who=here.who),
    )  # fmt: skip


@operation(
    router,
    "POST",
    "/jobs/{job}/reschedule",
    Permission.POSTS_SCHEDULE,
    MovedJob,
    example={"at": "2026-12-07 09:00", "zone": "Asia/Ho_Chi_Minh"},
)
def reschedule_job(
    job: JobName, here: Here, request: Request, body: To, key: OptionalKey = None
) -> Response:
    """Move a job to another time. Its key stays."""

    def move(conn: Connection, job_id: JobId) -> Moved:
        at = read_time(conn, body.at, body.zone, "at", useful_for=here.desk.useful_for)
        return ledger.reschedule(conn, job_id, at=at, who=here.who)

    return _move(here, request, job, key, move)


@operation(
    router,
    "POST",
    "/jobs/{job}/requeue",
    Permission.JOBS_MANAGE,
    MovedJob,
    example={"useful_until": "2026-12-07T12:00:00+07:00"},
)
def requeue_job(
    job: JobName, here: Here, request: Request, key: RequiredKey, body: Again | None = None
) -> Response:
    """Try a job again that ended not published, where that is certain."""

    def move(conn: Connection, job_id: JobId) -> Moved:
        until = None
        if body is not None and body.useful_until is not None:
            until = read_time(conn, body.useful_until, body.zone, "useful_until")
        return ledger.requeue(conn, job_id, who=here.who, useful_until=until)

    return _move(here, request, job, key, move)


@operation(router, "POST", "/jobs/{job}/restore", Permission.JOBS_MANAGE, MovedJob)
def restore_job(job: JobName, here: Here, request: Request, key: RequiredKey) -> Response:
    """Bring a cancelled job back that was never begun."""
    return _move(
        here, request, job, key, lambda conn, job_id: ledger.restore(conn, job_id, who=here.who)
    )


@operation(
    router, "POST", "/jobs/{job}/wait", Permission.JOBS_READ, Waited, example={"seconds": 20}
)
async def wait_for_job(job: JobName, here: Here, body: Patience | None = None) -> Response:
    """Wait until a job is settled: live, not published, or in doubt. It changes nothing."""
    ends_at = time.monotonic() + (Patience() if body is None else body).seconds
    while True:
        # No thread and no connection is held between two looks.
        row = await run_in_threadpool(_row, here, named(job))
        left = ends_at - time.monotonic()
        if row.state in _SETTLED or left <= 0:
            told = told_jobs.job(row, here.desk.settings.tries)
            return answered(Waited(settled=row.state in _SETTLED, job=told))
        await asyncio.sleep(min(_POLL_SECONDS, left))


def named(job: str) -> JobId:
    """The number behind an id. Raises ``NotFound``."""
    job_id = of_public_id(job)
    if job_id is None:
        raise no_job(job)
    return job_id


def no_job(job: str) -> NotFound:
    """There is none, or it is another workspace's: that is not told apart."""
    return NotFound(_("There is no job {id} here.").format(id=job))


def whole(conn: Connection, here: Caller, job_id: JobId) -> JobWhole:
    """Everything about a job. Raises ``NotFound``."""
    try:
        detail = queries.job_detail(conn, job_id)
    except NotFound:
        raise no_job(public_id(job_id)) from None
    return told_jobs.job_whole(detail, here.desk.settings.tries)


def read_time(
    conn: Connection, written: str, zone: str, field: str, *, useful_for: timedelta = timedelta(0)
) -> datetime:
    """An instant, as people write times here; what is wrong with it is told at ``field``."""
    try:
        return times.read(written, zone, now=queries.clock(conn), useful_for=useful_for).at
    except times.TimeRefused as refused:
        where = field if refused.field == "publish_at" else refused.field
        raise Refusal(Problem.of(refused.code, str(refused), field=where)) from refused


@contextmanager
def about(here: Caller, job_id: JobId) -> Iterator[None]:
    """Tell what is refused in the block together with where the job stands then."""
    try:
        yield
    except NotFound:
        raise no_job(public_id(job_id)) from None
    except PublisherError as error:
        raise Refusal(_placed(here, job_id, of_refusal(error))) from error


def _placed(here: Caller, job_id: JobId, problem: Problem) -> Problem:
    if problem.code.startswith("idempotency-"):
        return problem
    try:
        row = _row(here, job_id)
    except NotFound:
        return problem
    at = stand(row, tries=here.desk.settings.tries)
    return problem.about(
        at.on_page,
        safe=told_jobs.is_safe(row, at),
        next_step=told_jobs.next_step(row, at),
        job=public_id(job_id),
    )


def _row(here: Caller, job_id: JobId) -> JobRow:
    with here.transaction() as conn:
        return row_of(conn, job_id)


def row_of(conn: Connection, job_id: JobId) -> JobRow:
    """One job as lists have it. Raises ``NotFound``."""
    row = next(queries.job_rows(conn, only=[job_id], limit=1), None)
    if row is None:
        raise no_job(public_id(job_id))
    return row


def _move(
    here: Caller,
    request: Request,
    job: str,
    key: str | None,
    act: Callable[[Connection, JobId], Moved],
) -> Response:
    job_id = named(job)

    def move(conn: Connection) -> Answer:
        # Of another workspace's job not even a lock is asked for.
        row_of(conn, job_id)
        moved = act(conn, job_id)
        told = told_jobs.job(row_of(conn, job_id), here.desk.settings.tries)
        return Answer(MovedJob(was=moved.was.value, job=told))

    with about(here, job_id):
        return once(here, request, key, move)


def _before(cursor: str | None) -> JobId | None:
    if cursor is None:
        return None
    before = of_public_id(cursor)
    if before is None:
        detail = _("This cursor is none of ours. Take next_cursor of the page before.")
        raise Refusal(Problem.of("request-invalid", detail, field="cursor"))
    return before
