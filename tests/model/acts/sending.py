"""A worker that has begun: its file, its hand, the answer, the end.

Told to stop, it takes back a permit that was not used, and leaves the rest as a doubt.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.model import ledger
from tests.model.acts.worker import idle, moved, name, with_worker
from tests.model.ledger import End, Wrote
from tests.model.state import (
    PUBLISHED,
    UNKNOWN,
    File,
    Line,
    Request,
    State,
    Step,
    Worker,
    World,
    may_spend,
    put,
    spend,
)


def steps(world: World, state: State) -> Iterator[Step]:
    """What each worker that has begun, or has nothing to do, may do next."""
    for at, worker in enumerate(state.workers):
        match worker.at:
            case "begun":
                yield from _file_opens(world, state, at)
            case "opened":
                yield from _hand_starts(world, state, at)
            case "started":
                yield from _writes(world, state, at)
            case "sent" | "drained":
                yield from _hears(world, state, at)
            case "told":
                yield from _settles(world, state, at)
            case "idle":
                yield from _ends(world, state, at)
            case _:
                pass


def _file_opens(world: World, state: State, at: int) -> Iterator[Step]:
    """The second record, synced; a file that cannot be written stops the send."""
    worker = state.workers[at]
    line = Line(worker.token, worker.number)
    where = next(n for n, file in enumerate(state.files) if file.name == worker.file)
    file = state.files[where]
    opened = with_worker(state, at, at="opened")
    files = put(state.files, where, file._replace(lines=(*file.lines, line)))
    yield Step("open", name(worker), state._replace(files=files, workers=opened))
    if may_spend(world, state, "compact"):
        after = spend(world, state, "compact")
        lines = (*(old for old in file.lines if not old.settled), line)
        files = put(state.files, where, file._replace(lines=lines, compacted=True))
        ghost = state.ghost._replace(vague=True)
        after = after._replace(files=files, workers=opened, ghost=ghost)
        yield Step("open, compacted", name(worker), after)
    yield Step(
        "open, failed", name(worker),
        state._replace(workers=with_worker(state, at, at="told", word="not sent")),
    )  # fmt: skip
    if may_spend(world, state, "drain"):
        yield _revoked(world, state, at)


def _revoked(world: World, state: State, at: int) -> Step:
    """Told to stop: the unused permit is taken back, and the process ends afterwards."""
    worker = state.workers[at]
    workers = with_worker(state, at, at="told", word="not sent", parked=True)
    return Step("revoke", name(worker), spend(world, state, "drain")._replace(workers=workers))


def _hand_starts(world: World, state: State, at: int) -> Iterator[Step]:
    worker, journal = state.workers[at], state.journal
    files = _line(state, worker, started=True)
    number = ledger.attempt_of(world, journal, worker.token, worker.number)
    if number >= 0:
        attempt = journal.attempts[number]._replace(started=True)
        journal = journal._replace(attempts=put(journal.attempts, number, attempt))
    workers = with_worker(state, at, at="started")
    after = state._replace(journal=journal, files=files, workers=workers)
    yield Step("start", name(worker), after)
    if may_spend(world, state, "drain"):
        yield _revoked(world, state, at)


def _line(state: State, worker: Worker, **changes: object) -> tuple[File, ...]:
    """The files once this worker's one has another word of its send."""
    where = next(n for n, file in enumerate(state.files) if file.name == worker.file)
    file = state.files[where]
    lines = tuple(
        line._replace(**changes) if line.token == worker.token else line for line in file.lines
    )
    return put(state.files, where, file._replace(lines=lines))


def _writes(world: World, state: State, at: int) -> Iterator[Step]:
    """The bytes, if the permit is still good; or nothing, proved by the permit."""
    worker = state.workers[at]
    if not worker.late or not world.keeps("a permit lapses"):
        wire = (*state.wire, Request(worker.token, "flying", "", worker.file))
        yield Step(
            "send",
            name(worker),
            state._replace(wire=wire, workers=with_worker(state, at, at="sent")),
        )
    unsent = with_worker(state, at, at="told", word="not sent")
    files = _line(state, worker, word="not sent")
    yield Step("send nothing", name(worker), state._replace(workers=unsent, files=files))
    if may_spend(world, state, "drain"):
        yield _revoked(world, state, at)


def _hears(world: World, state: State, at: int) -> Iterator[Step]:
    """The answer, and its line; or none comes in time."""
    worker = state.workers[at]
    answer = next((r.answer for r in state.wire if r.token == worker.token), "")
    word = answer or "silent"
    if worker.at == "drained":
        if answer:
            files = _line(state, worker, word=word)
            after = state._replace(
                files=files, workers=with_worker(state, at, at="drained", word=word)
            )
            yield Step("hear", name(worker), after)
        yield Step("exit", name(worker), state._replace(workers=put(state.workers, at)))
        return
    heard = with_worker(state, at, at="told", word=word)
    yield Step("hear", name(worker), state._replace(files=_line(state, worker, word=word),
                                                    workers=heard))  # fmt: skip
    if may_spend(world, state, "drain"):
        yield from _gives_up(world, spend(world, state, "drain"), at)


def _gives_up(world: World, state: State, at: int) -> Iterator[Step]:
    """Told to stop while its hand waits: a doubt, and the process ends."""
    worker = state.workers[at]
    drained = with_worker(state, at, at="drained")
    wrote = ledger.settle(world, state.journal, worker.token, ledger.DRAINED)
    if wrote is None:
        wrote = ledger.record_late(
            world, state.journal, worker.token, worker.number, ledger.DRAINED
        )
    yield moved("give up", name(worker), state, wrote, workers=drained)


# Settle


def _settles(world: World, state: State, at: int) -> Iterator[Step]:
    worker = state.workers[at]
    for end in ledger.ends(world, worker.word):
        wrote = ledger.settle(world, state.journal, worker.token, end)
        if wrote is not None:
            yield from _settled(world, state, at, wrote, end)
        else:
            yield _was_late(world, state, at, end)


def _settled(world: World, state: State, at: int, wrote: Wrote, end: End) -> Iterator[Step]:
    worker = state.workers[at]
    files = _forgotten(state, worker) if end.to != UNKNOWN else state.files
    yield moved("settle", name(worker), state, wrote, files=files, workers=idle(state, at))
    if may_spend(world, state, "unacknowledged"):
        yield moved(
            "settle, unconfirmed", name(worker), spend(world, state, "unacknowledged"), wrote
        )


def _forgotten(state: State, worker: Worker) -> tuple[File, ...]:
    return _line(state, worker, settled=True)


def _was_late(world: World, state: State, at: int, end: End) -> Step:
    """The claim was taken away: the answer goes to its attempt, or the attempt is lost."""
    worker, journal = state.workers[at], state.journal
    wrote = ledger.record_late(world, journal, worker.token, worker.number, end)
    files, parked, ghost = state.files, False, state.ghost
    if wrote.said == "no attempt" and worker.word != "not sent":
        wrote, parked = ledger.spool_found(world, journal), True
    if wrote.said in {"moved", "known"} and end.to != UNKNOWN:
        files = _forgotten(state, worker)
    if end.outcome == "live" and not parked and not _is_heard(wrote):
        ghost = ghost._replace(unheard=True)
    workers = idle(state, at, parked=parked)
    return moved("settle late", name(worker), state, wrote,
                 files=files, workers=workers, ghost=ghost)  # fmt: skip


def _is_heard(wrote: Wrote) -> bool:
    return wrote.journal.job.state == PUBLISHED or any(
        attempt.end == "live" for attempt in wrote.journal.attempts
    )


# End


def _ends(world: World, state: State, at: int) -> Iterator[Step]:
    """A clean end: every hand has returned, everything is told, the file goes."""
    worker = state.workers[at]
    if may_spend(world, state, "compact"):
        yield _compacts(world, state, at)
    if state.lost == "unseen" and world.keeps("the witness is asked before a claim"):
        return
    workers = put(state.workers, at)
    if worker.parked or _is_still_its(state, worker):
        yield Step("exit", name(worker), state._replace(workers=workers))
        return
    journal = state.journal
    if ledger.registered(journal, worker.run, worker.file):
        journal = ledger.end_run(journal, worker.run)
    files = tuple(file for file in state.files if file.name != worker.file)
    after = state._replace(journal=journal, files=files, workers=workers)
    yield Step("end", name(worker), after)


def _is_still_its(state: State, worker: Worker) -> bool:
    """Put back to a send of this run: its file knows what came of it, and stays."""
    journal = state.journal
    return journal.job.run == worker.run and ledger.registered(journal, worker.run, worker.file)


def _compacts(world: World, state: State, at: int) -> Step:
    """It sends another job's post, and its file is begun anew without what is settled."""
    worker = state.workers[at]
    where = next(n for n, file in enumerate(state.files) if file.name == worker.file)
    file = state.files[where]
    lines = tuple(line for line in file.lines if not line.settled)
    files = put(state.files, where, file._replace(lines=lines, compacted=True))
    ghost = state.ghost._replace(vague=True)
    return Step(
        "compact", name(worker), spend(world, state, "compact")._replace(files=files, ghost=ghost)
    )
