"""Settle sets of claimed and sending jobs: one statement writes how each of them ended."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

import psycopg
from psycopg.rows import class_row

from publisher.engine.job import JobId, State, Token
from publisher.engine.ledger.arrays import numbers, texts, tokens
from publisher.engine.ledger.quarantine import hold_back
from publisher.engine.outcome import Answer, Reason
from publisher.engine.retry import Rest, Settlement

# The states name every one that an unfinished transaction of ours may be leaving: a predicate on
# "sending" alone returns nothing at once while the commit of the begin is still pending, and the
# job would be stranded. Rows that someone holds are passed over; the coordinator comes again.
# An attempt that is known to be live, by an answer that came late, ends the job as published
# whatever its newest attempt came to.
# What later parts need is carried along by RETURNING: the planner takes a WITH part for one row,
# and a join of two of them would be a nested loop over every pair of jobs in the set.
_SETTLE = """
WITH go AS (
    SELECT * FROM unnest(
        %(ids)s::bigint[], %(tokens)s::uuid[], %(events)s::text[], %(states)s::text[],
        %(outcomes)s::text[], %(reasons)s::text[], %(details)s::text[], %(delays)s::float8[],
        %(failed)s::integer[], %(remote_ids)s::text[], %(permalinks)s::text[],
        %(proofs)s::text[], %(proof_details)s::text[], %(answers)s::text[], %(holds)s::text[])
    AS t(id, token, event, state, outcome, reason, detail, delay, failed, remote_id, permalink,
         proof, proof_detail, answer, hold)),
picked AS MATERIALIZED (
    SELECT j.id, j.token, j.state AS was, j.channel_id, j.attempts, j.incarnation, go.event,
           go.state, go.outcome, go.reason, go.detail, go.delay, go.failed, go.remote_id,
           go.permalink, go.proof, go.proof_detail, go.answer, go.hold
      FROM go
      JOIN jobs j ON j.id = go.id AND j.token = go.token
     WHERE j.state IN ('claimed', 'sending')
       FOR UPDATE OF j SKIP LOCKED),
bound AS (
    INSERT INTO remote_posts (channel_id, remote_id, job_id, permalink)
    SELECT channel_id, remote_id, id, permalink FROM picked WHERE state = 'published'
    ON CONFLICT DO NOTHING
    RETURNING job_id),
ended AS MATERIALIZED (
    SELECT p.*, p.state = 'published'
                AND NOT p.id IN (SELECT job_id FROM bound)
                AND NOT EXISTS (SELECT FROM remote_posts r
                                 WHERE r.channel_id = p.channel_id
                                   AND r.remote_id = p.remote_id
                                   AND r.job_id = p.id) AS foreign_id,
           CASE WHEN p.attempts > 1
                THEN (SELECT a.remote_id FROM attempts a
                       WHERE a.job_id = p.id AND a.outcome = 'published' LIMIT 1)
                END AS live_as,
           p.state IN ('failed', 'missed') AND p.attempts > 0
                AND EXISTS (SELECT FROM attempts a
                             WHERE a.job_id = p.id AND a.proof = 'repeat_safe') AS repeat_ended
      FROM picked p),
moved AS (
    UPDATE jobs j
       SET state = CASE WHEN e.live_as IS NOT NULL THEN 'published'
                        WHEN e.foreign_id OR e.repeat_ended THEN 'unknown' ELSE e.state END,
           token = NULL, incarnation = NULL, claimed_at = NULL, hand_at = NULL,
           lease_until = NULL,
           run_at = CASE WHEN e.state = 'scheduled' AND e.delay > 0 AND e.live_as IS NULL
                         THEN clock_timestamp() + make_interval(secs => e.delay)
                         ELSE j.run_at END,
           failures = j.failures + e.failed,
           hold_reason = CASE WHEN e.state = 'scheduled' AND e.live_as IS NULL THEN e.hold END,
           reason = CASE WHEN e.foreign_id THEN %(foreign)s
                         WHEN e.repeat_ended THEN %(repeat_ended)s ELSE e.reason END,
           remote_id = CASE WHEN e.live_as IS NOT NULL THEN e.live_as
                            WHEN e.state = 'published' AND NOT e.foreign_id
                            THEN e.remote_id END,
           settled_at = CASE WHEN e.live_as IS NOT NULL OR e.foreign_id
                                  OR e.state <> 'scheduled'
                             THEN clock_timestamp() END
      FROM ended e
     WHERE j.id = e.id AND j.token = e.token AND j.state IN ('claimed', 'sending')
    RETURNING e.*),
closed AS (
    UPDATE attempts a
       SET settled_at = clock_timestamp(),
           outcome = CASE WHEN m.foreign_id THEN 'unknown' ELSE m.outcome END,
           reason = CASE WHEN m.foreign_id THEN %(foreign)s ELSE m.reason END,
           detail = CASE WHEN m.foreign_id
                         THEN 'the answer named ' || m.remote_id || ', which is another job''s'
                         ELSE m.detail END,
           remote_id = CASE WHEN m.foreign_id THEN NULL ELSE m.remote_id END,
           answer = m.answer::jsonb,
           proof = m.proof, proof_detail = nullif(m.proof_detail, ''),
           proved_by = CASE WHEN m.proof IS NOT NULL THEN 'worker run ' || m.incarnation END,
           proved_at = CASE WHEN m.proof IS NOT NULL THEN clock_timestamp() END
      FROM moved m
     WHERE a.job_id = m.id AND a.number = m.attempts AND a.token = m.token
       AND m.was = 'sending'),
told AS (
    INSERT INTO job_events (job_id, event, who, attempt, detail)
    SELECT m.id, CASE WHEN m.repeat_ended THEN 'repeat_ended' ELSE m.event END,
           'worker run ' || m.incarnation, nullif(m.attempts, 0),
           jsonb_strip_nulls(jsonb_build_object(
               'reason', m.reason, 'detail', nullif(m.detail, ''), 'remote_id', m.remote_id))
      FROM moved m
     WHERE m.was = 'claimed' AND m.event NOT IN ('release', 'wait'))
SELECT id, token, foreign_id, live_as FROM moved
"""

_HELD = "SELECT id, token FROM jobs WHERE id = ANY(%s) AND token IS NOT NULL"

Key = tuple[JobId, Token]


@dataclass(frozen=True, slots=True)
class Settled:
    """What became of a set, by job and token.

    ``locked`` will be asked again; ``stale`` is no longer ours. ``foreign``: settled as unknown,
    because the answer named another job's remote post. ``live``: an earlier attempt is.
    """

    done: frozenset[Key]
    foreign: frozenset[Key]
    live: frozenset[Key]
    locked: frozenset[Key]
    stale: frozenset[Key]

    @property
    def as_asked(self) -> bool:
        """Every one of the set ended as it was to."""
        return not (self.foreign or self.live or self.locked or self.stale)


def settle(conn: psycopg.Connection[Any], ends: Mapping[Key, Settlement]) -> Settled:
    """Write how these claims and attempts ended; matches id, token and state of each.

    A published remote id that is bound to another job ends as ``unknown`` instead; so does what
    would fail or be missed while an attempt's only proof is that a repeat is safe. What would be
    free to be sent again, and was begun before commits were lost, is held to be looked for. Rows
    locked by someone else are left for the next tick. Raises ``psycopg.Error``; nothing of the set
    is written then.
    """
    frees = any(end.state is State.SCHEDULED for end in ends.values())
    with conn.transaction() if frees else nullcontext():
        rows = conn.execute(_SETTLE, _parameters(ends), binary=True).fetchall()
        # Of these alone the rows are locked: what is locked or stale may be another's by now.
        moved = [(JobId(row[0]), Token(row[1])) for row in rows]
        if freed := [key for key in moved if ends[key].state is State.SCHEDULED]:
            hold_back(conn, freed)
    done, missing = frozenset(ends), frozenset[Key]()
    held: set[Key] = set()
    if len(rows) < len(ends):
        done = frozenset((JobId(row[0]), Token(row[1])) for row in rows)
        missing = frozenset(ends) - done
        stands = conn.execute(_HELD, [[job_id for job_id, _ in missing]]).fetchall()
        held = {(JobId(row[0]), Token(row[1])) for row in stands}
    return Settled(
        done=done,
        foreign=frozenset((JobId(row[0]), Token(row[1])) for row in rows if row[2]),
        live=frozenset((JobId(row[0]), Token(row[1])) for row in rows if row[3] is not None),
        locked=frozenset(key for key in missing if key in held),
        stale=frozenset(key for key in missing if key not in held),
    )


def _parameters(ends: Mapping[Key, Settlement]) -> dict[str, object]:
    each = list(ends.values())
    return {
        "ids": numbers([job_id for job_id, _ in ends]),
        "tokens": tokens([token for _, token in ends]),
        "events": texts([end.event for end in each]),
        "states": texts([end.state for end in each]),
        "outcomes": texts([end.outcome for end in each]),
        "reasons": texts([end.reason for end in each]),
        "details": texts([storable(end.detail) for end in each]),
        "delays": numbers([end.delay for end in each]),
        "failed": numbers([end.failed for end in each]),
        "remote_ids": texts([end.remote_id for end in each]),
        "permalinks": texts([end.permalink for end in each]),
        "proofs": texts([end.proof for end in each]),
        "proof_details": texts([end.proof_detail for end in each]),
        "answers": texts([answer_json(end) for end in each]),
        "holds": texts([end.hold_reason for end in each]),
        "foreign": str(Reason.ID_OF_ANOTHER_JOB),
        "repeat_ended": str(Reason.REPEAT_ENDED),
    }


def storable(text: str) -> str:
    """The text without what PostgreSQL cannot hold; only ever for words about an answer."""
    if text.isascii() and "\x00" not in text:
        return text
    return text.replace("\x00", "�").encode("utf-8", "replace").decode()


def answer_json(end: Settlement) -> str | None:
    """The answer of an end as the JSON kept with its attempt, with the clue it left."""
    answer = end.answer
    if answer is None and end.remote_handle is None:
        return None
    parts = asdict(answer or Answer())
    parts["headers"] = dict(answer.headers) if answer else {}
    if end.remote_handle is not None:
        parts["remote_handle"] = end.remote_handle
    return json.dumps(_storable(parts), ensure_ascii=True)


def _storable(value: object) -> object:
    match value:
        case str():
            return storable(value)
        case dict():
            return {storable(str(name)): _storable(item) for name, item in value.items()}
        case list() | tuple():
            return [_storable(item) for item in value]
        case _:
            return value


_REST = """
UPDATE gates g
   SET not_before = CASE WHEN go.seconds IS NULL THEN g.not_before
           ELSE greatest(g.not_before, clock_timestamp() + make_interval(secs => go.seconds)) END,
       blocked_reason = coalesce(g.blocked_reason, go.blocked),
       blocked_detail = CASE WHEN g.blocked_reason IS NULL THEN go.detail
                             ELSE g.blocked_detail END,
       blocked_at = CASE WHEN g.blocked_at IS NULL AND go.blocked IS NOT NULL
                         THEN clock_timestamp() ELSE g.blocked_at END
  FROM (SELECT * FROM unnest(%(ids)s::integer[], %(generations)s::integer[],
                             %(seconds)s::float8[], %(blocked)s::text[], %(details)s::text[])
            AS t(id, generation, seconds, blocked, detail)) AS go
  JOIN channels c ON c.id = go.id
 WHERE g.channel_id = go.id
   AND (go.blocked IS NULL OR c.generation = go.generation)
RETURNING g.channel_id
"""


def rest_channels(
    conn: psycopg.Connection[Any], rests: Mapping[tuple[int, int], Rest]
) -> frozenset[int]:
    """Close gates for a while, or until a person reconnects; keyed by channel and generation.

    A transaction of its own after the settle, in channel order, so that a gate someone holds
    never keeps an answer from being written. A credential that was replaced in the meantime is
    not blocked for what the old one was refused.
    """
    ordered = sorted(rests.items())
    rows = conn.execute(
        _REST,
        {
            "ids": [channel for (channel, _), _ in ordered],
            "generations": [generation for (_, generation), _ in ordered],
            "seconds": [rest.seconds for _, rest in ordered],
            "blocked": [rest.blocked for _, rest in ordered],
            "details": [storable(rest.detail) for _, rest in ordered],
        },
    ).fetchall()
    return frozenset(row[0] for row in rows)


@dataclass(frozen=True, slots=True)
class EarlierAttempt:
    """An attempt begun before, as a look before a second send needs it."""

    job_id: JobId
    number: int
    token: Token
    begun_at: datetime
    proof: str | None
    remote_id: str | None


_EARLIER = """
SELECT job_id, number, token, begun_at, proof, remote_id
  FROM attempts WHERE job_id = ANY(%s) ORDER BY job_id, number
"""
_BOUND = """
SELECT channel_id, remote_id FROM remote_posts
 WHERE channel_id = ANY(%(channels)s) AND NOT job_id = ANY(%(jobs)s)
   AND bound_at >= %(since)s::timestamptz - interval '1 day'
"""


def earlier_attempts(
    conn: psycopg.Connection[Any], ids: Sequence[JobId]
) -> dict[JobId, tuple[EarlierAttempt, ...]]:
    """What was begun before for these jobs, oldest first."""
    found: dict[JobId, list[EarlierAttempt]] = {}
    with conn.cursor(row_factory=class_row(EarlierAttempt)) as cursor:
        for attempt in cursor.execute(_EARLIER, [list(ids)]).fetchall():
            found.setdefault(attempt.job_id, []).append(attempt)
    return {job_id: tuple(attempts) for job_id, attempts in found.items()}


def bound_elsewhere(
    conn: psycopg.Connection[Any], channel_id: int, job_id: JobId, since: datetime
) -> frozenset[str]:
    """Remote ids of this channel that belong to other jobs, bound since a day before ``since``."""
    rows = conn.execute(
        _BOUND, {"channels": [channel_id], "jobs": [job_id], "since": since}
    ).fetchall()
    return frozenset(row[1] for row in rows)


_LOOK = """
INSERT INTO looks (job_id, attempt, token, by, begun_at, evidence)
VALUES (%(job_id)s, %(attempt)s, %(token)s, %(by)s,
        clock_timestamp() - make_interval(secs => %(took)s), %(evidence)s::jsonb)
"""


def record_look(
    conn: psycopg.Connection[Any],
    *,
    job_id: JobId,
    attempt: int,
    token: Token,
    by: str,
    took: float,
    evidence: Mapping[str, object],
) -> None:
    """Keep what a look found, with the attempt and token it is about; it took ``took`` seconds."""
    conn.execute(
        _LOOK,
        {
            "job_id": job_id,
            "attempt": attempt,
            "token": token,
            "by": by,
            "took": took,
            "evidence": json.dumps(_storable(dict(evidence)), default=str),
        },
    )
