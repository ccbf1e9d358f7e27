"""The pictures and videos of a row: files beside the import file, or web addresses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from publisher.editorial.imports.fault import Fault
from publisher.editorial.media import (
    KNOWN,
    MediaFile,
    MediaRefused,
    inspect,
    kind_of,
    type_of_name,
)
from publisher.editorial.spelling import quoted
from publisher.engine.content import Media
from publisher.limits import is_address

_WEB: Final = ("http://", "https://")


@dataclass(frozen=True, slots=True)
class Attached:
    """What a row attaches: the parts of its content, and the files whose bytes are to be kept."""

    media: tuple[Media, ...] = ()
    files: tuple[MediaFile, ...] = ()
    faults: tuple[Fault, ...] = ()


class Attachments:
    """Looks at the files rows name, each once however many rows name it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._seen: dict[Path, MediaFile | MediaRefused] = {}

    def read(self, names: Sequence[str], alts: Sequence[str]) -> Attached:
        """Read the cells ``media`` and ``alt`` of one row, everything wrong with them at once."""
        media: list[Media] = []
        files: list[MediaFile] = []
        faults: list[Fault] = []
        if alts and len(alts) != len(names):
            faults.append(_alt_fault(len(alts), len(names)))
            alts = ()
        for number, name in enumerate(names, start=1):
            alt = alts[number - 1] if alts else ""
            found = self._find(name.strip(), number)
            if isinstance(found, Fault):
                faults.append(found)
            elif isinstance(found, MediaFile):
                files.append(found)
                # Its name is left out: what a file is called here is nothing to a platform, and
                # equal bytes are equal content.
                media.append(
                    Media(found.kind, found.type, alt, sha256=found.sha256, size=found.size)
                )
            else:
                media.append(Media(kind_of(found), found, alt, url=name.strip()))
        return Attached(tuple(media), tuple(files), tuple(faults))

    def _find(self, name: str, number: int) -> MediaFile | str | Fault:
        """The file, or the type of what an address leads to, or what is wrong."""
        if not name:
            what = f"Item {number} is empty."
            return Fault("media", what, "Take out the | that is too many.", "media-empty")
        if name.lower().startswith(_WEB):
            return _type_at(name)
        path = self._folder / name
        if path not in self._seen:
            try:
                self._seen[path] = inspect(path)
            except MediaRefused as refused:
                self._seen[path] = refused
        seen = self._seen[path]
        if isinstance(seen, MediaRefused):
            return Fault("media", seen.what, seen.fix, seen.code)
        return seen


def _type_at(url: str) -> str | Fault:
    if not is_address(url):
        what = f"{quoted(url)} is no web address."
        return Fault("media", what, "It starts with https:// and names a site.", "media-url")
    media_type = type_of_name(urlsplit(url).path)
    if media_type is None:
        what = f"The address {quoted(url)} does not end like a picture or video."
        return Fault("media", what, f"Give one that ends in the type: {KNOWN}.", "media-url-type")
    return media_type


def _alt_fault(alts: int, names: int) -> Fault:
    if not names:
        what, fix = "There is an alt text, but no media.", "Fill in media, or take alt out."
    else:
        what = f"There are {alts} alt texts for {names} media."
        fix = r"Give one for each, | between them, empty where there is none; \| is a bar itself."
    return Fault("alt", what, fix, "alt-count")
