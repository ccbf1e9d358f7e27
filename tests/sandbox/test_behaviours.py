"""Each behaviour, seen from the other end of the wire."""

from __future__ import annotations

import json
import zlib
from typing import TYPE_CHECKING

import httpx
import pytest

from publisher.sandbox.behaviours import Behaviour, Kind
from publisher.sandbox.misbehaviour import BOMB_BYTES

from .conftest import until

if TYPE_CHECKING:
    from .conftest import PageUnderTest


@pytest.mark.parametrize("behaviour", Behaviour)
def test_a_behaviour_accepts_or_not_as_it_says(page: PageUnderTest, behaviour: Behaviour) -> None:
    page.feed("Earlier")
    page.control.foreign_post(page.id, "Same")
    page.control.behave(behaviour, page=page.id, endpoint="publish", seconds=0.1)
    page.raw("Same")
    if behaviour.kind is Kind.LISTING and behaviour is not Behaviour.UNREADABLE:
        assert page.control.rules()[0]["used"] == 0, "it is not for publishing"
        return
    assert [rule["used"] for rule in page.control.rules()] == [1]
    request = page.requests[-1]
    assert request.behaviour == behaviour
    count = 2 if behaviour.accepts else 1
    until(lambda: len(page.logged) >= count)
    assert [post.message for post in page.logged] == ["Earlier", "Same"][:count]
    assert len(page.requests[-1].posts) == count - 1
    assert behaviour.__doc__
    assert behaviour.__doc__.endswith(".")


def test_slow_answers_come_when_their_time_has_come(page: PageUnderTest) -> None:
    page.control.behave("answer-slowly", seconds=0.4)
    received = page.raw("Slow")
    assert (received.status, received.end) == (200, "fin")
    assert received.seconds >= 0.4


@pytest.mark.parametrize("name", ["lose-answer", "drop", "twin", "accept-with-twin"])
def test_a_lost_answer_ends_in_order(page: PageUnderTest, name: str) -> None:
    page.control.behave(name)
    received = page.raw("Lost")
    assert (received.data, received.end) == (b"", "fin")
    assert (page.requests[0].answer, page.requests[0].status) == ("lost", None)


@pytest.mark.parametrize("name", ["accept-and-reset", "reset-unread"])
def test_a_cut_connection_is_reset(page: PageUnderTest, name: str) -> None:
    page.control.behave(name)
    received = page.raw("Cut")
    assert (received.data, received.end) == (b"", "rst")


def test_a_body_is_cut_before_it_is_read(page: PageUnderTest) -> None:
    page.control.behave("reset-unread", page=page.id, endpoint="feed")
    head = f"POST /{page.id}/feed HTTP/1.1\r\nHost: x\r\nContent-Length: 99000000\r\n\r\n"
    assert page.send(head.encode()).end == "rst"
    assert page.requests[0].answer == "lost"


@pytest.mark.parametrize("name", ["hang", "accept-and-hang"])
def test_nothing_ever_answers(page: PageUnderTest, name: str) -> None:
    page.control.behave(name)
    received = page.raw("Silence", seconds=0.3)
    assert (received.data, received.end) == (b"", "open")


def test_half_an_answer(page: PageUnderTest) -> None:
    page.control.behave("half-answer")
    received = page.raw("Half")
    head, body = received.data.split(b"\r\n\r\n")
    length = int(next(line[16:] for line in head.split(b"\r\n") if line[:15] == b"Content-Length:"))
    assert (received.status, received.end, len(body)) == (200, "fin", length // 2)
    with pytest.raises(ValueError, match="Unterminated"):
        json.loads(body)
    assert page.requests[0].answer == "spoiled"


def test_garbage_is_no_answer(page: PageUnderTest) -> None:
    page.control.behave("garbage-answer")
    with pytest.raises(httpx.RemoteProtocolError):
        page.feed("Garbage")


STATUSES = {
    "accept-and-500": (500, 2),
    "fail-500": (500, 2),
    "accept-and-limit": (400, 4),
    "refuse-limited": (400, 4),
    "accept-and-refuse": (400, 100),
    "refuse-invalid": (400, 100),
    "refuse-429": (429, 4),
    "refuse-429-retry-after": (429, 4),
    "refuse-token": (401, 190),
    "refuse-duplicate-falsely": (400, 506),
}


@pytest.mark.parametrize("name", STATUSES)
def test_errors_look_like_graphs(page: PageUnderTest, name: str) -> None:
    page.control.behave(name, seconds=90)
    response = page.feed("Refused")
    assert (response.status_code, response.json()["error"]["code"]) == STATUSES[name]
    assert (page.requests[0].status, page.requests[0].code) == STATUSES[name]
    assert response.headers.get("Retry-After") == ("90" if name.endswith("after") else None)
    if name.endswith(("limit", "limited")):
        usage = json.loads(response.headers["X-Business-Use-Case-Usage"])[page.id][0]
        assert usage["estimated_time_to_regain_access"] == 2  # minutes


@pytest.mark.parametrize("status", [502, 504])
def test_a_gateway_answers_in_html(page: PageUnderTest, status: int) -> None:
    page.control.behave(f"accept-and-{status}")
    response = page.feed("Gateway")
    assert (response.status_code, response.headers["Content-Type"]) == (status, "text/html")


def test_an_error_is_changed_by_its_rule(page: PageUnderTest) -> None:
    error = {"code": 368, "error_subcode": 1390008, "message": "Too fast", "status": 403}
    page.control.behave("refuse-limited", error=error)
    response = page.feed("Refused")
    shown = response.json()["error"]
    assert (response.status_code, shown["code"], shown["error_subcode"]) == (403, 368, 1390008)
    assert shown["message"] == "Too fast"
    assert page.requests[0].code == 368


def test_an_answer_without_an_id(page: PageUnderTest) -> None:
    page.control.behave("answer-without-id")
    assert page.feed("No id").json() == {"success": True}


def test_an_older_id_needs_an_older_post(page: PageUnderTest) -> None:
    page.control.behave("older-id")
    older = page.feed("Accepted: there is nothing older").json()["id"]
    assert page.feed("Not accepted").json() == {"id": older}
    assert len(page.logged) == 1


def test_a_late_post_comes_after_the_connection_has_ended(page: PageUnderTest) -> None:
    page.control.behave("accept-late", seconds=0.3)
    received = page.raw("Late")
    assert (received.data, page.logged) == (b"", [])
    post = until(lambda: page.logged)[0]
    assert (post.created_at - page.requests[0].at).total_seconds() >= 0.3
    assert page.requests[0].posts == (post.id,)


def test_a_gzip_bomb_unpacks_to_far_too_much(page: PageUnderTest) -> None:
    page.control.behave("gzip-bomb")
    head, body = page.raw("Bomb").data.split(b"\r\n\r\n", 1)
    assert b"Content-Encoding: gzip" in head
    assert len(body) < 1_000_000
    unpack, total = zlib.decompressobj(31), 0
    while not unpack.eof:
        total += len(unpack.decompress(unpack.unconsumed_tail or body, 1 << 22))
    assert total > BOMB_BYTES


def test_an_endless_body_does_not_end(page: PageUnderTest) -> None:
    page.control.behave("endless-body")
    received = page.raw("Endless", seconds=1)
    assert (received.end, len(received.data) > 500_000) == ("open", True)


def test_a_head_dribbles(page: PageUnderTest) -> None:
    page.control.behave("header-dribble", seconds=30)
    received = page.raw("Dribble", seconds=0.1)
    assert received.end == "open"
    assert received.data.startswith(b"HTTP/1.1 200 OK\r\nX-Padding: a")
    page.control.behave("header-dribble", seconds=0.4)
    assert page.feed("Dribble to the end").json()["id"] == page.logged[1].id


def test_a_redirect_sends_a_second_time_to_who_follows(page: PageUnderTest) -> None:
    page.control.behave("redirect-307")
    response = page.feed("Elsewhere")
    assert (response.status_code, page.logged) == (307, [])
    page.control.behave("redirect-307")
    with httpx.Client(base_url=page.sandbox.url, trust_env=False, follow_redirects=True) as eager:
        eager.post(f"/{page.id}/feed", data={"access_token": page.token, "message": "Followed"})
    assert [post.message for post in page.logged] == ["Followed"]


def test_a_true_duplicate_is_refused_only_when_the_text_is_there(page: PageUnderTest) -> None:
    page.control.behave("refuse-duplicate", times=None)
    first = page.feed("Once")
    assert first.status_code == 200
    assert page.feed("Once").json()["error"]["code"] == 506
    page.call("DELETE", first.json()["id"])
    assert page.feed("Once").status_code == 200
    assert len(page.logged) == 2


def _listed(page: PageUnderTest, **params: int) -> list[str]:
    return [post["message"] for post in page.listing(**params).json()["data"]]


def test_a_listing_comes_late(page: PageUnderTest) -> None:
    page.feed("New")
    page.control.behave("listing-delayed", endpoint="list", times=None, seconds=0.5)
    assert _listed(page) == []
    until(lambda: _listed(page) == ["New"])


def test_a_listing_has_a_gap(page: PageUnderTest) -> None:
    for number in range(5):
        page.feed(str(number))
    page.control.behave("listing-gap", times=2)
    assert _listed(page, limit=2) == ["2", "1"]
    assert _listed(page) == []
    assert _listed(page, limit=2) == ["4", "3"]


def test_someone_elses_equal_text_is_in_the_listing(page: PageUnderTest) -> None:
    page.control.behave("twin")
    page.raw("Equal")
    shown = page.listing(fields="message,application{id}").json()["data"]
    assert [(post["message"], post["application"]["id"]) for post in shown] == [
        ("Equal", "900000000000009")
    ]
    page.control.behave("accept-with-twin")
    page.raw("Both")
    assert _listed(page) == ["Both", "Both", "Equal"]
    assert [post.message for post in page.logged] == ["Both"]


def test_a_post_is_removed_at_once(page: PageUnderTest) -> None:
    page.control.behave("remove-at-once")
    post = page.feed("Gone").json()["id"]
    assert _listed(page) == []
    assert page.call("GET", post).json()["error"]["error_subcode"] == 33
    assert page.logged[0].deleted_at is not None


def test_a_post_cannot_be_read_for_ever(page: PageUnderTest) -> None:
    page.control.behave("unreadable", endpoint="publish")
    post = page.feed("On the page").json()["id"]
    for _ in range(2):
        assert page.call("GET", post).json()["error"]["error_subcode"] == 33
    assert _listed(page) == ["On the page"]


@pytest.mark.parametrize("endpoint", ["list", "read"])
def test_reads_are_spoiled_too(page: PageUnderTest, endpoint: str) -> None:
    post = page.feed("There").json()["id"]
    path = f"{page.id}/feed" if endpoint == "list" else post
    page.control.behave("refuse-limited", endpoint=endpoint)
    assert page.call("GET", path).json()["error"]["code"] == 4
    page.control.behave("lose-answer", endpoint=endpoint)
    with pytest.raises(httpx.RemoteProtocolError):
        page.call("GET", path)
    assert page.call("GET", path).status_code == 200


def test_connections_are_refused_and_held(page: PageUnderTest) -> None:
    page.control.refuse_connections(0.3)
    until(lambda: _is_refused(page))
    until(lambda: not _is_refused(page))
    page.control.hold_connections(0.4)
    assert page.raw("Held, then served").status == 200
    assert [post.message for post in page.logged] == ["Held, then served"]


def _is_refused(page: PageUnderTest) -> bool:
    try:
        page.send(b"", seconds=0.01)
    except ConnectionRefusedError:
        return True
    return False
