"""What is done with expired leases, with the claims of a dead worker run, and with lateness."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.rows import class_row

from publisher.engine.job import JobId
from publisher.engine.outcome import Reason

# The predicate stands in the UPDATE as well as in the pick, so that a lease extended in between
# is seen. A begun send is never freed here: it becomes unknown, and stays so until someone knows.
_RESCUE = """
WITH picked AS MATERIALIZED (
    SELECT j.id FROM jobs j
     WHERE j.incarnation IS NOT NULL AND {over}
     ORDER BY j.id LIMIT 1000
       FOR UPDATE SKIP LOCKED),
was AS MATERIALIZED (
    SELECT j.id, j.state, j.token, j.attempts, j.incarnation,
           j.state = 'claimed' AND j.hand_at IS NOT NULL AS died_on_it,
           EXISTS (SELECT FROM attempts a
                    WHERE a.job_id = j.id AND a.proof = 'repeat_safe') AS may_be_live
      FROM jobs j JOIN picked p ON p.id = j.id),
moved AS (
    UPDATE jobs j
       SET state = CASE
               WHEN w.state = 'sending' THEN 'unknown'
               WHEN w.died_on_it AND j.deaths + 1 >= %(deaths)s
                    THEN CASE WHEN w.may_be_live THEN 'unknown' ELSE 'failed' END
               ELSE 'scheduled' END,
           token = NULL, incarnation = NULL, claimed_at = NULL, hand_at = NULL,
           lease_until = NULL,
           deaths = j.deaths + w.died_on_it::integer,
           reason = CASE
               WHEN w.state = 'sending' THEN %(worker_died)s
               WHEN w.died_on_it AND j.deaths + 1 >= %(deaths)s THEN %(poison)s
               ELSE j.reason END,
           settled_at = CASE
               WHEN w.state = 'sending' OR w.died_on_it AND j.deaths + 1 >= %(deaths)s
               THEN clock_timestamp() END
      FROM was w
     WHERE j.id = w.id AND j.token = w.token AND j.state = w.state
       AND j.incarnation IS NOT NULL AND {over}
    RETURNING j.id, j.state, j.deaths),
doubted AS (
    UPDATE attempts a
       SET settled_at = clock_timestamp(), outcome = 'unknown', reason = %(worker_died)s,
           detail = %(why)s
      FROM was w JOIN moved m ON m.id = w.id
     WHERE a.job_id = w.id AND a.number = w.attempts AND w.state = 'sending'
       AND a.settled_at IS NULL),
told AS (
    INSERT INTO job_events (job_id, event, who, attempt, detail)
    SELECT w.id, 'lease_expired', %(who)s, CASE WHEN w.state = 'sending' THEN w.attempts END,
           jsonb_build_object('from', w.state, 'to', m.state, 'worker_run', w.incarnation,
                              'deaths', m.deaths, 'why', %(why)s::text)
      FROM was w JOIN moved m ON m.id = w.id)
SELECT w.id, w.state AS was, m.state, w.incarnation FROM was w JOIN moved m ON m.id = w.id
"""
# Before the send of a channel with spacing is taken from whom it was begun by, and while it still
# fills the channel: it may be on the page.
_SPACE = """
UPDATE gates g SET not_before = greatest(g.not_before, clock_timestamp() + g.spacing)
 WHERE g.spacing > '0'
   AND EXISTS (SELECT FROM jobs j
                WHERE j.channel_id = g.channel_id AND j.state = 'sending'
                  AND j.incarnation IS NOT NULL AND {over})
"""
_LEASE_OVER = "j.lease_until < clock_timestamp() - make_interval(secs => %(grace)s)"
_OF_THE_DEAD = "j.incarnation = %(incarnation)s"


@dataclass(frozen=True, slots=True)
class Rescued:
    """A job taken from a worker run that no longer held it."""

    id: JobId
    was: str
    state: str
    incarnation: int


def rescue(
    conn: psycopg.Connection[Any], *, grace: float, deaths: int, who: str
) -> tuple[Rescued, ...]:
    """Take jobs whose lease ended more than ``grace`` seconds ago.

    Claimed → scheduled (failed as poison after ``deaths`` deaths of its own hand), sending →
    unknown.
    """
    return _rescue(
        conn,
        _LEASE_OVER,
        {"grace": grace, "deaths": deaths, "who": who, "why": "its lease ran out"},
    )


def forsake(
    conn: psycopg.Connection[Any], incarnation: int, *, deaths: int, who: str
) -> tuple[Rescued, ...]:
    """Take everything from a worker run that is proved to be over, whatever its leases say."""
    return _rescue(
        conn,
        _OF_THE_DEAD,
        {
            "incarnation": incarnation,
            "deaths": deaths,
            "who": who,
            "why": "the worker run is over: its file could be locked",
        },
    )


def space(conn: psycopg.Connection[Any], incarnation: int) -> None:
    """Let the channels rest that a worker run, proved to be over, was sending to."""
    conn.execute(_SPACE.replace("{over}", _OF_THE_DEAD), {"incarnation": incarnation})


def _rescue(
    conn: psycopg.Connection[Any], over: str, parameters: dict[str, object]
) -> tuple[Rescued, ...]:
    conn.execute(_SPACE.replace("{over}", over), parameters)
    statement = _RESCUE.replace("{over}", over)
    reasons = {"worker_died": str(Reason.WORKER_DIED), "poison": str(Reason.POISON)}
    with conn.cursor(row_factory=class_row(Rescued)) as cursor:
        return tuple(cursor.execute(statement, {**parameters, **reasons}).fetchall())


_EXPIRE = """
WITH picked AS MATERIALIZED (
    SELECT j.id FROM jobs j
     WHERE j.state = 'scheduled' AND j.useful_until <= clock_timestamp()
       AND (j.hold_reason IS DISTINCT FROM 'quarantine')
     ORDER BY j.id LIMIT 1000
       FOR UPDATE SKIP LOCKED),
moved AS (
    UPDATE jobs j
       SET state = CASE WHEN EXISTS (SELECT FROM attempts a
                                      WHERE a.job_id = j.id AND a.proof = 'repeat_safe')
                        THEN 'unknown' ELSE 'missed' END,
           hold_reason = NULL, reason = coalesce(j.reason, %(too_late)s),
           settled_at = clock_timestamp()
      FROM picked p
     WHERE j.id = p.id AND j.state = 'scheduled' AND j.useful_until <= clock_timestamp()
    RETURNING j.id, j.state),
told AS (
    INSERT INTO job_events (job_id, event, who, detail)
    SELECT m.id, CASE m.state WHEN 'missed' THEN 'expire' ELSE 'repeat_ended' END, %(who)s,
           jsonb_build_object('to', m.state) FROM moved m)
SELECT id FROM moved
"""


def expire(conn: psycopg.Connection[Any], *, who: str) -> frozenset[JobId]:
    """End scheduled jobs whose useful time is over: missed, or unknown where one may be live."""
    rows = conn.execute(_EXPIRE, {"too_late": str(Reason.TOO_LATE), "who": who}).fetchall()
    return frozenset(JobId(row[0]) for row in rows)
