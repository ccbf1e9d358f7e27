"""Broken variants of what notices a restore: a harness that lets one pass proves nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from publisher.sandbox.behaviours import Behaviour
from tests.crash.restores import patches
from tests.crash.restores.plan import Plan, PostPlan, Since

TRIES = 4
"""Schedules within which a variant must be caught."""
_LATER = 3.0
_HOUR = 3_600.0


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to be wrong, the rule that must notice, and the plan that brings it to light."""

    rule: str
    patch: Callable[[], None]
    posts: tuple[tuple[Since, int], ...] = (("before", 6),)
    useful_for: float | None = None
    later: int = 0
    """So many of the posts are due some seconds later."""
    platform: str = "facebook_pages"
    is_moved: bool = False
    """They are due in an hour, and are brought forward after the dump."""
    changes: Mapping[str, Any] = field(default_factory=dict)

    def aim(self, name: str, seed: int) -> Plan:
        """A plan in which it can be seen."""
        sinces = [since for since, count in self.posts for _ in range(count)]
        on_time = len(sinces) - self.later
        posts = tuple(
            PostPlan(
                number, self.platform, since, useful_for=self.useful_for,
                due_in=_HOUR if self.is_moved else _LATER if number >= on_time else 0.0,
                is_moved=self.is_moved,
            )
            for number, since in enumerate(sinces)
        )  # fmt: skip
        plan = Plan(
            seed, posts, "in place", dumps_first=True, sent_before=0, sent_after=6, variant=name
        )
        return replace(plan, **self.changes)


VARIANTS: dict[str, Variant] = {
    "the guard never compares": Variant("duplicate", patches.guard_never_compares),
    "a guard forgets with its connection": Variant(
        "duplicate", patches.guard_forgets, later=4,
        changes={
            "end": "left running", "cuts": True, "dumps_first": False, "sent_before": 2,
            "sent_after": 4,
        },
    ),
    "a clean look on a Page frees what is doubted": Variant(
        "duplicate", patches.strict_is_ignored, changes={"listing": Behaviour.LISTING_DELAYED}
    ),
    "what is due later was not sent": Variant(
        "duplicate", patches.due_later_is_let_go, platform="telegram", is_moved=True
    ),
    "the tick alone, without its mark": Variant(
        "duplicate", patches.tick_alone, changes={"end": "killed", "spool": "lost"}
    ),
    "expire ends what is in quarantine": Variant(
        "unreported", patches.expire_ends_the_quarantined, useful_for=6.0,
        changes={
            "outlives": True, "looks_late": True,
            "guards": ("DROP TRIGGER quarantine_kept ON jobs",),
        },
    ),
    "an answer of another content believed": Variant(
        "false success", patches.answer_of_another_content,
        posts=(("before", 1), ("after", 4), ("anew", 4)), changes={"end": "killed"},
    ),
}  # fmt: skip
