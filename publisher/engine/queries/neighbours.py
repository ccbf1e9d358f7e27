"""What stands on a channel around some instant: live, may be live, or still to be sent."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from sqlalchemy import Connection, text

from publisher.engine.job import REHEARSAL, JobId, State

AROUND: Final = timedelta(days=30)
"""On either side; what comes back after longer is meant."""
MOST: Final = 200
"""Jobs read of each kind, the nearest in time."""
_FIRST: Final = datetime(1, 1, 1, tzinfo=UTC)
_LAST: Final = datetime(9999, 12, 31, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Neighbour:
    """One job of the channel. ``at``: since when it is live, else when it is due.

    ``state`` is ``published`` of whatever is bound to a post on the page. ``content`` as frozen.
    """

    job_id: JobId
    post_id: int | None
    state: State
    at: datetime
    content: str = field(repr=False)


def neighbours(
    conn: Connection, channel_id: int, at: datetime, *, but: int | None = None
) -> tuple[Neighbour, ...]:
    """What is live, may be live or waits on the channel within ``AROUND`` of ``at``, nearest first.

    At most ``MOST`` of each; what was deleted from its page is not among them. ``but``: a post
    whose own jobs are left out; so are rehearsals. Nor is a post among them that a person saw live
    and gave no link of: nothing names it by its channel.
    """
    found = conn.execute(
        text(NEIGHBOURS),
        {
            "channel": channel_id,
            "at": at,
            "first": max(at, _FIRST + AROUND) - AROUND,
            "last": min(at, _LAST - AROUND) + AROUND,
            "most": MOST,
            "but": but,
            "rehearsal": REHEARSAL,
        },
    )
    # One job is bound to two posts where a person noted a second copy.
    once = {row.id: row for row in reversed(found.all())}
    return tuple(
        Neighbour(JobId(row.id), row.post_id, State(row.state), row.at, row.content)
        for row in reversed(once.values())
    )


# Each part by an index of its own: one condition on several states would be none's. Of the nearest
# alone the content is read, row by row: OFFSET keeps the planner from hashing every job there is.
NEIGHBOURS: Final = """
WITH found AS (
    (SELECT job_id AS id, bound_at AS at, 'published' AS state
       FROM publisher.remote_posts
      WHERE channel_id = :channel AND bound_at BETWEEN :first AND :last
      ORDER BY abs(extract(epoch FROM bound_at - CAST(:at AS timestamptz))) LIMIT :most)
    UNION ALL
    (SELECT id, run_at, state
       FROM publisher.jobs
      WHERE channel_id = :channel AND state = 'scheduled' AND run_at BETWEEN :first AND :last
      ORDER BY abs(extract(epoch FROM run_at - CAST(:at AS timestamptz))) LIMIT :most)
    UNION ALL
    (SELECT id, due_at, state
       FROM publisher.jobs
      WHERE channel_id = :channel AND state = 'unknown' AND due_at BETWEEN :first AND :last
      ORDER BY abs(extract(epoch FROM due_at - CAST(:at AS timestamptz))) LIMIT :most)
    UNION ALL
    (SELECT id, due_at, state
       FROM publisher.jobs
      WHERE channel_id = :channel AND incarnation IS NOT NULL
        AND state IN ('claimed', 'sending') AND due_at BETWEEN :first AND :last
      LIMIT :most)
)
SELECT found.id, found.at, found.state, job.post_id, job.content
  FROM found CROSS JOIN LATERAL (
       SELECT j.post_id, j.queue, j.kind, c.content
         FROM publisher.jobs j JOIN publisher.job_contents c ON c.job_id = j.id
        WHERE j.id = found.id OFFSET 0) AS job
 WHERE job.queue <> :rehearsal AND job.kind <> 'delete'
   AND NOT EXISTS (SELECT FROM publisher.jobs r
                    WHERE r.removes = found.id AND r.state = 'published')
   AND (CAST(:but AS bigint) IS NULL OR job.post_id IS DISTINCT FROM CAST(:but AS bigint))
 ORDER BY abs(extract(epoch FROM found.at - CAST(:at AS timestamptz))), found.id
"""
