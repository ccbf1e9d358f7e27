"""What an adapter brings to the conformance suite: a platform of its own to be tried on."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Protocol

from publisher.engine.adapter import (
    Adapter,
    Capabilities,
    LivePost,
    LookQuery,
    Ready,
    SendPermit,
    Task,
    boottime,
)
from publisher.engine.content import Media, Post, digest
from publisher.engine.evidence import Evidence
from publisher.engine.job import Channel, JobId, Token
from publisher.engine.outcome import Outcome, Published, Withdrawal


class Fault(StrEnum):
    """What a platform can be asked to do to the next request that publishes."""

    # It is on the page; the answer does not say so.
    LOSE_ANSWER = "lose the answer"
    RESET = "reset after accepting"
    HALF_ANSWER = "half an answer"
    GARBAGE = "garbage for an answer"
    SERVER_ERROR = "500 after accepting"
    GATEWAY = "502 in HTML after accepting"
    TIMEOUT_PAGE = "504 in HTML after accepting"
    NO_ID = "no id in the answer"
    FALSE_LIMIT = "a limit reported after accepting"
    # It is not on the page.
    OLDER_ID = "another post's id in the answer"
    DROPPED = "dropped without an answer"
    REDIRECTED = "redirected"
    LIMITED = "rate limited"
    REFUSED = "refused as invalid"
    STRANGE_REFUSAL = "refused with an unknown code"
    DUPLICATE = "refused as a duplicate"
    TOKEN_REFUSED = "the token refused"
    SILENT = "never answered"


class Stand(Protocol):
    """One adapter with one channel of its own on a platform that does as it is told.

    ``secret``: the channel's credential, which must be found nowhere. ``broken``: the same
    channel with a credential the vault cannot open; ``unreachable``: where nobody listens.
    """

    adapter: Adapter
    channel: Channel
    broken: Channel
    unreachable: Channel
    secret: str
    seen: list[object]

    def misbehave(self, fault: Fault, times: int | None = 1, *, endpoint: str = "publish") -> None:
        """Treat the next requests so that publish, or that ask for another ``endpoint``."""
        ...

    def texts(self) -> list[str]:
        """What is on the page, by its own record: the texts, newest first."""
        ...

    def post_by_someone(self, text: str, *, at: datetime | None = None) -> str:
        """Put another's post on the page; return its id."""
        ...

    def fill_listing(self, posts: int) -> None:
        """Put so many other posts on the page."""
        ...

    def hide_newest(self) -> None:
        """Leave the newest posts out of the next listing."""
        ...

    def fail_listing(self) -> None:
        """Answer the next listings with a server error."""
        ...


class Store:
    """Files by their SHA-256."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self.files = dict(files)

    def read(self, sha256: str) -> Iterator[bytes]:
        """See ``MediaStore.read``."""
        yield self.files[sha256]


@dataclass(slots=True)
class Attempt:
    """One send, as a worker would make it, with the facts a later look needs."""

    task: Task
    permit: SendPermit
    began_at: datetime = field(default_factory=lambda: datetime.now(UTC))

    def query(self, outcome: object = None, bound: frozenset[str] = frozenset()) -> LookQuery:
        """The question whether this attempt is on the page, asked when nobody sends any more."""
        return LookQuery(
            task=self.task,
            began_at=self.began_at,
            now=datetime.now(UTC) + timedelta(seconds=1),
            bound=bound,
            remote_handle=getattr(outcome, "remote_handle", None),
            sender_is_gone=True,
        )


def text_post(text: str) -> Post:
    """A post that is a text alone."""
    return Post(text)


def photo_post(text: str, *photos: str) -> Post:
    """A post with photos that lie in the store."""
    media = tuple(
        Media(kind="image", type="image/jpeg", sha256=photo, size=len(JPEG)) for photo in photos
    )
    return Post(text, media=media)


JPEG = b"\xff\xd8\xff" + b"not much of a picture" * 20


def make_task(
    channel: Channel,
    post: Post,
    *,
    attempts: int = 0,
    progress: Mapping[str, object] | None = None,
) -> Task:
    """A claimed job for ``post``."""
    content = post.to_json()
    number = time.monotonic_ns()
    return Task(
        job_id=JobId(number),
        key=f"post:{number}/channel:{channel.id}",
        kind="publish",
        token=Token(uuid.uuid4()),
        channel=channel,
        content=content,
        content_sha256=digest(content),
        progress=progress or {},
        platform_key=None,
        attempts=attempts,
    )


def make_permit(task: Task, *, window: float = 30.0, budget: float = 10.0) -> SendPermit:
    """A permit as ``ledger.begin_send`` makes it; only tests may."""
    return SendPermit(
        job_id=task.job_id,
        token=task.token,
        attempt=task.attempts + 1,
        channel_id=task.channel.id,
        content_sha256=task.content_sha256,
        deadline=boottime() + window,
        budget=budget,
    )


def prepare(stand: Stand, task: Task) -> Ready:
    """Do the harmless steps until everything is ready."""
    for _ in range(20):
        if (ready := stand.adapter.prepared(task)) is not None:
            return ready
        step = stand.adapter.step(task)
        stand.seen.append(step)
        if isinstance(step, Ready):
            return step
        assert not hasattr(step, "detail"), step
        task = _with_progress(task, step.progress)
    message = "the steps do not end"
    raise AssertionError(message)


def _with_progress(task: Task, progress: Mapping[str, object]) -> Task:
    return replace(task, progress=progress)


def send(
    stand: Stand,
    post: Post,
    *,
    attempts: int = 0,
    channel: Channel | None = None,
    budget: float = 10.0,
) -> tuple[Attempt, Outcome]:
    """Prepare ``post`` on the stand's channel, and publish it once on ``channel``."""
    task = make_task(channel or stand.channel, post, attempts=attempts)
    ready = prepare(stand, replace(task, channel=stand.channel))
    return send_ready(stand, task, ready, budget=budget)


def send_ready(
    stand: Stand, task: Task, ready: Ready, *, budget: float = 10.0
) -> tuple[Attempt, Outcome]:
    """Publish what is prepared."""
    task = _with_progress(task, ready.progress)
    attempt = Attempt(task, make_permit(task, budget=budget))
    outcome = stand.adapter.publish(task, ready, attempt.permit)
    stand.seen.append(outcome)
    return attempt, outcome


def capabilities(stand: Stand, task: Task) -> Capabilities:
    """What can be done for this task; a stand whose adapter needs to know more says it itself."""
    own = getattr(stand, "capabilities", None)
    made: Capabilities = own(task) if own else stand.adapter.capabilities(task.content)
    return made


def look(stand: Stand, query: LookQuery) -> Evidence:
    """Look, and keep what was seen."""
    evidence = stand.adapter.look(query)
    stand.seen.append(evidence)
    return evidence


def withdraw(
    stand: Stand, attempt: Attempt, live: Published, *, channel: Channel | None = None
) -> Withdrawal:
    """Take down what was published, with what its attempt keeps."""
    answer = "" if live.answer is None else live.answer.body
    post = LivePost(live.remote_id, attempt.task.content, answer)
    end = stand.adapter.withdraw(channel or stand.channel, post)
    stand.seen.append(end)
    return end
