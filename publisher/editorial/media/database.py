"""Media in PostgreSQL, in rows of 1 MiB, so that no statement ever holds a whole video."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, Final

from sqlalchemy import Connection, Engine, select
from sqlalchemy.dialects.postgresql import insert

from publisher.editorial.media.refusal import MediaLost
from publisher.editorial.media.storage import CHUNK_BYTES, Measured, Place
from publisher.editorial.schema import media_chunks

_CHUNKS_AT_ONCE: Final = 8


class InDatabase:
    """The default."""

    @property
    def place(self) -> Place:
        """See ``Storage``."""
        return "database"

    @property
    def name(self) -> str:
        """See ``Storage``."""
        return "the database"

    def upload(self, sha256: str, file: BinaryIO, size: int) -> None:
        """Do nothing: the bytes go with their reference."""

    def write(self, conn: Connection, sha256: str, file: BinaryIO, size: int) -> None:
        """Write every chunk that is not there. Raises ``BytesChanged``."""
        key = bytes.fromhex(sha256)
        there = select(media_chunks.c.number).where(media_chunks.c.sha256 == key)
        # Whoever wrote one wrote them all, in one transaction.
        if conn.scalar(there.limit(1)) is not None:
            return
        measured = Measured(file)
        rows: list[dict[str, object]] = []
        for number, chunk in enumerate(measured):
            rows.append({"sha256": key, "number": number, "bytes": chunk})
            if len(rows) == _CHUNKS_AT_ONCE:
                conn.execute(insert(media_chunks).on_conflict_do_nothing(), rows)
                rows = []
        if rows:
            conn.execute(insert(media_chunks).on_conflict_do_nothing(), rows)
        measured.require(sha256, size)

    def read(self, engine: Engine, sha256: str, size: int) -> Iterator[bytes]:
        """Yield the chunks, each in a transaction of its own.

        Whoever reads is sending to a platform meanwhile.
        """
        wanted = select(media_chunks.c.bytes).where(media_chunks.c.sha256 == bytes.fromhex(sha256))
        for number in range(-(-size // CHUNK_BYTES)):
            with engine.connect() as conn:
                chunk = conn.scalar(wanted.where(media_chunks.c.number == number))
            if chunk is None:
                raise MediaLost(sha256, self.name)
            yield bytes(chunk)

    def probe(self) -> None:
        """Do nothing: whether the database can be written is asked elsewhere."""

    def __repr__(self) -> str:
        return f"<media in {self.name}>"
