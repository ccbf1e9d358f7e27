"""Takes out of a state what nobody can see any more, so that fewer states stand for as many.

Each of these was looked at for what it might hide; where a broken rule, or a fault that this world
knows, would make a difference, it is left alone.
"""

from __future__ import annotations

from tests.model.ledger import registered
from tests.model.state import CLAIMED, Run, State, Worker, World, put, renamed

_PREPARING = frozenset({"claimed", "looked"})


def canonical(world: World, state: State) -> State:
    """The one state that stands for all that differ from this in names, or in what none can see."""
    return renamed(world, _tidy(world, state))


def _tidy(world: World, state: State) -> State:
    """The state without answers nobody waits for, looks that can decide nothing, and the like."""
    if state.wire:
        state = _wire(state)
    if state.looks and world.keeps("a verdict is about the doubt that was looked at"):
        state = _looks(state)
    if state.workers and world.keeps_every_fence:
        state = _workers(world, state)
    return state


def _wire(state: State) -> State:
    waiting = {worker.token for worker in state.workers if worker.at in {"sent", "drained"}}
    wire = [
        request if request.token in waiting else request._replace(answer="")
        for request in state.wire
    ]
    kept = tuple(sorted(request for request in wire if request.going or request.answer))
    return state if kept == state.wire else state._replace(wire=kept)


def _looks(state: State) -> State:
    live = {state.journal.job.since}
    if state.backup is not None:
        live.add(state.backup.job.since)
    looks = tuple(look for look in state.looks if look.since in live and look.since)
    return state if looks == state.looks else state._replace(looks=looks)


def _workers(world: World, state: State) -> State:
    """A claim that was taken away can only be dropped; an idle run with nothing open may as well

    have ended, unless its file's lines will be asked about once commits are lost, or are compacted.
    """
    restores = bool(world.budget("restore"))
    job = state.journal.job
    for at in range(len(state.workers) - 1, -1, -1):
        worker = state.workers[at]
        if worker.at in _PREPARING and not (job.state == CLAIMED and job.token == worker.token):
            if restores and (state.backup is not None or state.lost != "seen"):
                continue
            worker = Worker(worker.file, worker.run, parked=worker.parked)
            state = state._replace(workers=put(state.workers, at, worker))
        if worker.over and not restores:
            state = state._replace(workers=put(state.workers, at, worker._replace(over=False)))
        if worker.at == "idle" and not worker.parked and _is_blank(world, state, worker):
            state = _ended(state, at)
    return state


def _is_blank(world: World, state: State, worker: Worker) -> bool:
    """Whether nobody will ever ask this run's file for anything."""
    if not world.budget("restore") and not world.budget("compact"):
        return True
    if state.lost == "unseen" or state.journal.job.run == worker.run:
        return False
    lines = next(file.lines for file in state.files if file.name == worker.file)
    return not lines and not world.budget("compact")


def _ended(state: State, at: int) -> State:
    worker, journal = state.workers[at], state.journal
    if registered(journal, worker.run, worker.file):
        runs = put(journal.runs, worker.run, Run(worker.file, ended=True))
        journal = journal._replace(runs=runs)
    return state._replace(
        journal=journal,
        files=tuple(file for file in state.files if file.name != worker.file),
        workers=put(state.workers, at),
    )
