"""A worker before it sends: claim, look before a second send, begin.

Nothing here waits for anything: a worker that is frozen is one whose next step has not come yet,
and every other actor may go on for as long as it likes between two of its steps.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.model import ledger
from tests.model.ledger import End, Wrote
from tests.model.state import (
    FAILED,
    FORCED,
    MISSED,
    NOT_SENT,
    PUBLISHED,
    REPEAT_SAFE,
    SCHEDULED,
    UNKNOWN,
    File,
    Request,
    State,
    Step,
    Worker,
    World,
    may_spend,
    put,
    spend,
)

BEFORE_SEND = frozenset({"begun", "opened", "started"})
"""Where a worker holds a permit that it has not used."""


def steps(world: World, state: State) -> Iterator[Step]:
    """What each worker may do next."""
    yield from _claims(world, state)
    for at, worker in enumerate(state.workers):
        match worker.at:
            case "claimed" | "looked":
                yield from _prepared(world, state, at)
            case "looking":
                yield _look_ends(world, state, at)
            case _:
                pass


def name(worker: Worker) -> str:
    """What a trace calls it."""
    return f"worker {worker.file}"


def moved(verb: str, who: str, before: State, wrote: Wrote, **changes: object) -> Step:
    """The step in which the journal became what was ``wrote``."""
    after = before._replace(journal=wrote.journal, **changes)
    return Step(verb, who, after, wrote.event, before.journal.job.state, wrote.journal.job.state)


def with_worker(state: State, at: int, /, **changes: object) -> tuple[Worker, ...]:
    return put(state.workers, at, state.workers[at]._replace(**changes))


def idle(state: State, at: int, *, parked: bool = False) -> tuple[Worker, ...]:
    worker = state.workers[at]
    parked = parked or worker.parked
    return put(state.workers, at, Worker(worker.file, worker.run, parked=parked))


# Claim


def _claims(world: World, state: State) -> Iterator[Step]:
    job = state.journal.job
    if job.state != SCHEDULED or job.hold:
        return
    if state.lost == "unseen" and world.keeps("the witness is asked before a claim"):
        return
    for at, worker in enumerate(state.workers):
        if worker.at == "idle" and not worker.parked and _is_known(world, state, worker):
            wrote = ledger.claim(state.journal, worker.run)
            earlier = len(state.journal.attempts)
            workers = with_worker(state, at, at="claimed", token=ledger.NEW_TOKEN, number=earlier)
            yield moved("claim", name(worker), state, wrote, workers=workers)
    yield from _claims_of_a_new_run(world, state)


def _is_known(world: World, state: State, worker: Worker) -> bool:
    """A restored journal may have forgotten this run, or given its number to another."""
    if not world.keeps("a run that is forgotten stops"):
        return True
    return ledger.registered(state.journal, worker.run, worker.file)


def _claims_of_a_new_run(world: World, state: State) -> Iterator[Step]:
    """A process that starts only now: one that had nothing to do until now is no different."""
    if len(state.workers) >= world.workers or len(state.journal.runs) >= world.runs:
        return
    named = {file.name for file in state.files} | {run.file for run in state.journal.runs}
    named |= {worker.file for worker in state.workers}
    if state.backup is not None:
        named |= {run.file for run in state.backup.runs}
    file = max(named, default=-1) + 1
    journal, run = ledger.register(state.journal, file)
    wrote = ledger.claim(journal, run)
    worker = Worker(file, run, "claimed", ledger.NEW_TOKEN, len(journal.attempts))
    yield moved(
        "claim", name(worker), state, wrote,
        workers=(*state.workers, worker), files=(*state.files, File(file, run)),
    )  # fmt: skip


# Prepare


def _prepared(world: World, state: State, at: int) -> Iterator[Step]:
    worker, journal = state.workers[at], state.journal
    yield from _gives_back(world, state, at)
    about = _to_look_at(worker, journal)
    must_look = bool(about) and worker.at == "claimed" and world.can_look
    if must_look and world.keeps("a look comes before a second send"):
        if journal.job.token == worker.token:
            yield from _looks(world, state, at)
        return
    yield from _begins(world, state, at)


def _to_look_at(worker: Worker, journal: ledger.Journal) -> int:
    """The first of the attempts it was told of when it claimed that needs a look."""
    told = journal.attempts[: worker.number]
    doubted = (n for n, a in enumerate(told, 1) if a.proof not in {NOT_SENT, REPEAT_SAFE})
    return next(doubted, 0)


_GIVEN_BACK = (
    End("release", SCHEDULED),
    End("wait", SCHEDULED),
    End("defer", SCHEDULED),
    End("defer", FAILED),
    End("unauthorized", SCHEDULED),
    End("reject", FAILED),
    End("expire", MISSED),
)


def _gives_back(world: World, state: State, at: int) -> Iterator[Step]:
    """What ends a claim before anything was sent; a claim that was lost is dropped."""
    worker = state.workers[at]
    if state.journal.job.token != worker.token:
        yield Step("drop", name(worker), state._replace(workers=idle(state, at)))
        return
    for end in _GIVEN_BACK:
        wrote = ledger.settle(world, state.journal, worker.token, end)
        if wrote is not None:
            yield moved("give back", name(worker), state, wrote, workers=idle(state, at))


def _looks(world: World, state: State, at: int) -> Iterator[Step]:
    worker = state.workers[at]
    for seen in seen_on(world, state):
        ghost = state.ghost
        if state.page and seen in {"nothing", "absent"}:
            ghost = ghost._replace(missed=True)
        yield Step(
            "look", name(worker),
            state._replace(workers=with_worker(state, at, at="looking", word=seen), ghost=ghost),
        )  # fmt: skip


def seen_on(world: World, state: State) -> tuple[str, ...]:
    """What a look may show just now: ``found``, ``nothing``, ``absent``, ``unclear``, ``like it``.

    ``like it``: something that could be ours, and cannot be told for certain.
    """
    if world.shown is not None:
        return tuple(seen for seen in world.shown if seen != "found" or state.page)
    if not world.can_look:
        return ()
    if state.page == 1:
        shown = ("found", "like it") if world.strangers else ("found", "unclear")
        return shown if world.exhaustive else (*shown, "nothing")
    if state.page > 1:
        return ("like it",) if world.exhaustive else ("like it", "nothing")
    proof = "absent" if world.exhaustive else "nothing"
    return (proof, "like it", "unclear") if world.strangers else (proof, "unclear")


def _look_ends(world: World, state: State, at: int) -> Step:
    worker, journal = state.workers[at], state.journal
    number = _to_look_at(worker, journal)
    is_forced = any(attempt.proof == FORCED for attempt in journal.attempts)
    if worker.word == "found" and number:
        return _found(world, state, at, number)
    if worker.word in {"nothing", "absent"} or is_forced:
        return Step(
            "see",
            name(worker),
            state._replace(workers=with_worker(state, at, at="looked", word="")),
        )
    wrote = ledger.settle(world, journal, worker.token, End("look_unclear", UNKNOWN))
    if wrote is None:
        return Step("drop", name(worker), state._replace(workers=idle(state, at)))
    return moved("see", name(worker), state, wrote, workers=idle(state, at))


def _found(world: World, state: State, at: int, number: int) -> Step:
    worker, journal = state.workers[at], state.journal
    end = End("confirm_published", PUBLISHED, "live")
    wrote = ledger.settle(world, journal, worker.token, end)
    if wrote is None:
        about = journal.attempts[number - 1].token
        wrote = ledger.record_late(world, journal, about, number, end)
        if wrote.said == "moved" and wrote.event != "publish":
            wrote = wrote._replace(event="confirm_published")
    return moved("see", name(worker), state, wrote, workers=idle(state, at))


# Begin


def _begins(world: World, state: State, at: int) -> Iterator[Step]:
    worker, journal = state.workers[at], state.journal
    if len(journal.attempts) >= world.attempts:
        return
    if not world.keeps("begin commits before the first byte"):
        yield _sends_unrecorded(state, at)
    is_over = worker.over and world.keeps("begin matches the token")
    if is_over or not ledger.may_begin(world, journal, worker.token):
        return
    if journal.job.repeats and state.key and world.keeps("a repeat ends with its key"):
        yield from _ends_otherwise(world, state, at, "repeat_ended")
        return
    if ledger.is_promised(world, journal):
        yield from _ends_otherwise(world, state, at, "look_unclear")
        return
    begun = ledger.begin(journal, worker.token, worker.run)
    number = len(begun.journal.attempts)
    workers = with_worker(state, at, at="begun", number=number, word="")
    yield moved("begin", name(worker), state, begun, workers=workers)
    if may_spend(world, state, "unacknowledged"):
        yield from _unacknowledged(world, spend(world, state, "unacknowledged"), at, begun)


def _ends_otherwise(world: World, state: State, at: int, event: str) -> Iterator[Step]:
    worker = state.workers[at]
    wrote = ledger.settle(world, state.journal, worker.token, End(event, UNKNOWN))
    if wrote is not None:
        yield moved("cannot begin", name(worker), state, wrote, workers=idle(state, at))


def _unacknowledged(world: World, state: State, at: int, begun: Wrote) -> Iterator[Step]:
    """The commit's answer is lost, applied or not: nothing may be sent under it."""
    worker = state.workers[at]
    number = len(begun.journal.attempts)
    ended = with_worker(state, at, at="told", number=number, word="not sent")
    if not world.keeps("nothing is sent under a begin that nobody confirmed"):
        ended = with_worker(state, at, at="begun", number=number, word="")
    yield moved("begin, unconfirmed", name(worker), state, begun, workers=ended)
    yield Step("begin, lost", name(worker), state._replace(workers=ended))


def _sends_unrecorded(state: State, at: int) -> Step:
    """A broken variant: the first byte before the record."""
    worker = state.workers[at]
    number = len(state.journal.attempts) + 1
    wire = (*state.wire, Request(worker.token, "flying", "", worker.file))
    workers = with_worker(state, at, at="sent", number=number)
    return Step("send", name(worker), state._replace(wire=wire, workers=workers))
