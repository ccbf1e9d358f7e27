"""Quarantine: a database that may lack sends looks for its jobs on their pages before it sends.

Every job that could be one of the missing sends is held back; a look finds it, or shows that it is
not there, or a person decides. A look has a lease and a token of its own, as those at doubts do.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from psycopg.rows import class_row

from publisher.engine.adapter import LookQuery, Task
from publisher.engine.errors import Conflict, NotFound
from publisher.engine.job import Channel, JobId, Token, public_id
from publisher.engine.ledger.driver import AnyConnection, Conn, driver_of
from publisher.engine.ledger.settle import storable
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
       least(coalesce(%(since)s, t.raised_at), clock_timestamp()) - make_interval(secs => 60),
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

    ``since``: when the first of them may have been made; None: when this database last counted.
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


@dataclass(frozen=True, slots=True)
class Suspect:
    """A job in quarantine, and what a look for it needs.

    ``since``: when the first send that this database lacks may have been made. ``absent_after``:
    from then on nothing of it can arrive. ``twins``: other jobs of its channel, in quarantine or
    in doubt, with the same content.
    """

    job_id: JobId
    key: str
    kind: str
    channel_id: int
    content: str
    content_sha256: bytes
    platform_key: str | None
    progress: dict[str, object] | None
    attempts: int
    strict: bool
    looks: int
    asked_at: datetime | None
    quarantine_id: int
    cause: str
    since: datetime
    absent_after: datetime
    twins: int
    now: datetime

    @property
    def nothing_can_arrive(self) -> bool:
        """Whether whoever may have sent it is over, and what they wrote has landed."""
        return self.absent_after <= self.now

    def query(self, channel: Channel, bound: frozenset[str]) -> LookQuery:
        """What an adapter is asked; ``bound`` as ``bound_elsewhere`` gives it."""
        return LookQuery(
            task=Task(
                job_id=self.job_id,
                key=self.key,
                kind=self.kind,
                token=Token(UUID(int=0)),
                channel=channel,
                content=self.content,
                content_sha256=bytes(self.content_sha256),
                progress=self.progress or {},
                platform_key=self.platform_key,
                attempts=self.attempts,
            ),
            began_at=self.since,
            now=self.now,
            bound=bound,
            remote_handle=None,
            sender_is_gone=self.nothing_can_arrive,
        )


_CLAIM = """
WITH picked AS MATERIALIZED (
    SELECT q.job_id FROM publisher.quarantined q
      JOIN publisher.jobs j ON j.id = q.job_id AND j.state = 'scheduled'
     WHERE q.next_look_at <= clock_timestamp()
       AND (q.lease_until IS NULL OR q.lease_until < clock_timestamp())
     ORDER BY q.next_look_at, j.due_at LIMIT %(limit)s
       FOR UPDATE OF q SKIP LOCKED)
UPDATE publisher.quarantined q
   SET look_token = gen_random_uuid(),
       lease_until = clock_timestamp() + make_interval(secs => %(lease)s)
  FROM picked p WHERE q.job_id = p.job_id
RETURNING q.job_id, q.look_token
"""
_SUSPECT = """
SELECT j.id AS job_id, c.key, j.kind, j.channel_id, c.content, c.content_sha256, c.platform_key,
       c.progress, j.attempts, x.strict, x.looks, x.asked_at, x.quarantine_id, q.cause, q.since,
       q.absent_after,
       (SELECT count(*) FROM publisher.jobs o
          JOIN publisher.job_contents oc ON oc.job_id = o.id
         WHERE o.channel_id = j.channel_id AND o.id <> j.id
           AND oc.content_sha256 = c.content_sha256
           AND (o.id IN (SELECT job_id FROM publisher.quarantined WHERE released_at IS NULL)
                OR o.state = 'unknown')) AS twins,
       clock_timestamp() AS now
  FROM publisher.quarantined x
  JOIN publisher.quarantines q ON q.id = x.quarantine_id
  JOIN publisher.jobs j ON j.id = x.job_id
  JOIN publisher.job_contents c ON c.job_id = j.id
 WHERE x.job_id = ANY(%(ids)s) AND x.released_at IS NULL AND j.state = 'scheduled'
"""


def claim_suspects(conn: Conn, *, limit: int, lease: float) -> list[tuple[Suspect, UUID]]:
    """Hold up to ``limit`` jobs that are due a look for ``lease`` seconds, with their token."""
    with conn.transaction():
        held = dict(conn.execute(_CLAIM, {"limit": limit, "lease": lease}).fetchall())
    return [(suspect, held[suspect.job_id]) for suspect in suspects(conn, list(held))]


def suspects(conn: AnyConnection, ids: list[JobId]) -> list[Suspect]:
    """What is known of these jobs, of those that are in quarantine."""
    with driver_of(conn).cursor(row_factory=class_row(Suspect)) as cursor:
        return cursor.execute(_SUSPECT, {"ids": ids}).fetchall()


_LOOKED = """
UPDATE publisher.quarantined
   SET looks = looks + 1, last_look = %(seen)s, look_token = NULL, lease_until = NULL,
       next_look_at = clock_timestamp() + make_interval(secs => %(pause)s),
       asked_at = CASE WHEN %(pause)s::float8 IS NULL
                       THEN coalesce(asked_at, clock_timestamp()) ELSE asked_at END
 WHERE job_id = %(job_id)s AND look_token = %(look_token)s AND released_at IS NULL
"""


def look_for_again(
    conn: Conn, job_id: JobId, look_token: UUID, *, seen: str, pause: float | None
) -> bool:
    """Record a look that decided nothing: the next in ``pause`` seconds, or, with None, a person.

    Returns whether the job was still this look's.
    """
    given = {
        "job_id": job_id, "look_token": look_token, "seen": storable(seen), "pause": pause,
    }  # fmt: skip
    return conn.execute(_LOOKED, given).rowcount == 1


_BIND = """
INSERT INTO publisher.remote_posts (channel_id, remote_id, job_id, permalink)
SELECT channel_id, %(remote_id)s, id, %(permalink)s FROM publisher.jobs WHERE id = %(job_id)s
ON CONFLICT DO NOTHING
"""
_OWNED = """
SELECT r.job_id FROM publisher.remote_posts r JOIN publisher.jobs j
    ON j.channel_id = r.channel_id AND j.id = %s AND r.remote_id = %s
"""
_LIVE = """
UPDATE publisher.jobs
   SET state = 'published', hold_reason = NULL, remote_id = %(remote_id)s,
       attested_at = CASE WHEN %(remote_id)s::text IS NULL THEN clock_timestamp() END,
       settled_at = clock_timestamp()
 WHERE id = %(job_id)s AND state = 'scheduled' AND hold_reason = 'quarantine'
   AND EXISTS (SELECT FROM publisher.quarantined q
                WHERE q.job_id = %(job_id)s AND q.released_at IS NULL)
"""
_TELL = """
INSERT INTO publisher.job_events (job_id, event, who, attempt, detail)
SELECT id, %(event)s, %(who)s, nullif(attempts, 0), %(detail)s::jsonb
  FROM publisher.jobs WHERE id = ANY(%(ids)s)
"""


def found_live(
    conn: AnyConnection,
    job_id: JobId,
    *,
    remote_id: str | None,
    permalink: str | None,
    who: str,
    reason: str,
) -> None:
    """It is on the page: it was one of the sends that the database lacks, and is bound to it.

    ``remote_id`` None: a person saw it there without a link. Raises ``Conflict``:
    ``not-this-post`` for an id that is another job's, ``not-in-quarantine``.
    """
    driver = driver_of(conn)
    given = {"job_id": job_id, "remote_id": remote_id, "permalink": permalink}
    with driver.transaction():
        if remote_id is not None:
            driver.execute(_BIND, given)
            owner = driver.execute(_OWNED, [job_id, remote_id]).fetchone()
            if owner is None or owner[0] != job_id:
                message = f"{remote_id} belongs to another job. Nothing was changed."
                raise Conflict(message, code="not-this-post")
        if driver.execute(_LIVE, given).rowcount != 1:
            raise not_in_quarantine(driver, job_id)
        detail = {"remote_id": remote_id, "permalink": permalink, "reason": reason}
        _tell(driver, "quarantine_found", [job_id], who, detail)


_RELEASE = """
WITH freed AS (
    UPDATE publisher.quarantined
       SET released_at = clock_timestamp(), released_by = %(who)s, release_reason = %(reason)s,
           next_look_at = NULL, look_token = NULL, lease_until = NULL
     WHERE released_at IS NULL AND job_id = ANY(%(ids)s)
    RETURNING job_id, held_before)
SELECT job_id, held_before FROM freed
"""
_GO_ON = """
UPDATE publisher.jobs j SET hold_reason = f.held_before
  FROM unnest(%(ids)s::bigint[], %(held)s::text[]) AS f(job_id, held_before)
 WHERE j.id = f.job_id AND j.state = 'scheduled' AND j.hold_reason = 'quarantine'
"""


def release_suspects(
    conn: AnyConnection, ids: list[JobId], *, who: str, reason: str
) -> list[JobId]:
    """Let jobs go on that are not on their page; a person's hold on them stays. Returns which."""
    driver = driver_of(conn)
    with driver.transaction():
        freed = driver.execute(
            _RELEASE, {"ids": ids, "who": who, "reason": storable(reason)}
        ).fetchall()
        gone = [JobId(row[0]) for row in freed]
        driver.execute(_GO_ON, {"ids": gone, "held": [row[1] for row in freed]})
        _tell(driver, "quarantine_released", gone, who, {"reason": reason})
    return gone


def _tell(
    driver: Conn, event: str, ids: list[JobId], who: str, detail: Mapping[str, object]
) -> None:
    kept = {name: value for name, value in detail.items() if value not in (None, "")}
    driver.execute(
        _TELL, {"event": event, "ids": ids, "who": who, "detail": json.dumps(kept, default=str)}
    )


_COME_BACK = """
INSERT INTO publisher.quarantined AS x (job_id, quarantine_id, strict)
SELECT j.id, q.id, false FROM publisher.jobs j
  JOIN LATERAL (SELECT q.id FROM publisher.quarantines q
                 WHERE q.at > j.settled_at ORDER BY q.id DESC LIMIT 1) AS q ON true
 WHERE j.id = %s
ON CONFLICT (job_id) DO UPDATE
   SET quarantine_id = excluded.quarantine_id, looks = 0, next_look_at = clock_timestamp(),
       look_token = NULL, lease_until = NULL, asked_at = NULL, held_before = NULL,
       released_at = NULL, released_by = NULL, release_reason = NULL
 WHERE x.quarantine_id < excluded.quarantine_id OR x.released_at IS NULL
RETURNING job_id
"""


def comes_back_doubted(conn: AnyConnection, job_id: JobId) -> bool:
    """Put a job that ended before a quarantine, and is brought back now, into that quarantine.

    It may have been brought back, and sent, before. Returns whether it is held for it; called
    while the job still has its end.
    """
    return driver_of(conn).execute(_COME_BACK, [job_id]).rowcount == 1


def not_in_quarantine(conn: AnyConnection, job_id: JobId) -> Conflict:
    """Why nothing can be decided about this job here. Raises ``NotFound``."""
    query = "SELECT state FROM publisher.jobs WHERE id = %s"
    row = driver_of(conn).execute(query, [job_id]).fetchone()
    if row is None:
        message = f"There is no job {public_id(job_id)}."
        raise NotFound(message)
    message = f"Job {public_id(job_id)} is not in quarantine: it is {row[0]}. Nothing was changed."
    return Conflict(message, code="not-in-quarantine")
