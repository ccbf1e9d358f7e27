"""The import file as text: its size, its encoding, and whether it is CSV or JSON Lines."""

from __future__ import annotations

import codecs
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from publisher.editorial.imports.fault import FileRefused

FILE_BYTES: Final = 64 << 20
_JSON_SUFFIXES: Final = frozenset({".jsonl", ".ndjson"})
_AS_UTF8: Final = "Save it as UTF-8; in Excel that is CSV UTF-8."


@dataclass(frozen=True, slots=True)
class Source:
    """What stands in the file. ``folder`` is where its media paths start."""

    text: str = field(repr=False)
    format: Literal["csv", "jsonl"]
    folder: Path


def read(path: Path) -> Source:
    """Read a file of at most 64 MiB in UTF-8, or UTF-16 with a byte order mark.

    Raises ``FileRefused``.
    """
    text = _decoded(_bytes(path), path.name)
    start = text.lstrip()[:1]
    if start == "[" and path.suffix.lower() != ".csv":
        what, fix = f"{path.name} is a JSON array.", "Write one object on each line, without [ ]."
        raise FileRefused(what, fix, code="file-json-array")
    is_json = path.suffix.lower() in _JSON_SUFFIXES or start == "{"
    return Source(text, "jsonl" if is_json else "csv", path.parent)


def _bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(FILE_BYTES + 1)
    except FileNotFoundError:
        what, fix = f"There is no file {path}.", "Check the path."
        raise FileRefused(what, fix, code="file-not-found") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        what, fix = f"{path} cannot be read: {reason}.", "Name a file you may read."
        raise FileRefused(what, fix, code="file-unreadable") from None
    if len(data) > FILE_BYTES:
        what, fix = f"{path.name} is larger than 64 MiB.", "Split it into several files."
        raise FileRefused(what, fix, code="file-too-large")
    return data


def _decoded(data: bytes, name: str) -> str:
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding, said = "utf-16", "UTF-16, as its byte order mark says"
    elif data.startswith(b"PK\x03\x04"):
        what = f"{name} is a spreadsheet or an archive, not a text."
        raise FileRefused(what, "Save it as CSV UTF-8.", code="file-encoding")
    elif b"\0" in data[:4]:
        what = f"{name} looks like UTF-16 without a byte order mark, or is no text."
        raise FileRefused(what, _AS_UTF8, code="file-encoding")
    else:
        encoding, said = "utf-8-sig", "UTF-8"
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        # Counted from 0 in the file itself, as a hex editor does. Python leaves the mark of UTF-8
        # out of its count, that of UTF-16 it does not.
        at = error.start + len(codecs.BOM_UTF8) * data.startswith(codecs.BOM_UTF8)
        line = data.count(b"\n", 0, at) + 1
        what = f"{name} is not {said}: byte {at:,} (line {line:,}) is 0x{data[at]:02X}."
        if encoding == "utf-8-sig":
            what += " It looks like Latin-1 or a Windows code page."
        raise FileRefused(what, _AS_UTF8, code="file-encoding") from None
