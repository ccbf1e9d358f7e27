"""Every behaviour at every platform, the log and the wall of every account."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from publisher.sandbox import log
from publisher.sandbox.behaviours import Behaviour, Kind
from publisher.sandbox.control import ControlRefused
from publisher.sandbox.journal import FILE
from publisher.sandbox.process import SandboxProcess

from .conftest import send, until
from .senders import BlueskyUnderTest, MastodonUnderTest, TelegramUnderTest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import httpx

    from .senders import AccountUnderTest

ALL = ["bluesky", "mastodon", "telegram"]
DUPLICATES = (Behaviour.REFUSE_DUPLICATE, Behaviour.REFUSE_DUPLICATE_FALSELY)


@pytest.fixture
def account(request: pytest.FixtureRequest) -> AccountUnderTest:
    found: AccountUnderTest = request.getfixturevalue(request.param)
    return found


@pytest.mark.parametrize("account", ALL, indirect=True)
@pytest.mark.parametrize("behaviour", Behaviour)
def test_a_behaviour_accepts_or_not_as_it_says(
    account: AccountUnderTest, behaviour: Behaviour
) -> None:
    assert account.publish("Earlier").status_code == 200
    account.control.behave(behaviour, page=account.id, endpoint="publish", seconds=0.1)
    received = send(account.sandbox.url, account.raw("Same"), most=100_000)
    is_for_lists = behaviour.kind is Kind.LISTING and behaviour is not Behaviour.UNREADABLE
    if is_for_lists or behaviour in DUPLICATES:
        assert account.control.rules()[0]["used"] == 0, "it means nothing here"
        assert received.status == 200
        return
    assert [rule["used"] for rule in account.control.rules()] == [1]
    count = 2 if behaviour.accepts else 1
    if behaviour is Behaviour.ACCEPT_LATE:
        until(lambda: len(account.logged) >= count)
    read = log.read(account.sandbox.log)
    request = [it for it in read.requests if it.page == account.id][-1]
    assert (request.behaviour, request.endpoint, request.message) == (behaviour, "post", "Same")
    ours = [it for it in read.ever_posted if it.page == account.id and not it.foreign]
    assert [post.message for post in ours] == ["Earlier", "Same"][:count]
    assert request.posts == tuple(post.id for post in ours[1:])
    if behaviour.kind is Kind.REFUSAL:
        assert received.status is not None
        assert received.status >= 400


STATUSES = {
    "accept-and-500": (500, 500, 500),
    "fail-500": (500, 500, 500),
    "accept-and-limit": (429, 429, 429),
    "refuse-limited": (429, 429, 429),
    "refuse-429": (429, 429, 429),
    "refuse-429-retry-after": (429, 429, 429),
    "accept-and-refuse": (400, 422, 400),
    "refuse-invalid": (400, 422, 400),
    "refuse-token": (400, 401, 401),
    "accept-and-502": (502, 502, 502),
    "accept-and-504": (504, 504, 504),
    "redirect-307": (307, 307, 307),
}


@pytest.mark.parametrize("account", ALL, indirect=True)
@pytest.mark.parametrize("name", STATUSES)
def test_answers_have_the_status_of_their_platform(account: AccountUnderTest, name: str) -> None:
    account.control.behave(name, page=account.id, endpoint="post", seconds=90)
    assert account.publish("Refused").status_code == STATUSES[name][ALL.index(account.platform)]
    assert account.requests[-1].status == STATUSES[name][ALL.index(account.platform)]
    assert account.publish("Next").status_code == 200


def _calls(account: AccountUnderTest) -> dict[str, Callable[[], httpx.Response]]:
    """A call to every endpoint of a platform that a rule can name, besides ``post``."""
    match account:
        case BlueskyUnderTest():
            rkey = account.rkey()
            return {
                "session": account.sign_in,
                "media": account.upload,
                "read": lambda: account.get(rkey),
                "list": lambda: account.read("listRecords"),
                "delete": lambda: account.write("deleteRecord", rkey),
            }
        case MastodonUnderTest():
            return {
                "media": account.upload,
                "media-state": lambda: account.get("v1/media/7"),
                "read": lambda: account.get("v1/statuses/7/source"),
                "list": account.listing,
                "delete": lambda: account.delete("7"),
                "account": lambda: account.get("v1/accounts/verify_credentials"),
            }
        case TelegramUnderTest():
            return {
                "delete": lambda: account.call("deleteMessage", message_id=7),
                "account": lambda: account.call("getChat"),
            }
        case _:
            raise TypeError


@pytest.mark.parametrize("account", ALL, indirect=True)
def test_a_rule_is_about_its_endpoint(account: AccountUnderTest) -> None:
    calls = _calls(account)
    for endpoint, call in calls.items():
        account.control.behave("refuse-limited", page=account.id, endpoint=endpoint)
        others = {name: other for name, other in calls.items() if name != endpoint}
        assert 429 not in {other().status_code for other in others.values()}
        assert call().status_code == 429
        assert call().status_code != 429
    assert {request.endpoint for request in account.requests} >= set(calls)


@pytest.mark.parametrize("account", ALL, indirect=True)
def test_the_log_counts_copies_of_every_account(account: AccountUnderTest) -> None:
    for text in ("Twice", "Once", "Twice"):
        account.publish(text)
    account.control.foreign_post(account.id, "Once")
    read = log.read(account.sandbox.log)
    found = {key: count for key, count in read.duplicates().items() if key[0] == account.id}
    assert found == {(account.id, "Twice"): 2}
    assert account.control.texts(account.id) == ["Once", "Twice", "Once", "Twice"]
    assert [post["foreign"] for post in account.control.posts(account.id)][:2] == [True, False]


@pytest.mark.parametrize("account", ALL, indirect=True)
def test_no_token_is_in_the_log(account: AccountUnderTest) -> None:
    account.publish("Posted")
    account.control.behave("lose-answer", page=account.id)
    send(account.sandbox.url, account.raw("Lost"))
    assert account.token not in (account.sandbox.log / FILE).read_text()


@pytest.mark.parametrize("account", ALL, indirect=True)
def test_a_request_is_cut_before_its_body_is_read(account: AccountUnderTest) -> None:
    account.control.behave("reset-unread", page=account.id, endpoint="post")
    assert send(account.sandbox.url, account.raw("Cut")).end == "rst"
    assert (account.requests[-1].answer, account.requests[-1].message) == ("lost", "")


@pytest.mark.parametrize("account", ALL, indirect=True)
def test_a_wall_shows_the_posts_of_every_account(account: AccountUnderTest) -> None:
    account.publish("<b>Seen</b>")
    post = account.control.posts(account.id)[0]["id"]
    wall, shown = (account.client.get(path) for path in (f"/p/{account.id}", f"/a/{post}"))
    for html in (wall, shown):
        assert (html.status_code, "&lt;b&gt;Seen&lt;/b&gt;" in html.text) == (200, True)
    assert account.id in account.client.get("/").text
    permalink = shown.text.partition('<a href="/')[2].partition('"')[0]
    assert account.client.get(f"/{permalink}").text == shown.text
    account.control.take_down(post)
    assert "was taken down" in account.client.get(f"/a/{post}").text


@pytest.mark.parametrize("account", ALL, indirect=True)
def test_an_account_whose_token_is_revoked_posts_again_when_restored(
    account: AccountUnderTest,
) -> None:
    account.control.revoke(account.id)
    assert account.publish("No").status_code in (400, 401)
    account.control.restore(account.id)
    assert account.publish("Yes").status_code == 200


def test_accounts_of_every_platform_are_there_from_the_start(tmp_path: Path) -> None:
    with SandboxProcess.start(tmp_path, fsync=False, accounts=2) as first:
        made = {it["platform"]: it for it in first.control.accounts() if it["name"] != "Page B"}
        assert set(made) == {"graph", *ALL}
        assert len(first.control.accounts("telegram")) == 2
        assert made["bluesky"]["handle"] == "sandbox2.test"
        assert made["bluesky"]["token"] == "sandbox-password-2"
        assert first.control.add_accounts("mastodon", 3)[2]["username"] == "sandbox3"
        texts = {platform: f"On {platform}" for platform in ALL}
        for platform, text in texts.items():
            first.control.foreign_post(made[platform]["id"], text)
        first.kill()
    with SandboxProcess.start(tmp_path, fsync=False, accounts=0) as second:
        for platform, text in texts.items():
            assert second.control.texts(made[platform]["id"]) == [text]
            second.control.foreign_post(made[platform]["id"], "After")
            assert second.control.texts(made[platform]["id"]) == ["After", text]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"platform": "friendster"}, "no platform 'friendster'"),
        ({"platform": "bluesky", "id": "101"}, "did:plc"),
        ({"platform": "mastodon", "id": "x"}, "digits"),
        ({"platform": "mastodon", "id": "101"}, "101 is an account of graph"),
        ({"platform": "telegram", "token": "7:x"}, "35 letters"),
    ],
)
def test_an_account_amiss_is_refused(
    sandbox: SandboxProcess, given: dict[str, str], says: str
) -> None:
    with pytest.raises(ControlRefused, match=says):
        sandbox.control.add_account(**given)
