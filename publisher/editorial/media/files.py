"""Files that lie beside an import: looked at when a row is judged, kept when it is stored.

They come from the disk of whoever runs the deployment and are kept byte for byte: what was
approved in the file is what is sent. What comes from outside goes through ``intake``.
"""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from sqlalchemy import Connection

from publisher.editorial.media.kinds import (
    HEAD_BYTES,
    KNOWN,
    Kind,
    kind_of,
    most_bytes,
    otherwise,
    sniff,
)
from publisher.editorial.media.library import Library, Piece
from publisher.editorial.media.refusal import BytesChanged, MediaRefused, MediaUnreachable
from publisher.editorial.media.storage import CHUNK_BYTES
from publisher.editorial.spelling import quoted


@dataclass(frozen=True, slots=True)
class MediaFile:
    """A file as it was when it was looked at."""

    path: Path
    sha256: str
    type: str
    size: int

    @property
    def kind(self) -> Kind:
        """Whether it is a picture or a video."""
        return kind_of(self.type)

    @property
    def piece(self) -> Piece:
        """What is to be kept of it: all."""
        return Piece(self.sha256, self.type, self.size, self.sha256)


def inspect(path: Path) -> MediaFile:
    """Read a whole file: what it is, how large, and its hash. Raises ``MediaRefused``."""
    with _opened(path) as (file, size):
        head = file.read(HEAD_BYTES)
        media_type = sniff(head)
        if not head:
            what, fix = f"{path.name} is empty.", "Give the picture or video itself."
            raise MediaRefused(what, fix, code="media-empty")
        if media_type is None:
            what = f"{path.name} is {otherwise(head)}."
            raise MediaRefused(what, f"Give a {KNOWN} file.", code="media-type-unknown")
        most = most_bytes(media_type)
        if size > most:
            what = f"{path.name} is {size / 1e6:,.1f} MB; at most {most / 1e6:,.0f} MB are kept."
            raise MediaRefused(what, "Give a smaller one.", code="media-too-large")
        digest = hashlib.sha256(head)
        read = len(head)
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
            read += len(chunk)
    return MediaFile(path, digest.hexdigest(), media_type, read)


def upload(library: Library, found: MediaFile) -> None:
    """Make the file's bytes durable before the transaction that ``record`` is in.

    Raises ``MediaRefused`` when it cannot be read or is another by now, ``MediaUnreachable``.
    """
    with _unchanged(found) as file:
        library.upload(found.piece, file)


def record(conn: Connection, library: Library, found: MediaFile, *, who: str) -> None:
    """Store the reference to a file within the transaction of ``conn``, after ``upload``.

    Raises as ``upload`` does, and ``WorkspaceUnnamed``.
    """
    with _unchanged(found) as file:
        library.record(conn, found.piece, file, who=who)


@contextmanager
def _unchanged(found: MediaFile) -> Iterator[BinaryIO]:
    try:
        with _opened(found.path) as (file, _size):
            yield file
    except BytesChanged:
        what = f"{found.path} changed while it was being read."
        fix = "Wait until it is written, then import."
        raise MediaRefused(what, fix, code="media-changed") from None


@contextmanager
def _opened(path: Path) -> Iterator[tuple[BinaryIO, int]]:
    """The file and its size in bytes. Raises ``MediaRefused`` for what is no readable file."""
    try:
        # Asked before opening: opening a pipe would wait for its writer.
        is_file = stat.S_ISREG(path.stat().st_mode)
        if not is_file:
            what, fix = f"{quoted(str(path))} is not a file.", "Name a picture or video."
            raise MediaRefused(what, fix, code="media-not-a-file")
        file = path.open("rb")
    except FileNotFoundError:
        what, fix = (
            f"There is no file {quoted(str(path))}.",
            "Paths start from the folder of the import file.",
        )
        raise MediaRefused(what, fix, code="media-not-found") from None
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from None
    with file:
        try:
            yield file, path.stat().st_size
        except MediaUnreachable:
            raise
        except OSError as error:
            raise _unreadable(path, error) from None


def _unreadable(path: Path, error: OSError | ValueError) -> MediaRefused:
    reason = error.strerror if isinstance(error, OSError) else str(error)
    what = f"{quoted(str(path))} cannot be read: {reason}."
    return MediaRefused(what, "Make it readable, or name another.", code="media-unreadable")
