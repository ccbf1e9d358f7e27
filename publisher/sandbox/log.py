"""Reads a sandbox's log: what was on the pages, what was asked, what was answered.

The log is the platform's own word. It is read from the disk, so it can be read while the sandbox
runs, after it was killed, and without it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from publisher.sandbox.journal import facts
from publisher.sandbox.pages import Media, post_from

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from publisher.sandbox.journal import Fact


@dataclass(frozen=True, slots=True)
class LoggedPost:
    """A post that is, or was, on a page."""

    id: str
    page: str
    endpoint: str
    message: str
    link: str | None
    media: tuple[str, ...]
    created_at: datetime
    application: str | None
    request: str | None
    """Id of the request that made it; None when a control call put it there."""
    foreign: bool
    """Someone else's: not counted when looking for duplicates."""
    is_published: bool
    client_mutation_id: str | None
    deleted_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class LoggedRequest:
    """A request to a platform and what became of it."""

    id: str
    at: datetime
    method: str
    path: str
    page: str | None
    endpoint: str
    publishes: bool
    """Whether it was a call that puts a post on a page, had it been accepted."""
    message: str
    link: str | None
    media: tuple[str, ...]
    client_mutation_id: str | None
    behaviour: str
    posts: tuple[str, ...] = ()
    """Ids of our posts this request put on a page, also later."""
    status: int | None = None
    """Status of the answer, or None when none was to be sent."""
    code: int | None = None
    """The platform's own error code, where it is a number, also of one that was false."""
    answer: str | None = None
    """``sent``, ``spoiled`` or ``lost``; None when the sandbox died before it was decided."""
    repeats: str | None = None
    """Id of an older post that the platform knew this request to repeat, by the sender's key."""


@dataclass(frozen=True, slots=True)
class SandboxLog:
    """What a log says, in the order in which it happened."""

    posts: tuple[LoggedPost, ...] = ()
    """On their pages now."""
    ever_posted: tuple[LoggedPost, ...] = ()
    """Every post that was ever on a page, deleted ones too; no drafts."""
    requests: tuple[LoggedRequest, ...] = ()
    media: tuple[Media, ...] = ()
    promised: tuple[str, ...] = ()
    """Requests whose post is still to appear (``accept-late``)."""
    facts: int = 0

    def copies(self, message: str, page: str | None = None) -> int:
        """Count how often a text was put on a page (or on any) by the sender under test."""
        return sum(
            post.message == message and page in (None, post.page)
            for post in self.ever_posted
            if not post.foreign
        )

    def duplicates(self) -> dict[tuple[str, str], int]:
        """Return (page, message) → copies, for what the sender put there more than once."""
        counts = Counter((post.page, post.message) for post in self.ever_posted if not post.foreign)
        return {key: count for key, count in counts.items() if count > 1}


def read(directory: Path) -> SandboxLog:
    """Read the log in ``directory``; an empty one when there is none yet."""
    reader = _Reader()
    reader.read(facts(directory))
    return reader.log()


@dataclass(slots=True)
class _Reader:
    posts: dict[str, LoggedPost] = field(default_factory=dict)
    requests: dict[str, LoggedRequest] = field(default_factory=dict)
    media: dict[str, Media] = field(default_factory=dict)
    promised: dict[str, None] = field(default_factory=dict)
    count: int = 0

    def read(self, lines: Iterable[Fact]) -> None:
        for fact in lines:
            self.count += 1
            if take := _TAKE.get(fact["fact"]):
                take(self, fact)

    def log(self) -> SandboxLog:
        ever = tuple(post for post in self.posts.values() if post.is_published)
        return SandboxLog(
            posts=tuple(post for post in ever if post.deleted_at is None),
            ever_posted=ever,
            requests=tuple(self.requests.values()),
            media=tuple(self.media.values()),
            promised=tuple(self.promised),
            facts=self.count,
        )

    def take_request(self, fact: Fact) -> None:
        known = {key: fact[key] for key in _REQUEST_KEYS}
        self.requests[fact["request"]] = LoggedRequest(
            id=fact["request"], at=_time(fact["at"]), media=tuple(fact["media"]), **known
        )

    def take_stored(self, fact: Fact) -> None:
        post = post_from(fact["post"])
        if earlier := self.posts.pop(post.id, None):
            # A post that was taken down is put back under its old id: once more on the page.
            self.posts[f"{post.id} ({len(self.posts)})"] = earlier
        self.posts[post.id] = LoggedPost(
            post.id, post.page, post.endpoint, post.message, post.link, post.media,
            _time(post.created_at), post.application, post.request, post.foreign,
            post.is_published, post.client_mutation_id,
        )  # fmt: skip
        if post.request in self.requests and not post.foreign:
            request = self.requests[post.request]
            self.requests[request.id] = replace(request, posts=(*request.posts, post.id))
            self.promised.pop(request.id, None)

    def take_repeated(self, fact: Fact) -> None:
        if request := self.requests.get(fact["request"]):
            self.requests[request.id] = replace(request, repeats=fact["post"])
        self.promised.pop(fact["request"], None)

    def take_promised(self, fact: Fact) -> None:
        self.promised[fact["request"]] = None

    def take_edited(self, fact: Fact) -> None:
        post = post_from(fact["post"])
        self._change(post.id, message=post.message, link=post.link)

    def take_deleted(self, fact: Fact) -> None:
        self._change(fact["post"], deleted_at=_time(fact["at"]))

    def take_flipped(self, fact: Fact) -> None:
        self._change(fact["post"], is_published=True)

    def take_media(self, fact: Fact) -> None:
        self.media[fact["media"]["id"]] = Media(**fact["media"])

    def take_answer(self, fact: Fact) -> None:
        request = self.requests[fact["request"]]
        self.requests[request.id] = replace(
            request, status=fact["status"], code=fact["code"], answer=fact["answer"]
        )

    def _change(self, post_id: str, **changes: object) -> None:
        self.posts[post_id] = replace(self.posts[post_id], **changes)  # type: ignore[arg-type]


_TAKE: dict[str, Callable[[_Reader, Fact], None]] = {
    "request": _Reader.take_request,
    "stored": _Reader.take_stored,
    "promised": _Reader.take_promised,
    "repeated": _Reader.take_repeated,
    "edited": _Reader.take_edited,
    "deleted": _Reader.take_deleted,
    "flipped": _Reader.take_flipped,
    "media": _Reader.take_media,
    "answer": _Reader.take_answer,
}
"""What a fact changes; facts of other names are only reports."""

_REQUEST_KEYS = (
    "method", "path", "page", "endpoint", "publishes", "message", "link",
    "client_mutation_id", "behaviour",
)  # fmt: skip


def _time(at: float) -> datetime:
    return datetime.fromtimestamp(at, UTC)
