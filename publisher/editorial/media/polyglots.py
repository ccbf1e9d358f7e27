"""Files that are a picture or video to us and something else to another program.

An archive is read from its end, a web page or a document is believed by its first kilobyte, and
neither minds what a picture puts around it. Encoding anew would lose such a passenger; who sends
one is refused all the same, and a video is not encoded anew.
"""

from __future__ import annotations

import os
import struct
from typing import BinaryIO, Final

from publisher.editorial.media.refusal import MediaRefused
from publisher.words import N_, _

_HEAD_BYTES: Final = 1_024
"""Where a reader of PDF looks for its mark, and a browser for what it should show."""
_TAIL_BYTES: Final = 65_536 + 22
"""The longest comment of a ZIP archive and the record before it."""
_ANYWHERE: Final = (
    (b"%pdf-", N_("a PDF document")),
    (b"<!doctype html", N_("a web page")),
    (b"<html", N_("a web page")),
    (b"<script", N_("a script")),
    (b"<?php", N_("a script")),
)
# Four letters turn up by chance in 64 KB of compressed bytes, once in eight thousand files.
_AT_THE_HEAD: Final = (*_ANYWHERE, (b"<svg", N_("an SVG document")))
_END_OF_ARCHIVE: Final = b"PK\x05\x06"
_ENTRY: Final = b"PK\x01\x02"
_END_BYTES: Final = 22


def refuse(file: BinaryIO, field: str) -> None:
    """Raise ``MediaRefused`` for a file that is something else besides."""
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    head = file.read(_HEAD_BYTES).lower()
    file.seek(max(0, size - _TAIL_BYTES))
    start, tail = file.tell(), file.read(_TAIL_BYTES)
    found = _document(head, _AT_THE_HEAD) or _document(tail.lower(), _ANYWHERE)
    if found is None and _is_archive(file, start, tail):
        found = N_("a ZIP archive")
    if found is not None:
        what = _("This file is {other} at the same time.").format(other=_(found))
        fix = _("Save the picture or video anew, and give that.")
        raise MediaRefused(what, fix, code="media-polyglot", field=field)


def _document(part: bytes, marks: tuple[tuple[bytes, str], ...]) -> str | None:
    return next((name for mark, name in marks if mark in part), None)


def _is_archive(file: BinaryIO, start: int, tail: bytes) -> bool:
    """Whether an end record points back at a directory (APPNOTE.TXT 6.3.10, section 4.3.16)."""
    at = len(tail)
    while (at := tail.rfind(_END_OF_ARCHIVE, 0, at)) >= 0:
        record = tail[at : at + _END_BYTES]
        if len(record) < _END_BYTES:
            continue
        size = struct.unpack_from("<I", record, 12)[0]
        if not size:
            return True
        if size <= start + at:
            file.seek(start + at - size)
            if file.read(4) == _ENTRY:
                return True
    return False
