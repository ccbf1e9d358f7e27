"""Doubts: claim those that are due a look, read what is known of one, say when to look again.

A look has a lease and a token of its own; whoever no longer holds it records nothing by it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from psycopg.rows import class_row

from publisher.engine.adapter import LookQuery, Task
from publisher.engine.job import Channel, JobId, Token
from publisher.engine.ledger.driver import AnyConnection, Conn, driver_of
from publisher.engine.ledger.journal import tell
from publisher.engine.ledger.settle import storable
from publisher.engine.sender import Sender


@dataclass(frozen=True, slots=True)
class Doubt:
    """An unknown job and the attempt in question.

    ``latest`` is the job's newest attempt, ``attempt`` the one that may be live: the one without
    a proof, else the newest that a repeat was said to be safe for, else the first whose refusal
    might have been a lie; 0 where the database lost one, whatever else it has. A verdict names
    both, so that an old look cannot judge a new attempt.

    ``live_since``: when the first byte of it, or of an earlier one that it repeats, may have left:
    a key that is honoured shows the first. ``returned_at``: when its hand said how the call ended.
    ``repeat_ended``: it was to be repeated, and that came to its end; never again by a machine.
    ``others``: who sent the attempts before it that it repeats, as ``Sender`` has them. Absence is
    said of theirs, too. ``arrives_until``: what a restored database lacks may arrive until then.
    """

    job_id: JobId
    key: str
    kind: str
    channel_id: int
    content: str
    content_sha256: bytes
    platform_key: str | None
    progress: dict[str, object] | None
    useful_until: datetime | None
    latest: int
    attempt: int
    token: Token | None
    begun_at: datetime | None
    first_begun_at: datetime | None
    live_since: datetime | None
    settled_at: datetime | None
    returned_at: datetime | None
    reason: str | None
    repeat_ended: bool
    remote_handle: str | None
    incarnation: int | None
    host: str | None
    ended_at: datetime | None
    declared_gone_at: datetime | None
    since: datetime
    looks: int
    asked_at: datetime | None
    taken_by: str | None
    now: datetime
    others: Sequence[Mapping[str, Any]] = ()
    arrives_until: datetime | None = None

    @property
    def sender(self) -> Sender:
        """What is known of the hand that made the send: of several, of the one gone last."""
        first = Sender(
            run=self.incarnation or 0,
            host=self.host or "an unknown host",
            returned_at=self.returned_at,
            ended_at=self.ended_at,
            declared_gone_at=self.declared_gone_at,
        )
        senders = [first, *map(Sender.read, self.others)]
        return next((one for one in senders if one.gone_at() is None), None) or max(
            senders, key=Sender.sure_gone_at
        )

    def unlocks_at(self, horizon: timedelta) -> datetime | None:
        """From when on nothing of it can arrive (R4); None until its senders are proved gone."""
        unlocks_at = self.sender.unlocks_at(horizon)
        if unlocks_at is None or self.arrives_until is None:
            return unlocks_at
        return max(unlocks_at, self.arrives_until)

    def query(self, channel: Channel, bound: frozenset[str], horizon: timedelta) -> LookQuery:
        """What an adapter is asked about the attempt; ``bound`` as ``bound_elsewhere`` gives it."""
        unlocks_at = self.unlocks_at(horizon)
        return LookQuery(
            task=Task(
                job_id=self.job_id,
                key=self.key,
                kind=self.kind,
                token=self.token or Token(UUID(int=0)),
                channel=channel,
                content=self.content,
                content_sha256=bytes(self.content_sha256),
                progress=self.progress or {},
                platform_key=self.platform_key,
                attempts=self.latest,
            ),
            began_at=self.live_since or self.since,
            now=self.now,
            bound=bound,
            remote_handle=self.remote_handle,
            sender_is_gone=unlocks_at is not None and unlocks_at <= self.now,
        )


# A hand returned when its own worker settled the attempt: not where rescue did for it, nor where
# a drained worker gave up waiting. What it says after one of those comes late, and then it is the
# coming that counts: the attempt's settled_at is when it was given up, and it may have written
# for as long as nothing was heard of it.
_RETURNED = """
       CASE WHEN {a}.reason IS DISTINCT FROM 'worker_died' AND {a}.reason IS DISTINCT FROM 'drained'
            THEN greatest({a}.settled_at,
                          (SELECT max(e.at) FROM job_events e
                            WHERE e.job_id = j.id AND e.attempt = {a}.number
                              AND e.event IN ('late_answer', 'spool_read'))) END"""
# A send that the database lost is in nobody's attempt: what another's sender did proves nothing.
_DOUBT = f"""
SELECT j.id AS job_id, c.key, j.kind, j.channel_id, c.content, c.content_sha256, c.platform_key,
       c.progress, j.useful_until, j.attempts AS latest, coalesce(a.number, 0) AS attempt,
       a.token, a.begun_at,
       (SELECT min(f.begun_at) FROM attempts f WHERE f.job_id = j.id) AS first_begun_at,
       (SELECT min(f.begun_at) FROM attempts f
         WHERE f.job_id = j.id AND (f.number = a.number OR f.proof = 'repeat_safe')) AS live_since,
       a.settled_at, {_RETURNED.format(a="a")} AS returned_at,
       coalesce(a.reason, j.reason) AS reason,
       coalesce(a.proof = 'repeat_safe', false) AS repeat_ended,
       a.answer ->> 'remote_handle' AS remote_handle,
       i.id AS incarnation, i.host, i.ended_at, i.declared_gone_at,
       d.since, d.looks, d.asked_at, d.taken_by, clock_timestamp() AS now,
       (SELECT coalesce(jsonb_agg(jsonb_build_object(
                   'run', o.incarnation, 'host', oi.host,
                   'returned_at', {_RETURNED.format(a="o")},
                   'ended_at', oi.ended_at, 'declared_gone_at', oi.declared_gone_at)), '[]')
          FROM attempts o LEFT JOIN incarnations oi ON oi.id = o.incarnation
         WHERE o.job_id = j.id AND o.proof = 'repeat_safe'
           AND o.number IS DISTINCT FROM a.number) AS others,
       (SELECT max(q.absent_after) FROM quarantines q WHERE q.at >= d.since) AS arrives_until
  FROM doubts d
  JOIN jobs j ON j.id = d.job_id
  JOIN job_contents c ON c.job_id = j.id
  LEFT JOIN LATERAL (
       SELECT * FROM attempts a WHERE a.job_id = j.id AND a.proof IS DISTINCT FROM 'not_sent'
          AND NOT EXISTS (SELECT FROM orphans x WHERE x.job_id = j.id AND NOT EXISTS (
                              SELECT FROM attempts y WHERE y.token = x.token))
        ORDER BY a.proof IS NOT NULL, a.proof <> 'repeat_safe',
                 CASE a.proof WHEN 'repeat_safe' THEN -a.number ELSE a.number END
        LIMIT 1) AS a ON true
  LEFT JOIN incarnations i ON i.id = a.incarnation
 WHERE d.job_id = ANY(%(ids)s) AND j.state = 'unknown'
"""  # noqa: S608 - one expression of ours, of two tables
_CLAIM = """
WITH picked AS MATERIALIZED (
    SELECT d.job_id FROM doubts d
     WHERE d.next_look_at <= clock_timestamp()
       AND (d.lease_until IS NULL OR d.lease_until < clock_timestamp())
     ORDER BY d.next_look_at LIMIT %(limit)s
       FOR UPDATE SKIP LOCKED)
UPDATE doubts d
   SET look_token = gen_random_uuid(),
       lease_until = clock_timestamp() + make_interval(secs => %(lease)s)
  FROM picked p WHERE d.job_id = p.job_id
RETURNING d.job_id, d.look_token
"""


def claim_doubts(conn: Conn, *, limit: int, lease: float) -> list[tuple[Doubt, UUID]]:
    """Hold up to ``limit`` doubts that are due a look for ``lease`` seconds, with their token."""
    with conn.transaction():
        held = dict(conn.execute(_CLAIM, {"limit": limit, "lease": lease}).fetchall())
    return [(doubt, held[doubt.job_id]) for doubt in doubts(conn, list(held))]


def doubts(conn: AnyConnection, ids: Sequence[int]) -> list[Doubt]:
    """What is known of these jobs, of those that are unknown."""
    driver = driver_of(conn)
    with driver.cursor(row_factory=class_row(Doubt)) as cursor:
        return cursor.execute(_DOUBT, {"ids": list(ids)}).fetchall()


_LOOKED = """
UPDATE doubts
   SET looks = looks + 1, last_look = %(last_look)s, look_token = NULL, lease_until = NULL,
       next_look_at = clock_timestamp() + make_interval(secs => %(pause)s),
       asked_at = CASE WHEN %(asked)s::text IS NULL THEN asked_at
                       ELSE coalesce(asked_at, clock_timestamp()) END,
       asked_reason = coalesce(asked_reason, %(asked)s)
 WHERE job_id = %(job_id)s AND look_token = %(look_token)s
RETURNING asked_at
"""


def look_again(
    conn: Conn,
    job_id: JobId,
    look_token: UUID,
    *,
    last_look: str,
    pause: float | None,
    asked: str | None = None,
) -> bool:
    """Record a look that decided nothing: the next one in ``pause`` seconds, or none.

    ``asked``: why a person must decide; the first reason stays. Returns whether the doubt was
    still this look's.
    """
    row = conn.execute(
        _LOOKED,
        {
            "job_id": job_id,
            "look_token": look_token,
            "last_look": storable(last_look),
            "pause": pause,
            "asked": None if asked is None else storable(asked),
        },
    ).fetchone()
    return row is not None


_HELD = "SELECT FROM doubts WHERE job_id = %s AND look_token = %s"
_LET_GO = """
UPDATE doubts d SET look_token = NULL, lease_until = NULL
  FROM unnest(%(ids)s::bigint[], %(tokens)s::uuid[]) AS held(job_id, look_token)
 WHERE d.job_id = held.job_id AND d.look_token = held.look_token
"""


def holds_look(conn: Conn, job_id: JobId, look_token: UUID) -> bool:
    """Whether this look is still the doubt's: its lease may have lapsed to another's."""
    return conn.execute(_HELD, [job_id, look_token]).rowcount == 1


def let_go(conn: Conn, held: Mapping[JobId, UUID]) -> None:
    """Give looks back that were not recorded, so that they are made again at once."""
    conn.execute(_LET_GO, {"ids": list(held), "tokens": list(held.values())})


_DESK = {
    "take": "taken_by = %(who)s, taken_at = clock_timestamp()",
    "untaken": "taken_by = %(who)s, taken_at = coalesce(taken_at, clock_timestamp())",
    "snooze": "snoozed_until = %(until)s",
    "look_now": "next_look_at = clock_timestamp(), lease_until = NULL, look_token = NULL",
}


def take(conn: AnyConnection, job_id: JobId, *, who: str, from_anyone: bool = True) -> bool:
    """Say who looks after a doubt; also hands it over. False when it is none any more.

    ``from_anyone`` False: not from somebody else who has taken it, either.
    """
    return _at_desk(conn, "take" if from_anyone else "untaken", job_id, who=who, until=None)


def snooze(conn: AnyConnection, job_id: JobId, *, until: datetime) -> bool:
    """Let a doubt raise no alert until then. False when it is none any more."""
    return _at_desk(conn, "snooze", job_id, who="", until=until)


def look_now(conn: AnyConnection, job_id: JobId) -> bool:
    """Have the reconciler look at once, also after its own looks ended."""
    return _at_desk(conn, "look_now", job_id, who="", until=None)


def _at_desk(
    conn: AnyConnection, what: str, job_id: JobId, *, who: str, until: datetime | None
) -> bool:
    statement = f"UPDATE publisher.doubts SET {_DESK[what]} WHERE job_id = %(job_id)s"  # noqa: S608 - our own words
    if what == "untaken":
        statement += " AND coalesce(taken_by, %(who)s) = %(who)s"
    values = {"job_id": job_id, "who": who, "until": until}
    return driver_of(conn).execute(statement, values).rowcount == 1


_DECLARE = """
UPDATE publisher.incarnations SET declared_gone_at = coalesce(declared_gone_at, clock_timestamp())
 WHERE id = %(run)s RETURNING declared_gone_at
"""
# What it holds becomes a doubt when its lease runs out; the statement is about that as well.
_ABOUT = """
SELECT a.job_id, a.number FROM publisher.doubts d
  JOIN publisher.attempts a ON a.job_id = d.job_id
 WHERE a.incarnation = %(run)s AND a.proof IS DISTINCT FROM 'not_sent'
UNION
SELECT j.id, j.attempts FROM publisher.jobs j
 WHERE j.incarnation IS NOT NULL AND j.incarnation = %(run)s AND j.state = 'sending'
"""


def declare_gone(
    conn: AnyConnection, run: int, *, who: str = "", reason: str = ""
) -> datetime | None:
    """Record an operator's word that a worker run's machine is gone; None when there is no such.

    The first statement stays. It is signed, with its reason, in the journal of every job that
    the run's sends leave in doubt.
    """
    driver = driver_of(conn)
    with driver.transaction():
        row = driver.execute(_DECLARE, {"run": run}).fetchone()
        if row is None:
            return None
        for job_id, attempt in driver.execute(_ABOUT, {"run": run}).fetchall():
            detail = {"run": run, "reason": reason, "declared_gone_at": row[0].isoformat()}
            tell(driver, JobId(job_id), "declare_gone", who=who, attempt=attempt, detail=detail)
    at: datetime = row[0]
    return at
