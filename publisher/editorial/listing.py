"""Posts as lists show them: the newest version, who approved it, and what became of it where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import ARRAY, Connection, Select, Text, bindparam, func, select, true

from publisher.editorial.posts import KIND
from publisher.editorial.rows import batches
from publisher.editorial.schema import approvals, post_channels, post_versions, posts
from publisher.engine.content import Post
from publisher.engine.job import State
from publisher.engine.schema import channels, jobs


@dataclass(frozen=True, slots=True)
class Placed:
    """A post on one channel, and the newest job that puts it there, when there is one."""

    channel_id: int
    channel: str
    publish_at: datetime
    zone: str
    job_id: int | None
    state: State | None


@dataclass(frozen=True, slots=True)
class Listed:
    """A post in its newest version."""

    id: int
    ref: str | None
    content: str = field(repr=False)
    version: int
    approved_at: datetime | None
    approved_by: str | None
    placed: tuple[Placed, ...]

    @property
    def post(self) -> Post:
        """Its text, link and media."""
        return Post.from_json(self.content)

    @property
    def job_id(self) -> int | None:
        """Its job on its first channel; an imported post has one channel."""
        return self.placed[0].job_id if self.placed else None


def newest(conn: Connection, *, limit: int | None = None) -> tuple[Listed, ...]:
    """Posts that were saved and are not in the trash, the newest first."""
    shown = _newest_versions().where(posts.c.trashed_at.is_(None))
    return _read(conn, shown.order_by(posts.c.id.desc()).limit(limit))


def page(
    conn: Connection, *, limit: int, before: int | None = None, ref: str | None = None
) -> tuple[Listed, ...]:
    """As ``newest``; ``before``: only older than that post; ``ref``: only the one that has it."""
    shown = _newest_versions().where(posts.c.trashed_at.is_(None))
    if before is not None:
        shown = shown.where(posts.c.id < before)
    if ref is not None:
        shown = shown.where(posts.c.ref == ref)
    return _read(conn, shown.order_by(posts.c.id.desc()).limit(limit))


def by_ref(conn: Connection, refs: Sequence[str]) -> dict[str, Listed]:
    """The posts that have these refs, by ref."""
    found: dict[str, Listed] = {}
    for batch in batches(refs):
        wanted = bindparam("refs", batch, type_=ARRAY(Text))
        for listed in _read(conn, _newest_versions().where(posts.c.ref == func.any(wanted))):
            if listed.ref is not None:
                found[listed.ref] = listed
    return found


def _read(conn: Connection, query: Select[Any]) -> tuple[Listed, ...]:
    rows = conn.execute(query).all()
    placed = _placed(conn, [row.id for row in rows])
    return tuple(
        Listed(
            id=row.id,
            ref=row.ref,
            content=row.content,
            version=row.number,
            approved_at=row.approved_at,
            approved_by=row.approved_by,
            placed=tuple(placed.get(row.id, ())),
        )
        for row in rows
    )


def _newest_versions() -> Select[Any]:
    version = (
        select(post_versions)
        .where(post_versions.c.post_id == posts.c.id)
        .order_by(post_versions.c.number.desc())
        .limit(1)
        .lateral()
    )
    columns = (
        posts.c.id,
        posts.c.ref,
        version.c.content,
        version.c.number,
        approvals.c.approved_at,
        approvals.c.approved_by,
    )
    standing = (approvals.c.version_id == version.c.id) & approvals.c.withdrawn_at.is_(None)
    joined = posts.join(version, true()).outerjoin(approvals, standing)
    return select(*columns).select_from(joined)


def _placed(conn: Connection, post_ids: list[int]) -> dict[int, list[Placed]]:
    job = (
        select(jobs.c.id, jobs.c.state)
        .where(
            jobs.c.post_id == post_channels.c.post_id,
            jobs.c.channel_id == post_channels.c.channel_id,
            jobs.c.kind == KIND,
        )
        .order_by(jobs.c.id.desc())
        .limit(1)
        .lateral()
    )
    rows = conn.execute(
        select(post_channels, channels.c.name, job.c.id.label("job_id"), job.c.state)
        .select_from(
            post_channels.join(channels, channels.c.id == post_channels.c.channel_id).outerjoin(
                job, true()
            )
        )
        .where(post_channels.c.post_id == func.any(post_ids))
        .order_by(post_channels.c.post_id, post_channels.c.channel_id)
    )
    placed: dict[int, list[Placed]] = {}
    for row in rows:
        state = None if row.state is None else State(row.state)
        place = Placed(row.channel_id, row.name, row.publish_at, row.zone, row.job_id, state)
        placed.setdefault(row.post_id, []).append(place)
    return placed
