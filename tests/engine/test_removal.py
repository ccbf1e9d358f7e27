"""What a removal is made of, what its ends mean, and what a look at its page says."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from publisher.engine.adapter import (
    Capabilities,
    ChannelHealth,
    LivePost,
    LookQuery,
    Ready,
    SendPermit,
    Task,
    boottime,
)
from publisher.engine.content import Post, digest
from publisher.engine.evidence import (
    Absent,
    Candidate,
    Found,
    Inconclusive,
    Mismatch,
    NotThisPost,
)
from publisher.engine.job import Channel, JobId, Token, public_id
from publisher.engine.outcome import (
    AlreadyGone,
    CannotWithdraw,
    Deferred,
    NotWithdrawn,
    Proof,
    Published,
    Reason,
    Rejected,
    Unauthorized,
    Unknown,
    Withdrawal,
    Withdrawn,
)
from publisher.engine.removal import Removal, Removing
from tests.engine.platform import Fake

NOW = datetime(2026, 12, 7, 9, tzinfo=UTC)
TOKEN = Token(UUID(int=5))
CHANNEL = Channel(3, "fake", "A page", "r", None, None, 1)
REMOVAL = Removal("0123456789", "post:1", "501", Post("Hello").to_json(), "Chief", answer="{}")
GONE = f"removed:{public_id(9)}"


@dataclass
class Platform(Fake):
    """``end``: how a withdrawal ends. ``shown``: what a read of the post gives."""

    end: Withdrawal = field(default_factory=Withdrawn)
    shown: Candidate | NotThisPost = field(
        default_factory=lambda: NotThisPost(Mismatch.NOT_FOUND, "It is not there.")
    )
    usable: bool = True
    repeats: bool = True
    withdrawn: list[LivePost] = field(default_factory=list)
    asked: list[LookQuery] = field(default_factory=list)

    def capabilities(self, content: str, progress: object = None) -> Capabilities:
        can = super().capabilities(content, progress)
        return replace(can, can_delete=True, delete_repeats=self.repeats)

    def withdraw(self, channel: Channel, post: LivePost) -> Withdrawal:
        assert channel == CHANNEL
        self.withdrawn.append(post)
        return self.end

    def identify(self, query: LookQuery, given: str) -> Candidate | NotThisPost:
        assert given == "501"
        self.asked.append(query)
        return self.shown

    def check(self, channel: Channel) -> ChannelHealth:
        assert channel == CHANNEL
        return ChannelHealth(usable=self.usable, detail="so it is")


def task(content: str | None = None, kind: str = "delete") -> Task:
    content = content or REMOVAL.to_json()
    return Task(JobId(9), "delete:x", kind, TOKEN, CHANNEL, content, digest(content), {}, "k", 1)


def permit(**changes: Any) -> SendPermit:  # noqa: ANN401 - of SendPermit
    values: dict[str, Any] = {
        "job_id": JobId(9), "token": TOKEN, "attempt": 1, "channel_id": 3, "content_sha256": b"",
        "deadline": boottime() + 60, "budget": 30.0,
    }  # fmt: skip
    return SendPermit(**(values | changes))


def query() -> LookQuery:
    return LookQuery(task(), NOW, NOW, frozenset({"501"}))


def test_its_content_is_read_as_it_was_written() -> None:
    assert Removal.read(REMOVAL.to_json()) == REMOVAL
    assert REMOVAL.post == LivePost("501", REMOVAL.content, "{}")


@pytest.mark.parametrize(
    "content",
    ["", "null", "[]", "{}", '{"removes": 1}', '{"removes": {}}', '{"removes": {"job": "1"}}',
     REMOVAL.to_json()[:-1] + ', "more": 1}', Post("removes").to_json()],
)  # fmt: skip
def test_nothing_else_is_a_removal(content: str) -> None:
    assert Removal.read(content) is None


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        (Withdrawn(), Published(GONE)),
        (AlreadyGone(), Published(GONE)),
        (
            CannotWithdraw(NotWithdrawn.UNCLEAR, "no word"),
            Unknown(Reason.REMOVAL_UNCLEAR, "no word"),
        ),
        (
            CannotWithdraw(NotWithdrawn.RATE_LIMITED, "slow", 7.0),
            Deferred(
                Reason.RATE_LIMITED, "slow", Proof.REFUSED, "withdraw:rate_limited", 7.0,
                validated_before_storing=True,
            ),
        ),
        (
            CannotWithdraw(NotWithdrawn.NEEDS_RECONNECTING, "who"),
            Unauthorized(
                Reason.NEEDS_RECONNECTING, "who", "withdraw:needs_reconnecting",
                validated_before_storing=True,
            ),
        ),
        (
            CannotWithdraw(NotWithdrawn.REFUSED, "no"),
            Rejected(
                Reason.REMOVAL_REFUSED, "no", "withdraw:refused", validated_before_storing=True
            ),
        ),
        (
            CannotWithdraw(NotWithdrawn.UNSUPPORTED, "never"),
            Rejected(
                Reason.REMOVAL_REFUSED, "never", "withdraw:unsupported",
                validated_before_storing=True,
            ),
        ),
    ],
)  # fmt: skip
def test_each_end_of_a_deletion_is_an_outcome_under_a_permit_that_is_used(
    end: Withdrawal, expected: object
) -> None:
    platform = Platform(end=end)
    given = permit()
    assert Removing(platform).publish(task(), Ready({}), given) == expected
    assert platform.withdrawn == [REMOVAL.post]
    assert given.used


@pytest.mark.parametrize(
    "given",
    [permit(token=Token(UUID(int=6))), permit(job_id=JobId(8)), permit(deadline=boottime() - 1)],
    ids=["another claim's", "another job's", "late"],
)
def test_without_a_good_permit_nothing_is_asked(given: SendPermit) -> None:
    platform = Platform()
    outcome = Removing(platform).publish(task(), Ready({}), given)
    assert isinstance(outcome, Deferred)
    assert outcome.proof is Proof.NOT_SENT
    assert (platform.withdrawn, given.used) == ([], False)


def test_a_permit_that_is_used_up_asks_nothing_again() -> None:
    platform, given = Platform(), permit()
    given.use()
    assert isinstance(Removing(platform).publish(task(), Ready({}), given), Deferred)
    assert platform.withdrawn == []


def test_content_that_is_no_removal_deletes_nothing() -> None:
    platform = Platform()
    given = permit()
    end = Removing(platform).publish(task(Post("Hello").to_json()), Ready({}), given)
    assert isinstance(end, Deferred)
    assert (platform.withdrawn, given.used) == ([], False)


def shown(code: Mismatch) -> NotThisPost:
    return NotThisPost(code, str(code))


@pytest.mark.parametrize(
    ("seen", "usable", "expected"),
    [
        (shown(Mismatch.NOT_FOUND), True, Found(GONE)),
        (shown(Mismatch.NOT_FOUND), False, Inconclusive("so it is")),
        (shown(Mismatch.UNREADABLE), True, Inconclusive("unreadable")),
        (shown(Mismatch.NO_LINK), True, Inconclusive("no-link")),
        (shown(Mismatch.ANOTHER_PAGE), True, Inconclusive("another-page")),
        (shown(Mismatch.TEXT_DIFFERS), True, Absent(1)),
        (shown(Mismatch.TOO_EARLY), True, Absent(1)),
        (shown(Mismatch.NOT_OURS), True, Absent(1)),
        (Candidate("501", "Hello", NOW), True, Absent(1)),
    ],
)
def test_a_look_says_whether_the_post_is_gone(
    seen: Candidate | NotThisPost, *, usable: bool, expected: object
) -> None:
    platform = Platform(shown=seen, usable=usable)
    assert Removing(platform).look(query()) == expected
    (asked,) = platform.asked
    assert (asked.task.content, asked.task.key) == (REMOVAL.content, "post:1")
    assert asked.bound == frozenset()
    assert platform.looks == []


def test_what_it_can_do_is_what_the_platform_can_do_about_the_post() -> None:
    content = REMOVAL.to_json()
    can = Removing(Platform()).capabilities(content)
    assert (can.repeat_for, can.repeat_is_atomic, can.can_look) == (math.inf, True, True)
    assert can.listing_is_exhaustive
    once = Removing(Platform(repeats=False)).capabilities(content)
    assert (once.repeat_for, once.repeat_is_atomic) == (None, False)
    blind = Removing(Platform(can_look=False)).capabilities(content)
    assert (blind.can_look, blind.listing_is_exhaustive) == (False, False)


def test_everything_else_goes_to_the_adapter_untouched() -> None:
    platform = Platform()
    around = Removing(platform)
    content = Post("Hello").to_json()
    assert around.capabilities(content) == platform.capabilities(content)
    assert around.prepared(task(content, "publish")) == Ready({})
    given = permit()
    assert isinstance(around.publish(task(content, "publish"), Ready({}), given), Published)
    assert platform.page.on_it["delete:x"] == 1
    assert around.identify(query(), "501").code is Mismatch.NO_LINK  # type: ignore[union-attr]
    assert around.platform_key("post:1", NOW) is None
    assert around.platform_key("delete:1", NOW) == "delete:1"
    assert around.problems(REMOVAL.to_json()) == ()
