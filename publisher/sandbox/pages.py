"""The pages and what is on them: built from the facts of the log, live and after a restart."""

from __future__ import annotations

import hashlib
import time
from bisect import bisect_left, insort
from collections import Counter
from dataclasses import asdict, dataclass, field, replace
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from publisher.sandbox.journal import Fact

APPLICATION = "700000000000001"
APPLICATION_NAME = "Publisher"

Place = tuple[float, int, str]
"""Where a post stands in its listing: created_at, number, id."""


@dataclass(frozen=True, slots=True)
class Page:
    """A page and who may post on it. Of its token only the SHA-256 is kept."""

    id: str
    name: str
    token_sha256: str
    application: str = APPLICATION
    application_name: str = APPLICATION_NAME
    revoked_subcode: int | None = None
    """Set when the token is no longer good: 463 expired, 460 password changed, …"""


@dataclass(frozen=True, slots=True)
class Post:
    """A post as the page stores it. ``created_at`` is in unix seconds."""

    id: str
    page: str
    endpoint: str
    message: str
    link: str | None
    media: tuple[str, ...]
    created_at: float
    application: str | None
    application_name: str | None
    request: str | None
    """The request that made it; None when it was put there by a control call."""
    foreign: bool = False
    """Someone else's, not made through the API by the sender under test."""
    is_published: bool = True
    readable: bool = True
    client_mutation_id: str | None = None

    @property
    def number(self) -> int:
        """The part of the id after the page: unique for ever, and growing."""
        return int(self.id.rpartition("_")[2])

    @property
    def place(self) -> Place:
        """Where the post stands in its listing."""
        return (self.created_at, self.number, self.id)


@dataclass(frozen=True, slots=True)
class Media:
    """A photo or a video that was uploaded, or named by its address."""

    id: str
    page: str
    kind: str
    content_type: str | None
    """None when only its address is known; the sandbox fetches nothing."""
    url: str | None
    bytes: int
    created_at: float
    caption: str = ""
    post: str | None = None
    """The post it makes by itself; photos of a feed post name none."""


def token_hash(token: str) -> str:
    """Return what is kept of a token."""
    return hashlib.sha256(token.encode()).hexdigest()


def default_page(number: int) -> tuple[Page, str]:
    """Return the page 100 + ``number`` with its token: 101 is Page A, 102 Page B."""
    page = str(100 + number)
    token = f"sandbox-token-{page}"
    letter = ascii_uppercase[number - 1] if number <= len(ascii_uppercase) else page
    return Page(page, f"Page {letter}", token_hash(token)), token


@dataclass(slots=True)
class Pages:
    """Everything that is true on the platform now. Not locked: the caller holds a lock."""

    pages: dict[str, Page] = field(default_factory=dict)
    posts: dict[str, Post] = field(default_factory=dict)
    """Live posts and drafts."""
    media: dict[str, Media] = field(default_factory=dict)
    deleted: dict[str, float] = field(default_factory=dict)
    promised: dict[str, tuple[float, Post]] = field(default_factory=dict)
    """Posts that will appear later, by request, with their due time."""
    by_token: dict[str, Page] = field(default_factory=dict)
    walls: dict[str, list[Place]] = field(default_factory=dict)
    texts: Counter[tuple[str, str]] = field(default_factory=Counter)
    """(page, message) of posts that are on their page, counted."""
    last_number: int = 0

    def next_number(self) -> int:
        """Give out a number that no post and no upload ever had.

        A fresh log starts at the clock, in tenths of a millisecond, so that a sandbox whose log
        was thrown away does not hand out ids that someone still remembers.
        """
        self.last_number = max(self.last_number, 0 if self.last_number else _clock()) + 1
        return self.last_number

    def apply(self, fact: Fact) -> None:
        """Make one fact true; facts that are only reports change nothing."""
        match fact["fact"]:
            case "started":
                self.last_number = max(self.last_number, fact["number"])
            case "page":
                self._set_page(Page(**fact["page"]))
            case "media":
                media = Media(**fact["media"])
                self.media[media.id] = media
                self.last_number = max(self.last_number, int(media.id))
            case "stored":
                self._store(post_from(fact["post"]))
            case "promised":
                post = post_from(fact["post"])
                self.promised[fact["request"]] = (fact["due"], post)
                self.last_number = max(self.last_number, post.number)
            case "deleted":
                self._delete(fact["post"], fact.get("at", time.time()))
            case "flipped":
                self._flip(fact["post"])

    def wall(
        self, page: str, *, since: float | None = None, until: float | None = None,
        before: Place | None = None,
    ) -> Iterator[Post]:  # fmt: skip
        """Yield the published posts of a page, newest first.

        ``since`` and ``until`` are unix seconds, both included whole; ``before`` is a place from
        which to go on.
        """
        places = self.walls.get(page, [])
        end = len(places)
        if until is not None:
            end = bisect_left(places, (until + 1, 0, ""))
        if before is not None:
            end = min(end, bisect_left(places, before))
        start = 0 if since is None else bisect_left(places, (since, 0, ""))
        for index in range(end - 1, start - 1, -1):
            yield self.posts[places[index][2]]

    def _set_page(self, page: Page) -> None:
        if old := self.pages.get(page.id):
            self.by_token.pop(old.token_sha256, None)
        self.pages[page.id] = page
        self.by_token[page.token_sha256] = page
        self.walls.setdefault(page.id, [])

    def _store(self, post: Post) -> None:
        self.posts[post.id] = post
        self.last_number = max(self.last_number, post.number)
        if post.request and not post.foreign:
            self.promised.pop(post.request, None)
        if post.is_published:
            insort(self.walls[post.page], post.place)
            self.texts[(post.page, post.message)] += 1

    def _delete(self, post_id: str, at: float) -> None:
        post = self.posts.pop(post_id)
        self.deleted[post_id] = at
        if post.is_published:
            wall = self.walls[post.page]
            del wall[bisect_left(wall, post.place)]
            self.texts[(post.page, post.message)] -= 1

    def _flip(self, post_id: str) -> None:
        post = self.posts[post_id]
        if not post.is_published:
            self._store(replace(post, is_published=True))


def post_from(data: dict[str, Any]) -> Post:
    """Read a post out of a fact."""
    return Post(**{**data, "media": tuple(data["media"])})


def to_fact(noun: Page | Post | Media) -> dict[str, Any]:
    """Write a noun into a fact."""
    return asdict(noun)


def _clock() -> int:
    return int(time.time() * 10_000)
