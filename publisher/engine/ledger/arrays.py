"""Array parameters of the set statements, spelled as PostgreSQL reads them.

The driver's own dumper asks every element of every array how it wants to be written; with fifteen
arrays a set that was a fifth of the coordinator's time. The casts in the statements say the type.
"""

from __future__ import annotations

from collections.abc import Iterable

from publisher.engine.job import Token


def numbers(values: Iterable[float]) -> str:
    """``bigint[]``, ``integer[]`` or ``float8[]``."""
    return "{" + ",".join(map(str, values)) + "}"


def tokens(values: Iterable[Token]) -> str:
    """``uuid[]``."""
    return "{" + ",".join([value.hex for value in values]) + "}"


def texts(values: Iterable[str | None]) -> str:
    """``text[]``; the values hold no NUL."""
    return "{" + ",".join(["NULL" if value is None else _quoted(value) for value in values]) + "}"


def _quoted(value: str) -> str:
    if "\\" in value or '"' in value:
        value = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{value}"'
