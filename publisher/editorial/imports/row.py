"""One row as it was read, before anything is known about channels or times."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from publisher.editorial.imports.fault import Fault

ROWS: Final = 50_000
CELL_BYTES: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Row:
    """The cells of one row; those not given are empty. ``line`` counts from 1.

    ``faults`` is what reading found. A row that ``is_whole`` was divided into its cells; of any
    other nothing but its ``ref`` may be known.
    """

    line: int
    cells: Mapping[str, str] = field(default_factory=dict, repr=False)
    media: tuple[str, ...] = ()
    alt: tuple[str, ...] = ()
    faults: tuple[Fault, ...] = ()
    is_whole: bool = True

    def __getitem__(self, column: str) -> str:
        """The text in ``column``, byte for byte."""
        return self.cells.get(column, "")

    @property
    def ref(self) -> str:
        """The author's own name for the post."""
        return self["ref"].strip()


def unusable(column: str, text: str) -> Iterator[Fault]:
    """What no cell may hold: too much, the character NUL, half a surrogate pair."""
    if "\0" in text:
        what = f"Holds the character NUL at position {text.index(chr(0)) + 1:,}."
        yield Fault(column, what, "Take it out.", "character-not-allowed")
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        what = (
            f"Holds half of a surrogate pair at position {error.start + 1:,}, "
            "which is no character."
        )
        yield Fault(column, what, "Write the whole character.", "character-not-allowed")
        return
    if size > CELL_BYTES:
        what = f"Holds {size:,} bytes; a cell may hold {CELL_BYTES:,}."
        yield Fault(column, what, "Shorten it.", "cell-too-large")
