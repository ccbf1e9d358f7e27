"""What a file is, by its first bytes and never by its name."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal

HEAD_BYTES: Final = 32
IMAGE_BYTES: Final = 50_000_000
VIDEO_BYTES: Final = 1_000_000_000
KNOWN: Final = "JPEG, PNG, GIF, WebP, MP4 or MOV"

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


def kind_of(media_type: str) -> Kind:
    """Whether a media type is a picture or a video."""
    return "video" if media_type.startswith("video/") else "image"


def most_bytes(media_type: str) -> int:
    """How large a file of this type may be."""
    return VIDEO_BYTES if kind_of(media_type) == "video" else IMAGE_BYTES


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


def otherwise(head: bytes) -> str:
    """Name what is met most among files that are no picture or video we can send."""
    brand = head[8:12] if head[4:8] == b"ftyp" else b""
    if brand in _STILL_BRANDS:
        return "an AVIF picture" if brand.startswith(b"avi") else "an HEIC picture"
    if brand in _AUDIO_BRANDS:
        return "sound without a picture"
    for start, name in _OTHERS:
        if head.startswith(start):
            return name
    opening = head.removeprefix(b"\xef\xbb\xbf").lstrip()[:5].lower()
    if opening.startswith((b"<svg", b"<?xml")):
        return "an SVG or XML document"
    if opening in (b"<!doc", b"<html"):
        return "a web page"
    return "neither a picture nor a video"


_OTHERS: Final = (
    (b"%PDF", "a PDF document"),
    (b"version https://git-lfs", "a Git LFS pointer, not the file itself"),
    (b"PK\x03\x04", "a ZIP archive"),
    (b"PK\x05\x06", "a ZIP archive"),
    (b"BM", "a BMP picture"),
    (b"II*\x00", "a TIFF picture"),
    (b"MM\x00*", "a TIFF picture"),
)
