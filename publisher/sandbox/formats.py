"""What kind of picture or video some bytes are, by how they begin."""

from __future__ import annotations

_PICTURES = {
    b"\xff\xd8\xff": "image/jpeg",
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"GIF8": "image/gif",
    b"II*\x00": "image/tiff",
    b"MM\x00*": "image/tiff",
}


def photo(content: bytes) -> str | None:
    """Return the type of a picture, None for anything else."""
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "image/webp"
    if content[4:12] in (b"ftypheic", b"ftypmif1"):
        return "image/heic"
    return next((type_ for mark, type_ in _PICTURES.items() if content.startswith(mark)), None)


def video(content: bytes) -> str | None:
    """Return the type of a video, None for anything else."""
    is_other = content[8:12] in (b"heic", b"mif1")
    return "video/mp4" if content[4:8] == b"ftyp" and not is_other else None
