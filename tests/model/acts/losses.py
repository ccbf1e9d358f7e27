"""What is lost: processes, lines that were never synced, commits. And how that is noticed."""

from __future__ import annotations

from collections.abc import Iterator

from tests.model import ledger
from tests.model.acts.worker import BEFORE_SEND, moved, name
from tests.model.ledger import Wrote
from tests.model.state import (
    File,
    State,
    Step,
    Worker,
    World,
    may_spend,
    put,
    spend,
)


def steps(world: World, state: State) -> Iterator[Step]:
    """Kill, reboot, damage, back up, restore; then notice."""
    yield from _crashes(world, state)
    yield from _host(world, state)
    if world.budget("restore"):
        yield from _restores(world, state)
        yield from _notices(world, state)


def _crashes(world: World, state: State) -> Iterator[Step]:
    if not may_spend(world, state, "crash"):
        return
    after = spend(world, state, "crash")
    for at, worker in enumerate(state.workers):
        yield Step("die", name(worker), after._replace(workers=put(state.workers, at)))


def _host(world: World, state: State) -> Iterator[Step]:
    if may_spend(world, state, "reboot") and state.files:
        ghost = state.ghost._replace(vague=True)
        after = spend(world, state, "reboot")._replace(workers=(), ghost=ghost)
        for lost in (False, True):
            files = tuple(_rebooted(file, lost=lost) for file in state.files)
            yield Step("reboot", "host", after._replace(files=files))
    if may_spend(world, state, "damage"):
        ghost = state.ghost._replace(vague=True)
        after = spend(world, state, "damage")._replace(ghost=ghost)
        alive = {worker.file for worker in state.workers}
        for at, file in enumerate(state.files):
            if file.name not in alive and file.lines:
                damaged = _rebooted(file, lost=True)._replace(rebooted=file.rebooted, whole=False)
                yield Step("damage", "disk", after._replace(files=put(state.files, at, damaged)))


def _rebooted(file: File, *, lost: bool) -> File:
    """The file after another boot: what was not synced may be gone."""
    lines = file.lines
    if lost:
        lines = tuple(line._replace(started=False, word="") for line in lines)
    return file._replace(rebooted=True, lines=lines)


# Lost commits


def _restores(world: World, state: State) -> Iterator[Step]:
    if not may_spend(world, state, "restore"):
        return
    if state.backup is None:
        yield Step("back up", "operator", state._replace(backup=state.journal))
    elif state.backup != state.journal:
        journal = state.backup
        back = spend(world, state, "restore")._replace(journal=journal, backup=None, lost="unseen")
        yield Step("lose commits", "database", back)


def _notices(world: World, state: State) -> Iterator[Step]:
    if state.lost == "unseen":
        journal = ledger.quarantine(world, state.journal)
        after = state._replace(lost="seen", landed=False)
        event = "hold" if journal.job.hold != state.journal.job.hold else ""
        yield moved("notice", "witness", after._replace(journal=state.journal),
                    Wrote(journal, event))  # fmt: skip
    elif state.lost == "seen" and not state.landed and not _may_arrive(state):
        workers = tuple(_lapsed(state, worker) for worker in state.workers)
        yield Step("be long after", "time", state._replace(landed=True, workers=workers))
    for at, worker in enumerate(state.workers):
        if state.lost and worker.at in {*BEFORE_SEND, "sent"}:
            yield from _reconnects(world, state, at)


def _may_arrive(state: State) -> bool:
    return any(request.going for request in state.wire)


def _lapsed(state: State, worker: Worker) -> Worker:
    """A permit lapses long before ``absent_after`` has passed."""
    known = any(attempt.token == worker.token for attempt in state.journal.attempts)
    return worker._replace(late=worker.late or (worker.at in BEFORE_SEND and not known))


def _reconnects(world: World, state: State, at: int) -> Iterator[Step]:
    """A worker under way asks for its attempt, and the database does not hold it."""
    worker = state.workers[at]
    if worker.parked or any(a.token == worker.token for a in state.journal.attempts):
        return
    workers = put(state.workers, at, worker._replace(parked=True))
    yield moved("miss its attempt", name(worker), state, ledger.spool_found(world, state.journal),
                workers=workers)  # fmt: skip
