"""What was found out: a line per mutant and statement, and the survivors that were argued."""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.mutation.catalogue import ROOT, Mutant

LEDGER = Path(__file__).parent / "ledger.jsonl"
ARGUED = Path(__file__).parent / "ARGUED.toml"
BACKLOG = Path(__file__).parent / "BACKLOG.txt"
NOTICED = frozenset({"killed", "timeout", "invalid"})
USUAL_SECONDS = 4.0
"""What a mutant takes where nothing is known yet."""


@dataclass(frozen=True, slots=True)
class Line:
    """One result. ``by``: the test that noticed first."""

    mutant: str
    digest: str
    result: str
    by: str | None
    seconds: float

    @property
    def key(self) -> str:
        """See ``Mutant.key``."""
        return f"{self.mutant} {self.digest}"


def read(path: Path = LEDGER) -> dict[str, Line]:
    """The newest line of each mutant, by its key."""
    if not path.exists():
        return {}
    lines = (Line(**json.loads(each)) for each in path.read_text().splitlines() if each.strip())
    return {line.key: line for line in lines}


def add(line: Line, path: Path = LEDGER) -> None:
    """Write a result down at once."""
    with path.open("a") as book:
        book.write(_written(line))


def tidy(mutants: Iterable[Mutant], path: Path = LEDGER) -> None:
    """Keep what is about the source as it is, in its order."""
    lines = read(path)
    kept = [lines[mutant.key] for mutant in mutants if mutant.key in lines]
    new = path.with_suffix(".new")
    new.write_text("".join(_written(line) for line in kept))
    new.replace(path)


def _written(line: Line) -> str:
    told = {"mutant": line.mutant, "digest": line.digest, "result": line.result, "by": line.by}
    return json.dumps(told | {"seconds": line.seconds}, ensure_ascii=False) + "\n"


def argued(path: Path = ARGUED) -> dict[str, str]:
    """Why a survivor is none, by mutant."""
    if not path.exists():
        return {}
    entries = tomllib.loads(path.read_text()).get("argued", [])
    return {mutant: entry["why"] for entry in entries for mutant in entry["mutants"]}


def backlog(path: Path = BACKLOG) -> frozenset[str]:
    """Mutants whose turn has not come since the list was begun; it may only become shorter."""
    return frozenset(path.read_text().splitlines()) if path.exists() else frozenset()


def shorten(missing: Iterable[Mutant], path: Path = BACKLOG) -> None:
    """Take out of the backlog what has been tried, or is gone."""
    kept = backlog(path) & {mutant.key for mutant in missing}
    path.write_text("".join(f"{key}\n" for key in sorted(kept)))


@dataclass(frozen=True, slots=True)
class Report:
    """How the source stands. ``missing``: never tried as it is; ``survivors``: nobody noticed.

    ``waiting``: of the missing ones, those of the backlog. ``settled``: survivors that were
    argued. ``idle``: arguments about what is no survivor.
    """

    counts: Mapping[str, int]
    missing: tuple[Mutant, ...]
    waiting: tuple[Mutant, ...]
    survivors: tuple[Mutant, ...]
    settled: tuple[Mutant, ...]
    idle: tuple[str, ...]
    seconds: float

    @property
    def minutes(self) -> int:
        """About how long trying what is missing takes."""
        return max(round(self.seconds * len(self.missing) / 60), 1) if self.missing else 0


def report(
    mutants: Sequence[Mutant],
    lines: Mapping[str, Line],
    arguments: Mapping[str, str],
    waiting: frozenset[str] = frozenset(),
) -> Report:
    """Hold what was found out against every mutant of the source."""
    known = [(mutant, lines[mutant.key]) for mutant in mutants if mutant.key in lines]
    alive = [mutant for mutant, line in known if line.result not in NOTICED]
    took = [line.seconds for _, line in known]
    missing = [mutant for mutant in mutants if mutant.key not in lines]
    return Report(
        counts=Counter(line.result for _, line in known),
        missing=tuple(missing),
        waiting=tuple(mutant for mutant in missing if mutant.key in waiting),
        survivors=tuple(mutant for mutant in alive if mutant.id not in arguments),
        settled=tuple(mutant for mutant in alive if mutant.id in arguments),
        idle=tuple(sorted(set(arguments) - {mutant.id for mutant in alive})),
        seconds=sum(took) / len(took) if took else USUAL_SECONDS,
    )


def vanished(lines: Iterable[Line], root: Path = ROOT) -> list[str]:
    """Tests that noticed something and are no longer there."""
    texts: dict[str, str] = {}
    gone = set()
    for line in lines:
        if line.by is None or "::" not in line.by:
            continue
        path, *names = line.by.split("::")
        name = names[-1].split("[")[0]
        if path not in texts:
            # A class of tests may be inherited from a file beside this one.
            beside = (root / path).parent.glob("*.py") if (root / path).exists() else ()
            texts[path] = "".join(each.read_text() for each in beside)
        if f"def {name}(" not in texts[path]:
            gone.add(f"{path}::{name}")
    return sorted(gone)
