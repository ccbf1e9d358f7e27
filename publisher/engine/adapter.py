"""The port: what a platform must be able to do, and what it says about itself.

An adapter is given a ``Task`` and answers with values. It keeps no state between calls, touches
no database, and sends in one place only: ``publish``, with a permit it cannot make itself.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from threading import Lock
from typing import Protocol

from publisher.engine.errors import PermitLate, PermitUsed
from publisher.engine.evidence import Candidate, Evidence, NotThisPost
from publisher.engine.job import Channel, JobId, Token
from publisher.engine.outcome import Deferred, Outcome, Rejected, Unauthorized, Withdrawal

Progress = Mapping[str, object]
"""JSON an adapter keeps between steps, such as the ids of uploaded photos."""


class Promise(StrEnum):
    """What a platform allows us to promise."""

    EXACTLY_ONCE = "exactly once"
    SAFE_WHILE_THE_KEY_LIVES = "safe while the key lives"
    AT_MOST_ONCE_WITH_EVIDENCE = "at most once, with evidence"
    AT_MOST_ONCE_WITHOUT_EVIDENCE = "at most once, no evidence"


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a platform can do for one format. Pages, checks and the judge read nothing else.

    ``can_look``: a look may find the post. ``listing_is_exhaustive``: a clean look may prove that
    it is absent. ``repeat_for``: seconds a platform key makes a repeat safe (``inf``: for ever),
    None where there is no key. ``repeat_is_atomic``: the key holds even while the first request
    is still under way. ``text_unit``: how ``text_limit`` counts. ``queue``: the lane its jobs are
    in. ``in_flight``: how many of a channel's may be under way at once; 1 keeps their order.
    ``can_delete``: a post may be taken down again, as far as the account's rights go.
    """

    format: str
    noun: str
    promise: Promise
    can_look: bool
    listing_is_exhaustive: bool
    text_limit: int
    text_unit: str = "characters"
    media_limit: int = 0
    media_types: tuple[str, ...] = ()
    media_bytes: int = 0
    can_delete: bool = False
    repeat_for: float | None = None
    repeat_is_atomic: bool = False
    queue: str = "publish"
    in_flight: int = 1


@dataclass(frozen=True, slots=True)
class Problem:
    """Something to fix before this content may be approved for this platform."""

    field: str
    code: str
    message: str


class SendPermit:
    """Leave to write one request. Made by ``ledger.begin_send`` alone, after its commit.

    It names the attempt and the content it is for, is used up by one write, and lapses at
    ``deadline`` on ``CLOCK_BOOTTIME``, which goes on while a machine sleeps.
    """

    __slots__ = (
        "_lock",
        "_revoked",
        "_used",
        "attempt",
        "budget",
        "channel_id",
        "content_sha256",
        "deadline",
        "job_id",
        "token",
    )

    def __init__(
        self,
        *,
        job_id: JobId,
        token: Token,
        attempt: int,
        channel_id: int,
        content_sha256: bytes,
        deadline: float,
        budget: float,
    ) -> None:
        self.job_id = job_id
        self.token = token
        self.attempt = attempt
        self.channel_id = channel_id
        self.content_sha256 = content_sha256
        self.deadline = deadline
        self.budget = budget
        self._used = False
        self._revoked = False
        self._lock = Lock()

    @property
    def used(self) -> bool:
        """Whether a write was allowed; False proves that no byte left under this permit."""
        return self._used

    def use(self) -> None:
        """Allow the write that follows at once. Called by transport just before the first byte.

        Raises ``PermitLate`` or ``PermitUsed``; nothing may be written then.
        """
        with self._lock:
            if self._used:
                raise PermitUsed
            if self._revoked or boottime() >= self.deadline:
                raise PermitLate
            self._used = True

    def revoke(self) -> bool:
        """Take the permit back. True: no byte has left under it and none ever will."""
        with self._lock:
            if not self._used:
                self._revoked = True
            return not self._used


def boottime() -> float:
    """Seconds since this machine booted, its sleep included."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


@dataclass(frozen=True, slots=True)
class Task:
    """What a hand works on: one claimed job, with everything its adapter may know."""

    job_id: JobId
    key: str
    kind: str
    token: Token
    channel: Channel
    content: str = field(repr=False)
    content_sha256: bytes
    progress: Progress
    platform_key: str | None
    attempts: int
    """Attempts begun before now."""


@dataclass(frozen=True, slots=True)
class Ready:
    """Everything harmless is done; ``progress`` is what ``publish`` needs."""

    progress: Progress


@dataclass(frozen=True, slots=True)
class More:
    """A step was done; keep ``progress`` and call again."""

    progress: Progress


@dataclass(frozen=True, slots=True)
class Wait:
    """The platform is still working; call again after ``seconds``. Counts no failure."""

    progress: Progress
    seconds: float
    reason: str


Step = Ready | More | Wait | Rejected | Deferred | Unauthorized


@dataclass(frozen=True, slots=True)
class LookQuery:
    """A question about one begun attempt: whether it is on the page.

    ``began_at``: the earliest instant its first byte may have left, on the database's clock.
    ``bound``: remote ids of this channel that belong to other jobs. ``remote_handle``: a clue the
    lost answer left. ``sender_is_gone``: nothing can arrive any more, so absence may be declared
    where the platform's listing is exhaustive.
    """

    task: Task
    began_at: datetime
    now: datetime
    bound: frozenset[str]
    remote_handle: str | None = None
    sender_is_gone: bool = False


@dataclass(frozen=True, slots=True)
class LivePost:
    """A post of ours that is on its page.

    ``content``: what was sent. ``answer``: the body of the platform's answer to it, as its attempt
    keeps it; empty where it was found by a look.
    """

    remote_id: str
    content: str = field(repr=False)
    answer: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class ChannelHealth:
    """What a read of the page with our credential showed."""

    usable: bool
    detail: str
    name: str | None = None
    expires_at: datetime | None = None


class MediaStore(Protocol):
    """Where an adapter reads the bytes of a picture or video that content names."""

    def read(self, sha256: str) -> Iterator[bytes]:
        """Yield the bytes in chunks. Raises ``KeyError`` when they are not there."""
        ...


class Adapter(Protocol):
    """One platform."""

    @property
    def platform(self) -> str:
        """The word in ``channels.platform``."""
        ...

    def capabilities(self, content: str, progress: Progress | None = None) -> Capabilities:
        """Say what this platform can do for the format of this content.

        ``progress``: what the job's steps have learnt of its server, where servers differ; without
        it the least that any of them can do.
        """
        ...

    def problems(self, content: str) -> tuple[Problem, ...]:
        """Say what the platform would refuse, without asking it. Pure."""
        ...

    def platform_key(self, key: str, at: datetime) -> str | None:
        """Mint the key by which the platform knows this job for ever, or None where it takes none.

        Pure: ``key`` is the job's own, ``at`` its first scheduled instant. Frozen with the job.
        """
        ...

    def prepared(self, task: Task) -> Ready | None:
        """``Ready`` where nothing needs doing before ``publish``, else None. Pure and quick."""
        ...

    def step(self, task: Task) -> Step:
        """Do one harmless, repeatable thing towards ``publish``."""
        ...

    def publish(self, task: Task, ready: Ready, permit: SendPermit) -> Outcome:
        """Send, once. Never raises for what the platform or the network does."""
        ...

    def look(self, query: LookQuery) -> Evidence:
        """Read the page for evidence. Never sends."""
        ...

    def identify(self, query: LookQuery, given: str) -> Candidate | NotThisPost:
        """Read the very post that a person names, by link or id, and say whether it is this one.

        Whether it is bound to another job is the ledger's to say, which names that job. Where the
        platform lets nobody read a post (``can_look`` is False), only the link is checked, and the
        candidate holds no text. Never sends, never raises for what platform or network do.
        """
        ...

    def withdraw(self, channel: Channel, post: LivePost) -> Withdrawal:
        """Take a post of ours down. Safe to repeat, also while an earlier call is under way.

        The caller answers for it that the post is ours. Never raises for what platform or network
        do.
        """
        ...

    def check(self, channel: Channel) -> ChannelHealth:
        """Read whether the credential still opens the page."""
        ...
