"""Verdicts: what was decided of a job that may be live, by the reconciler or by a person.

Each names the attempt it is about and the job's newest attempt, as they were when the evidence
was read. The first verdict wins; whoever comes second is told what was decided.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from psycopg.rows import dict_row

from publisher.engine.errors import Conflict, NotFound
from publisher.engine.job import JobId, State, public_id
from publisher.engine.ledger.doubts import Doubt
from publisher.engine.ledger.driver import AnyConnection, Conn, driver_of
from publisher.engine.outcome import Proof
from publisher.engine.sender import DECLARED_MARGIN

_JOB = """
SELECT id, state, attempts, channel_id, useful_until, clock_timestamp() AS now
  FROM publisher.jobs WHERE id = %s FOR UPDATE
"""
_SINCE = "SELECT since FROM publisher.doubts WHERE job_id = %s"
_ARRIVES_UNTIL = "SELECT max(absent_after) FROM publisher.quarantines WHERE at >= %s"
_LAST_VERDICT = """
SELECT decision, who, at, reason FROM publisher.verdicts
 WHERE job_id = %s ORDER BY id DESC LIMIT 1
"""
_TELL = """
INSERT INTO publisher.verdicts (job_id, attempt, token, who, decision, reason, detail)
VALUES (%(job_id)s, %(attempt)s, %(token)s, %(who)s, %(decision)s, %(reason)s, %(detail)s::jsonb)
"""
_BIND = """
INSERT INTO publisher.remote_posts (channel_id, remote_id, job_id, permalink)
VALUES (%(channel_id)s, %(remote_id)s, %(job_id)s, %(permalink)s) ON CONFLICT DO NOTHING
"""
_OWNER = """
SELECT job_id FROM publisher.remote_posts WHERE channel_id = %s AND remote_id = %s
"""
_PUBLISHED = """
UPDATE publisher.jobs
   SET state = 'published', remote_id = %(remote_id)s, settled_at = clock_timestamp(),
       attested_at = CASE WHEN %(remote_id)s::text IS NULL THEN clock_timestamp() END
 WHERE id = %(job_id)s AND state = 'unknown' AND attempts = %(latest)s
"""
_ATTEMPT_LIVE = """
UPDATE publisher.attempts
   SET outcome = 'published', remote_id = %(remote_id)s,
       settled_at = coalesce(settled_at, clock_timestamp())
 WHERE job_id = %(job_id)s AND number = %(attempt)s AND token = %(token)s
"""
# "It is not on the page" is said of the post, so of each attempt that may have put it there.
_PROVE = """
UPDATE publisher.attempts
   SET proof = %(proof)s, proof_detail = %(reason)s, proved_by = %(who)s,
       proved_at = clock_timestamp(), settled_at = coalesce(settled_at, clock_timestamp())
 WHERE job_id = %(job_id)s
   AND (number = %(attempt)s AND token = %(token)s AND (proof IS NULL OR %(proof)s = 'forced')
        OR proof = 'repeat_safe' AND %(proof)s <> 'repeat_safe')
"""
_BACK = """
UPDATE publisher.jobs
   SET state = %(state)s, run_at = coalesce(%(run_at)s, clock_timestamp()),
       due_at = CASE WHEN %(moved)s THEN %(run_at)s ELSE due_at END,
       useful_until = CASE WHEN %(useful_until)s::timestamptz IS NULL THEN useful_until
                           ELSE %(useful_until)s END,
       repeat_until = %(repeat_until)s,
       settled_at = CASE WHEN %(state)s <> 'scheduled' THEN clock_timestamp() END
 WHERE id = %(job_id)s AND state = 'unknown' AND attempts = %(latest)s
"""
_WORDS: Final[Mapping[str, str]] = {
    "live": "it is live",
    "attested": "it was seen on the page",
    "absent": "it is not on the page",
    "repeat": "a repeat is safe",
    "dropped": "it is no longer followed",
}


@dataclass(frozen=True, slots=True)
class Judged:
    """A doubt that a verdict was recorded on, and where its job went."""

    job_id: JobId
    state: State


class AlreadyDecided(Conflict):
    """Somebody was quicker; the message says what they decided."""


def confirm_published(  # noqa: PLR0913 - a verdict is all of these; each is named at its callers
    conn: AnyConnection,
    doubt: Doubt,
    *,
    remote_id: str | None,
    permalink: str | None,
    who: str,
    reason: str,
    also: Sequence[tuple[str, str | None]] = (),
    detail: Mapping[str, object] | None = None,
) -> Judged:
    """It is live as ``remote_id``, or, with None, was seen there without a link.

    ``also``: further copies of it, id and address, which no other job may take for its own.
    ``detail``: what else the verdict is to say.

    Raises ``AlreadyDecided``; ``Conflict`` (``not-this-post``) for an id bound to another job.
    """
    with _judging(conn, doubt) as (driver, job):
        if remote_id is not None:
            for copy, address in [(remote_id, permalink), *also]:
                _bind(driver, job, copy, address)
            driver.execute(
                _ATTEMPT_LIVE,
                {
                    "job_id": doubt.job_id,
                    "attempt": doubt.attempt,
                    "token": doubt.token,
                    "remote_id": remote_id,
                },
            )
        driver.execute(
            _PUBLISHED,
            {"job_id": doubt.job_id, "remote_id": remote_id, "latest": doubt.latest},
        )
        decision = "attested" if remote_id is None else "live"
        copies = [{"remote_id": copy, "permalink": address} for copy, address in also]
        told = {"remote_id": remote_id, "also": copies or None, **(detail or {})}
        _tell(driver, doubt, decision, who, reason, told)
    return Judged(doubt.job_id, State.PUBLISHED)


def confirm_absent(  # noqa: PLR0913 - a verdict is all of these; each is named at its callers
    conn: AnyConnection,
    doubt: Doubt,
    *,
    send_at: datetime | None,
    send: bool,
    who: str,
    reason: str,
    horizon: timedelta,
    useful_until: datetime | None = None,
    forced: bool = False,
) -> Judged:
    """It is not on the page: send it again (at once, or at ``send_at``), or give it up.

    ``forced``: a person takes the risk against what a look showed; then only a post found beyond
    doubt stops the send.

    Locked until the sender is proved gone and ``horizon`` has passed, whoever asks, and to give
    up as well: what failed may be requeued at once. Raises
    ``Conflict``: ``sender-may-be-alive`` with what unlocks it, ``too-late`` when it is no longer
    useful by then; ``AlreadyDecided``.
    """
    with _judging(conn, doubt) as (driver, job):
        _require_gone(driver, doubt, job["now"], horizon)
        if send:
            _require_useful(doubt, send_at or job["now"], useful_until or job["useful_until"])
        _prove(driver, doubt, Proof.FORCED if forced else Proof.ABSENT, who, reason)
        state = State.SCHEDULED if send else State.FAILED
        moved = send_at is not None
        _back(driver, doubt, state, run_at=send_at, moved=moved, useful_until=useful_until)
        told = {
            "send": send,
            "at": _iso(send_at),
            "useful_until": _iso(useful_until),
            "forced": forced or None,
        }
        _tell(driver, doubt, "absent", who, reason, told)
    return Judged(doubt.job_id, state)


def repeat(
    conn: AnyConnection,
    doubt: Doubt,
    *,
    until: datetime | None,
    after: float,
    who: str,
    reason: str,
) -> Judged:
    """Send it again in ``after`` seconds under the same platform key, which cannot double it.

    ``until``: the key is forgotten after it; None: never. The caller has made sure of the key;
    the job is *possibly live* from here on. Raises ``AlreadyDecided``.
    """
    with _judging(conn, doubt) as (driver, job):
        _prove(driver, doubt, Proof.REPEAT_SAFE, who, reason)
        run_at = job["now"] + timedelta(seconds=after)
        _back(driver, doubt, State.SCHEDULED, run_at=run_at, repeat_until=until)
        _tell(driver, doubt, "repeat", who, reason, {"until": _iso(until)})
    return Judged(doubt.job_id, State.SCHEDULED)


def drop(conn: AnyConnection, doubt: Doubt, *, who: str, reason: str) -> Judged:
    """Follow it no longer; it may be on the page. Raises ``AlreadyDecided``."""
    with _judging(conn, doubt) as (driver, _):
        _back(driver, doubt, State.DROPPED, run_at=None)
        _tell(driver, doubt, "dropped", who, reason, {})
    return Judged(doubt.job_id, State.DROPPED)


@contextmanager
def _judging(conn: AnyConnection, doubt: Doubt) -> Iterator[tuple[Conn, dict[str, Any]]]:
    """Lock the job and make sure that this very doubt still stands."""
    driver = driver_of(conn)
    with driver.transaction():
        with driver.cursor(row_factory=dict_row) as cursor:
            job = cursor.execute(_JOB, [doubt.job_id]).fetchone()
            if job is None:
                message = f"There is no job {public_id(doubt.job_id)}."
                raise NotFound(message)
            if job["state"] != State.UNKNOWN or job["attempts"] != doubt.latest:
                last = cursor.execute(_LAST_VERDICT, [doubt.job_id]).fetchone()
                raise _decided(doubt.job_id, job, last)
            stands = cursor.execute(_SINCE, [doubt.job_id]).fetchone()
            if stands is None or stands["since"] != doubt.since:
                message = (
                    f"Job {public_id(doubt.job_id)} was decided, and is in doubt again, since you "
                    "looked. Look again, then decide."
                )
                raise AlreadyDecided(message, code="look-is-old", state=job["state"])
        yield driver, job


def why_settled(conn: AnyConnection, job_id: JobId) -> Conflict:
    """What to tell someone who would decide about a job that is in doubt no longer, or never was.

    Raises ``NotFound`` for no such job.
    """
    with driver_of(conn).cursor(row_factory=dict_row) as cursor:
        job = cursor.execute(_JOB.replace("FOR UPDATE", ""), [job_id]).fetchone()
        if job is None:
            message = f"There is no job {public_id(job_id)}."
            raise NotFound(message)
        last = cursor.execute(_LAST_VERDICT, [job_id]).fetchone()
    if last is not None:
        return _decided(job_id, job, last)
    message = f"Job {public_id(job_id)} is not in doubt: it is {job['state']}. Nothing was changed."
    return AlreadyDecided(message, code="already-decided", state=job["state"])


def _decided(job_id: JobId, job: Mapping[str, Any], last: Mapping[str, Any] | None) -> Conflict:
    name = public_id(job_id)
    if job["state"] == State.UNKNOWN:
        message = f"Job {name} was sent again since you looked. Look again, then decide."
        return AlreadyDecided(message, code="look-is-old", state=job["state"])
    if last is None:
        how = f"it is {job['state']}, by an answer that came late"
    else:
        how = (
            f"{last['who']} recorded at {last['at']:%H:%M:%S %Z} that {_WORDS[last['decision']]} "
            f"({last['reason']}); it is {job['state']}"
        )
    message = f"Job {name} is decided already: {how}. Nothing was changed."
    return AlreadyDecided(message, code="already-decided", state=job["state"])


def _bind(driver: Conn, job: Mapping[str, Any], remote_id: str, permalink: str | None) -> None:
    bound = {
        "channel_id": job["channel_id"],
        "remote_id": remote_id,
        "job_id": job["id"],
        "permalink": permalink,
    }
    driver.execute(_BIND, bound)
    owner = driver.execute(_OWNER, [job["channel_id"], remote_id]).fetchone()
    if owner is None or owner[0] != job["id"]:
        other = "another job" if owner is None else public_id(owner[0])
        message = (
            f"That link is not this post: it is already bound to {other}. Nothing was recorded."
        )
        raise Conflict(message, code="not-this-post")


def why_locked(doubt: Doubt, now: datetime, horizon: timedelta) -> str | None:
    """Why the post may not be sent again yet (R4), and what unlocks it; None when it may."""
    sender = doubt.sender
    unlocks_at = doubt.unlocks_at(horizon)
    if unlocks_at is not None and unlocks_at <= now:
        return None
    if unlocks_at is not None and unlocks_at == doubt.arrives_until:
        return (
            f"Sending again is locked until {unlocks_at:%Y-%m-%d %H:%M:%S %Z}: this database was "
            "put back or lost commits, and what it no longer knows of may still arrive."
        )
    run = f"worker run {sender.run} on {sender.host}"
    if unlocks_at is not None:
        return (
            f"Sending again is locked until {unlocks_at:%Y-%m-%d %H:%M:%S %Z}: {run} is gone, but "
            "what it wrote may still arrive."
        )
    if not sender.run:
        return (
            "Sending again is locked: the record of who sent the first one is lost, so nobody can "
            "be proved to have stopped."
        )
    stated = now + DECLARED_MARGIN + horizon
    return (
        f"Sending again is locked: {run} may still send the first one. It unlocks "
        f"{horizon.total_seconds():.0f} s after that run is proved stopped: stop it; or at "
        f"{stated:%H:%M %Z} once its machine is stated gone, with "
        f"`publisher workers declare-gone {sender.run}`."
    )


def _require_gone(driver: Conn, doubt: Doubt, now: datetime, horizon: timedelta) -> None:
    # Asked anew: the database may have been put back since the doubt was read.
    row = driver.execute(_ARRIVES_UNTIL, [doubt.since]).fetchone()
    doubt = replace(doubt, arrives_until=None if row is None else row[0])
    message = why_locked(doubt, now, horizon)
    if message is not None:
        raise Conflict(message, code="sender-may-be-alive", state=State.UNKNOWN)


def _require_useful(doubt: Doubt, at: datetime, until: datetime | None) -> None:
    if until is not None and at >= until:
        message = (
            f"Job {public_id(doubt.job_id)} stops being useful at {until:%Y-%m-%d %H:%M %Z}, so "
            "it is not sent again after that. Nothing was changed. Give a new time until which it "
            "is useful, or record that it is not to be sent."
        )
        raise Conflict(message, code="too-late", state=State.UNKNOWN)


def _prove(driver: Conn, doubt: Doubt, proof: Proof, who: str, reason: str) -> None:
    driver.execute(
        _PROVE,
        {
            "job_id": doubt.job_id,
            "attempt": doubt.attempt,
            "token": doubt.token,
            "proof": proof,
            "reason": reason,
            "who": who,
        },
    )


def _back(
    driver: Conn,
    doubt: Doubt,
    state: State,
    *,
    run_at: datetime | None,
    moved: bool = False,
    useful_until: datetime | None = None,
    repeat_until: datetime | None = None,
) -> None:
    driver.execute(
        _BACK,
        {
            "job_id": doubt.job_id,
            "latest": doubt.latest,
            "state": state,
            "run_at": run_at,
            "moved": moved,
            "useful_until": useful_until,
            "repeat_until": repeat_until,
        },
    )


def _tell(
    driver: Conn, doubt: Doubt, decision: str, who: str, reason: str, detail: Mapping[str, object]
) -> None:
    driver.execute(
        _TELL,
        {
            "job_id": doubt.job_id,
            "attempt": doubt.attempt,
            "token": doubt.token,
            "who": who,
            "decision": decision,
            "reason": reason,
            "detail": json.dumps({k: v for k, v in detail.items() if v is not None}),
        },
    )


def _iso(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()
