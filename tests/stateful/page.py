"""The truth: what each page stored, and what is still on its way to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import count

from publisher.engine.adapter import Task
from publisher.engine.content import Post
from publisher.engine.evidence import Candidate

LANDS_WITHIN = 30.0
"""Seconds after which what was written has reached the platform, or never will."""
SHOWS_AFTER = 25.0
"""Seconds until a slow platform's listing holds a post. Both together are below the horizon."""


class Kind(StrEnum):
    """What a platform can do; the word in ``channels.platform``."""

    LISTED = "listed"
    """Can be looked at; its listing is slow, and may leave posts out."""
    WHOLE = "whole"
    """Can be looked at; a clean look proves absence."""
    KEYED = "keyed"
    """Keeps one post per key for ever, whatever is still under way."""
    KEEPS = "keeps"
    """Keeps one post per key for an hour."""
    BLIND = "blind"
    """Cannot be looked at."""


KEY_LIVES = 3_600.0


@dataclass(slots=True)
class Stored:
    """A post on a page. ``key``: of the job it was sent for, which no look can see."""

    remote_id: str
    channel_id: int
    key: str
    text: str
    at: datetime
    platform_key: str | None
    is_hidden: bool

    @property
    def link(self) -> str:
        return f"https://page.test/{self.remote_id}"

    def shown(self) -> Candidate:
        return Candidate(self.remote_id, self.text, self.at, self.link)


@dataclass(slots=True)
class Request:
    """One request that left a worker. ``lands_by``: until then it lands, or never does."""

    channel_id: int
    kind: Kind
    key: str
    text: str
    platform_key: str | None
    token: str
    lands_by: datetime
    lands: bool = True
    hidden: bool = False


@dataclass(slots=True)
class Page:
    """All pages of one run, and the wire to them. ``half``: requests of which a part is written."""

    now: Callable[[], datetime]
    posts: list[Stored] = field(default_factory=list)
    flying: list[Request] = field(default_factory=list)
    half: dict[str, Task] = field(default_factory=dict)
    _numbers: count[int] = field(default_factory=lambda: count(1))

    def take(self, task: Task, *, hidden: bool) -> Request:
        """All of a request is written: it is on its way."""
        request = Request(
            channel_id=task.channel.id,
            kind=Kind(task.channel.platform),
            key=task.key,
            text=Post.from_json(task.content).text,
            platform_key=task.platform_key,
            token=task.token.hex,
            lands_by=self.now() + timedelta(seconds=LANDS_WITHIN),
            hidden=hidden,
        )
        self.flying.append(request)
        return request

    def store(self, request: Request) -> Stored:
        """It arrives, and the platform accepts it."""
        self.flying.remove(request)
        for post in self.posts:
            if self._is_repeated(post, request):
                return post
        post = Stored(
            remote_id=f"r{next(self._numbers)}",
            channel_id=request.channel_id,
            key=request.key,
            text=request.text,
            at=self.now(),
            platform_key=request.platform_key,
            is_hidden=request.hidden and request.kind is Kind.LISTED,
        )
        self.posts.append(post)
        return post

    def _is_repeated(self, post: Stored, request: Request) -> bool:
        if request.platform_key is None or post.platform_key != request.platform_key:
            return False
        lives = timedelta(seconds=KEY_LIVES)
        return request.kind is Kind.KEYED or self.now() - post.at < lives

    def vanish(self, request: Request) -> None:
        """It never arrives, or is refused."""
        self.flying.remove(request)

    def of(self, key: str) -> list[Stored]:
        """What is on a page for this job."""
        return [post for post in self.posts if post.key == key]

    def may_arrive(self, key: str) -> bool:
        """Whether anything of it is still on its way, or half written by somebody alive."""
        return any(request.key == key for request in self.flying) or any(
            task.key == key for task in self.half.values()
        )

    def listing(self, channel_id: int, kind: Kind) -> list[Stored]:
        """What a look at this page sees."""
        delay = timedelta(seconds=SHOWS_AFTER if kind in {Kind.LISTED, Kind.WHOLE} else 0.0)
        return [
            post
            for post in self.posts
            if post.channel_id == channel_id
            and not post.is_hidden
            and post.at + delay <= self.now()
        ]
