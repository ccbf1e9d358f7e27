"""Scenarios by name: what each throws at the product, and how many seeds of it are enough.

A scenario draws its schedules out of a part of the catalogue; ``random`` draws out of all of it,
in rotation, so that a round of it contains every other one but those that stand alone.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from publisher.engine.points import Point
from publisher.rehearsal.plan.blows import Blow
from publisher.rehearsal.plan.catalogue import BEHAVIOURS, HITS, LISTINGS, Hit
from publisher.rehearsal.plan.places import Fault, Place
from publisher.rehearsal.plan.schedule import LOST, PostPlan, Schedule, drawn, scheduled
from publisher.sandbox.behaviours import Behaviour
from publisher.words import N_

_DAY: Final = 86_400.0
_HOUR: Final = 3_600.0
_BACKLOG: Final = 3 * _DAY
_USEFUL: Final = (None, None, 6 * _HOUR, 2 * _DAY)
"""For how long a post of a backlog is of use: some are missed, as they should be."""

Draw = Callable[[int], Schedule]


@dataclass(frozen=True, slots=True)
class Scenario:
    """``quick`` and ``full``: seeds of it in each mode. ``draw`` is pure: a seed means the same."""

    name: str
    says: str
    draw: Draw
    quick: int = 3
    full: int = 25


def _of(name: str, hits: Callable[[Hit], bool], *ways: Behaviour, **changes: object) -> Draw:
    """Draw out of the hits that are meant, and these behaviours; all of them where none is."""
    every = [*filter(hits, HITS)]
    random.Random(name).shuffle(every)

    def draw(seed: int) -> Schedule:
        schedule = drawn(seed, every, ways or BEHAVIOURS)
        return replace(schedule, scenario=name, **changes)  # type: ignore[arg-type]

    return draw


_SENT = ("all of it", "status read", "half the answer", "whole answer")
_TAKEN = frozenset({
    Point.AFTER_CLAIM, Point.BEFORE_STEP, Point.AFTER_STEP, Point.BEFORE_BEGIN, Point.AFTER_BEGIN,
    Point.BEFORE_START, Point.AFTER_START, Point.AFTER_PUBLISH,
})  # fmt: skip
_AWAY = frozenset({Blow.RESTART, Blow.OUTAGE, Blow.TERMINATE, Blow.CUT, Blow.HOLD_AND_CUT})


def _is_race(hit: Hit) -> bool:
    return hit.layer == "worker" and hit.fault == Fault.FREEZE and hit.place in _TAKEN


def _is_lost_on_the_way(hit: Hit) -> bool:
    return hit.layer == "wire" and hit.place.endswith(_SENT)


def _is_deadly(hit: Hit) -> bool:
    return hit.fault in {Fault.KILL, Fault.TERM, Fault.TERM_TWICE}


def _is_freeze(hit: Hit) -> bool:
    return hit.fault == Fault.FREEZE


def _is_databases(hit: Hit) -> bool:
    return hit.layer == "database" and hit.fault in _AWAY


def _is_edit(hit: Hit) -> bool:
    return hit.fault == Fault.EDIT


def _is_deadly_or_peoples(hit: Hit) -> bool:
    return hit.layer == "people" or (hit.layer == "worker" and hit.fault == Fault.KILL)


def _is_look(hit: Hit) -> bool:
    return hit.is_reconcilers or hit.place.startswith("listing")


def _backlog(seed: int) -> Schedule:
    """Nobody was at work for three days; then several workers come at once."""
    rng = random.Random(f"{seed}:backlog")
    pages = rng.randint(2, 3)
    posts = tuple(
        PostPlan(
            number, rng.randrange(pages), rng.choice(("text", "link", "photo")),
            overdue=rng.uniform(0.0, _BACKLOG), useful_for=rng.choice(_USEFUL),
        )
        for number in range(1, 31)
    )  # fmt: skip
    schedule = drawn(seed, [*filter(_is_deadly, HITS)], LOST)
    return replace(
        schedule, scenario="backlog", pages=pages, posts=posts, others=(), keys="", edits=0,
        behaviours=(), workers=rng.choice((4, 6, 8)),
    )  # fmt: skip


def _verdicts(seed: int) -> Schedule:
    """Twenty people decide about the same doubts in the same moment, while workers die."""
    schedule = _of("twenty-verdicts", _is_deadly_or_peoples, *LOST)(seed)
    doubtful = tuple(
        PostPlan(number, number % schedule.pages, "text", behaviour=Behaviour.DROP, times=2)
        for number in range(1, 9)
    )
    return replace(
        schedule, posts=doubtful, others=(), acts=("twenty at once",), settlers=6, late_settlers=4
    )


def _late_answers(seed: int) -> Schedule:
    """A frozen worker still has the answer; a person gives the post up; then it thaws."""
    places = (Point.AFTER_PUBLISH, Place.UNCLASSIFIED)
    hits = tuple(Hit("worker", str(place), "at", str(Fault.FREEZE)) for place in places * 2)
    posts = tuple(PostPlan(number, number % 2, "text") for number in range(1, 9))
    return replace(
        drawn(seed, HITS, LOST), scenario="late-answers", hits=hits, posts=posts, pages=2,
        others=(), keys="", edits=0, behaviours=(), reconcilers=0, frozen_for="decided",
        kills_frozen=False, workers=3, acts=("drop",), settlers=8, late_settlers=0,
    )  # fmt: skip


def _uploads(seed: int) -> Schedule:
    """Uploads are refused, or take longer than the post is of use; people try again."""
    # Their times run out one after the other, whenever the worker comes to them.
    posts = tuple(
        PostPlan(number, 0, "photo", useful_for=0.4 * number if number % 4 else None)
        for number in range(1, 17)
    )
    return replace(
        drawn(seed, [*filter(_is_edit, HITS)], LOST), scenario="uploads", posts=posts, others=(),
        keys="", behaviours=(), edits=40, edits_of=("requeue", "requeue", "cancel", "hold"),
        workers=3, in_flight=3,
        uploads=((Behaviour.REFUSE_INVALID, 2, None), (Behaviour.ANSWER_SLOWLY, 12, 1.0)),
    )  # fmt: skip


SCENARIOS: Final[Mapping[str, Scenario]] = {
    scenario.name: scenario
    for scenario in (
        Scenario(
            "two-workers", N_("Two workers claim one job: the second lets go."),
            _of("two-workers", _is_race, frozen_for="taken", workers=4, kills_frozen=False),
        ),
        Scenario(
            "network-lost", N_("The network is lost after sending."),
            _of("network-lost", _is_lost_on_the_way, *LOST),
        ),
        Scenario(
            "server-stopped", N_("A server stops midway: every crash point."),
            _of("server-stopped", _is_deadly), quick=22, full=44,
        ),
        Scenario(
            "frozen-worker", N_("A worker freezes past its lease, and thaws."),
            _of("frozen-worker", _is_freeze, kills_frozen=False), quick=6,
        ),
        Scenario(
            "database", N_("The database is restarted, cut off and away for longer than a lease."),
            _of("database", _is_databases), quick=8,
        ),
        Scenario(
            "late-acceptance", N_("The platform accepts a post long after it was given up."),
            _of(
                "late-acceptance", _is_look, Behaviour.ACCEPT_LATE, Behaviour.ANSWER_SLOWLY,
                Behaviour.ACCEPT_AND_HANG,
            ),
        ),
        Scenario(
            "ambiguous-looks", N_("A look finds too little, too much, or the post of another."),
            _of(
                "ambiguous-looks", _is_look, *LISTINGS, Behaviour.TWIN,
                Behaviour.ACCEPT_WITH_TWIN, Behaviour.REFUSE_DUPLICATE, reconcilers=2,
            ),
        ),
        Scenario(
            "late-answers", N_("A post is given up, and then its answer comes after all."),
            _late_answers,
        ),
        Scenario(
            "uploads", N_("Uploads are refused or too slow, and people try again."), _uploads
        ),
        Scenario("backlog", N_("Three days of backlog, and workers that die over it."), _backlog),
        Scenario(
            "twenty-verdicts", N_("Twenty people decide about one doubt at once."), _verdicts
        ),
        Scenario(
            "edits", N_("People edit, hold and cancel in every state."),
            _of("edits", _is_edit, edits=8), quick=2,
        ),
        Scenario(
            "random", N_("Everything above in rotation, by seeds."), scheduled, quick=50, full=200
        ),
    )
}  # fmt: skip
"""Those that run schedules. ``restored`` (see ``restores``) and ``smoke`` (``real``) are beside."""

ALONE: Final = ("backlog", "twenty-verdicts", "late-answers", "uploads")
"""What a round of ``random`` does not contain."""
