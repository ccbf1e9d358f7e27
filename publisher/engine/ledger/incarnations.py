"""One run of a worker process: its row, its heartbeat, and its proved end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import psycopg

from publisher.engine.job import JobId, Token

_REGISTER = """
INSERT INTO incarnations (host, boot_id, pid, file)
VALUES (%(host)s, %(boot_id)s, %(pid)s, %(file)s)
RETURNING id, (SELECT id::text FROM deployment)
"""


def register(
    conn: psycopg.Connection[Any], *, host: str, boot_id: str, pid: int, file: str
) -> tuple[int, str]:
    """Add this worker run; returns its number and the deployment's id."""
    row = conn.execute(
        _REGISTER, {"host": host, "boot_id": boot_id, "pid": pid, "file": file}
    ).fetchone()
    assert row is not None  # noqa: S101 - RETURNING always answers
    return row[0], row[1]


def deployment_id(conn: psycopg.Connection[Any]) -> str:
    """Which deployment this database is."""
    row = conn.execute("SELECT id::text FROM deployment").fetchone()
    assert row is not None  # noqa: S101 - the migration made the row
    return str(row[0])


@dataclass(frozen=True, slots=True)
class Beat:
    """The database's answer to a heartbeat: its clock, and whether rescue may run."""

    now: datetime
    may_rescue: bool


# After a gap in which no worker reached the database, live workers with live sends come back to
# leases that all ran out. They get one publish lease to settle before anybody is rescued.
# After a longer one what is overdue is a backlog; marked in the same transaction, so that nobody
# claims who has not seen the mark: until then the claim asks the same of the pulse. Where there
# never was a worker, none was away; this one was, if it came before the last beat.
_BEAT = """
WITH seen AS (
    UPDATE incarnations SET seen_at = clock_timestamp() WHERE id = %(incarnation)s),
stood AS (
    UPDATE gates g SET backlog_before = clock_timestamp() - g.overdue_after
      FROM pulse p
     WHERE p.beat_at < clock_timestamp() - make_interval(secs => %(gap)s)
       AND p.beat_at < clock_timestamp() - g.overdue_after
       AND g.backlog <> 'send'
       AND EXISTS (SELECT FROM incarnations i
                    WHERE i.id <> %(incarnation)s OR i.started_at <= p.beat_at))
UPDATE pulse
   SET beat_at = clock_timestamp(),
       rescue_not_before = CASE
           WHEN beat_at < clock_timestamp() - make_interval(secs => %(gap)s)
           THEN clock_timestamp() + make_interval(secs => %(pause)s)
           ELSE rescue_not_before END
RETURNING beat_at, rescue_not_before <= beat_at
"""


def beat(conn: psycopg.Connection[Any], incarnation: int, *, gap: float, pause: float) -> Beat:
    """Say that this worker lives.

    A silence of the whole fleet longer than ``gap`` seconds puts off rescue for ``pause``; one
    longer than a channel's ``overdue_after`` leaves a backlog there.
    """
    row = conn.execute(_BEAT, {"incarnation": incarnation, "gap": gap, "pause": pause}).fetchone()
    assert row is not None  # noqa: S101 - the pulse row is made by the migration
    return Beat(now=row[0], may_rescue=row[1])


_IS_REGISTERED = """
SELECT EXISTS (SELECT FROM incarnations
                WHERE id = %(incarnation)s AND file = %(file)s AND boot_id = %(boot_id)s)
"""


def is_registered(
    conn: psycopg.Connection[Any], incarnation: int, *, file: str, boot_id: str
) -> bool:
    """Whether this number still means that run: a restored database gives numbers out again."""
    row = conn.execute(
        _IS_REGISTERED, {"incarnation": incarnation, "file": file, "boot_id": boot_id}
    ).fetchone()
    return bool(row and row[0])


_KNOWN = """
SELECT a.token, a.outcome = 'published', a.answer IS NOT NULL
  FROM unnest(%(ids)s::bigint[], %(numbers)s::integer[], %(tokens)s::uuid[])
        AS go(id, number, token)
  JOIN attempts a ON a.job_id = go.id AND a.number = go.number AND a.token = go.token
"""


@dataclass(frozen=True, slots=True)
class KnownAttempt:
    """An attempt the database holds, and how much it knows of its end."""

    token: Token
    published: bool
    answered: bool


def known_attempts(
    conn: psycopg.Connection[Any], attempts: Sequence[tuple[JobId, int, Token]]
) -> dict[Token, KnownAttempt]:
    """Those of ``attempts`` (job, number, token) that the database holds."""
    rows = conn.execute(
        _KNOWN,
        {
            "ids": [job_id for job_id, _, _ in attempts],
            "numbers": [number for _, number, _ in attempts],
            "tokens": [token for _, _, token in attempts],
        },
    ).fetchall()
    return {Token(row[0]): KnownAttempt(Token(row[0]), bool(row[1]), row[2]) for row in rows}


_END = """
UPDATE incarnations SET ended_at = clock_timestamp(), end_reason = %(why)s
 WHERE id = %(incarnation)s AND ended_at IS NULL
"""


def end(conn: psycopg.Connection[Any], incarnation: int, why: str) -> None:
    """Record the proved end of a worker run: every hand returned, or its file's lock was free."""
    conn.execute(_END, {"incarnation": incarnation, "why": why})


_HELD = "SELECT id, token FROM jobs WHERE incarnation IS NOT NULL AND incarnation = %s"


def held_by(conn: psycopg.Connection[Any], incarnation: int) -> dict[JobId, Token]:
    """What the database thinks this worker run holds, claimed and sending."""
    return {JobId(row[0]): Token(row[1]) for row in conn.execute(_HELD, [incarnation]).fetchall()}


def claimed_by(conn: psycopg.Connection[Any], incarnation: int) -> dict[JobId, Token]:
    """Of that, what is only claimed, and may be given back; read on each new connection.

    A database that was put back may hold a send of this run that ended long since.
    """
    rows = conn.execute(f"{_HELD} AND state = 'claimed'", [incarnation]).fetchall()
    return {JobId(row[0]): Token(row[1]) for row in rows}


def is_sending(conn: psycopg.Connection[Any], incarnation: int) -> bool:
    """Whether the database holds a send of this worker run that has no end."""
    return conn.execute(f"{_HELD} AND state = 'sending'", [incarnation]).rowcount > 0


# Found from the jobs it still holds, and from those rescue has doubted: there is no index of
# attempts by worker run, and this is read while the worker that reads has leases to renew.
_UNSETTLED = """
WITH doubtful AS MATERIALIZED (
    SELECT id, attempts, failures, useful_until, due_at FROM jobs
     WHERE incarnation IS NOT NULL AND incarnation = %(incarnation)s AND state = 'sending'
    UNION ALL
    SELECT id, attempts, failures, useful_until, due_at FROM jobs WHERE state = 'unknown')
SELECT a.job_id, a.number, a.token, j.failures,
       coalesce(j.useful_until, j.due_at + interval '1 day'),
       a.settled_at IS NULL OR (a.answer IS NULL AND a.reason = 'worker_died')
  FROM doubtful j JOIN attempts a ON a.job_id = j.id AND a.number = j.attempts
 WHERE a.incarnation = %(incarnation)s AND a.proof IS NULL
   AND (a.settled_at IS NULL OR a.outcome = 'unknown')
"""


@dataclass(frozen=True, slots=True)
class Unsettled:
    """A begun attempt whose end is not known, with what its retry policy needs.

    ``only_rescue_settled``: its own worker never wrote how it ended.
    """

    job_id: JobId
    attempt: int
    token: Token
    failures: int
    ends_at: datetime
    only_rescue_settled: bool


def unsettled_of(conn: psycopg.Connection[Any], incarnation: int) -> tuple[Unsettled, ...]:
    """Attempts that a worker run began and nobody has settled with a proof or a remote id."""
    rows = conn.execute(_UNSETTLED, {"incarnation": incarnation}).fetchall()
    return tuple(Unsettled(JobId(r[0]), r[1], Token(r[2]), r[3], r[4], r[5]) for r in rows)


def clock(conn: psycopg.Connection[Any]) -> datetime:
    """What time it is: the database's clock, the only one that counts."""
    row = conn.execute("SELECT clock_timestamp()").fetchone()
    assert row is not None  # noqa: S101 - it always answers
    now: datetime = row[0]
    return now
