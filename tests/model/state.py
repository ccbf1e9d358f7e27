"""What the model's world is made of: the journal, processes, their files, the wire, the page.

Everything is a tuple, so that a state is a dictionary key. Tokens and doubts are fresh identities:
numbers that ``settled`` (below) gives anew by first appearance, so that two states that differ in
names alone are one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

SCHEDULED: Final = "scheduled"
CLAIMED: Final = "claimed"
SENDING: Final = "sending"
PUBLISHED: Final = "published"
FAILED: Final = "failed"
UNKNOWN: Final = "unknown"
MISSED: Final = "missed"
CANCELLED: Final = "cancelled"
DROPPED: Final = "dropped"
ENDED: Final = frozenset({PUBLISHED, FAILED, MISSED, CANCELLED, DROPPED})

NOT_SENT: Final = "not_sent"
REFUSED: Final = "refused"
ABSENT: Final = "absent"
REPEAT_SAFE: Final = "repeat_safe"
FORCED: Final = "forced"

PERSON: Final = "person"
QUARANTINE: Final = "quarantine"


class Job(NamedTuple):
    """The row. ``since``: which doubt or quarantine it is in, 0 for none.

    ``repeats``: its next send repeats an earlier one under its key. ``doubtful``: it had ended
    when a quarantine was opened, so it comes back into that. ``live``: how it is known to be.
    """

    state: str = SCHEDULED
    token: int = 0
    run: int = -1
    hold: str = ""
    held_before: str = ""
    since: int = 0
    repeats: bool = False
    doubtful: bool = False
    live: str = ""


class Attempt(NamedTuple):
    """A begun send; its number is its place, from 1.

    ``end``: empty while open; ``rescued`` and ``drained`` are doubts that say nothing of the hand,
    ``doubt``, ``live`` and ``no`` are its own word. ``started`` is nobody's knowledge: whether a
    hand came as far as its start line.
    """

    token: int
    run: int
    end: str = ""
    proof: str = ""
    started: bool = False


class Run(NamedTuple):
    """A worker run's row; its number is its place, and a restored journal gives it out again."""

    file: int
    ended: bool = False


class Journal(NamedTuple):
    """The database: all of it that a restore takes back."""

    job: Job
    attempts: tuple[Attempt, ...] = ()
    runs: tuple[Run, ...] = ()


class Worker(NamedTuple):
    """A living process with one hand, as it remembers; it holds its ``file``'s lock.

    ``late``: its permit has lapsed. ``over``: so has the lease of its claim. ``word``: what the
    look or the call came to. ``number``: that of its attempt; before, how many there were when it
    claimed.
    """

    file: int
    run: int
    at: str = "idle"
    token: int = 0
    number: int = 0
    word: str = ""
    late: bool = False
    over: bool = False
    parked: bool = False


class Line(NamedTuple):
    """What a file says of one attempt. ``settled``: the worker no longer carries it."""

    token: int
    number: int
    started: bool = False
    word: str = ""
    settled: bool = False


class File(NamedTuple):
    """A worker run's own file. ``run``: the number its head names."""

    name: int
    run: int
    lines: tuple[Line, ...] = ()
    compacted: bool = False
    rebooted: bool = False
    whole: bool = True
    told: bool = False
    """A quarantine was opened for what it names."""


class Request(NamedTuple):
    """A send on its way. ``going``: ``flying``, ``promised`` (answered, lands later or never),

    ``unfiled`` (on the page, its key not yet noted), or empty. ``answer``: on its way back.
    """

    token: int
    going: str
    answer: str = ""
    file: int = 0
    """Whose bytes they are."""


class Look(NamedTuple):
    """Somebody looks at the page: what they look for, and what they saw as they began.

    ``clear``: the sender was proved gone by then and what it wrote had landed, as far as the
    journal knows. ``after``: nothing of lost sends could arrive any more.
    """

    who: str
    since: int
    number: int
    token: int
    latest: int
    clear: bool
    seen: str
    after: bool = False


class Ghost(NamedTuple):
    """What excuses, or accuses: nobody in the model acts by it."""

    lied: bool = False
    """A platform stored a post and answered with a listed refusal."""
    missed: bool = False
    """A worker's look before a second send did not show what was there."""
    wrong: bool = False
    """A person said it was absent while it was on the page."""
    vague: bool = False
    """A witness was lost: compacted, rebooted, damaged."""
    unheard: bool = False
    """An answer that says published was put away, and no row holds it."""


class State(NamedTuple):
    """Everything. ``key``: 0 alive, 1 too late for us, 2 forgotten by the platform.

    ``lost``: empty, ``unseen`` once commits are gone, ``seen`` once the witness told.
    ``landed``: nothing of the lost sends can arrive any more. ``spent``: faults so far.
    """

    journal: Journal
    workers: tuple[Worker, ...] = ()
    files: tuple[File, ...] = ()
    wire: tuple[Request, ...] = ()
    page: int = 0
    looks: tuple[Look, ...] = ()
    key: int = 0
    lost: str = ""
    landed: bool = False
    backup: Journal | None = None
    ghost: Ghost = Ghost()
    spent: tuple[int, ...] = ()


class Step(NamedTuple):
    """One move. ``event``: what it is to the job, in the words of ``transitions``, or empty.

    ``was`` and ``became`` are the job's states around it.
    """

    verb: str
    who: str
    state: State
    event: str = ""
    was: str = ""
    became: str = ""


ENDLESS: Final = 99
"""A fault that may happen so often is not counted."""
FAULTS: Final = (
    "crash", "reboot", "damage", "compact", "unacknowledged", "restore", "lie", "wrong", "drain",
    "interrupt",
)  # fmt: skip


FENCES: Final = frozenset({
    "begin matches the token", "a settle matches its token", "begin commits before the first byte",
    "a file is read under its lock",
})  # fmt: skip
"""Rules whose break lets a claim that was taken away act all the same."""


@dataclass(frozen=True, slots=True)
class World:
    """What may happen, and how often. Every number is a bound of the search.

    ``can_look``, ``exhaustive``, ``key`` (``""``, ``life``, ``atomic``) and ``requeues`` are the
    platform's capabilities and its channel's policy.
    """

    name: str
    can_look: bool = True
    exhaustive: bool = False
    key: str = ""
    requeues: bool = False
    attempts: int = 2
    workers: int = 2
    looks: int = 1
    runs: int = 3
    faults: tuple[tuple[str, int], ...] = ()
    reconciler: bool = False
    people: bool = False
    edits: bool = False
    late: bool = False
    foreign: bool = False
    strangers: bool = False
    """Others' look-alikes are on the page: a look may see a candidate that is not ours."""
    answers: tuple[str, ...] = ("published", "unclear", "refused")
    shown: tuple[str, ...] | None = None
    """What looks may show, whatever is on the page: for replaying what real looks showed."""
    broken: frozenset[str] = frozenset()

    def keeps(self, rule: str) -> bool:
        """Whether this rule is kept: a broken variant breaks one."""
        return rule not in self.broken

    @property
    def keeps_every_fence(self) -> bool:
        """Whether a lost claim can do nothing any more."""
        return not self.broken & FENCES

    def budget(self, fault: str) -> int:
        """How often this fault may happen."""
        return dict(self.faults).get(fault, 0)


def start(world: World) -> State:
    """One approved post, scheduled and due."""
    return State(Journal(Job()), spent=tuple(0 for _ in FAULTS))


def may_spend(world: World, state: State, fault: str) -> bool:
    """Whether this fault may happen once more."""
    return state.spent[FAULTS.index(fault)] < world.budget(fault)


def spend(world: World, state: State, fault: str) -> State:
    """Count this fault."""
    if world.budget(fault) >= ENDLESS:
        return state
    at = FAULTS.index(fault)
    spent = state.spent
    return state._replace(spent=(*spent[:at], spent[at] + 1, *spent[at + 1 :]))


def fresh(state: State) -> int:
    """An identity that nobody has had."""
    return max(_identities(state), default=0) + 1


def _identities(state: State) -> list[int]:
    found = _of_journal(state.journal)
    found += [worker.token for worker in state.workers]
    found += [line.token for file in state.files for line in file.lines]
    found += [request.token for request in state.wire]
    found += [each for look in state.looks for each in (look.since, look.token)]
    if state.backup is not None:
        found += _of_journal(state.backup)
    return found


def _of_journal(journal: Journal) -> list[int]:
    found = [attempt.token for attempt in journal.attempts]
    found += (journal.job.token, journal.job.since)
    return found


def put(many: tuple[Any, ...], at: int, *new: object) -> tuple[Any, ...]:
    """The tuple with what stands at this place replaced by ``new``, which may be nothing."""
    return (*many[:at], *new, *many[at + 1 :])


def renamed(world: World, state: State) -> State:
    """The state with every identity numbered by its first appearance."""
    names: dict[int, int] = {0: 0}
    same = True
    for identity in _identities(state):
        if identity not in names:
            names[identity] = len(names)
            same = same and names[identity] == identity
    if not same:
        state = _renamed(state, names)
    if not world.budget("restore"):
        state = _renumbered(state)
    return state


def _renamed(state: State, names: dict[int, int]) -> State:
    def journal(old: Journal) -> Journal:
        job = old.job
        return old._replace(
            job=job._replace(token=names[job.token], since=names[job.since]),
            attempts=tuple(a._replace(token=names[a.token]) for a in old.attempts),
        )

    return state._replace(
        journal=journal(state.journal),
        workers=tuple(w._replace(token=names[w.token]) for w in state.workers),
        files=tuple(
            f._replace(lines=tuple(line._replace(token=names[line.token]) for line in f.lines))
            for f in state.files
        ),
        wire=tuple(sorted(r._replace(token=names[r.token]) for r in state.wire)),
        looks=tuple(
            look._replace(since=names[look.since], token=names[look.token]) for look in state.looks
        ),
        backup=None if state.backup is None else journal(state.backup),
    )


def _renumbered(state: State) -> State:
    """Number worker runs by first appearance, and forget those that nothing speaks of."""
    journal = state.journal
    order = [attempt.run for attempt in journal.attempts]
    order += [worker.run for worker in sorted(state.workers, key=_told_apart)]
    order += [file.run for file in state.files]
    order.append(journal.job.run)
    number = {-1: -1}
    for run in order:
        number.setdefault(run, len(number) - 1)
    if len(number) == len(journal.runs) + 1 and all(old == new for old, new in number.items()):
        return state
    kept = sorted((new, old) for old, new in number.items() if old >= 0)
    return state._replace(
        journal=Journal(
            journal.job._replace(run=number[journal.job.run]),
            tuple(a._replace(run=number[a.run]) for a in journal.attempts),
            tuple(Run(new, journal.runs[old].ended) for new, old in kept),
        ),
        workers=tuple(
            sorted(w._replace(run=number[w.run], file=number[w.run]) for w in state.workers)
        ),
        files=tuple(sorted(f._replace(run=number[f.run], name=number[f.run]) for f in state.files)),
        wire=tuple(r._replace(file=number.get(r.file, -1)) for r in state.wire),
    )


def _told_apart(worker: Worker) -> tuple[object, ...]:
    return worker[2:]
