"""What a monitor asks every few seconds: each answer from an index or a small table, with a cap."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from sqlalchemy import Connection, text

AGES: Final = (60, 300, 3600, 86_400)
"""Seconds that part one age of a doubt from the next; what is older has one more."""
CAP: Final = 10_000
"""No queue's count is above this for one channel, and no count of doubts."""
_PATIENCE: Final = "2s"


@dataclass(frozen=True, slots=True)
class DueOn:
    """What is due on one queue: how many, and for how many seconds the oldest has been."""

    jobs: int
    oldest: float


@dataclass(frozen=True, slots=True)
class Measures:
    """How things stand. ``doubts``: by age (the bound above it) and whether they need a person.

    ``held``: jobs in a worker's hands, by state. ``blocked``: channels that take nothing, by
    reason. ``silent``: worker runs without a sign of life that are not proved to be over.
    ``quarantined``: jobs that are looked for first, by whether they need a person.
    """

    due: Mapping[str, DueOn]
    held: Mapping[str, int]
    doubts: Mapping[tuple[float, bool], int]
    oldest_doubt: float
    blocked: Mapping[str, int]
    workers: int
    silent: int
    orphans: int
    quarantined: Mapping[str, int]


_DUE = text("""
SELECT due.queue, count(*), extract(epoch FROM clock_timestamp() - min(due.due_at))
  FROM publisher.gates g
 CROSS JOIN LATERAL (
       SELECT j.queue, j.due_at FROM publisher.jobs j
        WHERE j.channel_id = g.channel_id AND j.state = 'scheduled'
          AND j.run_at <= clock_timestamp() AND j.hold_reason IS NULL
        ORDER BY j.run_at, j.id LIMIT :cap) AS due
 GROUP BY due.queue
""")
_HELD = text("""
SELECT state, count(*) AS jobs FROM publisher.jobs WHERE incarnation IS NOT NULL GROUP BY state
""")
_DOUBTS = text("""
SELECT extract(epoch FROM clock_timestamp() - since), asked_at IS NOT NULL
  FROM publisher.doubts ORDER BY since LIMIT :cap
""")
_BLOCKED = text("""
SELECT coalesce(blocked_reason, CASE WHEN paused_at IS NOT NULL THEN 'paused' ELSE 'limited' END)
         AS why, count(*) AS channels
  FROM publisher.gates
 WHERE blocked_at IS NOT NULL OR paused_at IS NOT NULL OR not_before > clock_timestamp()
 GROUP BY why
""")
_WORKERS = text("""
SELECT count(*) FILTER (WHERE seen_at >= clock_timestamp() - make_interval(secs => :silent_for)),
       count(*) FILTER (WHERE seen_at < clock_timestamp() - make_interval(secs => :silent_for))
  FROM publisher.incarnations WHERE ended_at IS NULL AND declared_gone_at IS NULL
""")
_QUARANTINED = text("""
SELECT (asked_at IS NOT NULL)::text AS asks, count(*) AS jobs
  FROM publisher.quarantined WHERE released_at IS NULL GROUP BY asks
""")
_ORPHANS = text("SELECT count(*) FROM publisher.orphans WHERE NOT adopted")


def measures(conn: Connection, *, silent_for: timedelta) -> Measures:
    """Read all of it within two seconds, or fail: a monitor must not be what slows a queue.

    A worker run is silent after ``silent_for`` without a heartbeat.
    """
    conn.execute(text(f"SET LOCAL statement_timeout = '{_PATIENCE}'"))
    cap = {"cap": CAP}
    due = {
        queue: DueOn(jobs, max(0.0, float(oldest)))
        for queue, jobs, oldest in conn.execute(_DUE, cap)
    }
    doubts: dict[tuple[float, bool], int] = {}
    oldest_doubt = 0.0
    for age, asks in conn.execute(_DOUBTS, cap):
        bound = next((float(at) for at in AGES if age <= at), float("inf"))
        doubts[bound, asks] = doubts.get((bound, asks), 0) + 1
        oldest_doubt = max(oldest_doubt, float(age))
    silence = {"silent_for": silent_for.total_seconds()}
    workers, silent = conn.execute(_WORKERS, silence).one()
    return Measures(
        due=due,
        held={row.state: row.jobs for row in conn.execute(_HELD)},
        doubts=doubts,
        oldest_doubt=oldest_doubt,
        blocked={row.why: row.channels for row in conn.execute(_BLOCKED)},
        workers=workers,
        silent=silent,
        orphans=conn.execute(_ORPHANS).scalar_one(),
        quarantined={"true": 0, "false": 0}
        | {row.asks: row.jobs for row in conn.execute(_QUARANTINED)},
    )
