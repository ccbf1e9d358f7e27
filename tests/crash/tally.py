"""Adds up what schedules came to."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from tests.crash.catalogue import BEHAVIOURS, HITS, HOLD_CONNECTIONS, POINTS, Hit
from tests.crash.run import Result

_RULES = {
    "duplicate": "duplicates",
    "lost": "lost",
    "not quiet": "lost",
    "unreported": "unreported",
    "false success": "false success",
}
_EVERY_HIT = frozenset(HITS)


@dataclass(slots=True)
class Tally:
    """Everything of a run, or of a part of it."""

    schedules: int = 0
    faults: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    rules: Counter[str] = field(default_factory=Counter)
    """Broken rules, in the words of the table."""
    lied: int = 0
    hits: Counter[Hit] = field(default_factory=Counter)
    behaviours: Counter[str] = field(default_factory=Counter)
    edits: Counter[str] = field(default_factory=Counter)
    failed: list[Result] = field(default_factory=list)

    def add(self, result: Result) -> None:
        """Count one schedule."""
        self.schedules += 1
        self.faults += len(result.fired)
        self.counts.update(result.verdict.counts)
        self.lied += len(result.verdict.lied)
        self.hits.update(hit for hit in result.fired if hit in _EVERY_HIT)
        self.behaviours.update(result.behaviours)
        self.edits.update(result.edits)
        for broken in result.broken:
            self.rules[_RULES.get(broken.partition(":")[0], "other")] += 1
        if result.broken:
            self.failed.append(result)

    @property
    def unreached_points(self) -> list[tuple[str, str, str]]:
        """Places where nothing struck."""
        return sorted(POINTS - {hit.point for hit in self.hits})

    @property
    def unreached_behaviours(self) -> list[str]:
        """Ways of the platform that were never met."""
        wanted = [*map(str, BEHAVIOURS), HOLD_CONNECTIONS]
        return [name for name in wanted if not self.behaviours[name]]
