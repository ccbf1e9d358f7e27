"""When a channel's jobs that are still open are due."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection, text

# One part for each index there is: what waits by its time, what is held by its channel, doubts.
_UNDER_WAY = text("""
SELECT j.run_at FROM publisher.jobs j
 WHERE j.channel_id = :channel AND j.state = 'scheduled' AND j.run_at BETWEEN :since AND :until
UNION
SELECT greatest(j.run_at, clock_timestamp()) FROM publisher.jobs j
 WHERE j.channel_id = :channel AND j.incarnation IS NOT NULL
UNION
SELECT j.run_at FROM publisher.jobs j
 WHERE j.channel_id = :channel AND j.state = 'unknown' AND j.run_at BETWEEN :since AND :until
""")


def under_way(
    conn: Connection, channel_id: int, since: datetime, until: datetime
) -> frozenset[datetime]:
    """The times at which jobs of a channel run that are not ended; now for what is in flight."""
    given = {"channel": channel_id, "since": since, "until": until}
    return frozenset(conn.execute(_UNDER_WAY, given).scalars())
