"""What a schedule came to."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from publisher.rehearsal.plan.catalogue import Hit
from publisher.rehearsal.stage.ground import Row
from publisher.rehearsal.stage.stories import Story
from publisher.rehearsal.verdict.verdict import Verdict


@dataclass
class Result:
    """What a schedule came to."""

    seed: int
    verdict: Verdict
    problems: list[str] = field(default_factory=list)
    fired: list[Hit] = field(default_factory=list)
    behaviours: Counter[str] = field(default_factory=Counter)
    edits: Counter[str] = field(default_factory=Counter)
    verdicts: Counter[str] = field(default_factory=Counter)
    """What people decided about doubts, with ``done`` or ``refused``."""
    seconds: float = 0.0
    log: str = ""
    variant: str | None = None
    scenario: str = "random"
    server: str = ""
    """What it ran on."""
    races: int = 0
    moves: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Changes of state that were seen: from which, to which."""
    stories: list[Story] = field(default_factory=list)
    """What page and journal say of each post that a rule was broken for."""
    journal: dict[str, list[Row]] = field(default_factory=dict)
    """Its rows, where they were asked for (``keeps_journal``)."""

    @property
    def broken(self) -> list[str]:
        """Every rule that was broken."""
        return [*self.verdict.broken, *self.problems]
