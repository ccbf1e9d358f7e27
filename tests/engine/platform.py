"""A platform in memory that does as it is told, and keeps its own count of what is on its page."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count
from threading import Event, Lock

from publisher.engine.adapter import (
    Capabilities,
    ChannelHealth,
    LookQuery,
    Problem,
    Promise,
    Ready,
    SendPermit,
    Step,
    Task,
)
from publisher.engine.errors import PermitError
from publisher.engine.evidence import (
    Candidate,
    Evidence,
    Found,
    Inconclusive,
    Mismatch,
    NotThisPost,
)
from publisher.engine.job import Channel
from publisher.engine.outcome import (
    Answer,
    Deferred,
    Outcome,
    Proof,
    Published,
    Reason,
    Rejected,
    Unauthorized,
    Unknown,
)

REFUSED = "fake:400"


@dataclass
class Page:
    """What the platform has. ``calls``: requests that reached it, by key."""

    on_it: Counter[str] = field(default_factory=Counter)
    calls: Counter[str] = field(default_factory=Counter)
    ids: dict[str, str] = field(default_factory=dict)
    _numbers: count[int] = field(default_factory=lambda: count(1))
    _lock: Lock = field(default_factory=Lock)

    def take(self, key: str) -> str:
        """Put a post on the page."""
        with self._lock:
            self.on_it[key] += 1
            self.ids[key] = f"{key}#{next(self._numbers)}"
            return self.ids[key]


Act = Callable[[Task, SendPermit, Page], Outcome]


def accept(task: Task, permit: SendPermit, page: Page) -> Outcome:
    permit.use()
    page.calls[task.key] += 1
    remote_id = page.take(task.key)
    return Published(remote_id, f"https://example.org/{remote_id}", answer=Answer(status=200))


def lose_answer(task: Task, permit: SendPermit, page: Page) -> Outcome:
    accept(task, permit, page)
    return Unknown(Reason.NO_ANSWER, "nothing came back")


def break_after(task: Task, permit: SendPermit, page: Page) -> Outcome:
    accept(task, permit, page)
    message = "the adapter broke"
    raise RuntimeError(message)


def break_before(_task: Task, _permit: SendPermit, _page: Page) -> Outcome:
    message = "the adapter broke"
    raise RuntimeError(message)


def lie_about_sending(task: Task, permit: SendPermit, page: Page) -> Outcome:
    accept(task, permit, page)
    return Deferred(Reason.CONNECT_FAILED, "nobody there")


def refuse_without_a_row(task: Task, permit: SendPermit, page: Page) -> Outcome:
    accept(task, permit, page)
    return Rejected(Reason.CONTENT_REFUSED, "no")


def revoke_without_a_row(task: Task, permit: SendPermit, page: Page) -> Outcome:
    accept(task, permit, page)
    return Unauthorized(Reason.NEEDS_RECONNECTING, "who are you")


def defer_without_a_row(task: Task, permit: SendPermit, page: Page) -> Outcome:
    accept(task, permit, page)
    return Deferred(Reason.RATE_LIMITED, "later", proof=Proof.REFUSED)


def claim_success_unsent(task: Task, _permit: SendPermit, _page: Page) -> Outcome:
    return Published(f"made up {task.key}")


def unreachable(_task: Task, _permit: SendPermit, _page: Page) -> Outcome:
    return Deferred(Reason.CONNECT_FAILED, "nobody there")


def _refusing(outcome: Outcome) -> Act:
    def act(task: Task, permit: SendPermit, page: Page) -> Outcome:
        permit.use()
        page.calls[task.key] += 1
        return outcome

    return act


refuse = _refusing(Rejected(Reason.CONTENT_REFUSED, "no", row=REFUSED))
busy = _refusing(Deferred(Reason.BUSY, "later", proof=Proof.REFUSED, row=REFUSED))
limit = _refusing(
    Deferred(Reason.RATE_LIMITED, "slow", proof=Proof.REFUSED, row=REFUSED, rest_channel=True)
)
token_refused = _refusing(Unauthorized(Reason.NEEDS_RECONNECTING, "expired", row="fake:190"))


def lie(task: Task, permit: SendPermit, page: Page) -> Outcome:
    """Store the post, then refuse it."""
    accept(task, permit, page)
    return Deferred(Reason.BUSY, "later", proof=Proof.REFUSED, row=REFUSED)


class Stuck:
    """An act that waits, before or after its write, until it is let go."""

    def __init__(self, *, after_write: bool = True) -> None:
        self.reached = Event()
        self.let_go = Event()
        self._after_write = after_write

    def __call__(self, task: Task, permit: SendPermit, page: Page) -> Outcome:
        outcome = accept(task, permit, page) if self._after_write else None
        self.reached.set()
        assert self.let_go.wait(30)
        try:
            return outcome or accept(task, permit, page)
        except PermitError:
            return Deferred(Reason.PERMIT_LATE, "its permit was taken back")


@dataclass
class Fake:
    """The adapter. ``acts`` and ``steps`` are played in order, by key; then all goes well."""

    page: Page = field(default_factory=Page)
    platform: str = "fake"
    can_look: bool = True
    acts: defaultdict[str, deque[Act]] = field(default_factory=lambda: defaultdict(deque))
    steps: defaultdict[str, deque[Step | Exception]] = field(
        default_factory=lambda: defaultdict(deque)
    )
    evidence: deque[Evidence | Exception] = field(default_factory=deque)
    looks: list[LookQuery] = field(default_factory=list)
    stepped: list[Task] = field(default_factory=list)
    prepare: Callable[[Task], Ready | None] | None = None

    def capabilities(self, content: str, progress: object = None) -> Capabilities:  # noqa: ARG002
        return Capabilities(
            format="text", noun="post", promise=Promise.AT_MOST_ONCE_WITH_EVIDENCE,
            can_look=self.can_look, listing_is_exhaustive=False, text_limit=1000,
        )  # fmt: skip

    def problems(self, content: str) -> tuple[Problem, ...]:  # noqa: ARG002 - the port's names
        return ()

    def platform_key(self, key: str, at: datetime) -> str | None:  # noqa: ARG002 - the port's names
        return None

    def prepared(self, task: Task) -> Ready | None:
        if self.prepare is not None:
            return self.prepare(task)
        return None if self.steps[task.key] else Ready(task.progress)

    def step(self, task: Task) -> Step:
        self.stepped.append(task)
        step = self.steps[task.key].popleft()
        if isinstance(step, Exception):
            raise step
        return step

    def publish(self, task: Task, ready: Ready, permit: SendPermit) -> Outcome:  # noqa: ARG002 - the port's names
        acts = self.acts[task.key]
        return (acts.popleft() if acts else accept)(task, permit, self.page)

    def look(self, query: LookQuery) -> Evidence:
        self.looks.append(query)
        if self.evidence:
            seen = self.evidence.popleft()
            if isinstance(seen, Exception):
                raise seen
            return seen
        found = self.page.ids.get(query.task.key)
        if found is None or found in query.bound:
            return Inconclusive("not seen", searched=len(self.page.ids), clean=True)
        return Found(found, f"https://example.org/{found}")

    def identify(self, query: LookQuery, given: str) -> Candidate | NotThisPost:  # noqa: ARG002
        return NotThisPost(Mismatch.UNREADABLE, "nobody asks this of a worker")

    def check(self, channel: Channel) -> ChannelHealth:  # noqa: ARG002 - the port's names
        return ChannelHealth(usable=True, detail="")
