"""Quarantine: a database that may lack sends looks for its jobs on their pages before it sends.

Every job that could be one of the missing sends is held back; a look finds it, or shows that it is
not there, or a person decides (``suspects``).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import psycopg

from publisher.engine.job import JobId, Token
from publisher.engine.ledger.driver import AnyConnection, Conn, driver_of
from publisher.engine.ledger.tick import catch_up, note_mark
from publisher.engine.witness import Cause, Record

_ONE_AT_A_TIME = 0x7075626C71756172
"""Any number that nobody else uses: ``publquar`` in ASCII."""
_NUMBERS_LOST = 1_000_000
"""Ids that may have been given out after the backup; nobody else gets one of them."""

_OPENED = "SELECT FROM publisher.quarantines WHERE detail ->> 'mark' = %s"
_OPEN = """
INSERT INTO publisher.quarantines (cause, strict, since, absent_after, who, detail)
SELECT %(cause)s, %(strict)s,
       least(%(since)s, t.raised_at, clock_timestamp()) - make_interval(secs => 60),
       clock_timestamp() + make_interval(secs => %(absent_after)s), %(who)s, %(detail)s::jsonb
  FROM publisher.tick t
RETURNING id, since, at
"""
# A strict quarantine holds what is due later as well, and less strictly: it may have been sent
# before its time. What a person held stays held by them when the quarantine is over.
_HOLD = """
WITH picked AS MATERIALIZED (
    SELECT j.id, j.hold_reason, j.due_at <= %(at)s AND %(strict)s AS strict, j.attempts
      FROM publisher.jobs j
     WHERE j.state IN ('scheduled', 'claimed') AND (%(strict)s OR j.due_at <= %(at)s)
       FOR UPDATE),
held AS (
    UPDATE publisher.jobs j
       SET state = 'scheduled', hold_reason = 'quarantine', token = NULL, incarnation = NULL,
           claimed_at = NULL, hand_at = NULL, lease_until = NULL
      FROM picked p WHERE j.id = p.id
    RETURNING j.id),
kept AS (
    INSERT INTO publisher.quarantined AS q (job_id, quarantine_id, strict, held_before)
    SELECT p.id, %(id)s, p.strict, nullif(p.hold_reason, 'quarantine')
      FROM picked p JOIN held h ON h.id = p.id
    ON CONFLICT (job_id) DO UPDATE
       SET quarantine_id = excluded.quarantine_id,
           strict = excluded.strict OR q.strict AND q.released_at IS NULL,
           held_before = CASE WHEN q.released_at IS NULL THEN q.held_before
                              ELSE excluded.held_before END,
           looks = 0, next_look_at = clock_timestamp(), look_token = NULL, lease_until = NULL,
           asked_at = NULL, released_at = NULL, released_by = NULL, release_reason = NULL),
told AS (
    INSERT INTO publisher.job_events (job_id, event, who, attempt, detail)
    SELECT p.id, 'quarantine', %(who)s, nullif(p.attempts, 0),
           jsonb_build_object('cause', %(cause)s::text, 'since', %(since)s::timestamptz)
      FROM picked p)
SELECT count(*) FROM held
"""


@dataclass(frozen=True, slots=True)
class Opened:
    """A quarantine that was opened, and how many jobs it holds back."""

    id: int
    jobs: int


def open_quarantine(  # noqa: PLR0913 - what is known of it; each is named at its callers
    conn: AnyConnection,
    cause: Cause,
    *,
    strict: bool,
    absent_after: float,
    who: str,
    since: datetime | None = None,
    witnessed: Record | None = None,
    detail: Mapping[str, object] | None = None,
) -> Opened | None:
    """Hold back what may be one of the sends this database lacks; one transaction.

    ``since``: when the first of them may have been made, or when this database last counted,
    if that is earlier.
    ``absent_after``: seconds from now until nothing of theirs can arrive any more. ``witnessed``:
    where the witness stands; the database goes on from there, and None is returned when another
    process opened a quarantine for that very record. Raises ``psycopg.Error``; then nothing is
    held, and nobody may claim.
    """
    driver = driver_of(conn)
    mark = None if witnessed is None else witnessed.mark
    with driver.transaction():
        driver.execute("SELECT pg_advisory_xact_lock(%s)", [_ONE_AT_A_TIME])
        if mark is not None and driver.execute(_OPENED, [mark]).rowcount:
            return None
        row = driver.execute(
            _OPEN,
            {
                "cause": cause,
                "strict": strict,
                "since": since,
                "absent_after": absent_after,
                "who": who,
                "detail": json.dumps({**(detail or {}), "mark": mark}, default=str),
            },
        ).fetchone()
        assert row is not None  # noqa: S101 - the tick's row is made by the migration
        number, began, at = row
        given = {"id": number, "cause": cause, "strict": strict, "since": began, "at": at}
        held = driver.execute(_HOLD, {**given, "who": who}).fetchone()
        if witnessed is not None:
            catch_up(driver, tick=witnessed.tick, generation=witnessed.generation)
            note_mark(driver, witnessed.mark, given=witnessed.mark)
        if strict:
            driver.execute(
                "SELECT setval('publisher.jobs_id_seq', last_value + %s)"
                " FROM publisher.jobs_id_seq",
                [_NUMBERS_LOST],
            )
    assert held is not None  # noqa: S101 - a count always answers
    return Opened(number, int(held[0]))


_NEWEST = "SELECT at FROM publisher.quarantines WHERE strict ORDER BY id DESC LIMIT 1"


def newest_loss(conn: AnyConnection) -> datetime | None:
    """When this database was last found to lack commits: the newest strict quarantine's time."""
    row = driver_of(conn).execute(_NEWEST).fetchone()
    return None if row is None else row[0]


_FOR_FILE = "SELECT FROM publisher.quarantines WHERE detail ->> 'file' = %s"


def is_quarantined_for(conn: AnyConnection, file: str) -> bool:
    """Whether a quarantine was opened for a send that this worker's file names."""
    return driver_of(conn).execute(_FOR_FILE, [file]).rowcount > 0


_COME_BACK = """
INSERT INTO publisher.quarantined AS x (job_id, quarantine_id, strict)
SELECT j.id, q.id, false FROM publisher.jobs j
  JOIN LATERAL (SELECT q.id FROM publisher.quarantines q
                 WHERE q.at > j.settled_at
                    OR q.id = (SELECT o.quarantine_id FROM publisher.quarantined o
                                WHERE o.job_id = j.id AND o.released_at IS NULL)
                 ORDER BY q.id DESC LIMIT 1) AS q ON true
 WHERE j.id = %s
ON CONFLICT (job_id) DO UPDATE
   SET quarantine_id = excluded.quarantine_id, looks = 0, next_look_at = clock_timestamp(),
       look_token = NULL, lease_until = NULL, asked_at = NULL, held_before = NULL,
       released_at = NULL, released_by = NULL, release_reason = NULL
 WHERE x.quarantine_id < excluded.quarantine_id OR x.released_at IS NULL
RETURNING job_id
"""


# Under way when the backup was made, or when commits were lost: it may have been freed, and sent
# again, in the time that is lost.
_UNDER_WAY = """
WITH held AS (
    INSERT INTO publisher.quarantined AS x (job_id, quarantine_id, strict, held_before)
    SELECT j.id, q.id, q.strict, nullif(j.hold_reason, 'quarantine') FROM publisher.jobs j
      JOIN publisher.attempts a ON a.job_id = j.id AND a.token = ANY(%(tokens)s)
      JOIN LATERAL (SELECT q.id, q.strict FROM publisher.quarantines q
                     WHERE q.at > a.begun_at ORDER BY q.id DESC LIMIT 1) AS q ON true
     WHERE j.id = ANY(%(ids)s) AND j.state = 'scheduled'
    ON CONFLICT (job_id) DO UPDATE
       SET quarantine_id = excluded.quarantine_id, strict = excluded.strict,
           held_before = excluded.held_before, looks = 0, next_look_at = clock_timestamp(),
           look_token = NULL, lease_until = NULL, asked_at = NULL, released_at = NULL,
           released_by = NULL, release_reason = NULL
     WHERE x.quarantine_id < excluded.quarantine_id
    RETURNING job_id)
UPDATE publisher.jobs j SET hold_reason = 'quarantine' FROM held h WHERE j.id = h.job_id
"""


def hold_back(
    conn: Conn | psycopg.Cursor[dict[str, Any]], freed: Iterable[tuple[JobId, Token]]
) -> None:
    """Put what was begun before a quarantine, and is free to be sent again, into it.

    In the transaction that frees it.
    """
    ids, tokens = zip(*freed, strict=True)
    conn.execute(_UNDER_WAY, {"ids": list(ids), "tokens": list(tokens)})


def comes_back_doubted(conn: AnyConnection, job_id: JobId) -> bool:
    """Put a job that ended before a quarantine, and is brought back now, into that quarantine.

    It may have been brought back, and sent, before. Returns whether it is held for it; called
    while the job still has its end.
    """
    return driver_of(conn).execute(_COME_BACK, [job_id]).rowcount == 1
