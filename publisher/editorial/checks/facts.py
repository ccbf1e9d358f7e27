"""What the database knows that a check is given: broken channels, and the measures of files."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Final

from sqlalchemy import Connection, select

from publisher.editorial.schema import media
from publisher.engine.content import Post
from publisher.engine.schema import gates
from publisher.limits import Measures

_SHA256: Final = re.compile(r"[0-9a-f]{64}")


def needing_reconnection(conn: Connection, channel_ids: Collection[int]) -> frozenset[int]:
    """Which of these channels their platforms no longer take our access for."""
    blocked = select(gates.c.channel_id).where(
        gates.c.channel_id.in_(channel_ids), gates.c.blocked_at.is_not(None)
    )
    return frozenset(conn.scalars(blocked))


def measured(conn: Connection, posts: Iterable[Post]) -> dict[str, Measures]:
    """The pixels of every picture in these posts that was decoded when it was taken in."""
    named = {item.sha256 for post in posts for item in post.media if item.sha256 is not None}
    hashes = [bytes.fromhex(name) for name in named if _SHA256.fullmatch(name)]
    if not hashes:
        return {}
    rows = conn.execute(
        select(media.c.sha256, media.c.width, media.c.height).where(media.c.sha256.in_(hashes))
    )
    return {bytes(row.sha256).hex(): Measures(row.width, row.height) for row in rows}
