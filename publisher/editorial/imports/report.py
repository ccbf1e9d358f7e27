"""What an import did or would do, row by row, and how the command ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal, Self

from publisher.editorial.imports.fault import Fault

Status = Literal["added", "unchanged", "bad", "would_add", "skipped"]

DONE: Final = 0
NOT_AS_WISHED: Final = 1
NOTHING_STORED: Final = 2


@dataclass(frozen=True, slots=True)
class RowReport:
    """What became of one row. ``line`` is where it begins, counted from 1.

    ``added``: stored, with its job unless it is a draft. ``unchanged``: it was there already, with
    the same content. ``bad``: see ``faults``. ``would_add``: in a dry run. ``skipped``: good, and
    not stored because another row is bad. ``notes``: worth knowing of a row that is not bad.
    """

    line: int
    ref: str
    status: Status
    faults: tuple[Fault, ...] = ()
    note: str = ""
    job_id: int | None = None
    notes: tuple[Fault, ...] = ()

    @property
    def column(self) -> str | None:
        """The column of the first fault; None when it is the row as a whole, or there is none."""
        return self.faults[0].column or None if self.faults else None

    @property
    def message(self) -> str:
        """What is wrong first of all, or what there is to say about a row that is not bad."""
        return self.faults[0].message if self.faults else self.note

    @property
    def fix(self) -> str:
        """What to do about it; empty where ``message`` says it."""
        return self.faults[0].fix if self.faults else ""


@dataclass(frozen=True, slots=True)
class Report:
    """What became of every row, in the order of the file."""

    rows: tuple[RowReport, ...]
    is_dry_run: bool
    skips_bad: bool
    added: int
    unchanged: int
    bad: int
    would_add: int
    skipped: int

    @classmethod
    def of(cls, rows: Iterable[RowReport], *, is_dry_run: bool, skips_bad: bool) -> Self:
        """Sort the rows and count them."""
        ordered = tuple(sorted(rows, key=lambda row: row.line))
        counts = Counter(row.status for row in ordered)
        return cls(
            ordered,
            is_dry_run,
            skips_bad,
            added=counts["added"],
            unchanged=counts["unchanged"],
            bad=counts["bad"],
            would_add=counts["would_add"],
            skipped=counts["skipped"],
        )

    @property
    def exit_code(self) -> int:
        """0: no row was bad. 1: some were, and the others are stored. 2: nothing is stored."""
        if not self.bad:
            return DONE
        return NOT_AS_WISHED if self.skips_bad else NOTHING_STORED
