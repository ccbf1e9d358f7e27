"""What any worker does for others: leases that ran out, and the files of the dead."""

from __future__ import annotations

from collections.abc import Iterator

from tests.model import ledger
from tests.model.acts.worker import moved
from tests.model.ledger import End, Wrote
from tests.model.state import (
    CLAIMED,
    NOT_SENT,
    SCHEDULED,
    SENDING,
    UNKNOWN,
    File,
    Journal,
    Line,
    State,
    Step,
    World,
    may_spend,
    put,
    spend,
)

_NOT_STARTED = End("defer", SCHEDULED, "no", NOT_SENT)


def steps(world: World, state: State) -> Iterator[Step]:
    """Leases at any moment; files once their lock is free."""
    yield from _leases(world, state)
    alive = {worker.file for worker in state.workers}
    for at, file in enumerate(state.files):
        if file.name not in alive or not world.keeps("a file is read under its lock"):
            yield from _reads(world, state, at, alive)


def _leases(world: World, state: State) -> Iterator[Step]:
    job = state.journal.job
    if job.state not in _held(world):
        return
    workers = tuple(
        worker._replace(over=worker.over or worker.token == job.token) for worker in state.workers
    )
    for poison in (False, True) if job.state == CLAIMED else (False,):
        wrote = ledger.rescue(world, state.journal, poison=poison)
        yield moved("rescue", "anybody", state, wrote, workers=workers)


def _held(world: World) -> frozenset[str]:
    """States in which a job is taken from a worker run that is no more."""
    claimed = {CLAIMED} if world.keeps("a claim is rescued") else set()
    return frozenset({SENDING} | claimed)


def _reads(world: World, state: State, at: int, alive: set[int]) -> Iterator[Step]:
    """The whole of a file, which is gone then; or some of it, by a reader that dies over it."""
    file = state.files[at]
    for replayed in _replay(world, state, at):
        journal = replayed.journal
        if file.name not in alive:
            if ledger.registered(journal, file.run, file.name):
                journal = ledger.end_run(journal, file.run)
            replayed = replayed._replace(files=put(state.files, at))  # noqa: PLW2901
        yield _read("read a file", state, replayed._replace(journal=journal))
    if may_spend(world, state, "interrupt"):
        after = spend(world, state, "interrupt")
        own, number = _own_unsettled(world, state, at)
        for settled in _settlings(world, state.journal, file, number):
            yield _read("read a file, interrupted", after, after._replace(journal=settled))
            forsaken = _forsaken(world, settled, file) if own else settled
            if forsaken != settled:
                partly = after._replace(journal=forsaken)
                yield _read("read a file, interrupted", after, partly)


def _read(verb: str, before: State, after: State) -> Step:
    wrote = Wrote(after.journal, _event(before, after.journal))
    return moved(verb, "anybody", after._replace(journal=before.journal), wrote)


def _event(state: State, journal: Journal) -> str:
    """What the reading came to for the job, in one word."""
    was, job = state.journal.job, journal.job
    if was.state == job.state:
        return ""
    known = {
        (UNKNOWN, "published"): "late_publish",
        (SENDING, "published"): "publish",
        (SENDING, UNKNOWN): "lease_expired",
        (CLAIMED, SCHEDULED): "lease_expired",
        (SCHEDULED, "published"): "late_publish",
        (CLAIMED, "published"): "late_publish",
        ("failed", "published"): "late_publish",
        ("missed", "published"): "late_publish",
        ("dropped", "published"): "late_publish",
        (SCHEDULED, UNKNOWN): "spool_found",
        (CLAIMED, UNKNOWN): "spool_found",
        ("failed", UNKNOWN): "spool_found",
        ("missed", UNKNOWN): "spool_found",
    }
    return known.get((was.state, job.state), "defer")


def _replay(world: World, state: State, at: int) -> Iterator[State]:
    """``Rescue._replay``: what it proves of unsettled attempts, then what is late or lost."""
    file, journal = state.files[at], state.journal
    own, number = _own_unsettled(world, state, at)
    but = journal.attempts[number - 1].token if number else 0
    for settled in _settlings(world, journal, file, number):
        forsaken = _forsaken(world, settled, file) if own else settled
        yield _late_or_lost(world, state._replace(journal=forsaken), file, but)


def _own_unsettled(world: World, state: State, at: int) -> tuple[bool, int]:
    """Whether the file's number is its run's own, and which attempt of it nobody settled."""
    file, journal = state.files[at], state.journal
    own = ledger.registered(journal, file.run, file.name)
    if not world.keeps("a number given out again is another's"):
        own = file.run < len(journal.runs)
    return own, _unsettled(journal, file.run) if own else 0


def _forsaken(world: World, journal: Journal, file: File) -> Journal:
    """What a run still holds is taken from it, whatever its leases say."""
    job = journal.job
    if job.state not in _held(world) or job.run != file.run:
        return journal
    return ledger.rescue(world, journal, poison=False).journal


def _unsettled(journal: Journal, run: int) -> int:
    """The number of the attempt whose end is not known, 0 for none."""
    job, attempts = journal.job, journal.attempts
    if not attempts or job.state not in {SENDING, UNKNOWN}:
        return 0
    last = attempts[-1]
    if last.run != run or last.proof or last.end not in {"", "rescued", "drained", "doubt"}:
        return 0
    return len(attempts)


def _settlings(world: World, journal: Journal, file: File, number: int) -> Iterator[Journal]:
    if not number:
        yield journal
        return
    attempt = journal.attempts[number - 1]
    line = next((line for line in file.lines if _is_about(world, line, attempt, number)), None)
    ends = _proved(world, file, line, attempt.end)
    if not ends or (line is None and world.shown is not None):
        # In a replay the file may have been compacted: other jobs' sends are not in the trace.
        yield journal
    for end in ends:
        yield ledger.record_late(world, journal, attempt.token, number, end).journal


def _is_about(world: World, line: Line, attempt: ledger.Attempt, number: int) -> bool:
    if not world.keeps("an answer matches its token"):
        return line.number == number
    return line.token == attempt.token


def _proved(world: World, file: File, line: Line | None, end: str) -> tuple[End, ...]:
    """What a file proves of an attempt, empty for nothing."""
    if line is not None and line.word and world.keeps("a file's answers are read"):
        return ledger.ends(world, line.word)
    if file.rebooted and world.keeps("a file of another boot proves no start"):
        return ()
    if not file.whole and world.keeps("a damaged file proves no start"):
        return ()
    if end not in {"", "rescued"}:
        return ()
    if line is None:
        may_have_started = file.compacted and world.keeps("a compacted file proves no start")
    else:
        may_have_started = line.started and world.keeps("a start line is read")
    return () if may_have_started else (_NOT_STARTED,)


def _late_or_lost(world: World, state: State, file: File, but: int) -> State:
    for line in file.lines:
        if not line.started or line.token == but:
            continue
        at = ledger.attempt_of(world, state.journal, line.token, line.number)
        if at < 0:
            state = _lost(world, state, file, line)
        elif line.word == "published" and state.journal.attempts[at].end != "live":
            state = _late(world, state, line)
    return state


def _late(world: World, state: State, line: Line) -> State:
    end = ledger.ends(world, "published")[0]
    wrote = ledger.record_late(world, state.journal, line.token, line.number, end)
    ghost = state.ghost
    if wrote.said == "kept" and not any(a.end == "live" for a in wrote.journal.attempts):
        ghost = ghost._replace(unheard=True)
    return state._replace(journal=wrote.journal, ghost=ghost)


def _lost(world: World, state: State, file: File, line: Line) -> State:
    """A begun send that the database lacks: others may be missing too."""
    if line.word == "not sent":
        return state
    journal = state.journal
    if not file.told:
        journal = ledger.quarantine(world, journal)
        state = state._replace(lost="seen", landed=False)
    if line.word == "published":
        wrote = ledger.publish_lost(world, journal)
        if wrote.event or journal.job.state == "published":
            return state._replace(journal=wrote.journal)
    return state._replace(journal=ledger.spool_found(world, journal).journal)
