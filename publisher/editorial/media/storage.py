"""Where the bytes of pictures and videos lie: in the database, in a folder or in an S3 store.

The database is the default of every set-up. One dump is then the whole deployment, a restore
brings back every picture that an approved post names, the reference and its bytes commit or
vanish together, and every worker on any machine can read them. A folder or a store is for whoever
keeps so many videos that dumps become a burden (docs/media.md); a picture is a tenth of a
thousandth of a disk.

An object is called by the SHA-256 of its bytes, so writing it twice is harmless, nothing can be
guessed or traversed by a name, and whoever reads it can tell whether it is whole.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import BinaryIO, Final, Literal, Protocol

import structlog
from sqlalchemy import Connection, Engine

from publisher.editorial.media.refusal import BytesChanged, MediaLost

CHUNK_BYTES: Final = 1 << 20

Place = Literal["database", "folder", "s3"]

_log = structlog.get_logger(__name__)


class Storage(Protocol):
    """One kind of place. Nothing is connected to before the first call."""

    @property
    def place(self) -> Place:
        """The word in ``media.storage``."""
        ...

    @property
    def name(self) -> str:
        """Which one, for a person; it holds no secret."""
        ...

    def upload(self, sha256: str, file: BinaryIO, size: int) -> None:
        """Make the bytes of ``file``, from its start, durable before the transaction begins.

        A store across the network would hold that transaction open. The database does nothing
        here. Raises ``BytesChanged``, ``MediaUnreachable``; nothing is there by that name then,
        or what was there before.
        """
        ...

    def write(self, conn: Connection, sha256: str, file: BinaryIO, size: int) -> None:
        """Do what ``upload`` left to do, within the transaction that stores the reference.

        Raises ``BytesChanged``.
        """
        ...

    def read(self, engine: Engine, sha256: str, size: int) -> Iterator[bytes]:
        """Yield the bytes as they lie there, unchecked.

        No transaction stays open between two chunks. Raises ``MediaLost``, ``MediaUnreachable``.
        """
        ...

    def probe(self) -> None:
        """Write something and take it away again. Raises ``MediaUnreachable``."""
        ...


def object_name(sha256: str) -> str:
    """Where an object lies below its folder or prefix: no folder holds more than its share."""
    return f"{sha256[:2]}/{sha256}"


def whole(chunks: Iterator[bytes], sha256: str, size: int, place: str) -> Iterator[bytes]:
    """Yield what ``chunks`` yields, but its last only when all of it has that hash and size.

    So nobody receives damaged bytes whole: a request that declared their size stays unfinished,
    and the transport, which reads a file before it connects, does not even begin. Raises
    ``MediaLost``.
    """
    digest, seen, held = hashlib.sha256(), 0, b""
    for chunk in chunks:
        digest.update(chunk)
        seen += len(chunk)
        if seen > size:
            break
        if held:
            yield held
        held = chunk
    if seen != size or digest.hexdigest() != sha256:
        _log.error("media.damaged", sha256=sha256, place=place)
        raise MediaLost(sha256, place, is_damaged=True)
    if held:
        yield held


class Measured:
    """Reads a file in chunks of 1 MiB and keeps account of its hash and size."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._digest = hashlib.sha256()
        self._size = 0

    def __iter__(self) -> Iterator[bytes]:
        self._file.seek(0)
        while chunk := self._file.read(CHUNK_BYTES):
            self._digest.update(chunk)
            self._size += len(chunk)
            yield chunk

    def require(self, sha256: str, size: int) -> None:
        """Raise ``BytesChanged`` where what was read is something else."""
        if self._size != size or self._digest.hexdigest() != sha256:
            raise BytesChanged(sha256)
