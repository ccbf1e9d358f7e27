"""Runs plans and the proof, adds up what they came to, and prints it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from publisher.rehearsal.plan import variants
from publisher.rehearsal.restores.crew import each
from publisher.rehearsal.restores.result import Result
from publisher.rehearsal.restores.variants import TRIES

LEDGER: Final = Path(__file__).parent.with_name("restores.jsonl")
PART: Final = 7
"""Plans in a part of the ledger: each way once."""
WORDS: Final = ("duplicates", "lost", "unreported", "false success")
_RULES: Final = {
    "duplicate": "duplicates", "lost": "lost", "unreported": "unreported",
    "false success": "false success",
}  # fmt: skip
Say = Callable[[str], object]


@dataclass(slots=True)
class Tally:
    """What plans came to."""

    plans: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    rules: Counter[str] = field(default_factory=Counter)
    ways: Counter[str] = field(default_factory=Counter)
    causes: Counter[str] = field(default_factory=Counter)
    did: Counter[str] = field(default_factory=Counter)
    moves: Counter[tuple[str, str]] = field(default_factory=Counter)
    failed: list[Result] = field(default_factory=list)

    def add(self, result: Result) -> None:
        """Count one plan."""
        self.plans += 1
        self.counts.update(result.verdict.counts)
        self.ways[result.plan.way] += 1
        self.causes.update(result.verdict.causes)
        self.did.update(result.did)
        self.moves.update(result.moves)
        for broken in result.broken:
            self.rules[_RULES.get(broken.partition(":")[0], "other")] += 1
        if result.broken:
            self.failed.append(result)


def prove(*, lanes: int, say: Say, names: Iterable[str] | None = None) -> dict[str, str | None]:
    """Run variants until they are caught; returns variant → what it was caught at, or None."""
    known = variants.load("restores")
    caught: dict[str, str | None] = dict.fromkeys(known if names is None else names)
    for seed in range(1, TRIES + 1):
        left = [name for name, found in caught.items() if found is None]
        for result in each([known[name].aim(name, seed) for name in left], lanes=lanes):
            name = result.plan.variant
            assert name is not None
            rule = known[name].rule
            found = next((b for b in result.broken if b.startswith(f"{rule}: ")), None)
            caught[name] = found
            if found is not None:
                say(f"  caught after {seed}  {name:44} {found[:100]}")
    return caught


def told(result: Result) -> str:
    """What broke, and how to run it again."""
    seed = result.plan.seed
    lines = [f"FAILED  plan {seed}: publisher rehearse replay {seed} --scenario restored"]
    lines += [f"  {broken}" for broken in result.broken]
    return "\n".join([*lines, f"  {result.plan}", f"  the person: {dict(result.did)}"])
