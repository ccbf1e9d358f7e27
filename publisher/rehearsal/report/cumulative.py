"""The ledger of all runs ever: what zero failures is worth grows with it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).parents[3]
"""The checkout, where there is one."""


@dataclass(slots=True)
class Part:
    """A range of seeds that was run, first to last. ``faults``: how many struck."""

    first: int
    last: int
    commit: str
    at: str
    schedules: int = 0
    faults: int = 0
    approved: int = 0
    scenario: str = "random"
    outcomes: dict[str, int] = field(default_factory=dict)

    @property
    def failures(self) -> int:
        """How often a rule was broken."""
        return sum(self.outcomes.get(word, 0) for word in WORDS)


WORDS = ("duplicates", "lost", "unreported", "false success", "other")


def new_part(first: int, last: int, *, scenario: str = "random") -> Part:
    """A part that begins now, on the commit that is checked out."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return Part(first, last, commit(), now, scenario=scenario)


def read(file: Path) -> list[Part]:
    """Every part there is."""
    if not file.exists():
        return []
    lines: Iterable[dict[str, Any]] = map(json.loads, file.read_text().splitlines())
    return [Part(**line) for line in lines]


def add(part: Part, file: Path) -> None:
    """Write a part down; a run that is stopped has kept what it did."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as ledger:
        ledger.write(json.dumps(asdict(part), sort_keys=True) + "\n")


def next_seed(parts: list[Part], *, scenario: str = "random") -> int:
    """The first seed of a scenario that no part has had."""
    return max((part.last for part in parts if part.scenario == scenario), default=0) + 1


def commit() -> str:
    """The commit, with a ``+`` where files of the product differ from it; the release elsewhere."""
    if not (_ROOT / ".git").exists():
        return f"release {version('publisher')}"
    head = _git("rev-parse", "--short=12", "HEAD")
    changed = _git("status", "--porcelain", "--", "publisher", "migrations")
    return (head or "unknown") + ("+" if changed else "")


def _git(*words: str) -> str:
    said = subprocess.run(["git", *words], cwd=_ROOT, capture_output=True, text=True, check=False)
    return said.stdout.strip()
