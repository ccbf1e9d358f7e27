"""An adapter for each kind of platform. What comes of a call is decided while it is under way."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from publisher.engine.adapter import (
    Capabilities,
    ChannelHealth,
    LookQuery,
    More,
    Problem,
    Progress,
    Promise,
    Ready,
    SendPermit,
    Step,
    Task,
    Wait,
)
from publisher.engine.content import Post
from publisher.engine.errors import PermitError
from publisher.engine.evidence import Candidate, Evidence, Inconclusive, Mismatch, NotThisPost
from publisher.engine.job import Channel
from publisher.engine.matching import Listing, Sought, match
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
from publisher.engine.recognition import recognise, refuse
from tests.stateful.baton import current, pause
from tests.stateful.page import KEY_LIVES, Kind, Page, Request, Stored

ROW = "page:400"
BUDGET = 300.0


class Fate(StrEnum):
    """What comes of a send."""

    ACCEPT = "accept"
    LOSE_ANSWER = "accept, and lose the answer"
    LATE = "answer nothing; it may land later"
    NEVER = "cut; it never arrives"
    UNREACHABLE = "unreachable"
    REFUSE = "refuse for good"
    BUSY = "refuse for now"
    LIMIT = "too many posts"
    REVOKED = "token refused"
    LIE_REJECT = "accept, and say refused for good"
    LIE_BUSY = "accept, and say refused for now"
    OTHERS_ID = "accept, and name an older post"
    NO_ID = "accept, and name none"
    BREAK = "accept; then the adapter breaks"


_STORES = frozenset({
    Fate.ACCEPT, Fate.LOSE_ANSWER, Fate.LIE_REJECT, Fate.LIE_BUSY, Fate.OTHERS_ID, Fate.NO_ID,
    Fate.BREAK,
})  # fmt: skip


_LIES = frozenset({Fate.LIE_REJECT, Fate.LIE_BUSY})
_REFUSED = Rejected(
    Reason.CONTENT_REFUSED, "no", row=ROW, validated_before_storing=True,
    answer=Answer(status=400),
)  # fmt: skip
_BUSY = Deferred(Reason.BUSY, "come again", proof=Proof.REFUSED, row=ROW, answer=Answer(status=400))
_LIMITED = Deferred(
    Reason.RATE_LIMITED, "slow", proof=Proof.REFUSED, row=ROW, rest_channel=True,
    retry_after=60.0, validated_before_storing=True, answer=Answer(status=429),
)  # fmt: skip
_REVOKED = Unauthorized(
    Reason.NEEDS_RECONNECTING, "expired", row=ROW, validated_before_storing=True,
    answer=Answer(status=401),
)  # fmt: skip
# What is said where it is not simply "it is live".
_SAID: Mapping[Fate, Outcome] = {
    Fate.LOSE_ANSWER: Unknown(Reason.NO_ANSWER, "nothing came back"),
    Fate.LATE: Unknown(Reason.NO_ANSWER, "nothing came back"),
    Fate.NEVER: Unknown(Reason.CONNECTION_LOST, "cut"),
    Fate.UNREACHABLE: Unknown(Reason.CONNECTION_LOST, "cut"),
    Fate.NO_ID: Unknown(Reason.NO_ID, "no id", answer=Answer(status=200)),
    Fate.REFUSE: _REFUSED,
    Fate.LIE_REJECT: _REFUSED,
    Fate.BUSY: _BUSY,
    Fate.LIE_BUSY: _BUSY,
    Fate.LIMIT: _LIMITED,
    Fate.REVOKED: _REVOKED,
}


class StepFate(StrEnum):
    """What comes of a step before a send."""

    DONE = "done"
    WAIT = "wait"
    LATER = "later"
    REFUSE = "refuse"
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True)
class Orders:
    """What the test wants of a call that goes on. ``hidden``: a listing leaves the post out."""

    fate: Fate = Fate.ACCEPT
    step: StepFate = StepFate.DONE
    hidden: bool = False
    look_fails: bool = False


@dataclass(slots=True)
class World:
    """What the adapters share: the page, and what a judge must know of how it came about."""

    page: Page
    lied: set[str] = field(default_factory=set)
    """Keys whose page said otherwise than it did."""
    started: set[str] = field(default_factory=set)
    """Tokens whose worker noted that it calls the platform."""
    answered: dict[str, str] = field(default_factory=dict)
    """Token → remote id, of answers that their worker noted."""
    looked: set[str] = field(default_factory=set)
    """Keys that were looked for."""
    shown: set[str] = field(default_factory=set)
    """Remote ids that a look for their own job was shown."""
    despite_a_look: set[str] = field(default_factory=set)
    """Keys that were stored a second time although a look showed the first, or nobody looked."""
    restored_at: datetime | None = None
    """When the database last went back."""

    def store(self, request: Request) -> Stored:
        """It arrives."""
        before = self.page.of(request.key)
        post = self.page.store(request)
        if before and post not in before:
            was_shown = any(one.remote_id in self.shown for one in before)
            nobody_looked = request.kind is not Kind.BLIND and request.key not in self.looked
            if was_shown or nobody_looked:
                self.despite_a_look.add(request.key)
        return post


def orders() -> Orders:
    actor = current()
    given = None if actor is None else actor.orders
    return given if isinstance(given, Orders) else Orders()


_PROMISES = {
    Kind.LISTED: Promise.AT_MOST_ONCE_WITH_EVIDENCE,
    Kind.WHOLE: Promise.AT_MOST_ONCE_WITH_EVIDENCE,
    Kind.KEYED: Promise.EXACTLY_ONCE,
    Kind.KEEPS: Promise.SAFE_WHILE_THE_KEY_LIVES,
    Kind.BLIND: Promise.AT_MOST_ONCE_WITHOUT_EVIDENCE,
}


@dataclass
class Scripted:
    """One platform."""

    kind: Kind
    world: World

    @property
    def platform(self) -> str:
        return str(self.kind)

    @property
    def page(self) -> Page:
        return self.world.page

    def capabilities(self, content: str, progress: Progress | None = None) -> Capabilities:  # noqa: ARG002 - the port's names
        lives = {Kind.KEYED: math.inf, Kind.KEEPS: KEY_LIVES}.get(self.kind)
        return Capabilities(
            format="text",
            noun="post",
            promise=_PROMISES[self.kind],
            can_look=self.kind is not Kind.BLIND,
            listing_is_exhaustive=self.kind in {Kind.WHOLE, Kind.KEYED},
            text_limit=1000,
            repeat_for=lives,
            repeat_is_atomic=self.kind is Kind.KEYED,
        )

    def problems(self, content: str) -> tuple[Problem, ...]:  # noqa: ARG002 - the port's names
        return ()

    def platform_key(self, key: str, at: datetime) -> str | None:  # noqa: ARG002 - the port's names
        return f"once:{key}" if self.kind in {Kind.KEYED, Kind.KEEPS} else None

    def prepared(self, task: Task) -> Ready | None:
        wanted = len(Post.from_json(task.content).media)
        return Ready(task.progress) if _uploaded(task.progress) >= wanted else None

    def step(self, task: Task) -> Step:
        pause("uploading")
        done: dict[str, Any] = {"uploaded": _uploaded(task.progress) + 1}
        match orders().step:
            case StepFate.DONE:
                return More(done)
            case StepFate.WAIT:
                return Wait(dict(task.progress), 20.0, "the platform still works on it")
            case StepFate.LATER:
                return Deferred(Reason.STEP_FAILED, "come again")
            case StepFate.REFUSE:
                return Rejected(Reason.MEDIA_REFUSED, "no such picture")
            case StepFate.REVOKED:
                return Unauthorized(Reason.NEEDS_RECONNECTING, "who are you")

    def publish(self, task: Task, ready: Ready, permit: SendPermit) -> Outcome:  # noqa: ARG002 - the port's names
        pause("connecting")
        if orders().fate is Fate.UNREACHABLE:
            return Deferred(Reason.CONNECT_FAILED, "nobody there")
        try:
            permit.use()
        except PermitError:
            return Deferred(Reason.PERMIT_LATE, "too late to begin")
        token, began = task.token.hex, self.page.now()
        self.page.half[token] = task
        try:
            pause("half written")
        finally:
            del self.page.half[token]
        if self._is_cut_off(began):
            return Unknown(Reason.NO_ANSWER, "the time for the whole call was over")
        request = self.page.take(task, hidden=orders().hidden)
        pause("written")
        return self._answer(request, orders().fate)

    def _is_cut_off(self, began: datetime) -> bool:
        """Whether its own watchdog closed the connection while it was frozen.

        Watchdog and write are threads of one process that thaws: either may come first. Only what
        a restored database lacks has no other guard.
        """
        at = self.world.restored_at
        late = (self.page.now() - began).total_seconds() >= BUDGET
        return late and at is not None and at >= began

    def _answer(self, request: Request, fate: Fate) -> Outcome:
        page = self.page
        if request not in page.flying:
            # It landed, or was lost, while nobody listened.
            return Unknown(Reason.NO_ANSWER, "nothing came back in time")
        said = _SAID.get(fate)
        if fate not in _STORES:
            if fate is not Fate.LATE:
                page.vanish(request)
            return said or Unknown(Reason.NO_ANSWER, "nothing came back")
        named = self._older(request) if fate is Fate.OTHERS_ID else None
        if fate in _LIES:
            self.world.lied.add(request.key)
        if named is not None:
            self.world.lied |= {request.key, named.key}
        post = self.world.store(request)
        pause("stored")
        if fate is Fate.BREAK:
            message = "the adapter broke"
            raise RuntimeError(message)
        shown = named or post
        published = Published(shown.remote_id, shown.link, answer=Answer(status=200))
        return said or published

    def _older(self, request: Request) -> Stored | None:
        """Another job's post on the same page."""
        others = [
            post
            for post in self.page.posts
            if post.channel_id == request.channel_id and post.key != request.key
        ]
        return others[0] if others else None

    def look(self, query: LookQuery) -> Evidence:
        pause("looking")
        if orders().look_fails:
            return Inconclusive("the page does not answer")
        listed = self.page.listing(query.task.channel.id, self.kind)
        found = match(
            _sought(query),
            Listing(tuple(post.shown() for post in listed)),
            exhaustive=self.kind in {Kind.WHOLE, Kind.KEYED},
        )
        key = query.task.key
        self.world.looked.add(key)
        self.world.shown |= {post.remote_id for post in listed if post.key == key}
        pause("looked")
        return found

    def identify(self, query: LookQuery, given: str) -> Candidate | NotThisPost:
        for post in self.page.posts:
            if post.link == given and post.channel_id == query.task.channel.id:
                if self.kind is Kind.BLIND:
                    return Candidate(post.remote_id, "", post.at, post.link)
                return recognise(_sought(query), post.shown())
        return refuse(Mismatch.NOT_FOUND, "no such post")

    def check(self, channel: Channel) -> ChannelHealth:  # noqa: ARG002 - the port's names
        return ChannelHealth(usable=True, detail="")


def _uploaded(progress: Progress) -> int:
    done = progress.get("uploaded", 0)
    assert isinstance(done, int)
    return done


def _sought(query: LookQuery) -> Sought:
    return Sought(
        text=Post.from_json(query.task.content).text,
        began_at=query.began_at,
        now=query.now,
        bound=query.bound,
        remote_handle=query.remote_handle,
        sender_is_gone=query.sender_is_gone,
    )
