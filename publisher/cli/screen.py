"""What is written where: answers on standard output, progress and errors on standard error.

Colour and cut-off columns are for terminals. What is piped has neither, so that an id or a link
can be taken from it whole.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from rich.cells import cell_len
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from publisher.words import _

_UNCUT: Final = 100_000
"""Columns of an output that is no terminal."""
_CONTROLS: Final = {
    **{code: chr(0x2400 + code) for code in range(0x20)},
    0x7F: "␡",
    **dict.fromkeys(range(0x80, 0xA0), "�"),
}


@dataclass(frozen=True, slots=True)
class Column:
    """On a narrow terminal a cell goes on in the next line, unless it is ``whole``, as ids are."""

    name: str
    whole: bool = False
    right: bool = False


def visible(text: str) -> str:
    """The text on one line, with control characters shown instead of obeyed."""
    return text.translate(_CONTROLS)


def excerpt(text: str, longest: int) -> str:
    """The beginning of ``text`` on one line, with an ellipsis where it goes on."""
    line = " ".join(text.split())
    return visible(line if len(line) <= longest else f"{line[: longest - 1].rstrip()}…")


def say(*lines: str) -> None:
    """Write lines on standard output as they are."""
    for line in lines:
        sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def note(*lines: str) -> None:
    """Write lines on standard error: what is said beside the answer."""
    sys.stdout.flush()
    for line in lines:
        sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def say_next(*commands: str) -> None:
    """End a command with the one that follows."""
    say(_("Next: {commands}").format(commands="   |   ".join(commands)))


def emit(objects: Iterable[object]) -> None:
    """Write one JSON object per line, as they come."""
    for item in objects:
        sys.stdout.write(json.dumps(item, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def show_table(columns: Sequence[Column], rows: Iterable[Sequence[str]]) -> None:
    """Write a table without lines; empty cells read ``-``."""
    say(*table_lines(columns, rows))


def table_lines(columns: Sequence[Column], rows: Iterable[Sequence[str]]) -> list[str]:
    """The lines of such a table."""
    console = _console()
    cells = [[visible(cell) if cell else "-" for cell in row] for row in rows]
    table = Table(box=None, pad_edge=False, header_style="bold", collapse_padding=True)
    for number, column in enumerate(columns):
        widest = max((cell_len(row[number]) for row in cells), default=0)
        table.add_column(
            column.name,
            no_wrap=column.whole,
            overflow="fold",
            justify="right" if column.right else "left",
            min_width=widest if column.whole else None,
        )
    for row in cells:
        table.add_row(*map(Text, row))
    with console.capture() as captured:
        console.print(table)
    return [line.rstrip() for line in captured.get().splitlines()]


def progress() -> Progress:
    """A bar on standard error, on a terminal only; it goes when it is done."""
    console = Console(stderr=True)
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


def _console() -> Console:
    terminal = sys.stdout.isatty()
    return Console(
        file=sys.stdout,
        width=None if terminal else _UNCUT,
        highlight=False,
        markup=False,
        emoji=False,
    )
