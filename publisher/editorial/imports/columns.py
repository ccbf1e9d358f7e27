"""The columns of an import, and cells that hold several values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from publisher.editorial.imports.fault import FileRefused
from publisher.editorial.spelling import did_you_mean, quoted

REQUIRED: Final = ("ref", "channel", "text", "publish_at")
OPTIONAL: Final = ("zone", "link", "media", "alt")
COLUMNS: Final = REQUIRED + OPTIONAL
SEVERAL: Final = ("media", "alt")
_BAR: Final = re.compile(r"(?<!\\)\|")


def named(header: Sequence[str]) -> tuple[str, ...]:
    """The columns a header names, whatever their case; ``FileRefused`` says all that is wrong."""
    names = tuple(known(name) for name in header)
    wrong = [
        *(_unknown(name) for name in names if name not in COLUMNS),
        *(f'Column "{name}" stands there twice.' for name in _repeated(names)),
        *(f'Column "{name}" is missing.' for name in REQUIRED if name not in names),
    ]
    if wrong:
        fix = f"The first line names the columns: {','.join(COLUMNS)}."
        raise FileRefused(" ".join(wrong), fix, code="columns")
    return names


def known(name: str) -> str:
    """A column's name without what surrounds it."""
    return name.strip().lower()


def split(cell: str) -> tuple[str, ...]:
    r"""The values of a cell that holds several, ``|`` between them; ``\|`` is a bar itself."""
    if not cell:
        return ()
    return tuple(part.replace(r"\|", "|") for part in _BAR.split(cell))


def _unknown(name: str) -> str:
    if not name:
        return "A column has no name."
    return f"There is no column {quoted(name)}. {did_you_mean(name, COLUMNS)}".rstrip()


def _repeated(names: Iterable[str]) -> list[str]:
    seen: set[str] = set()
    repeated: list[str] = []
    for name in names:
        if name in seen and name and name not in repeated:
            repeated.append(name)
        seen.add(name)
    return repeated
