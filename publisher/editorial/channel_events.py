"""The journal of channels: who connected, paused or consented to what, and when.

It is only added to, in the transaction of what it tells of; the database refuses the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, insert, select

from publisher.editorial.schema import channel_events


class Event(StrEnum):
    """What may happen to a channel by a person's hand."""

    ADDED = "added"
    RECONNECTED = "reconnected"
    PAUSED = "paused"
    RESUMED = "resumed"
    CREDENTIAL_DROPPED = "credential_dropped"
    """The deployment was moved, and the key that opened it was not at hand."""
    RULES_CHANGED = "rules_changed"
    """Of its times; the detail has each as it was and as it is."""
    POSTING_TIMES_ADDED = "posting_times_added"
    POSTING_TIMES_REMOVED = "posting_times_removed"
    REHEARSAL_ALLOWED = "rehearsal_allowed"
    REHEARSAL_FORBIDDEN = "rehearsal_forbidden"
    REHEARSED = "rehearsed"
    """A rehearsal was begun there; the detail names its run."""


@dataclass(frozen=True, slots=True)
class ChannelEvent:
    """One line. ``event`` is a value of ``Event``, or a newer release's word."""

    at: datetime
    who: str
    event: str
    detail: Mapping[str, Any]


def tell(conn: Connection, channel_id: int, event: Event, *, who: str, **detail: object) -> None:
    """Add one line; ``detail`` is what plain JSON can hold, and no secret."""
    values = {"channel_id": channel_id, "event": event.value, "who": who, "detail": detail}
    conn.execute(insert(channel_events).values(values))


def of_channel(
    conn: Connection, channel_id: int, *, limit: int | None = None
) -> tuple[ChannelEvent, ...]:
    """Its lines, the oldest first; ``limit``: the newest so many."""
    rows = conn.execute(
        select(channel_events)
        .where(channel_events.c.channel_id == channel_id)
        .order_by(channel_events.c.id.desc())
        .limit(limit)
    ).all()
    return tuple(ChannelEvent(row.at, row.who, row.event, row.detail) for row in reversed(rows))
