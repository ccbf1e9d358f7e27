"""What is kept, by whom it was added, and the bytes of it, checked against their hash."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, BinaryIO

import structlog
from sqlalchemy import Connection, Engine, Row, bindparam, select, update
from sqlalchemy.dialects.postgresql import insert

from publisher.editorial import walls
from publisher.editorial.media.database import InDatabase
from publisher.editorial.media.kinds import Kind, kind_of
from publisher.editorial.media.refusal import MediaLost
from publisher.editorial.media.storage import Place, Storage, whole
from publisher.editorial.schema import media, media_uploads
from publisher.engine.content import Media
from publisher.engine.errors import NotFound
from publisher.words import _

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Piece:
    """What is to be kept: bytes as they will be sent, and what they were made of.

    ``width`` and ``height`` in pixels and ``frames`` are known of a picture that was decoded;
    ``original_sha256`` is of the bytes as they came.
    """

    sha256: str
    type: str
    size: int
    original_sha256: str
    width: int | None = None
    height: int | None = None
    frames: int | None = None

    @property
    def kind(self) -> Kind:
        """Whether it is a picture or a video."""
        return kind_of(self.type)

    def described(self, alt: str = "") -> Media:
        """The part of a post's content that names it."""
        return Media(self.kind, self.type, alt, sha256=self.sha256, size=self.size)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept(Piece):
    """A picture or video that is kept; ``created_by`` is None for one from before that was."""

    place: Place
    created_at: datetime
    created_by: str | None


class Library:
    """Keeps and reads media; the engine's ``MediaStore``.

    ``engine``: where its own transactions run; for a request, one of ``db.walls.within``.
    ``storage``: where new bytes go, and where those are that lie outside the database.
    """

    def __init__(self, engine: Engine, storage: Storage) -> None:
        self._engine = engine
        self._storage = storage

    def within(self, engine: Engine) -> Library:
        """The same storage, seen through the transactions of ``engine``."""
        return Library(engine, self._storage)

    def upload(self, piece: Piece, file: BinaryIO) -> None:
        """Make the bytes durable where that needs no transaction; ``record`` comes after.

        Raises ``BytesChanged``, ``MediaUnreachable``; nothing is stored then.
        """
        self._storage.upload(piece.sha256, file, piece.size)

    def record(self, conn: Connection, piece: Piece, file: BinaryIO, *, who: str) -> Kept:
        """Store the reference within the transaction of ``conn``, after ``upload``.

        The same bytes may be added again: by another workspace, or in place of damaged ones. Who
        was first in a workspace stays. Raises ``BytesChanged``, ``WorkspaceUnnamed``; nothing of
        it is stored then.
        """
        key = bytes.fromhex(piece.sha256)
        workspace = walls.own(conn)
        with conn.begin_nested():
            # First, for it is what lets this workspace see the row it names.
            conn.execute(
                insert(media_uploads)
                .values(
                    workspace_id=workspace,
                    sha256=key,
                    original_sha256=bytes.fromhex(piece.original_sha256),
                    created_by=who,
                )
                .on_conflict_do_nothing()
            )
            conn.execute(
                insert(media)
                .values(
                    sha256=key,
                    type=piece.type,
                    size=piece.size,
                    width=piece.width,
                    height=piece.height,
                    frames=piece.frames,
                    storage=self._storage.place,
                )
                .on_conflict_do_nothing()
            )
            there: Place = conn.execute(
                select(media.c.storage).where(media.c.sha256 == key)
            ).scalar_one()
            if there == self._storage.place:
                self._storage.write(conn, piece.sha256, file, piece.size)
            elif there != "database":
                # It lay in a storage that was given up; now it is in the one that is configured.
                self._storage.write(conn, piece.sha256, file, piece.size)
                moved = update(media).where(media.c.sha256 == key)
                conn.execute(moved.values(storage=self._storage.place))
            return self.find(conn, piece.sha256)

    def add(self, piece: Piece, file: BinaryIO, *, who: str) -> Kept:
        """Keep it, in a transaction of its own that begins when the bytes are durable.

        Raises as ``upload`` and ``record`` do.
        """
        self.upload(piece, file)
        with self._engine.begin() as conn:
            kept = self.record(conn, piece, file, who=who)
        _log.info("media.added", sha256=kept.sha256, type=kept.type, size=kept.size, who=who)
        return kept

    def find(self, conn: Connection, sha256: str) -> Kept:
        """What is kept under this hash. Raises ``NotFound``, for another workspace's as well."""
        found = conn.execute(
            _KEPT.where(media.c.sha256 == _key(sha256)).order_by(media_uploads.c.created_at)
        ).first()
        if found is None:
            message = _("There is no picture or video {sha256}. Add it first.").format(
                sha256=sha256[:12]
            )
            raise NotFound(message)
        return _kept(found)

    def unknown(self, conn: Connection, hashes: Collection[str]) -> set[str]:
        """Which of these hashes name nothing that this workspace has."""
        asked = {sha256: _key(sha256) for sha256 in hashes}
        rows = conn.execute(
            select(media_uploads.c.sha256).where(
                media_uploads.c.sha256.in_(bindparam("keys", expanding=True))
            ),
            {"keys": [*asked.values()]},
        )
        there = {row.sha256 for row in rows}
        return {sha256 for sha256, key in asked.items() if key not in there}

    def newest(self, conn: Connection, *, limit: int) -> list[Kept]:
        """The last that were added, the newest first."""
        rows = conn.execute(
            _KEPT.order_by(media_uploads.c.created_at.desc(), media.c.sha256).limit(limit)
        )
        return [_kept(row) for row in rows]

    def read(self, sha256: str) -> Iterator[bytes]:
        """Yield the bytes in chunks of up to 1 MiB, never all of them when they are damaged.

        Each chunk is a transaction of its own: whoever reads is sending to a platform meanwhile.
        Raises ``MediaLost``, a ``KeyError``, at once where nothing is kept by that name, and
        ``MediaUnreachable``.
        """
        with self._engine.connect() as conn:
            row = conn.execute(
                select(media.c.size, media.c.storage).where(media.c.sha256 == _key(sha256))
            ).first()
        if row is None:
            raise MediaLost(sha256, _("the library"))
        # What is in the database stays readable there when another storage is configured.
        storage: Storage = InDatabase() if row.storage == "database" else self._storage
        if storage.place == "database" != row.storage:
            raise MediaLost(sha256, _("the database, but in another storage: set PUBLISHER_MEDIA"))
        chunks = storage.read(self._engine, sha256, row.size)
        return whole(chunks, sha256, row.size, storage.name)

    def probe(self) -> None:
        """See ``Storage.probe``."""
        self._storage.probe()

    @property
    def name(self) -> str:
        """Which storage, for a person."""
        return self._storage.name


_KEPT = select(
    media.c.sha256,
    media.c.type,
    media.c.size,
    media.c.width,
    media.c.height,
    media.c.frames,
    media.c.storage,
    media_uploads.c.original_sha256,
    media_uploads.c.created_at,
    media_uploads.c.created_by,
).join_from(media_uploads, media, media_uploads.c.sha256 == media.c.sha256)


def _kept(row: Row[*tuple[Any, ...]]) -> Kept:
    return Kept(
        sha256=row.sha256.hex(),
        type=row.type,
        size=row.size,
        original_sha256=row.original_sha256.hex(),
        width=row.width,
        height=row.height,
        frames=row.frames,
        place=row.storage,
        created_at=row.created_at,
        created_by=row.created_by,
    )


def _key(sha256: str) -> bytes:
    """The hash as it is stored; what is none names nothing."""
    try:
        return bytes.fromhex(sha256)
    except ValueError:
        return b""
