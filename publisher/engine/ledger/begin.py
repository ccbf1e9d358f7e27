"""Begin a send: the attempt row is committed and acknowledged before the first byte (R1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import psycopg
from psycopg import pq
from psycopg.rows import class_row

from publisher.engine.adapter import SendPermit, boottime
from publisher.engine.job import JobId, State, Token
from publisher.engine.ledger.arrays import numbers, tokens
from publisher.engine.ledger.backlog import NEVER_LATE

# What was claimed before a standstill is of its backlog, and goes back to be sorted out with it.
_BEGIN = """
WITH go AS (SELECT * FROM unnest(%(ids)s::bigint[], %(tokens)s::uuid[]) AS t(id, token)),
picked AS MATERIALIZED (
    SELECT j.id, j.token, c.content_sha256, c.version
      FROM go
      JOIN jobs j ON j.id = go.id AND j.token = go.token
      JOIN gates g ON g.channel_id = j.channel_id
      JOIN job_contents c ON c.job_id = j.id
     WHERE j.state = 'claimed' AND j.lease_until > clock_timestamp()
       AND (j.useful_until IS NULL OR j.useful_until > clock_timestamp())
       AND (j.repeat_until IS NULL
            OR j.repeat_until > clock_timestamp() + make_interval(secs => %(window)s))
       AND g.paused_at IS NULL AND g.blocked_at IS NULL
       AND (g.backlog_before IS NULL OR j.attempts > 0 OR j.claimed_at >= g.backlog_before
            OR j.kind = ANY(%(never_late)s))
       AND (g.not_before IS NULL OR g.not_before <= clock_timestamp())
       FOR UPDATE OF j SKIP LOCKED),
moved AS (
    UPDATE jobs j
       SET state = 'sending', attempts = j.attempts + 1, hand_at = NULL,
           lease_until = clock_timestamp() + make_interval(secs => %(lease)s)
      FROM picked p
     WHERE j.id = p.id AND j.token = p.token AND j.state = 'claimed'
    RETURNING j.id, j.token, j.attempts, j.channel_id, j.claimed_at, j.incarnation,
              p.content_sha256, p.version),
begun AS (
    INSERT INTO attempts (job_id, number, token, incarnation, content_sha256, version,
                          claimed_at)
    SELECT id, attempts, token, incarnation, content_sha256, version, claimed_at FROM moved)
SELECT id, token, attempts, channel_id, content_sha256 FROM moved
"""


class BeginUnacknowledgedError(Exception):
    """The commit of a begin was not confirmed. Discard the connection and send nothing."""


def begin_send(
    conn: psycopg.Connection[Any],
    held: Sequence[tuple[JobId, Token]],
    *,
    lease: float,
    window: float,
    budget: float,
) -> dict[JobId, SendPermit]:
    """Record the point of no return for ``held``; returns a permit for each that was recorded.

    ``lease`` and ``budget`` are seconds for the whole send, ``window`` those within which the
    first byte must leave, counted on this machine's boot clock from before the record was asked
    for. A job that is missing from the result was not begun: see ``unbegun``.

    Raises ``BeginUnacknowledgedError`` when PostgreSQL reports the commit with a warning (a
    cancelled wait for a standby is a success with SQLSTATE 01000), and ``psycopg.Error`` as it
    comes. After either nothing of this call may be sent.
    """
    deadline = boottime() + window
    warnings: list[str] = []

    def note(notice: psycopg.errors.Diagnostic) -> None:
        if (notice.sqlstate or "").startswith("01"):
            warnings.append(f"{notice.sqlstate} {notice.message_primary}")

    conn.add_notice_handler(note)
    try:
        rows = conn.execute(
            _BEGIN,
            {
                "ids": numbers([i for i, _ in held]),
                "tokens": tokens([t for _, t in held]),
                "lease": lease,
                "window": window,
                "never_late": list(NEVER_LATE),
            },
            binary=True,
        ).fetchall()
    finally:
        conn.remove_notice_handler(note)
    if warnings:
        raise BeginUnacknowledgedError("; ".join(warnings))
    if conn.info.transaction_status is not pq.TransactionStatus.IDLE:
        message = "the begin ran inside a transaction, so it is not committed"
        raise BeginUnacknowledgedError(message)
    return {
        JobId(job_id): SendPermit(
            job_id=JobId(job_id),
            token=Token(token),
            attempt=attempt,
            channel_id=channel_id,
            content_sha256=bytes(sha256),
            deadline=deadline,
            budget=budget,
        )
        for job_id, token, attempt, channel_id, sha256 in rows
    }


@dataclass(frozen=True, slots=True)
class Unbegun:
    """How a job that could not be begun stands."""

    id: JobId
    state: State
    token: Token | None
    lease_over: bool
    too_late: bool
    repeat_over: bool
    gate_closed: bool
    not_before: datetime | None


_UNBEGUN = """
SELECT j.id, j.state, j.token, coalesce(j.lease_until <= clock_timestamp(), true) AS lease_over,
       coalesce(j.useful_until <= clock_timestamp(), false) AS too_late,
       coalesce(j.repeat_until <= clock_timestamp() + make_interval(secs => %(window)s), false)
           AS repeat_over,
       g.paused_at IS NOT NULL OR g.blocked_at IS NOT NULL
           OR coalesce(j.attempts = 0 AND j.claimed_at < g.backlog_before
                       AND NOT j.kind = ANY(%(never_late)s), false) AS gate_closed,
       CASE WHEN g.not_before > clock_timestamp() THEN g.not_before END AS not_before
  FROM jobs j JOIN gates g ON g.channel_id = j.channel_id
 WHERE j.id = ANY(%(ids)s)
"""


def unbegun(
    conn: psycopg.Connection[Any], ids: Sequence[JobId], *, window: float
) -> tuple[Unbegun, ...]:
    """Read why these were not begun: lost, too late, gate closed, or only locked just then.

    ``window`` is that of ``begin_send``: a repeat must leave within it while its key still lives.
    """
    parameters = {"ids": list(ids), "window": window, "never_late": list(NEVER_LATE)}
    with conn.cursor(row_factory=class_row(Unbegun)) as cursor:
        return tuple(cursor.execute(_UNBEGUN, parameters).fetchall())
