"""What is done once in a while by whichever process of a deployment comes first."""

from __future__ import annotations

from publisher.engine.ledger.driver import Conn

_TAKE = """
INSERT INTO chores AS c (name, done_at) VALUES (%(name)s, clock_timestamp())
ON CONFLICT (name) DO UPDATE SET done_at = excluded.done_at
 WHERE c.done_at <= excluded.done_at - make_interval(secs => %(every)s)
RETURNING c.name
"""


def take_turn(conn: Conn, name: str, *, every: float) -> bool:
    """Whether this process is to do the chore now: nobody did within ``every`` seconds.

    Noted before it is done, so that one that kills its process is not tried again at once.
    """
    return conn.execute(_TAKE, {"name": name, "every": every}).rowcount == 1
