"""Claim due jobs: scheduled → claimed, under each channel's gate, fairly across channels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import psycopg
from psycopg.rows import args_row, class_row

from publisher.engine.job import Channel, JobId, Token


@dataclass(frozen=True, slots=True)
class Claimed:
    """One job this worker now holds, with everything its hand needs.

    ``attempts`` were begun before now. ``spacing``: seconds its channel rests after a post.
    """

    id: JobId
    token: Token
    channel_id: int
    generation: int
    kind: str
    queue: str
    key: str
    content: str
    content_sha256: bytes
    platform_key: str | None
    progress: dict[str, object] | None
    progress_sha256: bytes | None
    attempts: int
    failures: int
    deaths: int
    due_at: datetime
    useful_until: datetime | None
    spacing: float = 0.0
    replaces: JobId | None = None


# Three statements and one round trip: sent as a pipeline without a sync in between, they are one
# transaction, and what one finds the next reads from a setting that lives as long as that does.
# A lost claim is the same as none, so its commit need not wait for the disk: a begin that follows
# is compared with the row, and its own commit puts both there.

# Gates first, in a statement of their own: how many a channel has in flight is counted under its
# gate's lock, and a statement that locked and counted at once would count from a snapshot older
# than the lock. Paged by channel number from where the last claim ended, so that every channel
# with something due has its turn, however much waits on another.
# A standstill that no beat has marked yet closes what its beat would mark: a first beat that fails,
# or a claim that a frozen worker had on its lips, comes before no backlog's sorting. The condition
# is the beat's own (``incarnations._BEAT``), and one commit brings the mark and the new beat.
_GATES = """
WITH page AS MATERIALIZED (
    SELECT g.channel_id FROM gates g
     WHERE g.channel_id > %(after)s
       AND g.paused_at IS NULL AND g.blocked_at IS NULL AND g.backlog_before IS NULL
       AND (g.not_before IS NULL OR g.not_before <= clock_timestamp())
       AND (g.backlog = 'send'
            OR (SELECT beat_at FROM pulse)
               >= clock_timestamp() - greatest(g.overdue_after, make_interval(secs => %(lease)s))
            OR NOT EXISTS (SELECT FROM incarnations i
                            WHERE i.id <> %(incarnation)s
                               OR i.started_at <= (SELECT beat_at FROM pulse)))
       AND (SELECT value FROM tick) >= %(floor)s
       AND (%(file)s::text IS NULL
            OR EXISTS (SELECT FROM incarnations i
                        WHERE i.id = %(incarnation)s AND i.file = %(file)s))
       AND EXISTS (SELECT FROM jobs j
                    WHERE j.channel_id = g.channel_id AND j.state = 'scheduled'
                      AND j.run_at <= clock_timestamp() AND j.hold_reason IS NULL
                      AND (j.deaths > 0) = %(suspect)s AND j.queue = ANY(%(queues)s))
       AND (SELECT count(*) FROM jobs h
             WHERE h.channel_id = g.channel_id AND h.incarnation IS NOT NULL) < g.max_in_flight
     ORDER BY g.channel_id LIMIT %(limit)s
       FOR UPDATE OF g SKIP LOCKED)
SELECT now(), count(*), max(channel_id),
       set_config('publisher.gates', coalesce(array_agg(channel_id), '{}')::text, true),
       set_config('synchronous_commit', 'off', true)
  FROM page
"""

# Each channel of the page has an equal share of what is asked for: one with much room and much due
# would otherwise use up the claim, every time, before the next one's turn.
_CLAIM = """
WITH room AS MATERIALIZED (
    SELECT g.channel_id,
           g.max_in_flight - (SELECT count(*) FROM jobs h
                               WHERE h.channel_id = g.channel_id
                                 AND h.incarnation IS NOT NULL) AS free
      FROM gates g
     WHERE g.channel_id = ANY(nullif(current_setting('publisher.gates', true), '')::integer[])),
picked AS MATERIALIZED (
    SELECT p.id
      FROM room r
     CROSS JOIN LATERAL (
           SELECT j.id FROM jobs j
            WHERE j.channel_id = r.channel_id AND j.state = 'scheduled'
              AND j.run_at <= clock_timestamp() AND j.hold_reason IS NULL
              AND (j.useful_until IS NULL OR j.useful_until > clock_timestamp())
              AND (j.deaths > 0) = %(suspect)s AND j.queue = ANY(%(queues)s)
            ORDER BY j.run_at, j.id
            LIMIT least(greatest(r.free, 0),
                        greatest(%(limit)s / (SELECT count(*) FROM room), 1))
              FOR UPDATE SKIP LOCKED) AS p
     LIMIT %(limit)s),
moved AS (
    UPDATE jobs j
       SET state = 'claimed', token = gen_random_uuid(), incarnation = %(incarnation)s,
           claimed_at = clock_timestamp(), claims = j.claims + 1,
           lease_until = clock_timestamp() + make_interval(secs => %(lease)s)
      FROM picked p
     WHERE j.id = p.id AND j.state = 'scheduled'
    RETURNING j.id)
SELECT set_config('publisher.claimed', coalesce(array_agg(id), '{}')::text, true) FROM moved
"""

# Read when the rows are ours: a content replaced between the claim's snapshot and its row lock
# would otherwise be claimed in its old form.
_CLAIMED = """
SELECT j.id, j.token, j.channel_id, ch.generation, j.kind, j.queue, c.key, c.content,
       c.content_sha256, c.platform_key, c.progress, c.progress_sha256, j.attempts, j.failures,
       j.deaths, j.due_at, j.useful_until, extract(epoch FROM g.spacing)::float8, j.replaces
  FROM unnest(nullif(current_setting('publisher.claimed', true), '')::bigint[]) AS go(id)
  JOIN jobs j ON j.id = go.id
  JOIN job_contents c ON c.job_id = j.id
  JOIN channels ch ON ch.id = j.channel_id
  JOIN gates g ON g.channel_id = j.channel_id
"""


@dataclass(frozen=True, slots=True)
class Claim:
    """What one ``claim`` brought. ``after`` is where the next one goes on; 0 starts anew.

    ``at``: the database's clock when it began. ``whole``: nothing more could be had just then from
    channels beyond the given ``after``, but for rows that somebody held.
    """

    jobs: tuple[Claimed, ...]
    after: int
    at: datetime
    whole: bool


def claim(  # noqa: PLR0913 - a worker's whole request; each is named at its caller
    conn: psycopg.Connection[Any],
    *,
    incarnation: int,
    queues: Sequence[str],
    limit: int,
    lease: float,
    after: int = 0,
    suspect: bool = False,
    floor: int = 0,
    file: str | None = None,
) -> Claim:
    """Hold up to ``limit`` due jobs for ``lease`` seconds, each under a new random token.

    ``after``: channels with a higher number come first. ``suspect``: take those a worker died
    over, and only those, instead of leaving them out. ``floor``: nothing is taken from a database
    whose tick is below it: it was restored under this very connection. ``file``: nor from one in
    which the number ``incarnation`` is not, or is no longer, that of the run with this file; None
    asks nothing. One transaction, committed on return.
    """
    parameters = {"queues": list(queues), "suspect": suspect, "limit": limit, "lease": lease}
    parameters["incarnation"] = incarnation
    gates = conn.cursor()
    claimed = conn.cursor(row_factory=args_row(Claimed), binary=True)
    with conn.pipeline():
        gates.execute(_GATES, {**parameters, "after": after, "floor": floor, "file": file})
        conn.execute(_CLAIM, parameters)
        claimed.execute(_CLAIMED, binary=True)
    row = gates.fetchone()
    assert row is not None  # noqa: S101 - an aggregate has a row
    at, page, last = row[:3]
    jobs = tuple(claimed.fetchall())
    full = page == limit
    whole = not full and (not page or _most(jobs) < max(limit // page, 1))
    return Claim(jobs, last if full else 0, at, whole)


def _most(jobs: Sequence[Claimed]) -> int:
    """How many one channel gave. As many as its share: it may have more."""
    return max(Counter(job.channel_id for job in jobs).values(), default=0)


# Beside what the clock opens by itself there are people, and other workers: those are polled for.
_NEXT = """
SELECT extract(epoch FROM min(greatest(n.run_at, g.not_before)) - clock_timestamp())::float8
  FROM gates g
 CROSS JOIN LATERAL (
       SELECT j.run_at FROM jobs j
        WHERE j.channel_id = g.channel_id AND j.state = 'scheduled'
          AND j.run_at > CASE WHEN g.not_before > %(since)s THEN '-infinity'
                              ELSE %(since)s::timestamptz END
          AND j.run_at <= now() + make_interval(secs => %(within)s)
          AND j.hold_reason IS NULL AND j.queue = ANY(%(queues)s)
        ORDER BY j.run_at, j.id LIMIT 1) AS n
 WHERE g.paused_at IS NULL AND g.blocked_at IS NULL AND g.backlog_before IS NULL
   AND (g.not_before IS NULL OR g.not_before <= now() + make_interval(secs => %(within)s))
"""


def next_due(
    conn: psycopg.Connection[Any], queues: Sequence[str], *, since: datetime, within: float
) -> float | None:
    """Seconds until a job is due, or its gate opens by itself, after ``since``; below 0: already.

    None: not ``within`` so many seconds.
    """
    parameters = {"queues": list(queues), "since": since, "within": within}
    row = conn.execute(_NEXT, parameters).fetchone()
    return row[0] if row else None


_SUSPECTS = """
SELECT EXISTS (SELECT FROM jobs j JOIN gates g USING (channel_id)
    WHERE j.state = 'scheduled' AND j.deaths > 0 AND j.run_at <= clock_timestamp()
      AND j.hold_reason IS NULL AND j.queue = ANY(%(queues)s)
      AND g.paused_at IS NULL AND g.blocked_at IS NULL
      AND (g.not_before IS NULL OR g.not_before <= clock_timestamp())
      AND (SELECT count(*) FROM jobs h
            WHERE h.channel_id = g.channel_id AND h.incarnation IS NOT NULL) < g.max_in_flight)
"""


def suspects_wait(conn: psycopg.Connection[Any], queues: Sequence[str]) -> bool:
    """Whether a job that a worker died over is due.

    It is claimed alone, so that it can take no other with it.
    """
    row = conn.execute(_SUSPECTS, {"queues": list(queues)}).fetchone()
    return bool(row and row[0])


_CHANNELS = """
SELECT id, platform, name, remote_id, base_url, sealed, generation, trusted
  FROM channels WHERE id = ANY(%s)
"""


def channels(conn: psycopg.Connection[Any], ids: Sequence[int]) -> dict[int, Channel]:
    """The channels by these numbers, with their sealed credentials."""
    with conn.cursor(row_factory=class_row(Channel)) as cursor:
        rows = cursor.execute(_CHANNELS, [list(ids)]).fetchall()
    return {channel.id: channel for channel in rows}


# Rows that someone holds are passed over: a coordinator that waits for one keeps none of the
# others. Whoever is missing from an answer is asked about with ``still_ours``.
_PICKED = """
WITH go AS (
    SELECT * FROM unnest(%(ids)s::bigint[], %(tokens)s::uuid[]) AS t(id, token)),
picked AS MATERIALIZED (
    SELECT j.id, j.token FROM go JOIN jobs j ON j.id = go.id AND j.token = go.token
     WHERE j.state = 'claimed' FOR UPDATE OF j SKIP LOCKED)
"""
_LEASES = (
    _PICKED
    + """
UPDATE jobs j SET lease_until = clock_timestamp() + make_interval(secs => %(lease)s)
  FROM picked p
 WHERE j.id = p.id AND j.token = p.token AND j.state = 'claimed'
RETURNING j.id
"""
)
_HANDS = (
    _PICKED
    + """
UPDATE jobs j
   SET hand_at = clock_timestamp(),
       lease_until = clock_timestamp() + make_interval(secs => %(lease)s)
  FROM picked p
 WHERE j.id = p.id AND j.token = p.token AND j.state = 'claimed'
RETURNING j.id
"""
)
_STILL_OURS = """
SELECT j.id FROM unnest(%(ids)s::bigint[], %(tokens)s::uuid[]) AS go(id, token)
  JOIN jobs j ON j.id = go.id AND j.token = go.token
"""


def extend_leases(
    conn: psycopg.Connection[Any], held: Sequence[tuple[JobId, Token]], *, lease: float
) -> frozenset[JobId]:
    """Hold what is claimed for another ``lease`` seconds; returns those it was done for."""
    return _ids(conn, _LEASES, held, lease=lease)


def start_hands(
    conn: psycopg.Connection[Any], held: Sequence[tuple[JobId, Token]], *, lease: float
) -> frozenset[JobId]:
    """Record that these jobs' own hands start, before they do; returns those it was done for.

    Only then does the death of the worker count against them.
    """
    return _ids(conn, _HANDS, held, lease=lease)


def still_ours(
    conn: psycopg.Connection[Any], held: Sequence[tuple[JobId, Token]]
) -> frozenset[JobId]:
    """Those of ``held`` that still have their token: passed over just now, and not lost."""
    return _ids(conn, _STILL_OURS, held)


def _ids(
    conn: psycopg.Connection[Any],
    statement: str,
    held: Sequence[tuple[JobId, Token]],
    **parameters: float,
) -> frozenset[JobId]:
    keys = {"ids": [i for i, _ in held], "tokens": [t for _, t in held]}
    rows = conn.execute(statement, {**keys, **parameters}).fetchall()
    return frozenset(JobId(row[0]) for row in rows)


# The progress is filed under the hash of the content it was made from, never of whatever content
# stands there now.
_PROGRESS = """
WITH go AS (
    SELECT * FROM unnest(%(ids)s::bigint[], %(tokens)s::uuid[], %(hashes)s::bytea[],
                         %(progress)s::text[])
        AS t(id, token, hash, progress)),
picked AS MATERIALIZED (
    SELECT j.id, j.token, go.hash, go.progress
      FROM go JOIN jobs j ON j.id = go.id AND j.token = go.token
     WHERE j.state = 'claimed' FOR UPDATE OF j SKIP LOCKED),
held AS (
    UPDATE jobs j SET lease_until = clock_timestamp() + make_interval(secs => %(lease)s)
      FROM picked p WHERE j.id = p.id AND j.token = p.token AND j.state = 'claimed'
    RETURNING p.*),
kept AS (
    UPDATE job_contents c SET progress = h.progress::jsonb, progress_sha256 = h.hash
      FROM held h WHERE c.job_id = h.id AND c.content_sha256 = h.hash)
SELECT id FROM held
"""


@dataclass(frozen=True, slots=True)
class Progressed:
    """How far a job's steps have come: JSON text, and the hash of the content it is about."""

    id: JobId
    token: Token
    content_sha256: bytes
    progress: str


def save_progress(
    conn: psycopg.Connection[Any], steps: Sequence[Progressed], *, lease: float
) -> frozenset[JobId]:
    """Store how far each job's steps have come, and hold it for another ``lease`` seconds.

    Returns those it was done for.
    """
    rows = conn.execute(
        _PROGRESS,
        {
            "ids": [step.id for step in steps],
            "tokens": [step.token for step in steps],
            "hashes": [step.content_sha256 for step in steps],
            "progress": [step.progress for step in steps],
            "lease": lease,
        },
    )
    return frozenset(JobId(row[0]) for row in rows.fetchall())
