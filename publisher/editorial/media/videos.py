"""Videos are kept as they come: what is looked at is the container, not the film.

Encoding one anew takes minutes, loses quality and needs a codec that not everybody may ship, and
every platform does it again. So a video keeps what its camera wrote into it, its place included
(docs/media.md says so). Looked at are the first bytes, the size, and the boxes: that the file is
whole and holds an index and a film.
"""

from __future__ import annotations

from typing import BinaryIO, Final

from publisher.editorial.media.refusal import MediaRefused
from publisher.words import _

_HEADER_BYTES: Final = 8
_BOXES: Final = 10_000
_FILM: Final = frozenset({b"mdat", b"moof"})


def require_whole(file: BinaryIO, size: int, field: str) -> None:
    """Walk the boxes of an MP4 or MOV of ``size`` bytes (ISO/IEC 14496-12, section 4.2).

    Raises ``MediaRefused`` where one reaches beyond the end, or the index or the film is missing.
    """
    names = _boxes(file, size)
    if names is None or b"moov" not in names or not names & _FILM:
        what = _("This video cannot be read: it is cut off or damaged.")
        fix = _("Export it anew as MP4, and give that.")
        raise MediaRefused(what, fix, code="media-unreadable", field=field)


def _boxes(file: BinaryIO, size: int) -> set[bytes] | None:
    """The names of the outermost boxes; None where they do not fill the file."""
    names: set[bytes] = set()
    at = 0
    for _number in range(_BOXES):
        if size - at < _HEADER_BYTES:
            # Some cameras end with a few zeros.
            file.seek(at)
            return names if not file.read().strip(b"\0") else None
        file.seek(at)
        header = file.read(_HEADER_BYTES)
        length = int.from_bytes(header[:4], "big")
        smallest = _HEADER_BYTES
        if length == 1:
            length, smallest = int.from_bytes(file.read(8), "big"), 2 * _HEADER_BYTES
        elif length == 0:
            length = size - at
        if not smallest <= length <= size - at:
            return None
        names.add(header[4:8])
        at += length
    return None
