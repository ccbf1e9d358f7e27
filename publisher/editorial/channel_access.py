"""When our access to a channel ends: told by whoever connects it, or by its platform when asked.

Some platforms' tokens end at a known time and many never say; what was not said is kept as none.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from sqlalchemy import Connection, select, update

from publisher.engine.adapter import ChannelHealth
from publisher.engine.job import Channel
from publisher.engine.schema import channels


def note(conn: Connection, channel: Channel, health: ChannelHealth) -> bool:
    """Keep when the platform says that the access it was asked with ends; whether it was kept.

    Where it says nothing, what is known stays. ``channel``: as it was when its platform was asked;
    an answer about a credential that was replaced meanwhile is about nothing any more.
    """
    if not health.usable or health.expires_at is None:
        return False
    noted = conn.execute(
        update(channels)
        .where(channels.c.id == channel.id, channels.c.generation == channel.generation)
        .values(access_ends_at=health.expires_at)
    )
    return noted.rowcount == 1


def ends(conn: Connection, channel_ids: Collection[int]) -> dict[int, datetime]:
    """When the access to each of these channels ends, where that is known."""
    rows = conn.execute(
        select(channels.c.id, channels.c.access_ends_at).where(
            channels.c.id.in_(channel_ids), channels.c.access_ends_at.is_not(None)
        )
    )
    return {row.id: row.access_ends_at for row in rows}
