"""Reads the width and height of a picture from its first bytes.

Clients keep a place of that shape free while a picture loads. It is a hint: where the head says
nothing plain, there is none.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

HEAD_BYTES = 262_144
"""Enough for the metadata that cameras put before a JPEG's size."""

_MARK = 0xFF
_APP1 = 0xE1
_JPEG_SIZES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_BARE_MARKERS = frozenset({0x01, *range(0xD0, 0xD9)})
_ORIENTATION = 0x0112
_TURNED = frozenset(range(5, 9))


@dataclass(frozen=True, slots=True)
class Shape:
    """Pixels."""

    width: int
    height: int


def shape_of(head: bytes) -> Shape | None:
    """The shape of a PNG, GIF, WebP or JPEG whose first bytes are ``head``; None where unsure."""
    try:
        found = _read(head)
    except (struct.error, IndexError):
        return None
    return found if found is not None and found.width > 0 and found.height > 0 else None


def _read(head: bytes) -> Shape | None:
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return Shape(*struct.unpack_from(">II", head, 16))
    if head.startswith((b"GIF87a", b"GIF89a")):
        return Shape(*struct.unpack_from("<HH", head, 6))
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return _webp(head)
    if head.startswith(b"\xff\xd8"):
        return _jpeg(head)
    return None


def _webp(head: bytes) -> Shape | None:
    """https://developers.google.com/speed/webp/docs/riff_container."""
    match head[12:16]:
        case b"VP8X":
            width = int.from_bytes(head[24:27], "little") + 1
            return Shape(width, int.from_bytes(head[27:30], "little") + 1)
        case b"VP8L":
            bits = struct.unpack_from("<I", head, 21)[0]
            return Shape((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1)
        case b"VP8 ":
            width, height = struct.unpack_from("<HH", head, 26)
            return Shape(width & 0x3FFF, height & 0x3FFF)
        case _:
            return None


def _jpeg(head: bytes) -> Shape | None:
    """Walk the segments (ITU-T T.81, annex B) to the one with the size."""
    at, is_turned = 2, False
    while head[at] == _MARK:
        marker = head[at + 1]
        if marker == _MARK:
            at += 1
            continue
        if marker in _BARE_MARKERS:
            at += 2
            continue
        length = struct.unpack_from(">H", head, at + 2)[0]
        if marker in _JPEG_SIZES:
            height, width = struct.unpack_from(">HH", head, at + 5)
            return Shape(height, width) if is_turned else Shape(width, height)
        if marker == _APP1 and head[at + 4 : at + 10] == b"Exif\0\0":
            is_turned = _orientation(head[at + 10 : at + 2 + length]) in _TURNED
        at += 2 + length
    return None


def _orientation(tiff: bytes) -> int:
    """The EXIF orientation: from 5 on the picture is shown turned by a quarter."""
    order = {b"II": "<", b"MM": ">"}.get(tiff[:2])
    if order is None:
        return 1
    try:
        at = struct.unpack_from(f"{order}I", tiff, 4)[0]
        for entry in range(struct.unpack_from(f"{order}H", tiff, at)[0]):
            tag, _, _, value = struct.unpack_from(f"{order}HHIH", tiff, at + 2 + 12 * entry)
            if tag == _ORIENTATION:
                return int(value)
    except struct.error:
        return 1
    return 1
