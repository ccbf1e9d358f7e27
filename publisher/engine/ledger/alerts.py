"""What alerts are made from and kept in: their facts, their jobs, and who was told of what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from psycopg.rows import class_row

from publisher.engine.alert import KEY_PREFIX, Alert, Incident
from publisher.engine.content import digest
from publisher.engine.job import JobId
from publisher.engine.ledger.driver import Conn
from publisher.engine.ledger.journal import tell

ALERT: Final = "alert"
"""The event that says in a job's journal that people were told of it."""
_AT_MOST: Final = 500


@dataclass(frozen=True, slots=True)
class Addressee:
    """A channel that alerts go to."""

    channel_id: int
    platform: str


_ADDRESSEES = """
SELECT id AS channel_id, platform FROM publisher.channels
 WHERE id::text = ANY(%(names)s) OR lower(name) = ANY(%(lowered)s) ORDER BY id
"""


def addressees(conn: Conn, names: Sequence[str]) -> list[Addressee]:
    """Those of these channels, by name or id, that there are."""
    with conn.cursor(row_factory=class_row(Addressee)) as cursor:
        values = {"names": list(names), "lowered": [name.lower() for name in names]}
        return cursor.execute(_ADDRESSEES, values).fetchall()


def queue_for(conn: Conn, group: str) -> None:
    """Let one process at a time add to a group, until its transaction ends.

    For the grouping alone: that nothing is told twice rests on keys.
    """
    conn.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 7))", [group])


_TOLD = """
SELECT EXISTS (SELECT FROM publisher.job_events
                WHERE job_id = %(job_id)s AND event = 'alert'
                  AND detail ->> 'incident' = %(incident)s AND detail ->> 'at' = %(at)s)
"""
_KEY_TAKEN = """
SELECT EXISTS (SELECT FROM publisher.job_keys WHERE key >= %(key)s AND key < %(key)s || '~')
"""


def is_told(conn: Conn, job_id: JobId, incident: Incident, at: str) -> bool:
    """Whether people were told of this incident of a job."""
    values = {"job_id": job_id, "incident": incident, "at": at}
    row = conn.execute(_TOLD, values).fetchone()
    return bool(row and row[0])


def has_alert(conn: Conn, key: str) -> bool:
    """Whether there is a job whose key begins so."""
    row = conn.execute(_KEY_TAKEN, {"key": key}).fetchone()
    return bool(row and row[0])


def keep_told(conn: Conn, alert: Alert, at: str, key: str, who: str) -> None:
    """Say in a job's journal that people are told of it, and by which alert."""
    if alert.job_id is not None:
        detail = {"incident": alert.incident, "at": at, "alert": key}
        tell(conn, alert.job_id, ALERT, who=who, attempt=alert.attempt, detail=detail)


@dataclass(frozen=True, slots=True)
class Subject:
    """A job that an alert tells of, as it stands."""

    id: JobId
    key: str
    kind: str
    channel_id: int
    since: datetime
    useful_until: datetime | None
    now: datetime

    @property
    def is_alert(self) -> bool:
        """Whether it is itself an alert: nobody is told of those by another one."""
        return self.key.startswith(KEY_PREFIX)


_SUBJECTS = """
SELECT j.id, c.key, j.kind, j.channel_id,
       coalesce(d.since, j.settled_at, j.claimed_at, clock_timestamp()) AS since, j.useful_until,
       clock_timestamp() AS now
  FROM publisher.jobs j JOIN publisher.job_contents c ON c.job_id = j.id
  LEFT JOIN publisher.doubts d ON d.job_id = j.id
 WHERE j.id = ANY(%s) ORDER BY j.id
"""


def subjects(conn: Conn, ids: Sequence[JobId]) -> list[Subject]:
    """These jobs, as an alert needs them."""
    with conn.cursor(row_factory=class_row(Subject)) as cursor:
        return cursor.execute(_SUBJECTS, [list(ids)]).fetchall()


@dataclass(frozen=True, slots=True)
class Sent:
    """One job of an alert. ``open``: it has not left, so it can still tell of more."""

    job_id: JobId
    key: str
    due_at: datetime
    content: str
    open: bool


_NEWEST = """
SELECT k.key, j.due_at
  FROM (SELECT key, job_id FROM publisher.job_keys
         WHERE key >= %(group)s AND key < %(group)s || '~' ORDER BY job_id DESC LIMIT 1) AS k
  JOIN publisher.jobs j ON j.id = k.job_id
"""


def newest_of(conn: Conn, group: str) -> tuple[str, datetime] | None:
    """The key of a job of a group's newest alert, and when that was due; None before the first."""
    return conn.execute(_NEWEST, {"group": group}).fetchone()


# Locked, so that what is claimed meanwhile is seen: a claim reads its content under the same lock.
_COPIES = """
SELECT j.id AS job_id, c.key, j.due_at, c.content,
       j.state = 'scheduled' AND j.attempts = 0 AND j.failures = 0 AS open
  FROM publisher.jobs j JOIN publisher.job_contents c ON c.job_id = j.id
 WHERE j.id = ANY(%s) ORDER BY j.id FOR UPDATE OF j SKIP LOCKED
"""
_IDS = """
SELECT job_id FROM publisher.job_keys WHERE key >= %(base)s AND key < %(base)s || '~'
"""


def open_copies(conn: Conn, base: str) -> list[Sent]:
    """Every job of one alert, locked; none when one of them has left or somebody holds it."""
    ids = [row[0] for row in conn.execute(_IDS, {"base": base}).fetchall()]
    with conn.cursor(row_factory=class_row(Sent)) as cursor:
        copies = cursor.execute(_COPIES, [ids]).fetchall()
    return copies if len(copies) == len(ids) and all(copy.open for copy in copies) else []


_REWRITE = """
UPDATE publisher.job_contents
   SET content = %(content)s, content_sha256 = %(sha256)s, progress = NULL, progress_sha256 = NULL
 WHERE job_id = %(job_id)s
"""
_SOONER = """
UPDATE publisher.jobs SET run_at = least(run_at, %(run_at)s), due_at = least(due_at, %(run_at)s)
 WHERE id = %(job_id)s AND state = 'scheduled'
"""


def rewrite(
    conn: Conn, job_id: JobId, content: str, *, who: str, run_at: datetime | None = None
) -> None:
    """Let an alert that was not begun tell of more; its row is locked by ``open_copies``.

    ``run_at``: send it by then, where it was to wait for longer.
    """
    values = {"job_id": job_id, "content": content, "sha256": digest(content), "run_at": run_at}
    conn.execute(_REWRITE, values)
    if run_at is not None:
        conn.execute(_SOONER, values)
    tell(conn, job_id, "replace", who=who, attempt=None, detail={})


@dataclass(frozen=True, slots=True)
class Place:
    """A channel as an alert names it, and what waits for it."""

    platform: str
    name: str
    remote_id: str
    blocked_at: datetime | None
    waiting: int
    useful_until: datetime | None
    now: datetime


_PLACE = """
SELECT ch.platform, ch.name, ch.remote_id, g.blocked_at, w.waiting, w.useful_until,
       clock_timestamp() AS now
  FROM publisher.channels ch JOIN publisher.gates g ON g.channel_id = ch.id
 CROSS JOIN LATERAL (
       SELECT count(*) AS waiting, min(j.until) AS useful_until
         FROM (SELECT coalesce(useful_until, due_at + interval '1 day') AS until
                 FROM publisher.jobs
                WHERE channel_id = ch.id AND state = 'scheduled'
                  AND run_at <= clock_timestamp() + interval '1 day'
                ORDER BY run_at LIMIT 10000) AS j) AS w
 WHERE ch.id = %s
"""


def place(conn: Conn, channel_id: int) -> Place | None:
    """A channel, with what is due on it within a day."""
    with conn.cursor(row_factory=class_row(Place)) as cursor:
        return cursor.execute(_PLACE, [channel_id]).fetchone()


def blocked_at(conn: Conn, channel_id: int) -> datetime | None:
    """Since when a channel needs reconnecting; None where it does not."""
    row = conn.execute(_BLOCKED_AT, [channel_id]).fetchone()
    return None if row is None else row[0]


_BLOCKED_AT = "SELECT blocked_at FROM publisher.gates WHERE channel_id = %s"


@dataclass(frozen=True, slots=True)
class Run:
    """A worker run, and how many others live."""

    id: int
    host: str
    seen_at: datetime
    others: int
    now: datetime


_RUN = """
SELECT i.id, i.host, i.seen_at, clock_timestamp() AS now,
       (SELECT count(*) FROM publisher.incarnations o
         WHERE o.id <> i.id AND o.ended_at IS NULL
           AND o.seen_at > clock_timestamp() - interval '1 minute') AS others
  FROM publisher.incarnations i WHERE i.id = %s
"""


def run(conn: Conn, number: int) -> Run | None:
    """A worker run."""
    with conn.cursor(row_factory=class_row(Run)) as cursor:
        return cursor.execute(_RUN, [number]).fetchone()


# What nobody was told of although it stands in the rows: whoever should have raised it died, or
# could not. A doubt that was snoozed is told of again when that is over.
_UNTOLD_DOUBTS = """
SELECT d.job_id, j.attempts, greatest(d.since, d.snoozed_until) AS at
  FROM publisher.doubts d JOIN publisher.jobs j ON j.id = d.job_id
 WHERE d.asked_at IS NOT NULL
   AND (d.snoozed_until IS NULL OR d.snoozed_until <= clock_timestamp())
   AND NOT EXISTS (SELECT FROM publisher.job_events e
                    WHERE e.job_id = d.job_id AND e.event = 'alert'
                      AND e.detail ->> 'incident' = 'doubt'
                      AND e.at >= greatest(d.since, d.snoozed_until))
 ORDER BY d.since LIMIT %(limit)s
"""
_BLOCKED = """
SELECT channel_id, blocked_reason FROM publisher.gates
 WHERE blocked_at IS NOT NULL LIMIT %(limit)s
"""
_ORPHANS = """
SELECT o.token::text, o.job_id, j.id IS NOT NULL
  FROM publisher.orphans o LEFT JOIN publisher.jobs j ON j.id = o.job_id
 WHERE NOT o.adopted AND o.at > clock_timestamp() - interval '1 day' LIMIT %(limit)s
"""
_SILENT = """
SELECT id, seen_at FROM publisher.incarnations
 WHERE ended_at IS NULL AND declared_gone_at IS NULL
   AND seen_at < clock_timestamp() - make_interval(secs => %(silent_for)s)
   AND seen_at > clock_timestamp() - interval '1 day' LIMIT %(limit)s
"""


def standing_incidents(conn: Conn, *, silent_for: timedelta) -> list[Alert]:
    """What the rows hold that people must know of; most of it they were told of before.

    A worker run is silent after ``silent_for`` without a heartbeat.
    """
    values = {"limit": _AT_MOST, "silent_for": silent_for.total_seconds()}
    doubts = conn.execute(_UNTOLD_DOUBTS, values).fetchall()
    blocked = conn.execute(_BLOCKED, values).fetchall()
    lost = conn.execute(_ORPHANS, values).fetchall()
    silent = conn.execute(_SILENT, values).fetchall()
    return [
        *(Alert(Incident.DOUBT, at, JobId(job), attempt) for job, attempt, at in doubts),
        *(Alert(Incident.BLOCKED, channel_id=ch, detail=why) for ch, why in blocked),
        *(
            Alert(Incident.ORPHAN, job_id=JobId(job) if is_there else None, mark=token)
            for token, job, is_there in lost
        ),
        *(Alert(Incident.SILENT, seen_at, run=number) for number, seen_at in silent),
    ]
