"""Schedules for the model alone: each brings about moves that no scenario does, or seldom."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from publisher.db.roles import Role
from publisher.engine.points import Point
from publisher.rehearsal.plan.catalogue import HITS, Hit
from publisher.rehearsal.plan.places import Fault, Place
from publisher.rehearsal.plan.schedule import LOST, PostPlan, Schedule, drawn
from publisher.rehearsal.stage import staff
from publisher.rehearsal.stage.ground import Ground
from publisher.rehearsal.stage.lane import Lane
from publisher.sandbox.behaviours import Behaviour

_FROZEN_WITH_ITS_ANSWER: Final = Hit("worker", Place.UNCLASSIFIED, "at", Fault.FREEZE)
_FROZEN_LOOKING: Final = Hit("wire", "listing: headers sent", "at", "freeze")
_FAILS_LOOKING: Final = Hit("wire", "listing: headers sent", "at", "cut")
_DIES_LOOKING: Final = Hit("wire", "listing: headers sent", "at", "kill")
_DIES_OVER_IT: Final = Hit("wire", "upload: headers sent", "at", "kill")
_FROZEN_CLAIMING: Final = Hit("database", "channels", "after", "freeze")
_FROZEN_IN_HAND: Final = Hit("database", "hands", "after", "freeze")
_VERDICT_UNHEARD: Final = Hit("database", "verdict commit", "after", "cut")
_NEVER_COMES: Final = Hit("worker", Place.SPOOL_COMPACTED, "at", Fault.KILL)
"""Nothing is compacted here: it only keeps the faults on."""
_FROZEN_WITH_ITS_CLAIM: Final = Hit("worker", Point.BEFORE_BEGIN, "at", Fault.FREEZE)


def _bare(name: str, seed: int, hits: tuple[Hit, ...], **more: object) -> Schedule:
    """A schedule of these posts and these hits alone, on one Page unless it says otherwise."""
    calm: dict[str, object] = {
        "scenario": name, "hits": hits, "pages": 1, "others": (), "keys": "", "edits": 0,
        "behaviours": (), "reconcilers": 0, "settlers": 0, "late_settlers": 0, "acts": (),
        "kills_frozen": False, "workers": 3, "in_flight": 3, "compact_bytes": None,
        "listing": None, "reset_unread": False, "holds_connections": False, "uploads": (),
    }  # fmt: skip
    return replace(drawn(seed, HITS, LOST), **{**calm, **more})  # type: ignore[arg-type]


def _late_refusals(seed: int) -> Schedule:
    """Refused, and whoever was told so is frozen until it is a doubt; some are too late then."""
    ways = (Behaviour.REFUSE_INVALID, Behaviour.REFUSE_TOKEN, Behaviour.REFUSE_LIMITED)
    posts = tuple(
        PostPlan(
            number, number % 3, "text", behaviour=ways[number % 3], seconds=1.0,
            useful_for=2.0 * number if number % 3 == 2 else None,
        )
        for number in range(1, 13)
    )  # fmt: skip
    hits = (_FROZEN_WITH_ITS_ANSWER,) * 8
    return _bare("late-refusals", seed, hits, posts=posts, pages=3, frozen_for="taken", workers=4)


def _refused_uploads(seed: int) -> Schedule:
    """Uploads are refused: the credential once, then for being too many, until no try is left."""
    posts = tuple(PostPlan(number, 0, "photo") for number in range(1, 4))
    uploads = ((Behaviour.REFUSE_TOKEN, 1, None), (Behaviour.REFUSE_LIMITED, 40, 0.2))
    return _bare("refused-uploads", seed, (_NEVER_COMES,), posts=posts, uploads=uploads, workers=1)


def _too_early(seed: int) -> Schedule:
    """Refused, and taken up again before its page can show anything."""
    posts = tuple(PostPlan(number, 0, "text", refused_first=True) for number in range(1, 5))
    return _bare("too-early", seed, (_NEVER_COMES,), posts=posts)


def _given_up(seed: int) -> Schedule:
    """Nobody has it, and a person says so, and that it is not to be sent."""
    posts = tuple(PostPlan(number, 0, "text", behaviour=Behaviour.DROP) for number in range(1, 5))
    return _bare(
        "given-up", seed, (), posts=posts, reconcilers=1, late_settlers=8,
        acts=("absent, do not send",),
    )  # fmt: skip


def _poison(seed: int) -> Schedule:
    """One post kills whoever prepares it."""
    return _bare("poison", seed, (_NEVER_COMES,), posts=(PostPlan(1, 0, "photo"),))


def _answered_before_its_repeat(seed: int) -> Schedule:
    """It is not to be seen, so it is repeated; and before that the first answer comes after all."""
    posts = tuple(
        PostPlan(number, 1, "text", behaviour=Behaviour.UNREADABLE) for number in range(1, 9)
    )
    return _bare(
        "answered-before-its-repeat", seed, (_FROZEN_WITH_ITS_ANSWER,) * 5, posts=posts,
        others=("bluesky",), reconcilers=2, frozen_for="ended", edits=50,
        edits_of=("hold", *_IDLY),
    )  # fmt: skip


def _answered_during_its_repeat(seed: int) -> Schedule:
    """The same, while somebody has it claimed."""
    posts = (PostPlan(1, 1, "text", behaviour=Behaviour.UNREADABLE),)
    return _bare(
        "answered-during-its-repeat", seed, (_FROZEN_WITH_ITS_ANSWER,), posts=posts,
        others=("bluesky",), reconcilers=1, frozen_for="decided", workers=2,
    )  # fmt: skip


def _cancelled_repeats(seed: int) -> Schedule:
    """A repeat is safe, and a person calls it off while somebody has it claimed."""
    posts = (PostPlan(1, 1, "photo", behaviour=Behaviour.DROP),)
    return _bare(
        "cancelled-repeats", seed, (_NEVER_COMES,), posts=posts, others=("bluesky",),
        reconcilers=1, frozen_for="taken", edits=90, edits_of=("cancel", *_IDLY * 2), workers=2,
    )  # fmt: skip


_IDLY: Final = ("requeue",) * 4
"""Nothing has failed that could be tried again: so they wait for something to be under way."""


def _ended_repeats(seed: int) -> Schedule:
    """A repeat is safe, and is refused for good, or comes too late to be of use."""
    posts = tuple(
        PostPlan(
            number, 1, "text", behaviour=Behaviour.DROP,
            then=Behaviour.REFUSE_INVALID if number % 2 else None,
            times=1 if number % 2 else 3, useful_for=None if number % 2 else 1.5 * number,
        )
        for number in range(1, 13)
    )  # fmt: skip
    return _bare(
        "ended-repeats", seed, (_FROZEN_WITH_ITS_CLAIM,) * 3, posts=posts, others=("bluesky",),
        reconcilers=2, frozen_for="taken",
    )  # fmt: skip


def _seen_late(seed: int) -> Schedule:
    """Found by a look before the second send, and whoever saw it is frozen meanwhile."""
    posts = tuple(replace(_accepted_and_refused(number), page=number % 2) for number in range(1, 9))
    return _bare(
        "seen-late", seed, (_NEVER_COMES,), posts=posts, pages=2, edits=50,
        edits_of=("hold", *_IDLY), frozen_for="decided",
    )  # fmt: skip


def _seen_after_its_poison(seed: int) -> Schedule:
    """The same, and then it kills whoever prepares it."""
    return _bare(
        "seen-after-its-poison", seed, (_NEVER_COMES,), posts=(_accepted_and_refused(1),),
        workers=2, frozen_for="decided",
    )  # fmt: skip


def _seen_after_it_was_dropped(seed: int) -> Schedule:
    """The same, and another's look fails, so that it is a doubt, which a person drops."""
    return _bare(
        "seen-after-it-was-dropped", seed, (_NEVER_COMES,), posts=(_accepted_and_refused(1),),
        workers=2, frozen_for="decided", settlers=20, acts=("drop",),
    )  # fmt: skip


def _seen_too_late(seed: int) -> Schedule:
    """The same, and its useful time is over meanwhile."""
    posts = tuple(
        replace(_accepted_and_refused(number), page=1, useful_for=2.0 * number)
        for number in range(1, 13)
    )
    hits = (Hit("worker", Point.BEFORE_SETTLE, "at", Fault.FREEZE),) * 7
    return _bare(
        "seen-too-late", seed, hits, posts=posts, others=("bluesky",), frozen_for="decided"
    )


def _accepted_and_refused(number: int) -> PostPlan:
    return PostPlan(number, 0, "text", behaviour=Behaviour.ACCEPT_AND_LIMIT, seconds=0.2)


OWN: Final[Mapping[str, Callable[[int], Schedule]]] = {
    "late-refusals": _late_refusals,
    "refused-uploads": _refused_uploads,
    "too-early": _too_early,
    "given-up": _given_up,
    "poison": _poison,
    "answered-before-its-repeat": _answered_before_its_repeat,
    "answered-during-its-repeat": _answered_during_its_repeat,
    "cancelled-repeats": _cancelled_repeats,
    "ended-repeats": _ended_repeats,
    "seen-late": _seen_late,
    "seen-too-late": _seen_too_late,
    "seen-after-its-poison": _seen_after_its_poison,
    "seen-after-it-was-dropped": _seen_after_it_was_dropped,
}

IN_TURN: Final[Mapping[str, tuple[Hit, ...]]] = {
    "poison": (_DIES_OVER_IT,) * 3,
    "answered-during-its-repeat": (_FROZEN_WITH_ITS_ANSWER, *(_FROZEN_CLAIMING,) * 5),
    "cancelled-repeats": (_VERDICT_UNHEARD, *(_FROZEN_IN_HAND,) * 5),
    "seen-late": (_FROZEN_LOOKING,) * 6,
    "seen-after-its-poison": (_FROZEN_LOOKING, _DIES_LOOKING, _DIES_LOOKING),
    "seen-after-it-was-dropped": (_FROZEN_LOOKING, *(_FAILS_LOOKING,) * 6),
}
"""What strikes whoever comes there next, each only after the one before it.

One of a worker's own is among its schedule's hits, and only waited for here.
"""


class Staff(staff.Staff):
    """Deals what comes ``IN_TURN`` as well: a schedule's own hits all wait from the start."""

    def __init__(self, lane: Lane, schedule: Schedule, ground: Ground, home: Path) -> None:
        super().__init__(lane, schedule, ground, home)
        self._turns = deque(IN_TURN.get(schedule.scenario, ()))
        self._deal()

    def settings(
        self, *, graph: int = 1, direct: bool = False, role: Role = Role.ENGINE
    ) -> dict[str, Any]:
        """As elsewhere, but for a page that takes its time to show what was sent."""
        slow = {"settling_seconds": 2.0} if self._schedule.scenario == "too-early" else {}
        return {**super().settings(graph=graph, direct=direct, role=role), **slow}

    def fired(self, hit: Hit, pid: int) -> None:
        """Let the next wait, when this was the one before it."""
        super().fired(hit, pid)
        if self._turns and hit == self._turns[0]:
            self._turns.popleft()
            self._deal()

    def _deal(self) -> None:
        if self._turns and self._turns[0].layer != "worker":
            self.rule("", self._turns[0])
