"""Jobs in quarantine: claim those that are due a look, record what came of it, let them go.

A look has a lease and a token of its own, as those at doubts do; whoever no longer holds it
records nothing by it.
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


@dataclass(frozen=True, slots=True)
class Suspect:
    """A job in quarantine, and what a look for it needs.

    ``since``: when the first send that this database lacks may have been made. ``absent_after``:
    from then on nothing of it can arrive. ``twins``: other jobs of its channel, in quarantine or
    in doubt, with the same content. ``loss_shows``: something speaks for lost commits, whenever
    this one is due.
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
    loss_shows: bool = False

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
       q.absent_after, q.strict AS loss_shows,
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


_HOLDS = "SELECT FROM publisher.quarantined WHERE released_at IS NULL LIMIT 1"


def holds_suspects(conn: AnyConnection) -> bool:
    """Whether any job is in quarantine."""
    return driver_of(conn).execute(_HOLDS).rowcount > 0


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


_ASKED = """
UPDATE publisher.quarantined
   SET last_look = %(seen)s, next_look_at = NULL,
       asked_at = coalesce(asked_at, clock_timestamp())
 WHERE job_id = %(job_id)s AND released_at IS NULL
"""


def ask_about_suspect(conn: Conn, job_id: JobId, *, seen: str) -> None:
    """Leave a job to a person: what a look showed could not be recorded."""
    conn.execute(_ASKED, {"job_id": job_id, "seen": storable(seen)})


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


def not_in_quarantine(conn: AnyConnection, job_id: JobId) -> Conflict:
    """Why nothing can be decided about this job here. Raises ``NotFound``."""
    query = "SELECT state FROM publisher.jobs WHERE id = %s"
    row = driver_of(conn).execute(query, [job_id]).fetchone()
    if row is None:
        message = f"There is no job {public_id(job_id)}."
        raise NotFound(message)
    message = f"Job {public_id(job_id)} is not in quarantine: it is {row[0]}. Nothing was changed."
    return Conflict(message, code="not-in-quarantine")
