"""The journal of posts: who wrote, approved, scheduled or trashed what, and which version.

It is only added to, in the transaction of what it tells of; the database refuses the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import BigInteger, Connection, Integer, insert, literal, select

from publisher.editorial.actor import Actor, Who
from publisher.editorial.rows import batches, unnest
from publisher.editorial.schema import post_events


class Event(StrEnum):
    """What may happen to a post by a person's hand."""

    CREATED = "created"
    SAVED = "saved"
    WENT_BACK = "went_back"
    """A version was saved that equals an earlier one; the detail names it."""
    SUBMITTED = "submitted"
    CHANGES_REQUESTED = "changes_requested"
    APPROVED = "approved"
    APPROVAL_WITHDRAWN = "approval_withdrawn"
    SCHEDULED = "scheduled"
    DELETION_ASKED = "deletion_asked"
    """It is to go from a page where it is live; the detail names the job that takes it down."""
    COMMENTED = "commented"
    LABELLED = "labelled"
    ASSIGNED = "assigned"
    TRASHED = "trashed"
    RESTORED = "restored"


@dataclass(frozen=True, slots=True)
class PostEvent:
    """One line. ``event`` is a value of ``Event``, or a newer release's word."""

    at: datetime
    who: str
    event: str
    version: int | None
    detail: Mapping[str, Any]


def tell(
    conn: Connection,
    post_id: int,
    event: Event,
    *,
    who: Who,
    version: int | None = None,
    **detail: object,
) -> None:
    """Add one line; ``detail`` is what plain JSON can hold, what is None or empty left out."""
    actor = Actor.of(who)
    conn.execute(
        insert(post_events).values(
            post_id=post_id,
            who=actor.name,
            user_id=actor.user_id,
            event=event.value,
            version=version,
            detail={name: value for name, value in detail.items() if value not in (None, "", [])},
        )
    )


def tell_many(
    conn: Connection, posts: Sequence[tuple[int, int]], event: Event, *, who: Who
) -> None:
    """Add the same line to many posts, each given as its id and the version's number."""
    actor = Actor.of(who)
    for batch in batches(posts):
        rows = unnest(
            post_id=(BigInteger(), [post_id for post_id, _ in batch]),
            version=(Integer(), [number for _, number in batch]),
        )
        source = select(
            rows.c.post_id,
            rows.c.version,
            literal(actor.name),
            literal(actor.user_id, Integer),
            literal(event.value),
        )
        columns = ["post_id", "version", "who", "user_id", "event"]
        conn.execute(insert(post_events).from_select(columns, source))


def of_post(conn: Connection, post_id: int, *, limit: int | None = None) -> tuple[PostEvent, ...]:
    """Its lines, the oldest first; ``limit``: the newest so many."""
    rows = conn.execute(
        select(post_events)
        .where(post_events.c.post_id == post_id)
        .order_by(post_events.c.id.desc())
        .limit(limit)
    ).all()
    return tuple(
        PostEvent(row.at, row.who, row.event, row.version, row.detail) for row in reversed(rows)
    )
