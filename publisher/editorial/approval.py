"""Approve imported drafts by their refs, and schedule them in the same transaction."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import timedelta

from sqlalchemy import Connection, select

from publisher.editorial import reviews, schedules
from publisher.editorial.actor import Who
from publisher.editorial.post_lock import find_post
from publisher.editorial.posts import KIND, Destination
from publisher.editorial.reviews import Approved
from publisher.editorial.schema import post_channels
from publisher.engine import queries
from publisher.engine.ledger import Enqueued
from publisher.engine.registry import Registry


def approve(
    conn: Connection,
    names: Sequence[str],
    *,
    who: Who,
    useful_for: timedelta,
    registry: Registry,
    number: int | None = None,
    comment: str = "",
) -> tuple[list[Approved], list[Enqueued]]:
    """Approve the newest version of each post, and schedule it where it has a time and no job.

    All of it or, on an error, none. ``names``: refs or numbers. Raises ``NotFound`` for one that is
    none, and whatever ``reviews.approve`` and ``schedules.schedule`` raise.
    """
    return approve_all(
        conn,
        {find_post(conn, name) for name in names},
        who=who,
        useful_for=useful_for,
        registry=registry,
        number=number,
        comment=comment,
    )


def approve_all(
    conn: Connection,
    post_ids: Collection[int],
    *,
    who: Who,
    useful_for: timedelta,
    registry: Registry,
    number: int | None = None,
    comment: str = "",
) -> tuple[list[Approved], list[Enqueued]]:
    """The same by the posts' own numbers, which no other post's ref is taken for."""
    approved: list[Approved] = []
    added: list[Enqueued] = []
    for post_id in sorted({*post_ids}):
        approved.append(
            reviews.approve(
                conn, post_id, who=who, registry=registry, number=number, comment=comment
            )
        )
        places = _unscheduled(conn, post_id)
        if places:
            done = schedules.schedule(
                conn, post_id, places, who=who, registry=registry, useful_for=useful_for
            )
            added += done.jobs
    return approved, added


def _unscheduled(conn: Connection, post_id: int) -> list[Destination]:
    """Where it has a time, and was never scheduled."""
    placed = {job.channel_id for job in queries.jobs_of_post(conn, post_id, kind=KIND)}
    rows = conn.execute(
        select(post_channels)
        .where(post_channels.c.post_id == post_id)
        .order_by(post_channels.c.channel_id)
    )
    return [
        Destination(row.channel_id, row.publish_at, row.zone, row.useful_until)
        for row in rows
        if row.channel_id not in placed
    ]
