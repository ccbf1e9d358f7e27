"""What a job replaces: the sends of those jobs that a look must not find before it is sent itself.

A refusal may be a lie: the platform stored the post and said no. A job's own second send is
preceded by a look for the first; so is the first send of a job that took another's place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import psycopg
from psycopg.rows import dict_row

from publisher.engine.adapter import Task
from publisher.engine.job import Channel, JobId, Token
from publisher.engine.ledger.settle import EarlierAttempt
from publisher.engine.outcome import Reason


@dataclass(frozen=True, slots=True)
class Replaced:
    """A job that another one replaces, itself or through others, and that was begun.

    ``attempt``: the first whose bytes may have left, ``last_begun_at`` when the last of them did.
    ``is_live``: it is known to be on the page. ``is_certain``: every send of it has the proof that
    it is not. ``looks`` were made since it ended. ``let_go``: a person released the other one
    although a look had not ruled this one out.
    """

    attempt: EarlierAttempt
    last_begun_at: datetime
    key: str
    kind: str
    content: str
    content_sha256: bytes
    platform_key: str | None
    progress: dict[str, object]
    attempts: int
    is_live: bool
    is_certain: bool
    looks: int
    let_go: bool

    @property
    def job_id(self) -> JobId:
        """Its number."""
        return self.attempt.job_id

    def task(self, channel: Channel) -> Task:
        """What an adapter is told of it."""
        return Task(
            job_id=self.job_id,
            key=self.key,
            kind=self.kind,
            token=self.attempt.token,
            channel=channel,
            content=self.content,
            content_sha256=self.content_sha256,
            progress=self.progress,
            platform_key=self.platform_key,
            attempts=self.attempts,
        )


# Numbers fall along the line, so it ends whatever stands in the rows.
_REPLACED = """
WITH RECURSIVE line AS (
    SELECT j.id AS by, j.replaces AS job_id FROM jobs j
     WHERE j.id = ANY(%(ids)s) AND j.replaces < j.id
     UNION
    SELECT l.by, p.replaces FROM line l JOIN jobs p ON p.id = l.job_id
     WHERE p.replaces < p.id)
SELECT l.by, j.id AS job_id, c.key, j.kind, c.content, c.content_sha256, c.platform_key,
       CASE WHEN c.progress_sha256 = c.content_sha256 THEN c.progress END AS progress,
       j.attempts, a.number, a.token, a.begun_at, a.proof, a.remote_id, a.last_begun_at,
       j.state = 'published' OR a.live AS is_live,
       a.certain AND j.state IN ('failed', 'missed', 'cancelled')
           AND NOT EXISTS (SELECT FROM orphans o WHERE o.job_id = j.id AND NOT o.adopted)
           AS is_certain,
       (SELECT count(*) FROM looks k
         WHERE k.job_id = j.id AND k.begun_at > j.settled_at) AS looks,
       coalesce((SELECT e.event = 'release_hold' FROM job_events e
                  WHERE e.job_id = l.by
                    AND (e.event = 'release_hold'
                         OR e.event = 'hold' AND e.detail ->> 'reason' = %(unclear)s)
                    AND EXISTS (SELECT FROM job_events h
                                 WHERE h.job_id = l.by AND h.event = 'hold'
                                   AND h.detail ->> 'reason' = %(unclear)s AND h.at <= e.at)
                  ORDER BY e.at DESC, e.id DESC LIMIT 1), false) AS let_go
  FROM line l
  JOIN jobs j ON j.id = l.job_id
  JOIN job_contents c ON c.job_id = j.id
 CROSS JOIN LATERAL (
       SELECT (array_agg(t.number ORDER BY t.number))[1] AS number,
              (array_agg(t.token ORDER BY t.number))[1] AS token,
              (array_agg(t.proof ORDER BY t.number))[1] AS proof,
              (array_agg(t.remote_id ORDER BY t.number))[1] AS remote_id,
              min(t.begun_at) AS begun_at, max(t.begun_at) AS last_begun_at,
              bool_or(t.outcome IS NOT DISTINCT FROM 'published') AS live,
              bool_and(coalesce(t.proof IN ('refused', 'absent'), false)) AS certain
         FROM attempts t
        WHERE t.job_id = j.id
          AND (t.proof IS DISTINCT FROM 'not_sent' OR t.outcome = 'published')) AS a
 WHERE a.number IS NOT NULL
 ORDER BY l.by, j.id DESC
"""


def replaced_by(
    conn: psycopg.Connection[Any], ids: Sequence[JobId]
) -> dict[JobId, tuple[Replaced, ...]]:
    """What each of these jobs replaces and what that replaced, as far as it was sent; newest first.

    What was never begun, or is proved never to have left this machine, is left out.
    """
    found: dict[JobId, list[Replaced]] = {}
    with conn.cursor(row_factory=dict_row) as cursor:
        given = {"ids": list(ids), "unclear": str(Reason.REPLACED_UNCLEAR)}
        for row in cursor.execute(_REPLACED, given).fetchall():
            attempt = EarlierAttempt(
                JobId(row.pop("job_id")), row.pop("number"), Token(row.pop("token")),
                row.pop("begun_at"), row.pop("proof"), row.pop("remote_id"),
            )  # fmt: skip
            by = JobId(row.pop("by"))
            row["content_sha256"] = bytes(row["content_sha256"])
            row["progress"] = row["progress"] or {}
            found.setdefault(by, []).append(Replaced(attempt=attempt, **row))
    return {by: tuple(those) for by, those in found.items()}
