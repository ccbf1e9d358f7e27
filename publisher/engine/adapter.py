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


class TextUnit(StrEnum):
    """How a platform counts a text; ``publisher.limits.counting`` does it."""

    CHARACTERS = "characters"
    """Code points."""
    GRAPHEMES = "graphemes"
    """What a reader takes for one character."""
    UTF_16 = "UTF-16 units"
    BYTES = "bytes"
    """Of UTF-8."""
    WEIGHTS = "weighted characters"
    """X's: one for most letters, two for the rest."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a platform can do for one format. Pages, checks and the judge read nothing else.

    ``can_look``: a look may find the post. ``listing_is_exhaustive``: a clean look may prove that
    it is absent. ``repeat_for``: seconds a platform key makes a repeat safe (``inf``: for ever),
    None where there is no key. ``repeat_is_atomic``: the key holds even while the first request
    is still under way. ``queue``: the lane its jobs are in. ``in_flight``: how many of a channel's
    may be under way at once; 1 keeps their order. ``can_delete``: a post may be taken down again,
    as far as the account's rights go. ``delete_repeats``: that may be asked for again, also while
    an earlier call is under way: ids are never given twice, and what is gone is answered as gone.

    The rest are limits, for ``publisher.limits``; a limit of None is none we know of.
    ``name``: the platform's, as a sentence has it. ``takes_posts``: False where content is a mail
    or an event. ``text_unit``: how ``text_limit`` counts; ``text_bytes`` bounds the UTF-8 besides.
    ``text_is_caption``: a text stands under its media, and ``text_limit`` is shorter for it.
    ``url_length``: what every URL in a text counts as. ``mentions_lose_domain``: ``@name@server``
    counts as ``@name``. ``tags_end_early``: a hashtag is cut at a mark of its own or a ZWNJ.
    ``link_in_text``: a link has no field, and is sent and counted behind the text.
    ``link_with_media``: a post may have both. ``link_bytes``: of its address.
    ``media_kinds``: what it takes in any format, while count, types and bytes are this format's.
    ``mixes_media``: photos and videos in one post. ``fetches_media``: it takes an address for a
    file. ``media_pixels``: width times height; ``media_sides``: width plus height;
    ``media_ratio``: the longer side by the shorter. ``alt_limit``: characters; 0 where it takes
    none. ``comment_limit``: the same of a first comment.
    """

    format: str
    noun: str
    promise: Promise
    can_look: bool
    listing_is_exhaustive: bool
    text_limit: int
    text_unit: TextUnit = TextUnit.CHARACTERS
    media_limit: int = 0
    media_types: tuple[str, ...] = ()
    media_bytes: int = 0
    can_delete: bool = False
    delete_repeats: bool = False
    repeat_for: float | None = None
    repeat_is_atomic: bool = False
    queue: str = "publish"
    in_flight: int = 1
    name: str = ""
    takes_posts: bool = True
    text_bytes: int | None = None
    text_is_caption: bool = False
    url_length: int | None = None
    mentions_lose_domain: bool = False
    tags_end_early: bool = False
    link_in_text: bool = False
    link_with_media: bool = True
    link_bytes: int = 2_048
    media_kinds: tuple[str, ...] = ()
    mixes_media: bool = False
    fetches_media: bool = False
    media_pixels: int | None = None
    media_sides: int | None = None
    media_ratio: float | None = None
    media_seconds: float | None = None
    alt_limit: int | None = None
    comment_limit: int = 0


class Severity(StrEnum):
    """Whether a problem stands in the way."""

    FIX = "fix"
    """The post may be kept as a draft; it is not approved, imported or sent like this."""
    NOTE = "note"
    """Worth knowing before approval; it stops nothing."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Something about a post that a person should change before it is approved.

    ``field``: ``text``, ``link``, ``media``, ``media.2``, ``media.2.alt`` (counted from 1),
    ``first_comment``, ``channel``, or ``content`` for what cannot be read at all. ``what`` and
    ``fix``: what is wrong, and what to do; each is whole sentences, and ``fix`` may be empty.
    """

    field: str
    code: str
    what: str
    fix: str = ""
    severity: Severity = Severity.FIX

    @property
    def message(self) -> str:
        """Both in one."""
        return f"{self.what} {self.fix}".rstrip()


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
