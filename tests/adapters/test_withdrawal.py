"""Taking posts down: what each platform says of what is gone, another's, or only partly ours."""

from __future__ import annotations

from dataclasses import replace

import pytest

from publisher.adapters.telegram.answer import numbers_in
from publisher.engine.adapter import LivePost
from publisher.engine.outcome import (
    AlreadyGone,
    CannotWithdraw,
    NotWithdrawn,
    Published,
    Withdrawal,
    Withdrawn,
)
from publisher.sandbox.process import SandboxProcess
from publisher.transport import Transport
from tests.adapters.bluesky_stand import BlueskyStand
from tests.adapters.facebook_stand import FacebookStand
from tests.adapters.liar import Asked, Liar, Said
from tests.adapters.mastodon_stand import MastodonStand
from tests.adapters.stand import photo_post, send, text_post, withdraw
from tests.adapters.telegram_stand import TelegramStand

POST = text_post("Ours").to_json()


def reason(end: Withdrawal) -> NotWithdrawn:
    assert isinstance(end, CannotWithdraw), end
    return end.reason


def test_facebook_deletes_no_other_applications_post(
    sandbox: SandboxProcess, transport: Transport
) -> None:
    stand = FacebookStand(sandbox, transport)
    other = stand.post_by_someone("By hand")
    end = stand.adapter.withdraw(stand.channel, LivePost(other, POST))
    assert reason(end) is NotWithdrawn.REFUSED
    assert stand.texts() == ["By hand"]


@pytest.mark.parametrize(
    ("page", "post", "expected"),
    [
        (200, "gone", AlreadyGone),
        (200, 200, NotWithdrawn.REFUSED),
        (200, 500, NotWithdrawn.UNCLEAR),
        (401, "gone", NotWithdrawn.UNCLEAR),
        (500, "gone", NotWithdrawn.UNCLEAR),
    ],
)
def test_facebook_calls_gone_only_what_it_would_show(
    sandbox: SandboxProcess,
    transport: Transport,
    page: int,
    post: int | str,
    expected: type[AlreadyGone] | NotWithdrawn,
) -> None:
    """Code 100/33 is said of what is gone and of what the token may not touch."""
    stand = FacebookStand(sandbox, transport)
    error = {"message": "Object does not exist", "code": 100, "error_subcode": 33}
    gone = Said({"error": error}, 400)

    def script(asked: Asked) -> Said:
        if asked.method == "DELETE":
            return gone
        status = post if asked.path.split("?")[0].endswith("_1") else page
        return gone if isinstance(status, str) else Said({"id": "1"}, status)

    with Liar(script) as liar:
        adapter = stand.adapter_at(transport, liar.url)
        end = adapter.withdraw(stand.channel, LivePost(f"{stand.page}_1", POST))
    if isinstance(expected, NotWithdrawn):
        assert reason(end) is expected
    else:
        assert isinstance(end, expected)


def test_mastodon_deletes_no_other_accounts_post(
    sandbox: SandboxProcess, transport: Transport
) -> None:
    ours, theirs = MastodonStand(sandbox, transport), MastodonStand(sandbox, transport)
    _, outcome = send(theirs, text_post("Theirs"))
    assert isinstance(outcome, Published)
    end = ours.adapter.withdraw(ours.channel, LivePost(outcome.remote_id, POST))
    assert reason(end) is NotWithdrawn.REFUSED
    assert theirs.texts() == ["Theirs"]


def test_bluesky_deletes_no_other_accounts_post(
    sandbox: SandboxProcess, transport: Transport
) -> None:
    ours, theirs = BlueskyStand(sandbox, transport), BlueskyStand(sandbox, transport)
    _, outcome = send(theirs, text_post("Theirs"))
    assert isinstance(outcome, Published)
    end = ours.adapter.withdraw(ours.channel, LivePost(outcome.remote_id, POST))
    assert reason(end) is NotWithdrawn.REFUSED
    assert theirs.texts() == ["Theirs"]


def test_bluesky_renews_a_session_that_had_ended(
    sandbox: SandboxProcess, transport: Transport
) -> None:
    stand = BlueskyStand(sandbox, transport)
    attempt, outcome = send(stand, text_post("Ours"))
    assert isinstance(outcome, Published)
    stand.control.behave("refuse-token", page=stand.page, endpoint="delete", times=1)
    assert withdraw(stand, attempt, outcome) == Withdrawn()
    assert stand.texts() == []


def test_telegram_deletes_all_of_an_album_or_nothing(
    sandbox: SandboxProcess, transport: Transport
) -> None:
    stand = TelegramStand(sandbox, transport)
    attempt, outcome = send(stand, photo_post("An album", "a", "b", "c"))
    assert isinstance(outcome, Published)
    assert outcome.answer is not None
    assert len(numbers_in(outcome.answer.body)) == 3
    unknown = LivePost(outcome.remote_id, attempt.task.content)
    end = stand.adapter.withdraw(stand.channel, unknown)
    assert reason(end) is NotWithdrawn.UNSUPPORTED
    assert stand.texts() == ["An album"]
    # One of the three fails; the rest is asked for again, and what is gone does not matter then.
    stand.control.behave("fail-500", page=stand.page, endpoint="delete", times=1)
    assert reason(withdraw(stand, attempt, outcome)) is NotWithdrawn.UNCLEAR
    assert withdraw(stand, attempt, outcome) == Withdrawn()
    assert stand.texts() == []


def test_telegram_deletes_nothing_in_another_channel(
    sandbox: SandboxProcess, transport: Transport
) -> None:
    stand = TelegramStand(sandbox, transport)
    attempt, outcome = send(stand, text_post("Ours"))
    assert isinstance(outcome, Published)
    moved = replace(stand.channel, remote_id="-1009999999")
    assert reason(withdraw(stand, attempt, outcome, channel=moved)) is NotWithdrawn.REFUSED
    # By its name the channel is the same, and the post is asked for by the channel's number.
    named = replace(stand.channel, remote_id=f"@{stand.username}")
    assert withdraw(stand, attempt, outcome, channel=named) == Withdrawn()
