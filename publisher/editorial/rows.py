"""Many rows as the parameters of one statement."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, TypeVar

from sqlalchemy import ARRAY, TableValuedAlias, bindparam, column, func
from sqlalchemy.types import TypeEngine

_ROWS: Final = 1000
_CHARACTERS: Final = 8_000_000

T = TypeVar("T")


def batches(rows: Iterable[T], *, size: Callable[[T], int] | None = None) -> Iterator[list[T]]:
    """Runs of at most a thousand rows, or of what ``size``, in characters, lets fit a message."""
    batch: list[T] = []
    total = 0
    for row in rows:
        batch.append(row)
        total += size(row) if size is not None else 0
        if len(batch) == _ROWS or total >= _CHARACTERS:
            yield batch
            batch, total = [], 0
    if batch:
        yield batch


def unnest(**columns: tuple[TypeEngine[Any], Sequence[Any]]) -> TableValuedAlias:
    """A table of these columns, each given as its type and its values, for ``INSERT … SELECT``."""
    arrays = [
        bindparam(f"all_{name}", list(values), type_=ARRAY(kind))
        for name, (kind, values) in columns.items()
    ]
    names = [column(name, kind) for name, (kind, _) in columns.items()]
    return func.unnest(*arrays).table_valued(*names).render_derived()
