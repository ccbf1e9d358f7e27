"""Add jobs: unique by key for ever, and unique by content for a while where that is asked.

All of it is one SQL function, ``publisher.enqueue(jsonb)``, so that a job can be added inside the
caller's own transaction, from SQLAlchemy or psycopg, and commits or vanishes with it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import psycopg
from psycopg import errors as pg
from psycopg.rows import tuple_row

from publisher.engine.errors import (
    AlreadyDeleted,
    DuplicateJob,
    EnqueueError,
    KeyBusy,
    KeyConflict,
    OpenJobExists,
)
from publisher.engine.job import JobId, NewJob, State
from publisher.engine.ledger.driver import AnyConnection, driver_of

_LOCKED_BY_OTHERS = "PB001"
DUPLICATE = "PB002"
_DELETED_ALREADY = "PB071"
ONE_OPEN = "jobs_one_open"
ONE_REMOVAL = "jobs_one_removal"
_ENQUEUE = "SELECT key, job_id, state, added FROM publisher.enqueue(%s::jsonb)"
_OPEN_JOB = """
SELECT id, state FROM publisher.jobs
 WHERE post_id = %s AND channel_id = %s AND kind = %s
   AND state IN ('scheduled', 'claimed', 'sending', 'unknown')
"""
_OPEN_REMOVAL = """
SELECT id, state FROM publisher.jobs
 WHERE removes = %s AND state IN ('scheduled', 'claimed', 'sending', 'unknown')
"""


@dataclass(frozen=True, slots=True)
class Enqueued:
    """One job as it stands after ``enqueue``; ``added`` is False for one that was there."""

    key: str
    job_id: JobId
    state: str
    added: bool


def enqueue(
    conn: AnyConnection,
    jobs: Sequence[NewJob],
    *,
    existing: Literal["raise", "keep"] = "raise",
) -> list[Enqueued]:
    """Add ``jobs`` within the transaction of ``conn``; all of them or, on an error, none.

    Opens a savepoint (or a transaction of its own on an idle autocommit connection), so an error
    leaves the caller's transaction usable. ``existing="keep"`` reports keys that were there
    already instead of raising.

    Raises ``KeyConflict`` with the job there is, ``DuplicateJob`` with its holder and when that
    lapses, ``OpenJobExists`` when the post is under way on that channel, or being taken down from
    it already, ``AlreadyDeleted`` when it is gone from there, ``KeyBusy`` when someone
    else's transaction holds a key beyond ``lock_timeout``. A caller at REPEATABLE READ may also
    see PostgreSQL's own serialization failure (40001), to be repeated as usual.
    """
    driver = driver_of(conn)
    if not jobs:
        return []
    try:
        with driver.transaction():
            with driver.cursor(row_factory=tuple_row) as cursor:
                rows = cursor.execute(_ENQUEUE, [json.dumps([_record(job) for job in jobs])])
                result = [
                    Enqueued(key, JobId(job_id), state, added)
                    for key, job_id, state, added in rows.fetchall()
                ]
            if existing == "raise":
                _raise_first_conflict(result)
            return result
    except psycopg.Error as error:
        refusal = _refusal(driver, jobs, error)
        if refusal is None:
            raise
        raise refusal from error


def _record(job: NewJob) -> dict[str, object]:
    return {
        "key": job.key,
        "kind": job.kind,
        "queue": job.queue,
        "channel_id": job.channel_id,
        "post_id": job.post_id,
        "version_id": job.version_id,
        "version": job.version,
        "content": job.content,
        "platform_key": job.platform_key,
        "run_at": _instant(job.run_at),
        "useful_until": None if job.useful_until is None else _instant(job.useful_until),
        "replaces": job.replaces,
        "repeats": job.repeats,
        "removes": job.removes,
        "unique_seconds": None if job.unique_for is None else job.unique_for.total_seconds(),
    }


def _instant(at: datetime) -> str:
    if at.tzinfo is None:
        message = f"{at.isoformat()} has no zone; give an instant with one"
        raise EnqueueError(message)
    return at.isoformat()


def _raise_first_conflict(result: Sequence[Enqueued]) -> None:
    for row in result:
        if not row.added:
            raise KeyConflict(row.key, row.job_id, row.state)


def _refusal(
    driver: psycopg.Connection[Any], jobs: Sequence[NewJob], error: psycopg.Error
) -> EnqueueError | None:
    """What a database error means to the caller, or None when it is no refusal of ours."""
    detail = error.diag.message_detail or ""
    if isinstance(error, pg.LockNotAvailable):
        return KeyBusy(jobs[0].key if len(jobs) == 1 else f"one of {len(jobs)} keys")
    if error.sqlstate == _LOCKED_BY_OTHERS:
        return KeyBusy(detail)
    if error.sqlstate == DUPLICATE:
        return duplicate_job(error)
    if error.sqlstate == _DELETED_ALREADY:
        return AlreadyDeleted(jobs[0].key if len(jobs) == 1 else f"one of {len(jobs)} removals")
    if error.diag.constraint_name in (ONE_OPEN, ONE_REMOVAL):
        return _open_job(driver, jobs)
    return None


def duplicate_job(error: psycopg.Error) -> DuplicateJob:
    """The refusal that ``publisher.take_unique_lock`` raised."""
    held = json.loads(error.diag.message_detail or "{}")
    return DuplicateJob(held["key"], held["holder"], datetime.fromisoformat(held["lapses_at"]))


def _open_job(driver: psycopg.Connection[Any], jobs: Sequence[NewJob]) -> OpenJobExists:
    """Name the job in the way; two of the same call may also be in each other's."""
    with driver.cursor(row_factory=tuple_row) as cursor:
        for job in jobs:
            if job.removes is None:
                key = [job.post_id, job.channel_id, job.kind]
                row = cursor.execute(_OPEN_JOB, key).fetchone()
            else:
                row = cursor.execute(_OPEN_REMOVAL, [job.removes]).fetchone()
            if row is not None:
                return OpenJobExists(job.key, row[0], row[1])
    return OpenJobExists(jobs[-1].key, 0, State.SCHEDULED)
