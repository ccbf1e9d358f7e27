"""The pages and what is on them: built from the facts of the log, live and after a restart.

A *page* is an account of any of the platforms: a Facebook Page, a Bluesky repository, a Mastodon
account, a Telegram channel. Posts stand on pages.
"""

from __future__ import annotations

import base64
import hashlib
import time
from bisect import bisect_left, insort
from collections import Counter
from dataclasses import asdict, dataclass, field, replace
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
    """Unique over all platforms."""
    name: str
    token_sha256: str
    application: str = APPLICATION
    application_name: str = APPLICATION_NAME
    revoked_subcode: int | None = None
    """Set when the token is no longer good; Graph: 463 expired, 460 password changed, …"""
    platform: str = "graph"
    """The dialect its platform speaks."""
    details: dict[str, Any] = field(default_factory=dict)
    """What only its platform knows: a handle, a user name, a bot."""


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
    serial: int | None = None
    """The post's number, where its id does not end in one."""
    data: dict[str, Any] = field(default_factory=dict)
    """What only its platform knows: a record, a visibility, message ids."""

    @property
    def number(self) -> int:
        """A number that grows from post to post of a page; Graph: the id after the page."""
        return int(self.id.rpartition("_")[2]) if self.serial is None else self.serial

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
    name: str | None = None
    """What its platform calls it, where that is not the id: a CID, a file id."""
    ready_at: float | None = None
    """When it will have been processed; None: it is."""


def token_hash(token: str) -> str:
    """Return what is kept of a token."""
    return hashlib.sha256(token.encode()).hexdigest()


@dataclass(slots=True)
class Pages:
    """Everything that is true on the platforms now. Not locked: who changes it holds a lock.

    Pages are looked up without one, before a request is read.
    """

    pages: dict[str, Page] = field(default_factory=dict)
    posts: dict[str, Post] = field(default_factory=dict)
    """Live posts and drafts."""
    media: dict[str, Media] = field(default_factory=dict)
    deleted: dict[str, float] = field(default_factory=dict)
    promised: dict[str, tuple[float, Post]] = field(default_factory=dict)
    """Posts that will appear later, by request, with their due time."""
    by_token: dict[str, dict[str, Page]] = field(default_factory=dict)
    """SHA-256 of a token → the pages it is for, by id; a bot may have several."""
    walls: dict[str, list[Place]] = field(default_factory=dict)
    texts: Counter[tuple[str, str]] = field(default_factory=Counter)
    """(page, message) of posts that are on their page, counted."""
    named: dict[tuple[str, str], Media] = field(default_factory=dict)
    """(page, name) → the media last uploaded under that name."""
    keyed: dict[tuple[str, str], list[tuple[str, float]]] = field(default_factory=dict)
    """(page, the sender's own key) → posts made with it, and when; deleted ones too."""
    attached: dict[str, str] = field(default_factory=dict)
    """Media → the post that holds it."""
    serials: Counter[str] = field(default_factory=Counter)
    """Page → the highest number a post of it ever had."""
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
                self._add_media(Media(**fact["media"]))
            case "stored":
                self._store(post_from(fact["post"]))
            case "promised":
                post = post_from(fact["post"])
                self.promised[fact["request"]] = (fact["due"], post)
                # Its number is kept for it where an id was given out already; where a platform
                # numbers the posts of a page, it gets one when it lands.
                self.last_number = max(self.last_number, post.number)
            case "repeated":
                self.promised.pop(fact["request"], None)
            case "edited":
                self._edit(post_from(fact["post"]))
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

    def holders(self, token: str, platform: str) -> list[Page]:
        """Return the pages of a platform that a token is for."""
        held = self.by_token.get(token_hash(token), {})
        return [page for page in list(held.values()) if page.platform == platform]

    def holder(self, token: str, platform: str) -> Page | None:
        """Return the page a token is for, where a token has but one."""
        return next(iter(self.holders(token, platform)), None)

    def of(self, platform: str) -> list[Page]:
        """Return the pages of a platform."""
        return [page for page in list(self.pages.values()) if page.platform == platform]

    def _set_page(self, page: Page) -> None:
        if old := self.pages.get(page.id):
            self.by_token[old.token_sha256].pop(page.id)
        self.pages[page.id] = page
        self.by_token.setdefault(page.token_sha256, {})[page.id] = page
        self.walls.setdefault(page.id, [])

    def _add_media(self, media: Media) -> None:
        self.media[media.id] = media
        self.last_number = max(self.last_number, int(media.id))
        if media.name is not None:
            self.named[(media.page, media.name)] = media

    def _store(self, post: Post) -> None:
        self.posts[post.id] = post
        self.attached.update(dict.fromkeys(post.media, post.id))
        if post.client_mutation_id is not None:
            key = (post.page, post.client_mutation_id)
            self.keyed.setdefault(key, []).append((post.id, post.created_at))
        self._count(post)
        if post.request and not post.foreign:
            self.promised.pop(post.request, None)
        if post.is_published:
            insort(self.walls[post.page], post.place)
            self.texts[(post.page, post.message)] += 1

    def _count(self, post: Post) -> None:
        self.serials[post.page] = max(self.serials[post.page], post.number)
        self.last_number = max(self.last_number, post.number)

    def _edit(self, post: Post) -> None:
        """Change what a post says; where it stands stays."""
        old = self.posts[post.id]
        self.texts[(old.page, old.message)] -= 1
        self.texts[(post.page, post.message)] += 1
        self.posts[post.id] = post

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


def cursor(at: Place) -> str:
    """Write a place in a listing as an opaque word."""
    text = f"{at[0]!r} {at[1]} {at[2]}"
    return base64.urlsafe_b64encode(text.encode()).decode()


def place(word: str) -> Place:
    """Read what ``cursor`` wrote. Raises ``ValueError`` when it is something else."""
    at, number, post = base64.urlsafe_b64decode(word.encode()).decode().split(" ")
    return (float(at), int(number), post)


def post_from(data: dict[str, Any]) -> Post:
    """Read a post out of a fact."""
    return Post(**{**data, "media": tuple(data["media"])})


def to_fact(noun: Page | Post | Media) -> dict[str, Any]:
    """Write a noun into a fact."""
    return asdict(noun)


def _clock() -> int:
    return int(time.time() * 10_000)
