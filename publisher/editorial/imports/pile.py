"""The rows of one import, sorted by what is known about them so far."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from publisher.editorial.imports import difference
from publisher.editorial.imports.candidate import Bad, Candidate
from publisher.editorial.imports.fault import Fault
from publisher.editorial.imports.report import RowReport, Status
from publisher.editorial.listing import Listed
from publisher.engine.job import public_id


class Pile:
    """``fresh`` are rows that would be added, by ref, in the order of the file."""

    def __init__(self) -> None:
        self.fresh: dict[str, Candidate] = {}
        self._first: dict[str, Candidate | Bad] = {}
        self._twins: list[tuple[Candidate, Candidate]] = []
        self._ended: dict[int, RowReport] = {}

    @property
    def bad(self) -> int:
        """How many rows cannot be imported."""
        return sum(report.status == "bad" for report in self._ended.values())

    def add(self, row: Candidate | Bad) -> None:
        """Take one more row of the file; an earlier one with its ref has to say the same."""
        earlier = self._first.get(row.ref)
        if earlier is None:
            if row.ref:
                self._first[row.ref] = row
            if isinstance(row, Bad):
                self._reject(row, row.faults)
            else:
                self.fresh[row.ref] = row
        elif isinstance(row, Bad):
            self._reject(row, (_shared(earlier), *row.faults))
        elif isinstance(earlier, Bad):
            self._reject(row, (_shared(earlier),))
        elif faults := difference.from_earlier(row, earlier):
            self._reject(row, faults)
        else:
            self._twins.append((row, earlier))

    def compare(self, stored: Mapping[str, Listed]) -> None:
        """Take fresh rows whose ref is stored out: they add nothing, or cannot be imported."""
        for ref, post in stored.items():
            row = self.fresh.pop(ref)
            if faults := difference.from_stored(row, post):
                self._reject(row, faults)
            else:
                self._ended[row.line] = RowReport(
                    row.line, ref, "unchanged", note=_standing(post), job_id=post.job_id
                )

    def stored(self, jobs: Mapping[str, int | None]) -> None:
        """Note that these refs are stored, each with its job, or None for a draft."""
        for ref, job_id in jobs.items():
            row = self.fresh.pop(ref)
            note = "Added." if job_id is not None else "Added as a draft: not approved."
            self._ended[row.line] = RowReport(
                row.line, ref, "added", note=note, job_id=job_id, notes=row.notes
            )

    def reports(self, of_fresh: Status) -> Iterator[RowReport]:
        """Say what became of every row; ``of_fresh``: of those that were not stored."""
        for ref, row in self.fresh.items():
            note = "Would be added." if of_fresh == "would_add" else "Good; not stored."
            yield RowReport(row.line, ref, of_fresh, note=note, notes=row.notes)
        yield from self._ended.values()
        for row, earlier in self._twins:
            first = self._ended.get(earlier.line)
            if first is not None and first.status == "bad":
                yield RowReport(row.line, row.ref, "bad", faults=first.faults)
            else:
                note = f"Says the same as line {earlier.line}; adds nothing."
                job_id = first.job_id if first is not None else None
                yield RowReport(row.line, row.ref, "unchanged", note=note, job_id=job_id)

    def _reject(self, row: Candidate | Bad, faults: tuple[Fault, ...]) -> None:
        self._ended[row.line] = RowReport(row.line, row.ref, "bad", faults=faults)


def _shared(earlier: Candidate | Bad) -> Fault:
    what = f"Line {earlier.line} has this ref too."
    return Fault("ref", what, "Give each post a ref of its own.", "ref-twice")


def _standing(post: Listed) -> str:
    """What became of a post that was imported before."""
    if post.approved_at is None:
        return f"Imported before, as a draft. To approve it: publisher posts approve {post.ref}"
    if post.job_id is None:
        return f"Imported before; post {post.id} has no job."
    return f"Imported before; job {public_id(post.job_id)} is {post.placed[0].state}."
