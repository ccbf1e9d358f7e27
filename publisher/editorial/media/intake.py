"""The way in for what comes from outside: an upload, an address, a file somebody was sent.

Everything is read into a temporary file under a cap, and nothing is stored before all of it was
found to be good. A picture is decoded and encoded anew, before anybody approves it, so that the
bytes which are approved are those which are sent (``pictures``). A video is not: see ``videos``.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import BinaryIO, Final, Self

from publisher.editorial.media import pictures, polyglots, videos
from publisher.editorial.media.fetch import Fetcher
from publisher.editorial.media.kinds import (
    HEAD_BYTES,
    KNOWN,
    VIDEO_BYTES,
    kind_of,
    most_bytes,
    otherwise,
    sniff,
)
from publisher.editorial.media.library import Kept, Library, Piece
from publisher.editorial.media.refusal import MediaRefused
from publisher.editorial.media.storage import CHUNK_BYTES
from publisher.words import _

MOST_BYTES: Final = VIDEO_BYTES
"""Of anything; a request that declares more can be refused unread."""


def add(library: Library, chunks: Iterable[bytes], *, who: str, field: str = "file") -> Kept:
    """Take in a picture or video that comes in ``chunks``, and keep it.

    ``field``: what a refusal names. The same bytes may be added again; the answer is the same.
    Raises ``MediaRefused``, ``MediaUnreachable``, ``WorkspaceUnnamed``; nothing is stored then.
    """
    with _Received.empty(field) as received:
        for chunk in chunks:
            received.write(chunk)
        return _keep(library, received, who=who)


def add_from_url(
    library: Library, fetcher: Fetcher, url: str, *, who: str, field: str = "url"
) -> Kept:
    """Fetch a picture or video and keep it; what is kept is ours, whatever the address shows later.

    Raises as ``add`` does; ``MediaRefused`` also for an address that leads where we do not go.
    """
    with _Received.empty(field) as received:
        fetcher.fetch(url, received, most_bytes=MOST_BYTES, field=field)
        return _keep(library, received, who=who)


def chunks_of(file: BinaryIO) -> Iterator[bytes]:
    """An open file from where it stands, as ``add`` takes it."""
    while chunk := file.read(CHUNK_BYTES):
        yield chunk


class _Received:
    """A temporary file that takes what comes until it is too much, or of no known kind."""

    def __init__(self, file: BinaryIO, field: str) -> None:
        self.file = file
        self.field = field
        self.size = 0
        self._head = b""
        self._digest = hashlib.sha256()

    @classmethod
    @contextmanager
    def empty(cls, field: str) -> Iterator[Self]:
        with tempfile.TemporaryFile() as file:
            yield cls(file, field)

    def write(self, chunk: bytes, /) -> None:
        """Raises ``MediaRefused``."""
        if len(self._head) < HEAD_BYTES:
            self._head += chunk[: HEAD_BYTES - len(self._head)]
        self.size += len(chunk)
        self._digest.update(chunk)
        if len(self._head) == HEAD_BYTES:
            most = most_bytes(self.require_type())
            if self.size > most:
                what = _("This file is larger than {n:,.0f} MB.").format(n=most / 1e6)
                raise self.refused(what, _("Give a smaller one."), "media-too-large")
        self.file.write(chunk)

    def require_type(self) -> str:
        """The media type that its first bytes show. Raises ``MediaRefused``."""
        if not self._head:
            what, fix = _("The file is empty."), _("Give the picture or video itself.")
            raise self.refused(what, fix, "media-empty")
        media_type = sniff(self._head)
        if media_type is None:
            what = _("This is {kind}.").format(kind=otherwise(self._head))
            fix = _("Give a {known} file.").format(known=KNOWN)
            raise self.refused(what, fix, "media-type-unknown")
        return media_type

    def sha256(self) -> str:
        """Of all that came."""
        return self._digest.hexdigest()

    def refused(self, what: str, fix: str, code: str) -> MediaRefused:
        return MediaRefused(what, fix, code=code, field=self.field)


def _keep(library: Library, received: _Received, *, who: str) -> Kept:
    with _judged(received) as (piece, file):
        return library.add(piece, file, who=who)


@contextmanager
def _judged(received: _Received) -> Iterator[tuple[Piece, BinaryIO]]:
    """What is to be kept of what came, and its bytes. Raises ``MediaRefused``."""
    media_type, came, field = received.require_type(), received.file, received.field
    original = received.sha256()
    came.flush()
    polyglots.refuse(came, field)
    if kind_of(media_type) == "video":
        videos.require_whole(came, received.size, field)
        yield Piece(original, media_type, received.size, original), came
        return
    with tempfile.TemporaryFile() as made:
        picture = pictures.encode_anew(came, made, field=field)
        sha256, size = _measured(made)
        yield (
            Piece(
                sha256,
                picture.type,
                size,
                original,
                width=picture.width,
                height=picture.height,
                frames=picture.frames,
            ),
            made,
        )


def _measured(file: BinaryIO) -> tuple[str, int]:
    digest, size = hashlib.sha256(), 0
    file.seek(0)
    for chunk in chunks_of(file):
        digest.update(chunk)
        size += len(chunk)
    return digest.hexdigest(), size
