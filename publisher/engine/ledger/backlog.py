"""What was due long before a standstill ended: held back, then let go in turn, or missed.

A standstill is a time without any worker, or one channel's pause or block, that was longer than
the channel's ``overdue_after``. Its end leaves a mark on the gate, ``backlog_before``, and a
channel so marked is not claimed from. Whoever beats next sorts it out: what should have run before
the mark, and was never begun, is put on hold with the journal's word for it. So what is fresh goes
at once, also what becomes due while the backlog lasts, which no order of old due times would give:
the claim's order knows nothing of any of this.

Jobs with an attempt are left alone throughout. What may be sent again of those was decided by a
proof, and waits for nothing else.
"""

from __future__ import annotations

from typing import Final

from publisher.engine.job import DELETE, Hold, JobId
from publisher.engine.ledger.driver import Conn
from publisher.engine.outcome import Reason

NEVER_LATE: Final = (DELETE,)
"""Kinds that are no less wanted for being late."""

_SET: Final = 1000
_PATIENCE: Final = 10
"""Turns of a backlog that fresh posts may take before one of it goes all the same."""

# Rows that somebody holds are passed over: the mark stays until none is left, and with it the
# channel is closed. So it does while one is claimed from before: its worker may be dead, and rescue
# is yet to come, or it woke up with it, and is not let begin it.
_SORT = """
WITH picked AS MATERIALIZED (
    SELECT p.id, g.backlog, g.backlog_before
      FROM gates g
     CROSS JOIN LATERAL (
           SELECT j.id FROM jobs j
            WHERE j.channel_id = g.channel_id AND j.state = 'scheduled'
              AND j.run_at < g.backlog_before AND j.attempts = 0 AND j.hold_reason IS NULL
              AND NOT j.kind = ANY(%(never_late)s)
            ORDER BY j.run_at, j.id LIMIT %(set)s
              FOR UPDATE SKIP LOCKED) AS p
     WHERE g.backlog_before IS NOT NULL),
held AS (
    UPDATE jobs j SET hold_reason = %(hold)s
      FROM picked p
     WHERE j.id = p.id AND j.state = 'scheduled' AND j.attempts = 0 AND j.hold_reason IS NULL
    RETURNING j.id, p.backlog, p.backlog_before),
told AS (
    INSERT INTO job_events (job_id, event, who, detail)
    SELECT h.id, 'hold', %(who)s,
           jsonb_build_object('reason', %(hold)s::text, 'rule', h.backlog,
                              'before', h.backlog_before)
      FROM held h)
SELECT id FROM held
"""
_SORTED = """
UPDATE gates g
   SET backlog_before = NULL,
       backlog_turn_at = coalesce(g.backlog_turn_at, clock_timestamp())
 WHERE g.backlog_before IS NOT NULL
   AND NOT EXISTS (SELECT FROM jobs j
                    WHERE j.channel_id = g.channel_id AND j.state = 'scheduled'
                      AND j.run_at < g.backlog_before AND j.attempts = 0
                      AND j.hold_reason IS NULL AND NOT j.kind = ANY(%(never_late)s))
   AND NOT EXISTS (SELECT FROM jobs j
                    WHERE j.channel_id = g.channel_id AND j.incarnation IS NOT NULL
                      AND j.state = 'claimed' AND j.claimed_at < g.backlog_before
                      AND j.attempts = 0 AND NOT j.kind = ANY(%(never_late)s))
"""


def sort_backlog(conn: Conn, *, who: str) -> int:
    """Hold what marked channels have overdue, and open those that are done; returns how many.

    Several statements, each whole by itself and committed.
    """
    kinds = {"never_late": list(NEVER_LATE)}
    parameters = {"hold": str(Hold.BACKLOG), "who": who, "set": _SET, **kinds}
    held = 0
    while True:
        rows = conn.execute(_SORT, parameters).rowcount
        held += rows
        if rows < _SET:
            break
    conn.execute(_SORTED, kinds)
    return held


# What is let go is not always free then: the database holds it anew where its approval no longer
# stands, and says so itself.
# One of each channel, under its gate's lock, so that two workers do not both let one go: the turn
# is asked for again when the lock was waited for, and there is none when it could not be had.
_RELEASE = """
WITH turn AS MATERIALIZED (
    SELECT g.channel_id, greatest(g.release_every, g.spacing) AS pace
      FROM gates g
     WHERE g.backlog_turn_at <= clock_timestamp() AND g.backlog = 'release'
       AND g.backlog_before IS NULL AND g.paused_at IS NULL AND g.blocked_at IS NULL
       AND (g.not_before IS NULL OR g.not_before <= clock_timestamp())
       AND NOT EXISTS (SELECT FROM jobs h
                        WHERE h.channel_id = g.channel_id AND h.incarnation IS NOT NULL)
       AND (g.backlog_turn_at + %(patience)s * greatest(g.release_every, g.spacing)
                <= clock_timestamp()
            OR NOT EXISTS (SELECT FROM jobs f
                            WHERE f.channel_id = g.channel_id AND f.state = 'scheduled'
                              AND f.run_at <= clock_timestamp() AND f.hold_reason IS NULL))
     ORDER BY g.channel_id
       FOR UPDATE OF g SKIP LOCKED),
picked AS MATERIALIZED (
    SELECT j.id FROM turn t
     CROSS JOIN LATERAL (
           SELECT o.id FROM jobs o
            WHERE o.channel_id = t.channel_id AND o.state = 'scheduled'
              AND o.hold_reason = %(hold)s
              AND (o.useful_until IS NULL OR o.useful_until > clock_timestamp())
            ORDER BY o.run_at, o.id LIMIT 1) AS oldest
      JOIN jobs j ON j.id = oldest.id
       FOR UPDATE OF j SKIP LOCKED),
freed AS (
    UPDATE jobs j SET hold_reason = NULL
      FROM picked p
     WHERE j.id = p.id AND j.state = 'scheduled' AND j.hold_reason = %(hold)s
    RETURNING j.id, j.channel_id, j.hold_reason),
next AS (
    UPDATE gates g SET backlog_turn_at = clock_timestamp() + t.pace
      FROM freed f JOIN turn t ON t.channel_id = f.channel_id
     WHERE g.channel_id = f.channel_id AND f.hold_reason IS NULL),
told AS (
    INSERT INTO job_events (job_id, event, who, detail)
    SELECT f.id, 'release_hold', %(who)s, jsonb_build_object('rule', 'release')
      FROM freed f WHERE f.hold_reason IS NULL)
SELECT id FROM freed WHERE hold_reason IS NULL
"""

# A person moved it to a time that is not late, or took the rule back.
_RELEASE_OTHERS = """
WITH picked AS MATERIALIZED (
    SELECT j.id FROM gates g JOIN jobs j ON j.channel_id = g.channel_id
     WHERE g.backlog_turn_at IS NOT NULL AND j.state = 'scheduled' AND j.hold_reason = %(hold)s
       AND (g.backlog = 'send' OR j.run_at > clock_timestamp() - g.overdue_after)
     ORDER BY j.id LIMIT %(set)s
       FOR UPDATE OF j SKIP LOCKED),
freed AS (
    UPDATE jobs j SET hold_reason = NULL
      FROM picked p
     WHERE j.id = p.id AND j.state = 'scheduled' AND j.hold_reason = %(hold)s
    RETURNING j.id, j.hold_reason),
told AS (
    INSERT INTO job_events (job_id, event, who, detail)
    SELECT f.id, 'release_hold', %(who)s, jsonb_build_object('rule', 'send')
      FROM freed f WHERE f.hold_reason IS NULL)
SELECT id FROM freed WHERE hold_reason IS NULL
"""
_OVER = """
UPDATE gates g SET backlog_turn_at = NULL
 WHERE g.backlog_turn_at IS NOT NULL AND g.backlog_before IS NULL
   AND NOT EXISTS (SELECT FROM jobs j
                    WHERE j.channel_id = g.channel_id AND j.state = 'scheduled'
                      AND j.hold_reason = %(hold)s)
"""


def release_backlog(conn: Conn, *, who: str) -> frozenset[JobId]:
    """Let the oldest of each channel's backlog go whose turn it is; returns what was let go.

    A turn comes when the channel is open, nothing of it is in flight and nothing fresh is due, and
    no more often than its pace; after ten turns without it fresh posts wait for one.
    """
    parameters = {"hold": str(Hold.BACKLOG), "who": who}
    others = conn.execute(_RELEASE_OTHERS, {**parameters, "set": _SET}).fetchall()
    turns = conn.execute(_RELEASE, {**parameters, "patience": _PATIENCE}).fetchall()
    conn.execute(_OVER, {"hold": str(Hold.BACKLOG)})
    return frozenset(JobId(row[0]) for row in (*others, *turns))


_MISS = """
WITH picked AS MATERIALIZED (
    SELECT j.id FROM gates g JOIN jobs j ON j.channel_id = g.channel_id
     WHERE g.backlog_turn_at IS NOT NULL AND g.backlog = 'miss'
       AND j.state = 'scheduled' AND j.attempts = 0 AND j.hold_reason = %(hold)s
       AND j.run_at <= clock_timestamp() - g.overdue_after
     ORDER BY j.id LIMIT %(set)s
       FOR UPDATE OF j SKIP LOCKED),
moved AS (
    UPDATE jobs j
       SET state = 'missed', hold_reason = NULL, reason = %(reason)s,
           settled_at = clock_timestamp()
      FROM picked p
     WHERE j.id = p.id AND j.state = 'scheduled' AND j.attempts = 0 AND j.hold_reason = %(hold)s
    RETURNING j.id),
told AS (
    INSERT INTO job_events (job_id, event, who, detail)
    SELECT m.id, 'expire', %(who)s, jsonb_build_object('to', 'missed', 'rule', 'miss')
      FROM moved m)
SELECT id FROM moved
"""


def miss_backlog(conn: Conn, *, who: str) -> frozenset[JobId]:
    """End as missed what channels with that rule have in their backlog, a set at a time.

    As ``expire`` does, only for what was never begun.
    """
    parameters = {"hold": str(Hold.BACKLOG), "reason": str(Reason.BACKLOG), "who": who}
    rows = conn.execute(_MISS, {**parameters, "set": _SET}).fetchall()
    return frozenset(JobId(row[0]) for row in rows)
