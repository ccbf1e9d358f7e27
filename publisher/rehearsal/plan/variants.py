"""Broken variants of the product: what a rehearsal must be able to catch.

None is part of the product. They are a distribution of their own, ``publisher-broken-variants``
(in ``tests/variants``), found by its entry points; only a forked process of a rehearsal that was
asked to prove itself ever applies one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from typing import Any, Final

from publisher.rehearsal.errors import SetUpError
from publisher.rehearsal.plan.catalogue import Hit
from publisher.rehearsal.plan.schedule import PostPlan, Schedule
from publisher.sandbox.behaviours import Behaviour

TRIES: Final = 8
"""Schedules within which a variant must be caught."""

_GROUP: Final = "publisher.rehearsal.variants"
_ACTS_EACH: Final = 6


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to be wrong. ``broken_rules``: a rule that must notice."""

    rule: str
    patch: Callable[[], None]
    hits: tuple[Hit, ...] = ()
    companions: tuple[Hit, ...] = ()
    behaviours: tuple[Behaviour, ...] = ()
    seconds: float | None = None
    is_blind: bool = False
    """The page's listing shows nothing new, so that no look makes up for the fault."""
    frozen_for: str = "ended"
    edits: int = 0
    reconcilers: int = 0
    acts: tuple[str, ...] = ()
    """What people do about doubts: at once, or when all is quiet (``late``)."""
    late: bool = False
    then: Behaviour | None = None
    platform: str = ""
    """Another than Facebook."""
    keys: str = ""
    guards: list[str] = field(default_factory=list)

    def aim(self, name: str, seed: int) -> Schedule:
        """A schedule in which it can be seen."""
        treated = self.behaviours or (None,)
        posts = tuple(
            PostPlan(
                number, 3 if self.platform else number % 3, "text",
                behaviour=treated[number % len(treated)], then=self.then,
                seconds=self.seconds, in_reserve=number > 8,
            )
            for number in range(1, 13)
        )  # fmt: skip
        return Schedule(
            seed=seed, hits=self.hits * 2, behaviours=(), workers=2, pages=3, in_flight=1,
            concurrency=2, posts=posts, listens=bool(seed % 2), edits=self.edits,
            listing=Behaviour.LISTING_DELAYED if self.is_blind else None, listing_seconds=60.0,
            variant=name, companions=self.companions, frozen_for=self.frozen_for,
            reconcilers=self.reconcilers, acts=self.acts,
            settlers=_ACTS_EACH if self.acts and not self.late else 0,
            late_settlers=_ACTS_EACH if self.late else 0,
            others=(self.platform,) if self.platform else (), keys=self.keys,
        )  # fmt: skip


def load(kind: str) -> Mapping[str, Any]:
    """The variants of ``kind``, ``crashes`` or ``restores``, by name.

    Raises ``SetUpError`` where they are not installed.
    """
    found = entry_points(group=_GROUP, name=kind)
    if not found:
        message = (
            "The broken variants are not installed, so nothing can be proved. From a checkout of"
            " Publisher run: pip install ./tests/variants"
        )
        raise SetUpError(message)
    variants: Mapping[str, Any] = next(iter(found)).load()
    return variants


def named(kind: str, name: str) -> Any:
    """The variant of that name. Raises ``SetUpError``, which names those there are."""
    known = load(kind)
    if name not in known:
        message = f"There is no broken variant {name!r}. Known are: {', '.join(sorted(known))}."
        raise SetUpError(message)
    return known[name]
