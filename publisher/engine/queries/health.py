"""What an examination asks of the engine: channels that take nothing, runs that fell silent."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import Connection, text

from publisher.engine.job import Channel


@dataclass(frozen=True, slots=True)
class ChannelHealth:
    """A channel, its gate (None of it where there is no gate), and what is due behind it.

    ``due`` counts to a thousand; ``oldest`` is when the first of them was due.
    """

    channel: Channel
    has_gate: bool
    paused_by: str | None
    blocked_reason: str | None
    blocked_detail: str | None
    due: int
    oldest: datetime | None

    @property
    def is_open(self) -> bool:
        """Neither blocked nor paused, and there."""
        return self.has_gate and self.paused_by is None and self.blocked_reason is None


_CHANNELS = text("""
SELECT c.id, c.platform, c.name, c.remote_id, c.base_url, c.sealed, c.generation, c.trusted,
       g.channel_id IS NOT NULL AS has_gate,
       CASE WHEN g.paused_at IS NOT NULL THEN coalesce(g.paused_by, '?') END AS paused_by,
       g.blocked_reason, g.blocked_detail, waiting.due, waiting.oldest
  FROM publisher.channels c
  LEFT JOIN publisher.gates g ON g.channel_id = c.id
 CROSS JOIN LATERAL (
       SELECT count(*) AS due, min(one.due_at) AS oldest
         FROM (SELECT j.due_at FROM publisher.jobs j
                WHERE j.channel_id = c.id AND j.state = 'scheduled'
                  AND j.run_at <= clock_timestamp() AND j.hold_reason IS NULL
                ORDER BY j.run_at, j.id LIMIT 1000) AS one) AS waiting
 ORDER BY c.id
""")


def channel_health(conn: Connection) -> list[ChannelHealth]:
    """Every channel."""
    found = []
    for row in conn.execute(_CHANNELS).mappings():
        given = dict(row)
        channel = Channel(**{name: given.pop(name) for name in Channel.__dataclass_fields__})
        found.append(ChannelHealth(channel, **given))
    return found


@dataclass(frozen=True, slots=True)
class Backlog:
    """What waits for somebody.

    ``overdue``: jobs on open gates that nobody is busy with. ``unlooked``: doubts whose look is
    overdue. ``asked``: doubts that need a person. ``orphans``: those that nobody adopted.
    """

    overdue: int
    unlooked: int
    asked: int
    orphans: int


_BACKLOG = text("""
SELECT (SELECT count(*) FROM publisher.gates g
         CROSS JOIN LATERAL (SELECT FROM publisher.jobs j
                              WHERE j.channel_id = g.channel_id AND j.state = 'scheduled'
                                AND j.run_at < clock_timestamp() - CAST(:overdue AS interval)
                                AND j.hold_reason IS NULL
                              LIMIT 1000) AS due
         WHERE g.paused_at IS NULL AND g.blocked_at IS NULL
           AND NOT EXISTS (SELECT FROM publisher.jobs h
                            WHERE h.channel_id = g.channel_id AND h.incarnation IS NOT NULL)
           AND (g.not_before IS NULL OR g.not_before <= clock_timestamp())) AS overdue,
       (SELECT count(*) FROM publisher.doubts d
         WHERE d.next_look_at < clock_timestamp() - CAST(:overdue AS interval)) AS unlooked,
       (SELECT count(*) FROM publisher.doubts d WHERE d.asked_at IS NOT NULL) AS asked,
       (SELECT count(*) FROM publisher.orphans o WHERE NOT o.adopted) AS orphans
""")


def backlog(conn: Connection, *, overdue: timedelta) -> Backlog:
    """Count what waits; what waits for a process counts when it is ``overdue`` for that long."""
    return Backlog(**conn.execute(_BACKLOG, {"overdue": overdue}).mappings().one())


@dataclass(frozen=True, slots=True)
class Held:
    """Jobs in quarantine: all, those that need a person, those whose look is overdue."""

    open: int
    asked: int
    unlooked: int


_HELD = text("""
SELECT count(*) AS open, count(*) FILTER (WHERE asked_at IS NOT NULL) AS asked,
       count(*) FILTER (WHERE asked_at IS NULL
                          AND next_look_at < clock_timestamp() - CAST(:overdue AS interval))
         AS unlooked
  FROM publisher.quarantined WHERE released_at IS NULL
""")


def quarantine_backlog(conn: Connection, *, overdue: timedelta) -> Held:
    """Count what is held until it was looked for."""
    return Held(**conn.execute(_HELD, {"overdue": overdue}).mappings().one())


_ENDED = text("""
SELECT id, host, end_reason, ended_at FROM publisher.incarnations
 WHERE ended_at > clock_timestamp() - CAST(:within AS interval) AND end_reason <> 'drained'
 ORDER BY id
""")


@dataclass(frozen=True, slots=True)
class EndedRun:
    """A worker run that did not end in order, and why it is held to be over."""

    id: int
    host: str
    end_reason: str
    ended_at: datetime


def unclean_ends(conn: Connection, *, within: timedelta) -> list[EndedRun]:
    """Worker runs that ended out of order not longer ago than ``within``."""
    rows = conn.execute(_ENDED, {"within": within}).mappings()
    return [EndedRun(**row) for row in rows]


_BEGUN = text("""
SELECT go.token FROM unnest(CAST(:jobs AS bigint[]), CAST(:numbers AS integer[]),
                            CAST(:tokens AS uuid[])) AS go(job_id, number, token)
 WHERE NOT EXISTS (SELECT FROM publisher.attempts a
                    WHERE a.job_id = go.job_id AND a.number = go.number AND a.token = go.token)
""")


def tokens_unknown(conn: Connection, begun: Collection[tuple[int, int, UUID]]) -> Sequence[UUID]:
    """Those of ``begun`` (job, attempt, token) that the database holds no attempt of."""
    if not begun:
        return ()
    given = {
        "jobs": [job_id for job_id, _, _ in begun],
        "numbers": [number for _, number, _ in begun],
        "tokens": [token for _, _, token in begun],
    }
    return list(conn.execute(_BEGUN, given).scalars())
