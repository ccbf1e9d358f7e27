"""JSON Lines, one object on each line, as https://jsonlines.org/ has them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from publisher.editorial.imports import columns
from publisher.editorial.imports.fault import Fault
from publisher.editorial.imports.row import Row, unusable
from publisher.editorial.spelling import did_you_mean, quoted

_NUMBERS_TOO: Final = frozenset({"ref", "channel"})


class _Twice(ValueError):
    """A key that stands twice in one object."""


def rows(text: str) -> Iterator[Row]:
    """Every object of the text; a line that is none is a row with a fault.

    Values are strings; ``media`` and ``alt`` may also be lists of them, ``ref`` and ``channel``
    whole numbers, and null is empty.
    """
    # Only \n ends a line: JSON strings may hold other characters that splitlines() takes for ends.
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield _row(number, line)


def _row(number: int, line: str) -> Row:
    try:
        given = json.loads(line, object_pairs_hook=_object)
    except json.JSONDecodeError as error:
        what = f"Is no JSON: {error.msg} at character {error.colno:,}."
        return _unreadable(number, what)
    except _Twice as twice:
        return _unreadable(number, f"Names {quoted(str(twice))} twice.")
    except (ValueError, RecursionError):
        return _unreadable(number, "Is no JSON that can be read.")
    if not isinstance(given, dict):
        return _unreadable(number, "Is no object.")
    return _from_object(number, given)


def _unreadable(number: int, what: str) -> Row:
    fix = 'Write one object on each line: {"ref": "…", "channel": "…", …}.'
    return Row(number, faults=(Fault("", what, fix, "json-broken"),), is_whole=False)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for key, value in pairs:
        if key in given:
            raise _Twice(key)
        given[key] = value
    return given


def _from_object(number: int, given: dict[str, Any]) -> Row:
    cells: dict[str, str] = {}
    several: dict[str, tuple[str, ...]] = {}
    faults: list[Fault] = []
    for key, value in given.items():
        if key not in columns.COLUMNS:
            what = f"There is no column {quoted(key)}."
            fix = did_you_mean(key, columns.COLUMNS) or f"There are {', '.join(columns.COLUMNS)}."
            faults.append(Fault(key, what, fix, "columns"))
        elif key in columns.SEVERAL and _is_list_of_text(value):
            several[key] = tuple(value)
            faults.extend(fault for part in value for fault in unusable(key, part))
        elif (text := _text(key, value)) is None:
            faults.append(Fault(key, "Is no text.", 'Write it in quotes (").', "json-type"))
        else:
            faults.extend(unusable(key, text))
            cells[key] = text
            if key in columns.SEVERAL:
                several[key] = columns.split(text)
    return Row(number, cells, several.get("media", ()), several.get("alt", ()), tuple(faults))


def _is_list_of_text(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(part, str) for part in value)


def _text(key: str, value: object) -> str | None:
    """The text of one value, or None where it is another thing."""
    if value is None:
        return ""
    if key in _NUMBERS_TOO and isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value if isinstance(value, str) else None
