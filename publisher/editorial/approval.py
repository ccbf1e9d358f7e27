"""Approve drafts by their refs, and schedule them in the same transaction."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from sqlalchemy import Connection, select

from publisher.editorial import posts
from publisher.editorial.posts import Version
from publisher.editorial.schema import post_versions
from publisher.editorial.schema import posts as posts_table
from publisher.engine.errors import NotFound
from publisher.engine.ledger import Enqueued
from publisher.engine.registry import Registry


def approve(
    conn: Connection,
    refs: Sequence[str],
    *,
    who: str,
    useful_for: timedelta,
    registry: Registry,
) -> list[Enqueued]:
    """Approve the newest version of each post and add its jobs; all of it or, on an error, none.

    Raises ``NotFound`` with the refs that are none, ``KeyConflict`` for a post that was scheduled
    before, and whatever else ``posts.schedule`` raises.
    """
    versions = _newest(conn, list(dict.fromkeys(refs)))
    posts.approve(conn, versions, who=who)
    return posts.schedule(conn, versions, useful_for=useful_for, registry=registry)


def _newest(conn: Connection, refs: Sequence[str]) -> list[Version]:
    rows = conn.execute(
        select(
            posts_table.c.ref,
            post_versions.c.id,
            post_versions.c.post_id,
            post_versions.c.number,
            post_versions.c.content,
        )
        .join(post_versions, post_versions.c.post_id == posts_table.c.id)
        .where(posts_table.c.ref.in_(refs))
        .order_by(post_versions.c.post_id, post_versions.c.number.desc())
        .distinct(post_versions.c.post_id)
    )
    found = {row.ref: Version(row.id, row.post_id, row.number, row.content) for row in rows}
    missing = [ref for ref in refs if ref not in found]
    if missing:
        message = (
            f"There is no post with the ref {', '.join(missing)}. Nothing was approved."
            " `publisher posts list` shows what there is."
        )
        raise NotFound(message)
    return [found[ref] for ref in refs]
