"""What an ``Idempotency-Key`` does, on each kind of server."""

from __future__ import annotations

import contextlib
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import httpx
import pytest

from publisher.sandbox.process import SandboxProcess

from .conftest import until
from .senders import MastodonUnderTest

if TYPE_CHECKING:
    from pathlib import Path


def _side_by_side(mastodon: MastodonUnderTest, key: str, times: int = 4) -> list[httpx.Response]:
    with ThreadPoolExecutor(times) as pool:
        return list(pool.map(lambda _: mastodon.post("Same", key=key), range(times)))


def test_a_key_is_honoured(mastodon: MastodonUnderTest) -> None:
    first = mastodon.post("First", key="k")
    assert mastodon.post("Second", key="k").json()["id"] == first.json()["id"]
    assert mastodon.requests[-1].repeats == first.json()["id"]
    assert mastodon.requests[-1].client_mutation_id == "k"
    assert mastodon.post("Second", key="other").json()["id"] != first.json()["id"]
    assert len({it.json()["id"] for it in _side_by_side(mastodon, "many")}) == 1
    assert [post.message for post in mastodon.logged] == ["First", "Second", "Same"]


def test_a_key_is_forgotten_in_time(mastodon: MastodonUnderTest) -> None:
    mastodon.control.mastodon(mastodon.id, keys_for=0.3)
    first = mastodon.post("Same", key="k").json()["id"]
    assert mastodon.post("Same", key="k").json()["id"] == first
    until(lambda: mastodon.post("Same", key="k").json()["id"] != first, 2)
    assert len(mastodon.logged) == 2


def test_a_key_is_the_accounts_own(mastodon: MastodonUnderTest) -> None:
    other = MastodonUnderTest(mastodon.sandbox, mastodon.client, int(mastodon.id[-5:]) + 40_000)
    assert mastodon.post("Same", key="k").json()["id"] != other.post("Same", key="k").json()["id"]


def test_a_key_of_a_deleted_status_finds_nothing(mastodon: MastodonUnderTest) -> None:
    mastodon.delete(mastodon.post("Gone", key="k").json()["id"])
    assert mastodon.post("Gone", key="k").status_code == 404
    assert len(mastodon.logged) == 1


def test_a_key_is_ignored(mastodon: MastodonUnderTest) -> None:
    mastodon.control.mastodon(mastodon.id, server="gotosocial")
    assert mastodon.post("Same", key="k").json() != mastodon.post("Same", key="k").json()
    assert len(mastodon.logged) == 2


def test_a_key_without_a_lock_doubles_side_by_side(mastodon: MastodonUnderTest) -> None:
    mastodon.control.mastodon(mastodon.id, keys="unlocked", race_for=0.3)
    assert len({it.json()["id"] for it in _side_by_side(mastodon, "k")}) == 4
    assert len(mastodon.logged) == 4
    assert mastodon.post("Same", key="k").status_code == 200
    assert len(mastodon.logged) == 4


def test_a_key_is_honoured_late(mastodon: MastodonUnderTest) -> None:
    mastodon.control.mastodon(mastodon.id, keys="late", late_by=0.4)
    first = mastodon.post("Same", key="k").json()["id"]
    second = mastodon.post("Same", key="k").json()["id"]
    assert first != second
    assert len(mastodon.logged) == 2
    until(lambda: mastodon.post("Same", key="k").json()["id"] == first, 3)


def test_a_repeat_is_answered_500(mastodon: MastodonUnderTest) -> None:
    mastodon.control.mastodon(mastodon.id, keys="replay-500")
    assert mastodon.post("Same", key="k").status_code == 200
    assert mastodon.post("Same", key="k").status_code == 500
    assert len(mastodon.logged) == 1


def test_pleroma_keeps_the_answer_whoever_asks(mastodon: MastodonUnderTest) -> None:
    mastodon.control.mastodon(mastodon.id, server="pleroma")
    refused = mastodon.post("", key=f"{mastodon.id}-a")
    assert refused.status_code == 422
    again = mastodon.post("Now with text", key=f"{mastodon.id}-a")
    assert (again.status_code, again.headers["idempotent-replayed"]) == (422, "true")
    first = mastodon.post("Text", key=f"{mastodon.id}-b")
    second = mastodon.post("Other", key=f"{mastodon.id}-b")
    assert second.json() == first.json()
    assert mastodon.requests[-1].repeats == first.json()["id"]
    assert [post.message for post in mastodon.logged] == ["Text"]


@pytest.mark.parametrize(("keys", "copies"), [("honoured", 1), ("ignored", 2)])
def test_a_late_status_and_a_repeat(mastodon: MastodonUnderTest, keys: str, copies: int) -> None:
    mastodon.control.mastodon(mastodon.id, keys=keys)
    mastodon.control.behave("accept-late", page=mastodon.id, seconds=0.3)
    with pytest.raises(httpx.RemoteProtocolError):
        mastodon.post("Late", key="k")
    assert mastodon.post("Late", key="k").status_code == 200
    until(lambda: mastodon.requests[0].repeats or mastodon.requests[0].posts)
    assert len(mastodon.logged) == copies
    ids = [int(status["id"]) for status in mastodon.listing().json()]
    assert ids == sorted(ids, reverse=True)


@pytest.mark.parametrize("behaviour", ["lose-answer", "accept-and-500", "half-answer"])
def test_a_repeat_after_a_lost_answer_is_safe(mastodon: MastodonUnderTest, behaviour: str) -> None:
    mastodon.control.behave(behaviour, page=mastodon.id)
    with contextlib.suppress(httpx.RemoteProtocolError):
        assert mastodon.post("Once", key="k").status_code == 500
    assert mastodon.post("Once", key="k").json()["id"] == mastodon.logged[0].id
    assert len(mastodon.logged) == 1


def test_a_key_outlives_the_process(tmp_path: Path) -> None:
    with SandboxProcess.start(tmp_path) as first, httpx.Client(base_url=first.url) as client:
        made = MastodonUnderTest(first, client, 1).post("Once", key="k").json()["id"]
        first.kill()
    with SandboxProcess.start(tmp_path) as second, httpx.Client(base_url=second.url) as client:
        assert MastodonUnderTest(second, client, 1).post("Once", key="k").json()["id"] == made
