"""Adds up what schedules came to."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from publisher.rehearsal.cast.settlers import ACTS, ALSO_SAID, MUST_SAY
from publisher.rehearsal.plan.catalogue import BEHAVIOURS, HITS, OTHER_WAYS, POINTS, Hit
from publisher.rehearsal.stage.result import Result
from publisher.rehearsal.verdict import checklist
from publisher.rehearsal.verdict.doubts import Settled

_RULES = {
    "duplicate": "duplicates",
    "lost": "lost",
    "not quiet": "lost",
    "verdict": "other",
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
    verdicts: Counter[str] = field(default_factory=Counter)
    settled: Settled = field(default_factory=Settled)
    asked: list[str] = field(default_factory=list)
    failed: list[Result] = field(default_factory=list)
    races: int = 0
    moves: Counter[tuple[str, str]] = field(default_factory=Counter)
    cut_after_sending: int = 0

    def add(self, result: Result) -> None:
        """Count one schedule."""
        self.schedules += 1
        self.faults += len(result.fired)
        self.counts.update(result.verdict.counts)
        self.lied += len(result.verdict.lied)
        self.hits.update(hit for hit in result.fired if hit in _EVERY_HIT)
        self.behaviours.update(result.behaviours)
        self.edits.update(result.edits)
        self.verdicts.update(result.verdicts)
        self.settled.counts.update(result.verdict.doubts)
        self.races += result.races
        self.moves.update(result.moves)
        self.cut_after_sending += checklist.cut_after_sending(result.fired)
        for broken in result.broken:
            self.rules[_RULES.get(broken.partition(":")[0], "other")] += 1
        self.asked += [f"seed {result.seed}: {what}" for what in result.verdict.asked]
        if result.broken:
            self.failed.append(result)

    @property
    def unreached_points(self) -> list[tuple[str, str, str]]:
        """Places where nothing struck."""
        return sorted(POINTS - {hit.point for hit in self.hits})

    @property
    def unreached_acts(self) -> list[str]:
        """What no person managed to do about a doubt, or was never refused."""
        wanted = [f"{act}: {MUST_SAY.get(act, 'done')}" for act in ACTS]
        return [said for said in (*wanted, *ALSO_SAID) if not self.verdicts[said]]

    @property
    def unreached_behaviours(self) -> list[str]:
        """Ways of the platform that were never met."""
        wanted = [*map(str, BEHAVIOURS), *OTHER_WAYS]
        return [name for name in wanted if not self.behaviours[name]]
