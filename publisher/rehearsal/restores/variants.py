"""How a broken variant of what notices a restore is brought to light."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from publisher.rehearsal.restores.plan import Plan, PostPlan, Since

TRIES: Final = 4
"""Plans within which a variant must be caught."""
_LATER: Final = 3.0
_HOUR: Final = 3_600.0


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
