"""Array parameters of the set statements, spelled as PostgreSQL reads them.

The driver's own dumper asks every element of every array how it wants to be written; with fifteen
arrays a set that was a fifth of the coordinator's time. The casts in the statements say the type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from publisher.engine.job import Token

T = TypeVar("T")


def numbers(values: Sequence[float]) -> str:
    """``bigint[]``, ``integer[]`` or ``float8[]``."""
    return _array(values, str)


def tokens(values: Iterable[Token]) -> str:
    """``uuid[]``."""
    return "{" + ",".join([value.hex for value in values]) + "}"


def texts(values: Sequence[str | None]) -> str:
    """``text[]``; the values hold no NUL."""
    return _array(values, _text)


def _array(values: Sequence[T], spelled: Callable[[T], str]) -> str:
    # Most columns of a set say the same in each row, and are spelled once.
    if len(values) > 1 and values.count(values[0]) == len(values):
        return "{" + ",".join([spelled(values[0])] * len(values)) + "}"
    return "{" + ",".join(map(spelled, values)) + "}"


def _text(value: str | None) -> str:
    if value is None:
        return "NULL"
    if "\\" in value or '"' in value:
        value = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{value}"'
