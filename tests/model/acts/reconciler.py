"""The reconciler: looks that begin and end, and what is judged from them. It never sends."""

from __future__ import annotations

from collections.abc import Iterator

from tests.model import ledger
from tests.model.acts.people import doubt_seen, found_live, let_go, may_free, stands, without
from tests.model.acts.worker import moved, seen_on
from tests.model.ledger import Wrote
from tests.model.state import (
    QUARANTINE,
    REPEAT_SAFE,
    SCHEDULED,
    UNKNOWN,
    Look,
    State,
    Step,
    World,
)

WHO = "reconciler"


def steps(world: World, state: State) -> Iterator[Step]:
    """Begin a look, or end one."""
    if not world.reconciler:
        return
    if sum(look.who == WHO for look in state.looks) < world.looks:
        yield from _begins(world, state)
    for at, look in enumerate(state.looks):
        if look.who == WHO:
            yield from _ends(world, state, at)


def _begins(world: World, state: State) -> Iterator[Step]:
    job, journal = state.journal.job, state.journal
    if job.state == UNKNOWN:
        if not ledger.question(journal) and world.keeps("a lost record asks a person"):
            return
        for seen in _seen(world, state):
            look = doubt_seen(world, state, WHO, seen)
            yield Step("look", WHO, state._replace(looks=(*state.looks, look)))
    elif job.hold == QUARANTINE:
        for seen in seen_on(world, state):
            look = Look(WHO, job.since, 0, 0, 0, state.landed, seen)
            yield Step("look", WHO, state._replace(looks=(*state.looks, look)))


def _seen(world: World, state: State) -> tuple[str, ...]:
    """Without a page to look at, only an atomic key helps."""
    if world.can_look:
        return seen_on(world, state)
    return ("unclear",) if world.key == "atomic" else ()


def _ends(world: World, state: State, at: int) -> Iterator[Step]:
    """A judgement, where the journal still stands as it did; or another look.

    The other look is always possible: the horizon may not have passed by anybody's clock, or the
    reconciler may have died with what it saw.
    """
    look, after = state.looks[at], without(state, at)
    job = state.journal.job
    if job.hold == QUARANTINE and look.since == job.since:
        yield Step("look again", WHO, after)
        yield from _of_a_suspect(world, after, look)
    elif not stands(world, state, look):
        yield Step("look no longer", WHO, after)
    else:
        yield Step("look again", WHO, after, "look_again", UNKNOWN, UNKNOWN)
        wrote = _judged(world, after, look)
        if wrote is not None:
            yield moved("judge", WHO, after, wrote)


def _judged(world: World, state: State, look: Look) -> Wrote | None:
    journal, number = state.journal, look.number
    if not world.keeps("a verdict is about the doubt that was looked at"):
        number = len(journal.attempts)
    if look.seen == "found":
        return ledger.confirm_published(world, journal, number, with_id=True)
    if _may_repeat(world, state, look, number):
        return ledger.repeat(world, journal, number)
    if _is_absent(world, look) and may_free(world, state, look) and world.requeues:
        if number and journal.attempts[number - 1].proof == REPEAT_SAFE:
            return None
        return ledger.confirm_absent(world, journal, number, SCHEDULED)
    return None


def _may_repeat(world: World, state: State, look: Look, number: int) -> bool:
    """``judge._may_repeat``: under a key that lives, once the first can land no more."""
    if not world.key or look.seen == "like it":
        return False
    if state.key and world.keeps("a repeat ends with its key"):
        return False
    if number and state.journal.attempts[number - 1].proof == REPEAT_SAFE:
        return False
    if world.key == "atomic" or not world.keeps("only a key kept at once is good at any time"):
        return True
    return may_free(world, state, look) and look.seen in {"nothing", "absent"}


def _is_absent(world: World, look: Look) -> bool:
    if look.seen == "nothing" and not world.keeps("absence needs a complete listing"):
        return True
    if look.seen == "like it" and not world.keeps("what could be ours is no absence"):
        return True
    return look.seen == "absent"


def _of_a_suspect(world: World, state: State, look: Look) -> Iterator[Step]:
    """``judge_suspect``: strictly, only a find or a proved absence settles it."""
    if look.seen == "found":
        found = Wrote(found_live(world, state.journal), "confirm_published")
        yield moved("bind", WHO, state, found)
    landed = look.clear or not world.keeps("a quarantine waits until nothing can arrive")
    if landed and _is_absent(world, look):
        yield moved("let go", WHO, state, Wrote(let_go(state.journal), "release_hold"))
