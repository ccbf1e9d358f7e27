"""The wire and the platform: lose, store, store late, refuse, lie; keys kept and forgotten."""

from __future__ import annotations

from collections.abc import Iterator

from tests.model.acts.worker import BEFORE_SEND
from tests.model.state import (
    State,
    Step,
    World,
    may_spend,
    put,
    spend,
)

WHO = "platform"


def steps(world: World, state: State) -> Iterator[Step]:
    """What may become of each request, and of the key."""
    for at, request in enumerate(state.wire):
        match request.going:
            case "flying":
                yield from _arrives(world, state, at)
            case "promised":
                yield Step("vanish", WHO, state._replace(wire=put(state.wire, at)))
                yield _stores(world, state, at, "")
            case "unfiled":
                filed = request._replace(going="")
                yield Step("note the key", WHO, state._replace(wire=put(state.wire, at, filed)))
            case _:
                pass
    yield from _key(world, state)


def _arrives(world: World, state: State, at: int) -> Iterator[Step]:
    request = state.wire[at]
    yield Step("lose the request", "network", state._replace(wire=put(state.wire, at)))
    for answer in world.answers:
        if answer == "refused":
            yield _answers(state, at, "refuse", "refused")
        elif answer == "unclear":
            yield _answers(state, at, "refuse unclearly", "unclear")
        if answer != "refused":
            yield _stores(world, state, at, answer)
    yield _stores(world, state, at, "")
    if world.foreign:
        yield _answers(state, at, "answer with another's id", "another")
        yield _stores(world, state, at, "another")
    if world.late:
        for answer in ("", "unclear"):
            promised = request._replace(going="promised", answer=answer)
            after = state._replace(wire=put(state.wire, at, promised))
            yield Step("promise", WHO, after)
    if may_spend(world, state, "lie"):
        lied = _stores(world, spend(world, state, "lie"), at, "refused")
        ghost = lied.state.ghost._replace(lied=True)
        yield lied._replace(verb="store and refuse", state=lied.state._replace(ghost=ghost))


def _answers(state: State, at: int, verb: str, answer: str) -> Step:
    request = state.wire[at]._replace(going="", answer=answer)
    return Step(verb, WHO, state._replace(wire=put(state.wire, at, request)))


def _stores(world: World, state: State, at: int, answer: str) -> Step:
    """Put it on the page, or know it by its key for what is there."""
    request = state.wire[at]
    answer = answer or ("" if request.going == "flying" else request.answer)
    if _is_repeat(world, state):
        after = request._replace(going="", answer=answer)
        return Step("know it", WHO, state._replace(wire=put(state.wire, at, after)))
    going = "unfiled" if world.key == "life" else ""
    after = request._replace(going=going, answer=answer)
    page = min(state.page + 1, 3)
    return Step("store", WHO, state._replace(wire=put(state.wire, at, after), page=page))


def _is_repeat(world: World, state: State) -> bool:
    """Whether the platform knows the key: at once where it is atomic, else once it is noted."""
    if not world.key or not state.page:
        return False
    if world.key == "atomic":
        return True
    return state.key < 2 and not any(request.going == "unfiled" for request in state.wire)


def _key(world: World, state: State) -> Iterator[Step]:
    """Time: first it is too late for us, then for the platform.

    A permit for a repeat lapses before the first, and what was written under it is settled before
    the second: that is what the window and the margin are for.
    """
    if world.key != "life" or not state.page:
        return
    if state.key == 0:
        workers = tuple(
            worker._replace(late=worker.late or worker.at in BEFORE_SEND)
            for worker in state.workers
        )
        yield Step("be too late for the key", "time", state._replace(key=1, workers=workers))
    elif state.key == 1 and not any(request.going for request in state.wire):
        yield Step("forget the key", WHO, state._replace(key=2))
