"""Versions as they are stored: read one, read all, write the next."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, Select, func, insert, select

from publisher.editorial.actor import Actor, Who
from publisher.editorial.documents import Document, Part, Variant
from publisher.editorial.schema import approvals, post_versions, version_variants
from publisher.engine.content import Post, digest
from publisher.engine.errors import NotFound


@dataclass(frozen=True, slots=True)
class StoredVersion:
    """One immutable revision of a post, and the approval that stands for it or stood.

    ``sha256``: of everything it sends anywhere.
    """

    id: int
    post_id: int
    number: int
    document: Document
    sha256: bytes
    created_at: datetime
    created_by: str
    author_id: int | None
    approved_at: datetime | None
    approved_by: str | None
    approver_id: int | None
    withdrawn_at: datetime | None
    withdrawn_by: str | None

    @property
    def is_approved(self) -> bool:
        """Whether its approval stands."""
        return self.approved_at is not None and self.withdrawn_at is None


def read_version(conn: Connection, post_id: int, number: int | None = None) -> StoredVersion:
    """That version, or the newest. Raises ``NotFound``."""
    query = _versions().where(post_versions.c.post_id == post_id)
    if number is not None:
        # One beyond the column is none, and not the database's to refuse.
        query = query.where(post_versions.c.number == (number if 0 < number < 2**31 else 0))
    row = conn.execute(query.order_by(post_versions.c.number.desc()).limit(1)).first()
    if row is None:
        what = "no version" if number is None else f"no version {number}"
        message = f"There is {what} of post {post_id}. See: publisher posts show {post_id}"
        raise NotFound(message)
    return _stored(row, _variants(conn, [row.id]).get(row.id, []))


def versions_of(conn: Connection, post_id: int) -> tuple[StoredVersion, ...]:
    """Every version, the oldest first."""
    rows = conn.execute(
        _versions().where(post_versions.c.post_id == post_id).order_by(post_versions.c.number)
    ).all()
    variants = _variants(conn, [row.id for row in rows])
    return tuple(_stored(row, variants.get(row.id, [])) for row in rows)


def write_version(
    conn: Connection, post_id: int, number: int, document: Document, *, who: Who
) -> StoredVersion:
    """Write the next version with its variants; the post is locked."""
    actor = Actor.of(who)
    content = document.post.to_json()
    version_id = conn.scalar(
        insert(post_versions)
        .values(
            post_id=post_id,
            number=number,
            content=content,
            content_sha256=digest(content),
            created_by=actor.name,
            author_id=actor.user_id,
            first_comment=document.first_comment,
            whole_sha256=document.sha256(),
        )
        .returning(post_versions.c.id)
    )
    for channel_id, variant in document.variants.items():
        own = document.post_for(channel_id).to_json()
        conn.execute(
            insert(version_variants).values(
                version_id=version_id,
                channel_id=channel_id,
                content=own,
                content_sha256=digest(own),
                first_comment=document.first_comment_for(channel_id),
                own=sorted(map(str, variant.own)),
            )
        )
    return read_version(conn, post_id, number)


def _versions() -> Select[Any]:
    return select(
        post_versions,
        func.coalesce(post_versions.c.whole_sha256, post_versions.c.content_sha256).label("sha256"),
        approvals.c.approved_at,
        approvals.c.approved_by,
        approvals.c.approver_id,
        approvals.c.withdrawn_at,
        approvals.c.withdrawn_by,
    ).outerjoin(approvals, approvals.c.version_id == post_versions.c.id)


def _variants(conn: Connection, version_ids: list[int]) -> dict[int, list[Row[Any]]]:
    found: dict[int, list[Row[Any]]] = {}
    query = select(version_variants).where(version_variants.c.version_id.in_(version_ids))
    for row in conn.execute(query.order_by(version_variants.c.channel_id)):
        found.setdefault(row.version_id, []).append(row)
    return found


def _stored(row: Row[Any], variants: list[Row[Any]]) -> StoredVersion:
    document = Document(
        Post.from_json(row.content),
        row.first_comment,
        {variant.channel_id: _variant(variant) for variant in variants},
    )
    return StoredVersion(
        id=row.id,
        post_id=row.post_id,
        number=row.number,
        document=document,
        sha256=bytes(row.sha256),
        created_at=row.created_at,
        created_by=row.created_by,
        author_id=row.author_id,
        approved_at=row.approved_at,
        approved_by=row.approved_by,
        approver_id=row.approver_id,
        withdrawn_at=row.withdrawn_at,
        withdrawn_by=row.withdrawn_by,
    )


def _variant(row: Row[Any]) -> Variant:
    own = frozenset(map(Part, row.own))
    post = Post.from_json(row.content)
    given = {
        Part.TEXT: post.text,
        Part.LINK: post.link,
        Part.MEDIA: post.media,
        Part.FIRST_COMMENT: row.first_comment,
    }
    return Variant.of(**{str(part): given[part] for part in own})
