"""What a worker holds, and the messages between its coordinator and its hands."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from publisher.engine.adapter import Adapter, LookQuery, Progress, Ready, SendPermit, Step, Task
from publisher.engine.evidence import Evidence
from publisher.engine.job import Channel, JobId, Token
from publisher.engine.ledger import Claimed, EarlierAttempt, Replaced
from publisher.engine.outcome import Outcome, Proof
from publisher.engine.retry import Standing

_USEFUL_FOR_AT_MOST = timedelta(days=1)
_NEEDS_NO_LOOK = frozenset({Proof.NOT_SENT, Proof.REPEAT_SAFE})


@dataclass(slots=True)
class Held:
    """One claimed job in this worker's memory.

    ``lease_at``: boot clock, from before the lease was asked for. ``looked``: a look since the
    last attempt was clean. ``before``: sent jobs that this one replaces, of which ``searched`` were
    looked for and not seen. ``busy``: a hand is at it.
    """

    job: Claimed
    channel: Channel
    adapter: Adapter
    lease_at: float
    progress: Progress = field(default_factory=dict)
    earlier: tuple[EarlierAttempt, ...] = ()
    looked: bool = False
    before: tuple[Replaced, ...] = ()
    searched: int = 0
    busy: bool = False
    hand_recorded: bool = False
    permit: SendPermit | None = None
    _task: Task | None = None

    @property
    def id(self) -> JobId:
        """The job's number."""
        return self.job.id

    @property
    def key(self) -> tuple[JobId, Token]:
        """What the ledger is asked by."""
        return (self.job.id, self.job.token)

    @property
    def task(self) -> Task:
        """What an adapter may know of it; made anew when its progress is another."""
        if self._task is None or self._task.progress is not self.progress:
            self._task = self._new_task()
        return self._task

    def _new_task(self) -> Task:
        job = self.job
        return Task(
            job_id=job.id,
            key=job.key,
            kind=job.kind,
            token=job.token,
            channel=self.channel,
            content=job.content,
            content_sha256=bytes(job.content_sha256),
            progress=self.progress,
            platform_key=job.platform_key,
            attempts=job.attempts,
        )

    def standing(self, *, begun: bool) -> Standing:
        """What the retry policy needs to know."""
        job = self.job
        return Standing(
            failures=job.failures,
            ends_at=job.useful_until or job.due_at + _USEFUL_FOR_AT_MOST,
            begun=begun,
            sent=self.permit is not None and self.permit.used,
            can_look=self.can_look,
            attempt=None if self.permit is None else self.permit.attempt,
        )

    @property
    def to_look_at(self) -> EarlierAttempt | None:
        """The earlier attempt to look for before another send, if one must be looked for.

        None when there was none, or each has the proof that no byte of it left or that a repeat
        cannot double it.
        """
        doubtful = [a for a in self.earlier if a.proof not in _NEEDS_NO_LOOK]
        return doubtful[0] if doubtful else None

    @property
    def replaced(self) -> Replaced | None:
        """The next job to look for that this one replaces, before its own first send."""
        if self.job.attempts or self.searched >= len(self.before):
            return None
        return self.before[self.searched]

    @property
    def can_look(self) -> bool:
        """Whether this platform shows what is on the page."""
        return self.adapter.capabilities(self.job.content, self.progress).can_look

    @property
    def was_forced(self) -> bool:
        """A person took the risk of a second send: only ``Found`` stops it."""
        return any(a.proof == Proof.FORCED for a in self.earlier)


def current_progress(job: Claimed) -> Progress:
    """The stored progress, if it is about this very content; any other is discarded."""
    if job.progress is None or job.progress_sha256 is None:
        return {}
    if bytes(job.progress_sha256) != bytes(job.content_sha256):
        return {}
    return job.progress


# From the coordinator to a hand.


@dataclass(frozen=True, slots=True)
class DoStep:
    """Do the next harmless thing."""

    held: Held
    task: Task


@dataclass(frozen=True, slots=True)
class DoLook:
    """Look for an earlier attempt before a second send, or for one of a job ``replaced``."""

    held: Held
    query: LookQuery
    attempt: EarlierAttempt
    replaced: Replaced | None = None


@dataclass(frozen=True, slots=True)
class DoSend:
    """Make the one irreversible call."""

    held: Held
    task: Task
    ready: Ready
    permit: SendPermit


# From a hand to the coordinator.


@dataclass(frozen=True, slots=True)
class Stepped:
    """A step ended."""

    held: Held
    step: Step


@dataclass(frozen=True, slots=True)
class Looked:
    """A look ended; it took ``took`` seconds."""

    held: Held
    attempt: EarlierAttempt
    evidence: Evidence
    took: float
    replaced: Replaced | None = None


@dataclass(frozen=True, slots=True)
class Sent:
    """A send ended."""

    held: Held
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Wake:
    """Look again now: something was enqueued, or this process was told to stop."""


Order = DoStep | DoLook | DoSend
Report = Stepped | Looked | Sent | Wake
