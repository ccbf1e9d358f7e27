"""What must hold in every state. Each returns the sentence it broke, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from publisher.engine.job import State as Named
from publisher.engine.transitions import TABLE, Event
from tests.model.acts.worker import BEFORE_SEND
from tests.model.state import (
    ABSENT,
    CANCELLED,
    CLAIMED,
    DROPPED,
    ENDED,
    FAILED,
    FORCED,
    MISSED,
    NOT_SENT,
    PUBLISHED,
    QUARANTINE,
    REPEAT_SAFE,
    SCHEDULED,
    SENDING,
    UNKNOWN,
    Journal,
    State,
    Step,
    World,
)

DUPLICATE = "on the page twice"
FALSE_SUCCESS = "published, and the page never had it"
HIDDEN = "not published, it says, and it is on the page or may still get there"
SECOND = "a second send while an earlier one may be live"
GROUNDLESS = "in doubt, and nobody ever started a send"
UNHEARD = "an answer that says published was put away"
TWO_OPEN = "two attempts without a proof"
HOLDER = "held, and by nobody; or by somebody, and not held"
TABLE_REFUSES = "a move that the transition table refuses"
NO_WAY_OUT = "no way out"

_TABLE: Final = {
    (str(state), str(event)): frozenset(map(str, ends)) for (state, event), ends in TABLE.items()
}
BEYOND: Final = {
    (CLAIMED, "lose_answer"): UNKNOWN,
    (CLAIMED, "publish"): PUBLISHED,
}
"""Moves that the code makes and names otherwise than the table does. A restored journal says
``claimed`` of what its worker is sending, and the worker's settle writes its end all the same."""


def broken_in(world: World, state: State) -> str:
    """The first invariant that does not hold here, or nothing."""
    for invariant in _INVARIANTS:
        if said := invariant(world, state):
            return said
    return ""


def all_broken_in(world: World, state: State) -> Iterator[str]:
    """Every invariant that does not hold here, and nothing for each that does."""
    return (invariant(world, state) for invariant in _INVARIANTS)


def broken_by(world: World, step: Step) -> str:
    """Whether the table knows this move, or nothing."""
    if not world.keeps("the transition table"):
        return ""
    if step.was == step.became and not step.event:
        return ""
    if BEYOND.get((step.was, step.event)) == step.became:
        return ""
    allowed = _TABLE.get((step.was, step.event), frozenset())
    return "" if step.became in allowed else TABLE_REFUSES


def is_excused(world: World, state: State) -> bool:
    """Whether the platform or a person is to blame for two posts.

    A lie that a look before the next send could show is no excuse, unless that look was shown
    nothing; neither is one where nobody can look, because no refusal is believed there.
    """
    ghost = state.ghost
    return ghost.missed and (ghost.lied or ghost.wrong)


def may_land(state: State) -> set[int]:
    """Tokens under which a post may still get to the page."""
    found = {request.token for request in state.wire if request.going in {"flying", "promised"}}
    found |= {
        worker.token for worker in state.workers if worker.at in BEFORE_SEND and not worker.late
    }
    return found


def _duplicate(world: World, state: State) -> str:
    return DUPLICATE if state.page > 1 and not is_excused(world, state) else ""


def _false_success(_: World, state: State) -> str:
    return FALSE_SUCCESS if state.journal.job.state == PUBLISHED and not state.page else ""


def _hidden(_: World, state: State) -> str:
    """Claimable, being prepared, or ended as not published, while it is there or may be."""
    job = state.journal.job
    if job.state in {SENDING, UNKNOWN, PUBLISHED, DROPPED} or _is_another_time(state):
        return ""
    if job.state == SCHEDULED and job.hold == QUARANTINE:
        return ""
    if job.state in {SCHEDULED, CLAIMED} and _possibly_live(state.journal):
        return ""
    if state.ghost.lied or state.ghost.wrong:
        return ""
    return HIDDEN if state.page or may_land(state) else ""


def _is_another_time(state: State) -> bool:
    """A restored journal that nobody has compared yet, or an end from before the loss."""
    job = state.journal.job
    return state.lost == "unseen" or (state.lost == "seen" and job.doubtful)


def _possibly_live(journal: Journal) -> bool:
    return any(attempt.proof == REPEAT_SAFE for attempt in journal.attempts)


def _second(_: World, state: State) -> str:
    job, journal = state.journal.job, state.journal
    if job.state != SENDING or _possibly_live(journal) or state.lost:
        return ""
    if state.ghost.lied or state.ghost.wrong:
        return ""
    others = may_land(state) - {job.token}
    return SECOND if others else ""


def _groundless(_: World, state: State) -> str:
    """A doubt that nothing more can come for, about attempts that no hand ever started."""
    journal = state.journal
    if journal.job.state != UNKNOWN or state.lost or state.ghost.vague:
        return ""
    if any(a.started and a.proof != NOT_SENT for a in journal.attempts):
        return ""
    if any(attempt.proof in _BY_VERDICT for attempt in journal.attempts):
        # That stays its proof, though its worker may say later that it sent nothing.
        return ""
    speakers = {worker.run for worker in state.workers} | {file.run for file in state.files}
    if any(attempt.run in speakers for attempt in journal.attempts):
        return ""
    return GROUNDLESS


_BY_VERDICT: Final = frozenset({REPEAT_SAFE, ABSENT, FORCED})


def _unheard(_: World, state: State) -> str:
    return UNHEARD if state.ghost.unheard else ""


def _two_open(_: World, state: State) -> str:
    return TWO_OPEN if sum(not a.proof for a in state.journal.attempts) > 1 else ""


def _holder(_: World, state: State) -> str:
    job = state.journal.job
    held = job.state in {CLAIMED, SENDING}
    return HOLDER if held != bool(job.token) or held != (job.run >= 0) else ""


_INVARIANTS: Final[tuple[Callable[[World, State], str], ...]] = (
    _duplicate, _false_success, _second, _hidden, _two_open, _unheard, _groundless, _holder,
)  # fmt: skip


def is_quiet(world: World, state: State) -> bool:
    """Whether everything has come to its end; where there are no people, what waits for one too."""
    job = state.journal.job
    waits = job.state == UNKNOWN or job.hold == QUARANTINE
    return (
        (job.state in ENDED or (waits and not world.people))
        and not state.wire
        and not state.workers
        and not state.files
    )


__all__ = ["CANCELLED", "FAILED", "MISSED", "Event", "Named", "broken_by", "broken_in", "is_quiet"]
