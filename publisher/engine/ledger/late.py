"""Answers that come after their job was taken away: kept always, and *published* always wins."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Any

import psycopg
from psycopg.rows import dict_row

from publisher.engine.job import JobId, State, Token
from publisher.engine.ledger.quarantine import hold_back
from publisher.engine.ledger.settle import answer_json, storable
from publisher.engine.outcome import Reason
from publisher.engine.retry import Settlement
from publisher.engine.transitions import Event, allowed

_JOB = """
SELECT id, state, attempts, channel_id, token FROM jobs WHERE id = %s FOR UPDATE SKIP LOCKED
"""
_ATTEMPT = "SELECT * FROM attempts WHERE job_id = %s AND token = %s FOR UPDATE"
_BIND = """
INSERT INTO remote_posts (channel_id, remote_id, job_id, permalink)
VALUES (%(channel_id)s, %(remote_id)s, %(job_id)s, %(permalink)s) ON CONFLICT DO NOTHING
"""
_OWNER = "SELECT job_id FROM remote_posts WHERE channel_id = %s AND remote_id = %s"
_KEEP = """
UPDATE attempts
   SET settled_at = coalesce(settled_at, clock_timestamp()),
       outcome = CASE WHEN {proved} THEN outcome ELSE coalesce(%(outcome)s, outcome) END,
       reason = CASE WHEN {proved} THEN reason ELSE %(reason)s END,
       detail = CASE WHEN {proved} THEN detail ELSE %(detail)s END,
       remote_id = coalesce(%(remote_id)s, remote_id),
       answer = coalesce(%(answer)s::jsonb, answer),
       proof = coalesce(proof, %(proof)s), proof_detail = coalesce(proof_detail, %(detail_of)s),
       proved_by = CASE WHEN proof IS NOT NULL THEN proved_by
                        WHEN %(proof)s::text IS NOT NULL THEN %(who)s END,
       proved_at = CASE WHEN proof IS NOT NULL THEN proved_at
                        WHEN %(proof)s::text IS NOT NULL THEN clock_timestamp() END
 WHERE job_id = %(job_id)s AND token = %(token)s
""".replace("{proved}", "%(outcome)s = 'unknown' AND proof IS NOT NULL")
_MAY_BE_LIVE = "SELECT FROM attempts WHERE job_id = %s AND proof = 'repeat_safe'"
_MOVE = """
UPDATE jobs
   SET state = %(state)s, token = NULL, incarnation = NULL, claimed_at = NULL, hand_at = NULL,
       lease_until = NULL, hold_reason = NULL,
       run_at = CASE WHEN %(state)s = 'scheduled'
                     THEN clock_timestamp() + make_interval(secs => %(delay)s) ELSE run_at END,
       failures = failures + %(failed)s, reason = %(reason)s, remote_id = %(remote_id)s,
       settled_at = CASE WHEN %(state)s <> 'scheduled' THEN clock_timestamp() END
 WHERE id = %(job_id)s AND state = %(was)s AND attempts = %(attempts)s
"""
_TELL = """
INSERT INTO job_events (job_id, event, who, attempt, detail)
VALUES (%(job_id)s, %(event)s, %(who)s, %(attempt)s, %(detail)s::jsonb)
"""


class Late(StrEnum):
    """What became of a late answer."""

    MOVED = "moved"
    """It moved the job."""
    KEPT = "kept"
    """It is stored on its attempt; the job stays where it is."""
    KEPT_ALERT = "kept, alert"
    """It says *published* where the job cannot follow: a person must know."""
    KNOWN = "known"
    """The database held it already."""
    NO_ATTEMPT = "no attempt"
    """No such attempt was recorded, so nothing was sent under it."""
    LOCKED = "locked"
    """Someone holds the job just now; bring it again."""


def record_late(
    conn: psycopg.Connection[Any],
    job_id: JobId,
    token: Token,
    end: Settlement,
    *,
    who: str,
    event: str = "late_answer",
) -> Late:
    """Write an answer by its attempt's token, whatever became of the job since.

    *Published* takes the job to ``published`` from every state that allows it. A certain failure
    frees an ``unknown`` job, if the attempt is its latest. Anything else is evidence only.
    """
    with conn.transaction(), conn.cursor(row_factory=dict_row) as cursor:
        job = cursor.execute(_JOB, [job_id]).fetchone()
        if job is None:
            exists = cursor.execute("SELECT FROM jobs WHERE id = %s", [job_id]).rowcount
            return Late.LOCKED if exists else Late.NO_ATTEMPT
        attempt = cursor.execute(_ATTEMPT, [job_id, token]).fetchone()
        if attempt is None:
            return Late.NO_ATTEMPT
        if _is_known(attempt, end):
            return Late.KNOWN
        return _record(cursor, job, attempt, end, who=who, event=event)


def _is_known(attempt: dict[str, Any], end: Settlement) -> bool:
    if end.outcome == "published":
        return bool(attempt["outcome"] == "published")
    if attempt["outcome"] == "published":
        return True
    if end.outcome == "unknown":
        if attempt["settled_at"] is None or attempt["answer"] is not None:
            return attempt["settled_at"] is not None
        is_told = attempt["proof"] is not None or attempt["reason"] == end.reason
        return is_told and end.answer is None
    return attempt["proof"] is not None


def _record(
    cursor: psycopg.Cursor[dict[str, Any]],
    job: dict[str, Any],
    attempt: dict[str, Any],
    end: Settlement,
    *,
    who: str,
    event: str,
) -> Late:
    outcome, remote_id = end.outcome, end.remote_id
    reason, detail = end.reason, end.detail
    is_published = outcome == "published"
    if is_published and not _bind(cursor, job, end):
        # Another job owns that id: the answer is no proof that this one is on the page.
        outcome, remote_id, is_published = "unknown", None, False
        reason = Reason.ID_OF_ANOTHER_JOB
        detail = f"the answer named {end.remote_id}, which is another job's"
    facts = {
        "job_id": job["id"],
        "token": attempt["token"],
        "outcome": outcome,
        "reason": reason,
        "detail": storable(detail),
        "remote_id": remote_id,
        "answer": answer_json(end),
        "proof": end.proof,
        "detail_of": end.proof_detail or None,
        "who": who,
    }
    cursor.execute(_KEEP, facts)
    state = State(job["state"])
    latest = attempt["number"] == job["attempts"]
    target: State | None = None
    if is_published and (allowed(state, Event.LATE_PUBLISH) or (state is State.SENDING and latest)):
        target = State.PUBLISHED
    elif end.proof is not None and latest and state in {State.UNKNOWN, State.SENDING}:
        target = end.state
        if target is State.FAILED and cursor.execute(_MAY_BE_LIVE, [job["id"]]).rowcount:
            # An earlier attempt may be on the page, and a safe repeat must not hide that.
            target = None if state is State.UNKNOWN else State.UNKNOWN
            reason = Reason.REPEAT_ENDED
    if target is not None:
        cursor.execute(
            _MOVE,
            {
                "job_id": job["id"],
                "was": state,
                "state": target,
                "attempts": job["attempts"],
                "delay": end.delay,
                "failed": end.failed,
                "reason": reason,
                "remote_id": remote_id,
            },
        )
    if target is State.SCHEDULED:
        hold_back(cursor, [(job["id"], attempt["token"])])
    alert = is_published and target is None and state is not State.PUBLISHED
    told = {"from": state, "to": target or state, "outcome": outcome, "remote_id": remote_id}
    if alert or (is_published and state is State.PUBLISHED):
        told["alert"] = "published where the job could not follow"
    cursor.execute(
        _TELL,
        {
            "job_id": job["id"],
            "event": event,
            "who": who,
            "attempt": attempt["number"],
            "detail": json.dumps(told),
        },
    )
    if target is not None:
        return Late.MOVED
    return Late.KEPT_ALERT if "alert" in told else Late.KEPT


def _bind(cursor: psycopg.Cursor[dict[str, Any]], job: dict[str, Any], end: Settlement) -> bool:
    """Bind the remote post to this job; False when it is another's."""
    cursor.execute(
        _BIND,
        {
            "channel_id": job["channel_id"],
            "remote_id": end.remote_id,
            "job_id": job["id"],
            "permalink": end.permalink,
        },
    )
    owner = cursor.execute(_OWNER, [job["channel_id"], end.remote_id]).fetchone()
    return owner is not None and owner["job_id"] == job["id"]


_SPOOL_FOUND = """
UPDATE jobs
   SET state = 'unknown', token = NULL, incarnation = NULL, claimed_at = NULL, hand_at = NULL,
       lease_until = NULL, hold_reason = NULL, reason = 'worker_died',
       settled_at = clock_timestamp()
 WHERE id = %s AND state IN ('scheduled', 'claimed', 'failed', 'missed')
RETURNING state
"""
_ORPHAN = """
INSERT INTO orphans (incarnation, job_id, token, line)
VALUES (%(incarnation)s, %(job_id)s, %(token)s, %(line)s::jsonb)
ON CONFLICT (token) DO UPDATE SET line = orphans.line || jsonb_strip_nulls(excluded.line)
RETURNING id, xmax = 0
"""
_ADOPT = "UPDATE orphans SET adopted = true WHERE id = %s"


_OF_CONTENT = """
SELECT j.id, j.state, j.attempts, j.channel_id, j.remote_id
  FROM jobs j JOIN job_contents c ON c.job_id = j.id
 WHERE j.id = %(job_id)s
   AND substr(c.content_sha256, 1, length(%(content)s::bytea)) = %(content)s
   FOR UPDATE OF j
"""


def publish_lost(  # noqa: PLR0913 - a line of a spool; each is named at its caller
    conn: psycopg.Connection[Any],
    job_id: JobId,
    *,
    token: Token,
    attempt: int,
    content: bytes,
    remote_id: str,
    permalink: str | None,
    incarnation: int,
    who: str,
) -> bool:
    """A send that the database does not hold, and that the platform answered with its post.

    The job becomes published, if it still is the one of that ``content`` (the beginning of its
    hash) and its state allows it: a restored database gives numbers out again. Returns whether it
    is published with that post now.
    """
    given = {"job_id": job_id, "content": content}
    with conn.transaction(), conn.cursor(row_factory=dict_row) as cursor:
        job = cursor.execute(_OF_CONTENT, given).fetchone()
        if job is None:
            return False
        state = State(job["state"])
        if state is State.PUBLISHED:
            return bool(job["remote_id"] == remote_id)
        if not allowed(state, Event.LATE_PUBLISH):
            return False
        post = {
            "channel_id": job["channel_id"],
            "remote_id": remote_id,
            "job_id": job_id,
            "permalink": permalink,
        }
        cursor.execute(_BIND, post)
        owner = cursor.execute(_OWNER, [job["channel_id"], remote_id]).fetchone()
        if owner is None or owner["job_id"] != job_id:
            return False
        moved = {
            "job_id": job_id,
            "was": state,
            "state": State.PUBLISHED,
            "attempts": job["attempts"],
            "delay": 0.0,
            "failed": 0,
            "reason": None,
            "remote_id": remote_id,
        }
        cursor.execute(_MOVE, moved)
        told = {"from": state, "remote_id": remote_id, "lost_attempt": attempt}
        line = {"started": True, "remote_id": remote_id}
        kept = cursor.execute(
            _ORPHAN,
            {
                "incarnation": str(incarnation),
                "job_id": job_id,
                "token": token,
                "line": json.dumps(line),
            },
        ).fetchone()
        assert kept is not None  # noqa: S101 - RETURNING always answers
        cursor.execute(_ADOPT, [kept["id"]])
        cursor.execute(
            _TELL,
            {
                "job_id": job_id,
                "event": str(Event.LATE_PUBLISH),
                "who": who,
                "attempt": None,
                "detail": json.dumps(told),
            },
        )
        return True


def spool_found(
    conn: psycopg.Connection[Any],
    *,
    job_id: JobId,
    attempt: int,
    token: Token,
    incarnation: int,
    line: dict[str, object],
    who: str,
) -> bool:
    """A started send that the database does not hold: doubt the job, or keep it as an orphan.

    The line is kept either way, once for each token; what is brought a second time only adds what
    it knows more, such as the answer.
    Returns whether the job became unknown.
    """
    with conn.transaction():
        kept = conn.execute(
            _ORPHAN,
            {
                "incarnation": str(incarnation),
                "job_id": job_id,
                "token": token,
                "line": json.dumps(line),
            },
        ).fetchone()
        assert kept is not None  # noqa: S101 - RETURNING always answers
        if not kept[1]:
            return False
        try:
            with conn.transaction():
                moved = conn.execute(_SPOOL_FOUND, [job_id]).fetchone()
        except psycopg.errors.UniqueViolation:
            # A successor of the same post is under way: the line stays an orphan for a person.
            moved = None
        if moved is None:
            return False
        conn.execute(_ADOPT, [kept[0]])
        conn.execute(
            _TELL,
            {
                "job_id": job_id,
                "event": str(Event.SPOOL_FOUND),
                "who": who,
                "attempt": attempt,
                "detail": json.dumps(line),
            },
        )
        return True
