"""What people do to jobs: cancel, move, hold, replace, requeue, restore.

Each is one compare-and-set on the row as it stands, inside the caller's transaction, and leaves
an event that says who. Sending and unknown are past the editor's point of no return: there the
answer is a ``Conflict`` that says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import psycopg
from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    and_,
    func,
    insert,
    literal,
    null,
    select,
    update,
)
from sqlalchemy.exc import DBAPIError, IntegrityError

from publisher.engine.content import digest
from publisher.engine.errors import Conflict, NotFound
from publisher.engine.job import OPEN, Hold, JobId, State, public_id
from publisher.engine.ledger import refusals
from publisher.engine.ledger.enqueue import DUPLICATE, ONE_OPEN, ONE_REMOVAL, duplicate_job
from publisher.engine.ledger.quarantine import comes_back_doubted
from publisher.engine.outcome import Proof
from publisher.engine.schema import attempts, job_contents, job_events, jobs
from publisher.engine.transitions import Event, allowed

_LET_GO = {
    "token": None,
    "incarnation": None,
    "claimed_at": None,
    "hand_at": None,
    "lease_until": None,
}
_NOW = func.clock_timestamp()


@dataclass(frozen=True, slots=True)
class Moved:
    """A job before and after a person's act."""

    job_id: JobId
    was: State
    state: State


def cancel(conn: Connection, job_id: JobId, *, who: str, reason: str = "") -> Moved:
    """Call a job off before its send has begun. Raises ``Conflict``, ``NotFound``."""
    job = _open(conn, job_id, Event.CANCEL)
    if _possibly_live(conn, job_id):
        return _apply(
            conn, job, Event.REPEAT_ENDED, State.UNKNOWN, who, {"reason": reason}, settled_at=_NOW
        )
    return _apply(
        conn, job, Event.CANCEL, State.CANCELLED, who, {"reason": reason}, settled_at=_NOW
    )


def reschedule(conn: Connection, job_id: JobId, *, at: datetime, who: str) -> Moved:
    """Move a job to another time; its key stays. A useful-until moves along with it."""
    if at.tzinfo is None:
        message = f"{at.isoformat()} has no zone. Give an instant with one."
        raise Conflict(message, code="time-without-zone")
    job = _open(conn, job_id, Event.RESCHEDULE)
    useful_until = None if job.useful_until is None else job.useful_until + (at - job.due_at)
    return _apply(
        conn,
        job,
        Event.RESCHEDULE,
        State.SCHEDULED,
        who,
        {"from": job.due_at.isoformat(), "to": at.isoformat()},
        due_at=at,
        run_at=at,
        useful_until=useful_until,
    )


def hold(
    conn: Connection, job_id: JobId, *, who: str, reason: str = "", kind: Hold = Hold.PERSON
) -> Moved:
    """Keep a job from being claimed until it is released; its useful time runs on.

    Raises ``Conflict`` (``in-quarantine``), as ``release_hold`` and ``replace`` do: nothing else
    than the end of its quarantine lets such a job go on, and what is looked for is its content.
    """
    job = _not_quarantined(_open(conn, job_id, Event.HOLD))
    return _apply(
        conn, job, Event.HOLD, State.SCHEDULED, who, {"reason": reason}, hold_reason=str(kind)
    )


def release_hold(conn: Connection, job_id: JobId, *, who: str) -> Moved:
    """Let a held job go on. Raises ``Conflict`` when it is not held.

    What is held for an approval goes on only when that stands: otherwise the database holds it
    anew, and this raises ``needs-approval``, whoever held it.
    """
    job = _not_quarantined(_open(conn, job_id, Event.RELEASE_HOLD))
    if job.hold_reason is None:
        message = f"Job {public_id(job_id)} is not on hold. Nothing was changed."
        raise Conflict(message, code="not-held", state=job.state)
    with conn.begin_nested():
        moved = _apply(conn, job, Event.RELEASE_HOLD, State.SCHEDULED, who, {}, hold_reason=None)
        still = conn.scalar(select(jobs.c.hold_reason).where(jobs.c.id == job_id))
        if still == Hold.LIVE:
            raise refusals.stands_already(job, Event.RELEASE_HOLD)
        if still is not None:
            message = (
                f"Job {public_id(job_id)} stays on hold: {still}. Nothing was changed. It goes on "
                "when its post's newest version is approved. See: publisher posts show"
            )
            raise Conflict(message, code="needs-approval", state=job.state)
    return moved


def replace(
    conn: Connection,
    job_id: JobId,
    *,
    content: str,
    who: str,
    version_id: int | None = None,
    version: int | None = None,
) -> Moved:
    """Give a job that was never begun other content; its progress is cleared with the old one."""
    job = _not_quarantined(_open(conn, job_id, Event.REPLACE))
    if job.attempts:
        message = (
            f"Job {public_id(job_id)} was begun, so its content never changes. "
            "Cancel it, and schedule the new version at a new time."
        )
        raise Conflict(message, code="begun", state=job.state)
    conn.execute(
        update(job_contents)
        .where(job_contents.c.job_id == job_id)
        .values(
            content=content,
            content_sha256=digest(content),
            version_id=version_id,
            version=version,
            progress=null(),
            progress_sha256=None,
        )
    )
    return _apply(conn, job, Event.REPLACE, State.SCHEDULED, who, {"version": version})


def requeue(
    conn: Connection, job_id: JobId, *, who: str, useful_until: datetime | None = None
) -> Moved:
    """Try a job again that ended failed or missed, with all its tries anew.

    Every attempt must have its proof that a further send is allowed; a job whose useful time is
    over needs a new ``useful_until``. Raises ``Conflict``, ``NotFound``.
    """
    job = _open(conn, job_id, Event.REQUEUE)
    open_attempts = conn.scalar(
        select(func.count())
        .select_from(attempts)
        .where(
            attempts.c.job_id == job_id,
            attempts.c.proof.is_(None) | (attempts.c.proof == Proof.REPEAT_SAFE),
        )
    )
    if open_attempts:
        message = (
            f"Job {public_id(job_id)} may already be live, so it cannot be tried again. "
            "Look at the page and record what you see."
        )
        raise Conflict(message, code="unknown-not-retryable", state=job.state)
    now = conn.scalar(select(_NOW))
    ends_at = useful_until or job.useful_until
    if ends_at is not None and now is not None and ends_at <= now:
        message = (
            f"Job {public_id(job_id)} stopped being useful at {ends_at:%Y-%m-%d %H:%M %Z}. "
            "Give a new time until which it is useful."
        )
        raise Conflict(message, code="too-late", state=job.state)
    return _come_back(
        conn,
        job,
        Event.REQUEUE,
        who,
        {"useful_until": None if ends_at is None else ends_at.isoformat()},
        run_at=_NOW,
        useful_until=ends_at,
        failures=0,
        deaths=0,
        reason=None,
        settled_at=None,
    )


def restore(conn: Connection, job_id: JobId, *, who: str) -> Moved:
    """Bring a cancelled job back that was never begun."""
    job = _open(conn, job_id, Event.RESTORE)
    if job.attempts:
        message = (
            f"Job {public_id(job_id)} was begun before it was cancelled, so it cannot be "
            "restored. Schedule the post at a new time."
        )
        raise Conflict(message, code="begun", state=job.state)
    return _come_back(conn, job, Event.RESTORE, who, {}, reason=None, settled_at=None)


def _open(conn: Connection, job_id: JobId, event: Event) -> Row[Any]:
    """The job's row, locked, if ``event`` may happen to it in its state."""
    job = conn.execute(select(jobs).where(jobs.c.id == job_id).with_for_update()).one_or_none()
    if job is None:
        message = f"There is no job {public_id(job_id)}."
        raise NotFound(message)
    if not allowed(State(job.state), event):
        raise refusals.conflict(job, event)
    return job


def _not_quarantined(job: Row[Any]) -> Row[Any]:
    if job.hold_reason == Hold.QUARANTINE:
        message = (
            f"Job {public_id(job.id)} is in quarantine: the database may lack a send of it, so it "
            "is looked for on its page first. Nothing was changed. "
            "See: publisher quarantine status"
        )
        raise Conflict(message, code="in-quarantine", state=job.state)
    return job


def _possibly_live(conn: Connection, job_id: JobId) -> bool:
    """Whether an attempt's only proof is that a repeat is safe: it may be on the page."""
    found = select(literal(1)).where(
        attempts.c.job_id == job_id, attempts.c.proof == Proof.REPEAT_SAFE
    )
    return conn.execute(found).first() is not None


def _take_unique_lock(conn: Connection, job: Row[Any]) -> None:
    """Hold the job's content unique again. Raises ``DuplicateJob`` if another job holds it."""
    if job.unique_until is None:
        return
    try:
        with conn.begin_nested():
            conn.execute(select(func.publisher.retake_unique_lock(job.id)))
    except DBAPIError as error:
        if isinstance(error.orig, psycopg.Error) and error.orig.sqlstate == DUPLICATE:
            raise duplicate_job(error.orig) from error
        raise


def _come_back(
    conn: Connection,
    job: Row[Any],
    event: Event,
    who: str,
    detail: Mapping[str, object],
    **values: object,
) -> Moved:
    """As ``_apply``, for a job that has ended. Raises ``Conflict`` where another took its place."""
    _require_not_replaced(conn, job, event)
    try:
        with conn.begin_nested():
            _take_unique_lock(conn, job)
            if comes_back_doubted(conn, job.id):
                values["hold_reason"] = str(Hold.QUARANTINE)
            moved = _apply(conn, job, event, State.SCHEDULED, who, detail, **values)
            if conn.scalar(select(jobs.c.hold_reason).where(jobs.c.id == job.id)) == Hold.LIVE:
                raise refusals.stands_already(job, event)
            return moved
    except IntegrityError as error:
        cause = error.orig
        if not isinstance(cause, psycopg.Error):
            raise
        if cause.diag.constraint_name not in (ONE_OPEN, ONE_REMOVAL):
            raise
        raise _successor_is_open(conn, job, event) from error


def _require_not_replaced(conn: Connection, job: Row[Any], event: Event) -> None:
    """A newer job of the post on this channel has its place, unless that was cancelled or is open.

    What went out in a newer version must not be followed by the older one. A job of no post has
    no newer one.
    """
    if job.post_id is None:
        return
    newer = conn.execute(
        select(jobs.c.id, jobs.c.state)
        .where(
            jobs.c.post_id == job.post_id,
            jobs.c.channel_id == job.channel_id,
            jobs.c.kind == job.kind,
            jobs.c.id > job.id,
            jobs.c.state.not_in([str(State.CANCELLED), *map(str, OPEN)]),
        )
        .order_by(jobs.c.id.desc())
    ).first()
    if newer is None:
        return
    message = (
        f"Job {public_id(job.id)} cannot be {refusals.past(event)}: job {public_id(newer.id)}, "
        f"which is {newer.state}, has taken its place. Nothing was changed."
    )
    raise Conflict(message, code="replaced", state=job.state)


def _successor_is_open(conn: Connection, job: Row[Any], event: Event) -> Conflict:
    same: ColumnElement[bool] = jobs.c.removes == job.removes
    if job.removes is None:
        same = and_(jobs.c.post_id == job.post_id, jobs.c.channel_id == job.channel_id)
    other = conn.execute(
        select(jobs.c.id, jobs.c.state).where(
            same,
            jobs.c.kind == job.kind,
            jobs.c.state.in_([str(state) for state in OPEN]),
        )
    ).first()
    which = "another job" if other is None else f"job {public_id(other.id)}, which is {other.state}"
    message = (
        f"Job {public_id(job.id)} cannot be {refusals.past(event)}: its post already has {which}, "
        "on this channel. Nothing was changed."
    )
    return Conflict(message, code="open-job-exists", state=job.state)


def _apply(
    conn: Connection,
    job: Row[Any],
    event: Event,
    state: State,
    who: str,
    detail: Mapping[str, object],
    **values: object,
) -> Moved:
    """Write the move as a compare-and-set on state and token, and the event beside it."""
    let_go = _LET_GO if job.token is not None else {}
    kept_back = {} if state is State.SCHEDULED else {"hold_reason": None}
    same_token = jobs.c.token == job.token if job.token is not None else jobs.c.token.is_(None)
    changed = conn.execute(
        update(jobs)
        .where(jobs.c.id == job.id, jobs.c.state == job.state, same_token)
        .values(state=str(state), **kept_back, **let_go, **values)
    ).rowcount
    if changed != 1:  # pragma: no cover - the row is locked since it was read
        message = f"Job {public_id(job.id)} moved meanwhile. Look at it and ask again."
        raise Conflict(message, state=job.state)
    conn.execute(
        insert(job_events).values(
            job_id=job.id,
            event=str(event),
            who=who,
            attempt=job.attempts or None,
            detail={k: v for k, v in detail.items() if v not in (None, "")},
        )
    )
    return Moved(JobId(job.id), State(job.state), state)
