"""Breadth first through every state there is; the first that breaks a rule has a shortest trace."""

from __future__ import annotations

from array import array
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise

from tests.model import invariants
from tests.model.acts.all import steps
from tests.model.state import State, World, start
from tests.model.tidying import canonical

_ENDLESS = 5_000_000
_OF_FAULTS = frozenset({"die", "reboot", "damage", "back up", "lose commits", "absent, wrongly"})


@dataclass(slots=True)
class Explored:
    """What a search came to.

    ``broken``: the rule, or nothing. ``trace``: the moves that lead there. ``all_broken``: every
    rule that was, where the search went on. ``events``: how often each (state, event, state) was
    made. ``verbs``: how often each (who, what).
    """

    world: World
    states: int = 0
    moves: int = 0
    broken: str = ""
    all_broken: set[str] = field(default_factory=set)
    trace: list[str] = field(default_factory=list)
    events: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    verbs: Counter[str] = field(default_factory=Counter)
    depth: int = 0


@dataclass(slots=True)
class _Graph:
    """Every state by its number, who came first to it, and who leads to it without a fault."""

    number: dict[State, int]
    parent: array[int]
    into: list[list[int]]

    def add(self, state: State, parent: int) -> int:
        number = len(self.parent)
        self.number[state] = number
        self.parent.append(parent)
        self.into.append([])
        return number


def explore(
    world: World, *, at_most: int = _ENDLESS, ways_out: bool = True, goes_on: bool = False
) -> Explored:
    """Go everywhere. Stops at the first broken rule, or ``goes_on`` past it to find the others."""
    result = Explored(world)
    first = canonical(world, start(world))
    graph = _Graph({}, array("q"), [])
    graph.add(first, -1)
    frontier = [first]
    while frontier:
        result.depth += 1
        frontier = _next(world, graph, frontier, result, goes_on=goes_on)
        if len(graph.number) > at_most:
            message = f"{world.name}: more than {at_most} states"
            raise OverflowError(message)
    result.states = len(graph.number)
    if ways_out and (goes_on or not result.broken):
        _require_ways_out(graph, result)
    return result


def _next(
    world: World, graph: _Graph, frontier: list[State], result: Explored, *, goes_on: bool
) -> list[State]:
    found: list[State] = []
    seen = graph.number
    for state in frontier:
        here = seen[state]
        for step in steps(world, state):
            result.moves += 1
            if step.event:
                result.events[step.was, step.event, step.became] += 1
            result.verbs[f"{step.who.partition(' ')[0]}: {step.verb}"] += 1
            after = canonical(world, step.state)
            there = seen.get(after)
            is_new = there is None
            if there is None:
                there = graph.add(after, here)
                found.append(after)
            if step.verb not in _OF_FAULTS and here != there:
                graph.into[there].append(here)
            if goes_on:
                result.all_broken.add(invariants.broken_by(world, step))
                result.all_broken |= {*invariants.all_broken_in(world, after)} if is_new else {""}
                continue
            said = invariants.broken_by(world, step)
            if not said and is_new:
                said = invariants.broken_in(world, after)
            if said:
                result.broken = said
                result.trace = _trace(world, graph, there if is_new else here)
                if not is_new:
                    result.trace.append(f"{step.who}: {step.verb}")
                return []
    result.all_broken.discard("")
    return found


def _trace(world: World, graph: _Graph, number: int) -> list[str]:
    """The moves from the start, each with what the job is afterwards."""
    order = list(graph.number)
    path = [number]
    while graph.parent[path[-1]] >= 0:
        path.append(graph.parent[path[-1]])
    path.reverse()
    lines = []
    for here, there in pairwise(path):
        before, after = order[here], order[there]
        step = next(s for s in steps(world, before) if canonical(world, s.state) == after)
        lines.append(described(len(lines) + 1, step.who, step.verb, after))
    return lines


def described(number: int, who: str, verb: str, after: State) -> str:
    """One line of a trace: the move, and how job, attempts and page stand after it."""
    job = after.journal.job
    attempts = " ".join(
        f"a{at}:{a.end or 'open'}{'/' + a.proof if a.proof else ''}"
        for at, a in enumerate(after.journal.attempts, 1)
    )
    hold = f" [{job.hold}]" if job.hold else ""
    wire = " ".join(f"{r.going or 'answered'}→{r.answer or '…'}" for r in after.wire)
    parts = [f"{job.state}{hold}", attempts, f"page {after.page}", wire]
    return f"{number:3d}. {who + ': ' + verb:<42} {' | '.join(p for p in parts if p)}"


def _require_ways_out(graph: _Graph, result: Explored) -> None:
    """From each state an end must be reachable without another fault."""
    order = list(graph.number)
    reached = bytearray(len(order))
    waiting = [
        number for number, state in enumerate(order) if invariants.is_quiet(result.world, state)
    ]
    for number in waiting:
        reached[number] = 1
    while waiting:
        for before in graph.into[waiting.pop()]:
            if not reached[before]:
                reached[before] = 1
                waiting.append(before)
    stuck = next((number for number, was in enumerate(reached) if not was), None)
    if stuck is not None:
        result.broken = invariants.NO_WAY_OUT
        result.all_broken.add(result.broken)
        result.trace = _trace(result.world, graph, stuck)
