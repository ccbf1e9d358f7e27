"""What a rehearsal came to: the one value that every way of telling it is made from."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

WORDS: Final = ("duplicates", "lost", "unreported", "false success")
"""The four words of the promise, in the order in which they are told."""


class Outcome(StrEnum):
    """How it ended. ``exit_code`` of a report goes with it."""

    KEPT = "kept"
    BROKEN = "broken"
    """A promise was broken, a broken variant got through, or something was left behind."""
    TOO_LITTLE = "proves too little"
    """Some place, behaviour or change of state was never met."""


@dataclass(frozen=True, slots=True)
class Ran:
    """A scenario: so many schedules, from the first seed to the last, and what broke in it."""

    scenario: str
    first: int
    last: int
    schedules: int
    faults: int
    broken: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the checklist. ``of`` is 0 where the run had no case of it."""

    says: str
    count: int
    of: int

    @property
    def is_met(self) -> bool:
        """Whether it was tried, and held every time."""
        return 0 < self.of == self.count


@dataclass(frozen=True, slots=True)
class Reached:
    """How much of what there is was met. ``missing``: what was not."""

    what: str
    count: int
    of: int
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Failure:
    """A schedule in which a rule was broken.

    ``stories``: of each post it was broken for: its rule, where it is on the page, and what the
    journal says around it. ``replay``: the command that runs it again.
    """

    scenario: str
    seed: int
    rules: tuple[str, ...]
    struck: tuple[str, ...]
    stories: tuple[Told, ...]
    replay: str
    log: str = ""


@dataclass(frozen=True, slots=True)
class Told:
    """A post for which a rule was broken."""

    key: str
    rule: str
    page: tuple[str, ...]
    journal: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Settled:
    """Doubts of posts that were on the page: how many settled by themselves, of how many could."""

    platform: str
    count: int
    of: int
    is_enough: bool


@dataclass(frozen=True, slots=True)
class Bound:
    """What zero failures is worth, over every run in the ledger."""

    schedules: int
    faults: int
    failures: int

    @property
    def one_in(self) -> int:
        """The rate is below one in so many, at 95 % (rule of three); 0 where something failed."""
        return 0 if self.failures else self.faults // 3


@dataclass(slots=True)
class Report:
    """Everything. Times in UTC, ISO 8601. ``counts``: words of the table → posts."""

    run: int
    version: str
    commit: str
    server: str
    began: str
    seconds: float = 0.0
    ran: list[Ran] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    rules: dict[str, int] = field(default_factory=dict)
    lied: int = 0
    settled: list[Settled] = field(default_factory=list)
    unsettled: dict[str, int] = field(default_factory=dict)
    """Why the rest of those doubts did not settle by themselves."""
    checklist: list[Check] = field(default_factory=list)
    reached: list[Reached] = field(default_factory=list)
    proof: dict[str, str | None] | None = None
    """Broken variant → what it was caught at; None: nobody asked for a proof."""
    bound: Bound = Bound(0, 0, 0)
    failures: list[Failure] = field(default_factory=list)
    left_behind: list[str] = field(default_factory=list)
    """Links to posts that could not be taken down."""
    notes: list[str] = field(default_factory=list)
    """What a reader must know to read the figures."""

    @property
    def through(self) -> list[str]:
        """Broken variants that nothing caught."""
        return [name for name, rule in (self.proof or {}).items() if rule is None]

    @property
    def missing(self) -> list[str]:
        """What was never met."""
        return [f"{one.what}: {name}" for one in self.reached for name in one.missing]

    @property
    def outcome(self) -> Outcome:
        """How it ended."""
        few = any(not one.is_enough for one in self.settled)
        if self.failures or self.through or self.left_behind or few:
            return Outcome.BROKEN
        untried = any(not check.is_met for check in self.checklist)
        return Outcome.TOO_LITTLE if self.missing or untried else Outcome.KEPT

    @property
    def exit_code(self) -> int:
        """0 kept, 1 broken, 3 proves too little; 2 is for what keeps a run from beginning."""
        return {Outcome.KEPT: 0, Outcome.BROKEN: 1, Outcome.TOO_LITTLE: 3}[self.outcome]
