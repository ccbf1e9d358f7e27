"""CSV: separators, quotes and line ends as Excel, LibreOffice and databases write them.

RFC 4180, read strictly where quotes are concerned: a quote that is never closed would otherwise
swallow the rows after it, and one post would hold many.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from typing import Final

from publisher.editorial.imports import columns
from publisher.editorial.imports.fault import Fault, FileRefused
from publisher.editorial.imports.file import FILE_BYTES
from publisher.editorial.imports.row import Row, unusable

_SEPARATORS: Final = (",", ";", "\t")
# Excel writes and reads it; the line is no row.
_SEP_LINE: Final = re.compile(r'"?sep=(.)"?(?:\r\n|\r|\n)', re.IGNORECASE)


def rows(text: str) -> Iterator[Row]:
    """Every row of a table, a first line naming its columns. Raises ``FileRefused``.

    A row without anything in it is left out; cells missing at its end are empty, as Excel leaves
    them out.
    """
    skipped = 0
    separator = None
    if said := _SEP_LINE.match(text):
        separator, text, skipped = said[1], text[said.end() :], 1
    table = _Table(text, separator or _separator(text), skipped)
    _, header = next(table, (0, []))
    if not any(header):
        what, fix = "The file is empty.", f"Its first line names {','.join(columns.COLUMNS)}."
        raise FileRefused(what, fix, code="file-empty")
    names = columns.named(header)
    for line, cells in table:
        if any(cells):
            yield _row(line, names, cells)


class _Table:
    """Records with the line each begins on."""

    def __init__(self, text: str, separator: str, skipped: int) -> None:
        # Only the module as a whole can be told; the file's own limit is far below any harm.
        csv.field_size_limit(FILE_BYTES)
        # newline="": what stands between quotes stays as it is.
        lines = io.StringIO(text, newline="")
        self._reader = csv.reader(lines, delimiter=separator, strict=True)
        self._skipped = skipped

    def __iter__(self) -> Iterator[tuple[int, list[str]]]:
        return self

    def __next__(self) -> tuple[int, list[str]]:
        line = self._reader.line_num + self._skipped + 1
        try:
            return line, next(self._reader)
        except csv.Error as error:
            what = f"Line {line:,} is no CSV: {_in_words(error)}."
            fix = 'Put a text in quotes ("), and write each quote in it twice ("").'
            raise FileRefused(what, fix, code="csv-broken") from None


def _in_words(error: csv.Error) -> str:
    said = str(error)
    if "unexpected end of data" in said:
        return "a quote is opened and never closed"
    if "expected after" in said:
        return "a quote is closed in the middle of a cell"
    return said


def _separator(text: str) -> str:
    """The separator with which the first line names the most columns; a comma when in doubt."""

    def known(separator: str) -> int:
        try:
            _, header = next(_Table(text, separator, 0), (0, []))
        except FileRefused:
            return 0
        return sum(columns.known(name) in columns.COLUMNS for name in header)

    return max(_SEPARATORS, key=known)


def _row(line: int, names: tuple[str, ...], cells: list[str]) -> Row:
    faults: list[Fault] = []
    if len(cells) > len(names):
        what = f"Has {len(cells)} cells; there are {len(names)} columns."
        fix = 'Put a text that holds the separator in quotes (").'
        fault = Fault("text", what, fix, "row-too-long")
        # Whatever stands after the separator would be judged in the wrong column.
        return Row(line, _ref_alone(names, cells), faults=(fault,), is_whole=False)
    by_name = dict(zip(names, cells, strict=False))
    for name, cell in by_name.items():
        faults.extend(unusable(name, cell))
    several = {name: columns.split(by_name.get(name, "")) for name in columns.SEVERAL}
    return Row(line, by_name, several["media"], several["alt"], tuple(faults))


def _ref_alone(names: tuple[str, ...], cells: list[str]) -> dict[str, str]:
    """The ref, to name the row by, where it stands first and so cannot be displaced."""
    return {"ref": cells[0]} if names[0] == "ref" else {}
