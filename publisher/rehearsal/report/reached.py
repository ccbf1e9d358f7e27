"""What of everything there is a run has met: a promise nothing was thrown at is not proved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from publisher.engine.transitions import trigger_pairs
from publisher.rehearsal.cast.settlers import ACTS, ALSO_SAID
from publisher.rehearsal.plan.catalogue import BEHAVIOURS, HITS, OTHER_WAYS, POINTS
from publisher.rehearsal.plan.schedule import Schedule
from publisher.rehearsal.report.report import Reached
from publisher.rehearsal.report.tally import Tally
from publisher.rehearsal.restores.plan import WAYS
from publisher.words import N_

IN_THE_TABLE: Final = {"published": "live in the journal", "unknown": "in doubt"}
"""Words of the restores → words of the table."""

MOVES: Final = N_("changes of state")
ACTS_OF_PEOPLE: Final = N_("acts of people")

NOT_HERE: Final = frozenset({
    # A late answer for what was given up in another way than by dropping it: its sender must be
    # stated gone a minute before, and not be.
    ("failed", "published"), ("missed", "published"),
    # A send without a record, of a job that had ended when the backup was made and was tried again
    # after it.
    ("failed", "unknown"), ("missed", "unknown"),
})  # fmt: skip
"""Changes of state that no schedule brings about; ``tests/stateful`` does."""


def reached(tally: Tally, drawn: Sequence[Schedule], *, is_whole: bool) -> list[Reached]:
    """Say what was met: of all there is, or of what the schedules were to bring about."""
    if not is_whole:
        points = {hit.point for schedule in drawn for hit in schedule.hits}
        met = {hit.point for hit in tally.hits}
        return [_of(N_("crash points"), {_place(p) for p in points}, {_place(p) for p in met})]
    moves = {_move(pair) for pair in trigger_pairs() if pair not in NOT_HERE}
    acts = [*ACTS, *ALSO_SAID]
    lacking = tuple(tally.unreached_acts)
    return [
        _of(N_("crash points"), {_place(p) for p in POINTS}, {_place(h.point) for h in tally.hits}),
        _of(
            N_("faults at them"),
            {str(h) for h in HITS},
            {str(h) for h in tally.hits},
            optional=True,
        ),
        _of(
            N_("platform behaviours"),
            {*map(str, BEHAVIOURS), *OTHER_WAYS},
            {name for name, n in tally.behaviours.items() if n},
        ),
        _of(MOVES, moves, {_move(pair) for pair in tally.moves}),
        Reached(ACTS_OF_PEOPLE, len(acts) - len(lacking), len(acts), lacking),
    ]


def losses(ways: Mapping[str, int], plans: int) -> Reached:
    """Ways in which the journal went back; a round of plans has each once."""
    wanted: set[str] = {*WAYS} if plans >= len(WAYS) else {*ways}
    return _of(N_("ways of losing the journal"), wanted, {*ways})


def _of(what: str, wanted: set[str], met: set[str], *, optional: bool = False) -> Reached:
    """``optional``: told, but nothing is missing where one was not met."""
    missing = () if optional else tuple(sorted(wanted - met))
    return Reached(what, len(wanted & met), len(wanted), missing)


def _place(point: tuple[str, str, str]) -> str:
    layer, place, when = point
    return f"{place} ({layer})" if when == "at" else f"{when} {place} ({layer})"


def _move(pair: tuple[str, str]) -> str:
    return f"{pair[0]} → {pair[1]}"
