"""The time zones that posts were written in."""

from __future__ import annotations

from sqlalchemy import Connection, select

from publisher.editorial.schema import post_channels


def in_use(conn: Connection) -> frozenset[str]:
    """Every zone that some post's time was given in."""
    return frozenset(conn.execute(select(post_channels.c.zone).distinct()).scalars())
