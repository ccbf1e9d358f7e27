"""What one plan came to."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from publisher.rehearsal.restores.plan import Plan
from publisher.rehearsal.restores.verdict import Verdict


@dataclass
class Result:
    """What a plan came to."""

    plan: Plan
    verdict: Verdict = field(default_factory=Verdict)
    problems: list[str] = field(default_factory=list)
    did: Counter[str] = field(default_factory=Counter)
    """What the person at the end did."""
    moves: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Changes of state since the loss."""
    server: str = ""
    seconds: float = 0.0
    log: str = ""

    @property
    def broken(self) -> list[str]:
        """Every rule that was broken."""
        return [*self.verdict.broken, *self.problems]
