"""Pictures and videos, kept by the SHA-256 of their bytes, in PostgreSQL.

What a file is says its first bytes, never its name. The bytes lie in rows of 1 MiB, so that any
worker on any machine can read them and no statement ever holds a whole video.
"""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, Literal

from sqlalchemy import Connection, Engine, insert, select
from sqlalchemy.dialects.postgresql import insert as insert_or_skip

from publisher.editorial.schema import media, media_chunks
from publisher.editorial.spelling import quoted
from publisher.engine.errors import PublisherError

CHUNK_BYTES: Final = 1 << 20
IMAGE_BYTES: Final = 50_000_000
VIDEO_BYTES: Final = 1_000_000_000
_HEAD_BYTES: Final = 32
_CHUNKS_AT_ONCE: Final = 8

Kind = Literal["image", "video"]

_SUFFIXES: Final[dict[str, str]] = {
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".png": "image/png",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".mp4": "video/mp4",
    ".m4v": "video/mp4",
    ".mov": "video/quicktime",
}
KNOWN: Final = "JPEG, PNG, GIF, WebP, MP4 or MOV"

_SIGNATURES: Final = (
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)
# ISO base media files say in their brand what they hold. https://mp4ra.org/registered-types/brands
_STILL_BRANDS: Final = frozenset({b"heic", b"heix", b"hevc", b"mif1", b"msf1", b"avif", b"avis"})
_AUDIO_BRANDS: Final = frozenset({b"M4A ", b"M4B ", b"M4P "})
# QuickTime files older than the brand begin with one of these atoms.
_QUICKTIME_ATOMS: Final = frozenset({b"moov", b"mdat", b"wide", b"free", b"skip", b"pnot"})


class MediaRefused(PublisherError):
    """A file that cannot be used as a picture or video; the sentence says why and what to do."""

    def __init__(self, what: str, fix: str, *, code: str) -> None:
        super().__init__(f"{what} {fix}")
        self.code = code
        self.what = what
        self.fix = fix


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


def kind_of(media_type: str) -> Kind:
    """Whether a media type is a picture or a video."""
    return "video" if media_type.startswith("video/") else "image"


def type_of_name(name: str) -> str | None:
    """The media type that the end of a name or address promises, or None."""
    return _SUFFIXES.get(Path(name).suffix.lower())


def sniff(head: bytes) -> str | None:
    """The media type that the first 32 bytes of a file show, or None.

    Signatures as the WHATWG lists them: https://mimesniff.spec.whatwg.org/
    """
    for start, media_type in _SIGNATURES:
        if head.startswith(start):
            return media_type
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return "image/webp"
    if head[4:8] == b"ftyp" and head[8:12] not in _STILL_BRANDS | _AUDIO_BRANDS:
        return "video/quicktime" if head[8:12] == b"qt  " else "video/mp4"
    return "video/quicktime" if head[4:8] in _QUICKTIME_ATOMS else None


def inspect(path: Path) -> MediaFile:
    """Read a whole file: what it is, how large, and its hash. Raises ``MediaRefused``."""
    with _opened(path) as (file, size):
        head = file.read(_HEAD_BYTES)
        media_type = sniff(head)
        if not head:
            what, fix = f"{path.name} is empty.", "Give the picture or video itself."
            raise MediaRefused(what, fix, code="media-empty")
        if media_type is None:
            what = f"{path.name} is {_otherwise(head)}."
            raise MediaRefused(what, f"Give a {KNOWN} file.", code="media-type-unknown")
        most = VIDEO_BYTES if kind_of(media_type) == "video" else IMAGE_BYTES
        if size > most:
            what = f"{path.name} is {size / 1e6:,.1f} MB; at most {most / 1e6:,.0f} MB are kept."
            raise MediaRefused(what, "Give a smaller one.", code="media-too-large")
        digest = hashlib.sha256(head)
        read = len(head)
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
            read += len(chunk)
    return MediaFile(path, digest.hexdigest(), media_type, read)


def store(conn: Connection, path: Path, media_type: str, *, sha256: str | None = None) -> str:
    """Keep the file's bytes within the transaction of ``conn``; return their SHA-256 in hex.

    What is there already is not written again. ``sha256``, from ``inspect``, saves one reading.
    Raises ``MediaRefused`` when the file cannot be read, or is not the one ``sha256`` names.
    """
    if sha256 is None:
        sha256 = inspect(path).sha256
    with _opened(path) as (file, size), conn.begin_nested():
        added = conn.execute(
            insert_or_skip(media)
            .values(sha256=bytes.fromhex(sha256), type=media_type, size=size)
            .on_conflict_do_nothing()
            .returning(media.c.size)
        ).first()
        # Whoever wrote the row wrote its chunks in the same transaction, and it has ended.
        if added is not None and _write_chunks(conn, file, bytes.fromhex(sha256)) != size:
            raise _changed(path)
    return sha256


class PostgresMediaStore:
    """Reads what ``store`` kept; the engine's ``MediaStore``."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def read(self, sha256: str) -> Iterator[bytes]:
        """Yield the bytes in chunks of 1 MiB. Raises ``KeyError`` when they are not there.

        Each chunk is a transaction of its own: whoever reads is sending to a platform meanwhile,
        and no transaction stays open across the network.
        """
        try:
            key = bytes.fromhex(sha256)
        except ValueError:
            raise KeyError(sha256) from None
        with self._engine.connect() as conn:
            size = conn.scalar(select(media.c.size).where(media.c.sha256 == key))
        if size is None:
            raise KeyError(sha256)
        return self._chunks(sha256, -(-size // CHUNK_BYTES))

    def _chunks(self, sha256: str, count: int) -> Iterator[bytes]:
        wanted = select(media_chunks.c.bytes).where(media_chunks.c.sha256 == bytes.fromhex(sha256))
        for number in range(count):
            with self._engine.connect() as conn:
                chunk = conn.scalar(wanted.where(media_chunks.c.number == number))
            if chunk is None:
                raise KeyError(sha256)
            yield bytes(chunk)


@contextmanager
def _opened(path: Path) -> Iterator[tuple[BinaryIO, int]]:
    """The file and its size in bytes. Raises ``MediaRefused`` for what is no readable file."""
    try:
        # Asked before opening: opening a pipe would wait for its writer.
        is_file = stat.S_ISREG(path.stat().st_mode)
        if not is_file:
            what, fix = f"{quoted(str(path))} is not a file.", "Name a picture or video."
            raise MediaRefused(what, fix, code="media-not-a-file")
        with path.open("rb") as file:
            yield file, path.stat().st_size
    except FileNotFoundError:
        what, fix = (
            f"There is no file {quoted(str(path))}.",
            "Paths start from the folder of the import file.",
        )
        raise MediaRefused(what, fix, code="media-not-found") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        what, fix = (
            f"{quoted(str(path))} cannot be read: {reason}.",
            "Make it readable, or name another.",
        )
        raise MediaRefused(what, fix, code="media-unreadable") from None


def _write_chunks(conn: Connection, file: BinaryIO, sha256: bytes) -> int:
    """Write every chunk; return how many bytes there were, or -1 when their hash is another."""
    digest, size, number = hashlib.sha256(), 0, 0
    while True:
        rows: list[dict[str, object]] = []
        while len(rows) < _CHUNKS_AT_ONCE and (chunk := file.read(CHUNK_BYTES)):
            digest.update(chunk)
            size += len(chunk)
            rows.append({"sha256": sha256, "number": number, "bytes": chunk})
            number += 1
        if not rows:
            return size if digest.digest() == sha256 else -1
        conn.execute(insert(media_chunks), rows)


def _changed(path: Path) -> MediaRefused:
    what = f"{path} changed while it was being read."
    return MediaRefused(what, "Wait until it is written, then import.", code="media-changed")


def _otherwise(head: bytes) -> str:
    """Name what is met most among files that are no picture or video we can send."""
    brand = head[8:12] if head[4:8] == b"ftyp" else b""
    if brand in _STILL_BRANDS:
        return "an AVIF picture" if brand.startswith(b"avi") else "an HEIC picture"
    if brand in _AUDIO_BRANDS:
        return "sound without a picture"
    if head.startswith(b"%PDF"):
        return "a PDF document"
    if head.startswith(b"version https://git-lfs"):
        return "a Git LFS pointer, not the file itself"
    return "neither a picture nor a video"
