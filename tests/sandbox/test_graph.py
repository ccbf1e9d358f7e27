"""The sandbox speaks Graph: publishing, reading, refusing."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    import httpx

    from tests.sandbox.conftest import PageUnderTest

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) + b"\r\n--not-a-boundary\r\n\r\n"

TEXTS = [
    "👩‍👩‍👧‍👦 👨🏽‍🚀 🏳️‍🌈 🇻🇳🇮🇷 #️⃣",
    "Tiệm mở cửa lúc tám giờ sáng",  # NFC
    "Tiệm mở cửa",  # NFD
    "می‌خواهیم صفحه‌ها را ببینیم؛ ۱۲۳",  # noqa: RUF001  Persian, with joiners
    "' \" & < > + % %41 a+b=c&d=e ; # ?",
    "  spaces around, tab\there  ",
    "line\nline\r\nline\n\n",
    "\ufeffmark \u202eright to left\u202c \u00a0",
    "null \x00 inside",
]


def _error(response: httpx.Response) -> tuple[int, int, int | None]:
    error = response.json()["error"]
    assert {"message", "type", "code", "is_transient", "fbtrace_id"} <= set(error)
    return response.status_code, error["code"], error.get("error_subcode")


def _upload(page: PageUnderTest, content: bytes = PNG, **params: str) -> httpx.Response:
    files = {"source": ("photo.png", content, "image/png")}
    return page.call("POST", f"{page.id}/photos", files=files, **params)


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("how", ["form", "json", "multipart"])
def test_text_comes_back_as_it_went(page: PageUnderTest, text: str, how: str) -> None:
    given = {"message": text, "access_token": page.token}
    path = f"/v26.0/{page.id}/feed"
    if how == "json":
        response = page.client.post(path, json=given)
    elif how == "form":
        response = page.client.post(path, data=given)
    else:
        response = page.client.post(path, data=given, files={"unused": ("x", b"x")})
    post = response.json()["id"]
    read = page.call("GET", post, fields="message").json()
    listed = page.listing().json()["data"][0]
    assert read["message"].encode() == listed["message"].encode() == text.encode()
    assert page.logged[0].message.encode() == text.encode()


def test_a_post_has_the_shape_graph_gives_it(page: PageUnderTest) -> None:
    post = page.feed("Hello", link="https://example.org/").json()["id"]
    assert re.fullmatch(rf"{page.id}_\d+", post)
    fields = "id,message,created_time,permalink_url,is_published,application{id,name},attachments"
    shown = page.call("GET", post, fields=fields).json()
    created = datetime.strptime(shown.pop("created_time"), "%Y-%m-%dT%H:%M:%S%z")
    assert abs(created - datetime.now(UTC)) < timedelta(seconds=10)
    attachment = shown.pop("attachments")["data"][0]
    assert attachment["unshimmed_url"] == "https://example.org/"
    assert shown == {
        "id": post,
        "message": "Hello",
        "permalink_url": f"{page.sandbox.url}/a/{post}",
        "is_published": True,
        "application": {"id": "700000000000001", "name": "Publisher"},
    }


@pytest.mark.parametrize("edge", ["published_posts", "feed"])
def test_a_listing_is_read_page_by_page_newest_first(page: PageUnderTest, edge: str) -> None:
    made = [page.feed(f"Post {number}").json()["id"] for number in range(7)]
    first = page.listing(edge, limit=3, fields="id").json()
    seen, listing = [post["id"] for post in first["data"]], first
    while "next" in listing["paging"]:
        listing = page.client.get(listing["paging"]["next"]).json()
        seen += [post["id"] for post in listing["data"]]
    assert seen == made[::-1]
    after = first["paging"]["cursors"]["after"]
    second = page.listing(edge, limit=3, fields="id", after=after).json()
    assert [post["id"] for post in second["data"]] == made[-4:-7:-1]
    assert first["data"] == [{"id": post} for post in made[:-4:-1]]


def test_a_listing_keeps_to_since_and_until(page: PageUnderTest) -> None:
    noon = datetime(2026, 12, 7, 12, tzinfo=UTC)
    for minutes in (0, 1, 2):
        at = noon + timedelta(minutes=minutes, seconds=0.7)
        page.control.foreign_post(page.id, f"{minutes}", created_at=at)
    since = int(noon.timestamp())

    def texts(**params: int) -> list[str]:
        return [post["message"] for post in page.listing(**params).json()["data"]]

    assert texts() == ["2", "1", "0"]
    assert texts(since=since) == ["2", "1", "0"]
    assert texts(since=since + 60, until=since + 60) == ["1"]
    assert texts(until=since + 59) == ["0"]
    assert texts(since=since + 121) == []


@pytest.mark.parametrize("as_json", [True, False])
def test_photos_are_uploaded_then_attached(page: PageUnderTest, *, as_json: bool) -> None:
    photos = [_upload(page, published="false").json()["id"] for _ in range(2)]
    assert page.logged == []
    items = [{"media_fbid": photo} for photo in photos]
    indexed = {f"attached_media[{place}]": json.dumps(item) for place, item in enumerate(items)}
    given = {"attached_media": json.dumps(items)} if as_json else indexed
    post = page.feed("Two photos", **given).json()["id"]
    fields = "attachments{target{id},subattachments{target{id}}}"
    shown = page.call("GET", post, fields=fields).json()["attachments"]["data"][0]
    assert [item["target"]["id"] for item in shown["subattachments"]["data"]] == photos
    assert page.logged[0].media == tuple(photos)
    assert page.client.get(f"/media/{photos[0]}").content == PNG


def test_a_photo_is_posted_by_itself_unless_told_not_to(page: PageUnderTest) -> None:
    made = _upload(page, caption="Look").json()
    assert page.logged[0].id == made["post_id"]
    target = page.listing(fields="message,attachments{target{id}}").json()["data"][0]
    assert target["attachments"]["data"] == [{"target": {"id": made["id"]}}]
    assert target["message"] == "Look"
    assert page.call("GET", made["id"], fields="page_story_id").json() == {
        "page_story_id": made["post_id"],
        "id": made["id"],
    }


def test_a_video_is_a_post_of_its_own(page: PageUnderTest) -> None:
    path = f"{page.id}/videos"
    video = page.call("POST", path, file_url="https://example.org/v.mp4", description="Moving")
    files = {"source": ("v.mp4", b"\x00\x00\x00\x18ftypmp42")}
    page.call("POST", path, files=files, description="Moving too")
    assert [post["message"] for post in page.listing().json()["data"]] == ["Moving too", "Moving"]
    video_id = video.json()["id"]
    assert page.call("GET", video_id, fields="post_id").json()["post_id"] == page.logged[0].id


def test_the_token_goes_in_the_header_too(page: PageUnderTest) -> None:
    headers = {"Authorization": f"Bearer {page.token}"}
    given = {"message": "By header"}
    assert page.client.post(f"/{page.id}/feed", data=given, headers=headers).status_code == 200
    shown = page.client.get(f"/v21.0/{page.id}?fields=id,name", headers=headers).json()
    assert shown == {"id": page.id, "name": f"Page {page.id}"}


def test_a_draft_is_seen_only_once_it_is_flipped(page: PageUnderTest) -> None:
    draft = page.feed("Later", published="false").json()["id"]
    assert (page.listing().json()["data"], page.logged) == ([], [])
    for _ in range(2):
        assert page.call("POST", draft, is_published="true").json() == {"success": True}
    assert [post["id"] for post in page.listing().json()["data"]] == [draft]
    assert [post.id for post in page.logged] == [draft]


def test_a_deleted_post_is_gone_but_not_forgotten(page: PageUnderTest) -> None:
    post = page.feed("Short-lived").json()["id"]
    assert page.call("DELETE", post).json() == {"success": True}
    assert _error(page.call("DELETE", post)) == (400, 100, 33)
    assert _error(page.call("GET", post)) == (400, 100, 33)
    assert page.listing().json() == {"data": []}
    assert page.logged[0].deleted_at is not None
    foreign = page.control.foreign_post(page.id, "Not ours")
    assert _error(page.call("DELETE", foreign)) == (403, 200, None)


def test_a_token_is_looked_into(page: PageUnderTest) -> None:

    def ask() -> dict[str, Any]:
        data: dict[str, Any] = page.call("GET", "debug_token", input_token=page.token).json()
        return data["data"]  # type: ignore[no-any-return]

    assert (ask()["is_valid"], ask()["profile_id"]) == (True, page.id)
    page.control.revoke(page.id, 460)
    assert _error(page.feed("No more")) == (401, 190, 460)
    asked = {"input_token": page.token, "access_token": "sandbox-token-101"}
    seen = page.client.get("/debug_token", params=asked).json()["data"]
    assert (seen["is_valid"], seen["error"]["subcode"]) == (False, 460)
    page.control.restore(page.id)
    assert page.feed("Again").status_code == 200


REFUSED = {
    "empty": ({}, (400, 100, None)),
    "blank": ({"message": " \n"}, (400, 100, None)),
    "too long": ({"message": "ạ" * 63_207}, (400, 100, None)),
    "bad link": ({"message": "x", "link": "not a link"}, (400, 100, 2061006)),
    "no such photo": (
        {"message": "x", "attached_media[0]": '{"media_fbid":"1"}'},
        (400, 100, None),
    ),
    "no JSON": ({"message": "x", "attached_media[0]": "1"}, (400, 100, None)),
    "scheduled": ({"message": "x", "scheduled_publish_time": "1796600000"}, (400, 100, None)),
    "bad token": ({"message": "x", "access_token": "nobody"}, (401, 190, None)),
    "no token": ({"message": "x", "access_token": ""}, (400, 104, None)),
    "other page": ({"message": "x", "access_token": "sandbox-token-102"}, (403, 200, None)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_graph_would_refuse_is_refused(page: PageUnderTest, name: str) -> None:
    params, error = REFUSED[name]
    assert _error(page.feed(**params)) == error
    assert page.logged == []
    assert (page.requests[-1].status, page.requests[-1].code) == error[:2]


def test_the_longest_text_is_taken(page: PageUnderTest) -> None:
    assert page.feed("ạ" * 63_206).status_code == 200


def test_reading_what_is_not_there_is_refused(page: PageUnderTest) -> None:
    assert _error(page.call("POST", "999/feed", message="x")) == (400, 100, 33)
    assert _error(page.call("GET", "1_1")) == (400, 100, 33)
    assert _error(page.listing(limit=101)) == (400, 100, None)
    assert _error(page.listing(after="rubbish")) == (400, 100, None)
    page.feed("x")
    assert _error(page.listing(fields="id,likelihood")) == (400, 100, None)
    assert _error(page.listing(fields="id,attachments{target")) == (400, 100, None)


def test_photos_are_checked(page: PageUnderTest) -> None:
    assert _error(_upload(page, b"text")) == (400, 100, 1366046)
    assert _error(_upload(page, PNG + bytes(10 * 1024 * 1024))) == (400, 100, 1366046)
    assert _error(page.call("POST", f"{page.id}/photos", published="false"))[1] == 324
    assert page.logged == []


@pytest.mark.parametrize(
    "body", [b"message=%FF%FE", b'{"message":"\\ud800"}', b"[1]", b'{"message":']
)
def test_a_body_that_is_no_text_is_refused(page: PageUnderTest, body: bytes) -> None:
    kind = "application/json" if body[:1] in b"{[" else "application/x-www-form-urlencoded"
    response = page.client.post(f"/{page.id}/feed", content=body, headers={"Content-Type": kind})
    assert _error(response) == (400, 100, None)


def test_chunked_bodies_and_expectations_are_read(page: PageUnderTest) -> None:
    given = f"access_token={page.token}&message=In+pieces".encode()
    pieces = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in (given[:9], given[9:]))
    head = (
        f"POST /v26.0/{page.id}/feed HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
        "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    )
    received = page.send(head.encode() + pieces + b"0\r\n\r\n")
    assert received.data.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n")
    assert page.logged[0].message == "In pieces"


def test_rubbish_is_answered_and_harms_nobody(page: PageUnderTest) -> None:
    assert page.send(b"\x16\x03\x01\x02\x00\r\n\r\n").status == 400
    assert page.send(b"GET / HTTP/1.1\r\nno colon\r\n\r\n").status == 400
    assert page.feed("Still here").status_code == 200


def test_usage_is_told_when_asked(page: PageUnderTest) -> None:
    page.control.usage(42)
    headers = page.feed("Counted").headers
    page.control.usage(None)
    assert json.loads(headers["X-App-Usage"])["call_count"] == 42
    business = json.loads(headers["X-Business-Use-Case-Usage"])
    assert business[page.id][0]["estimated_time_to_regain_access"] == 0
    assert "X-App-Usage" not in page.feed("Not counted").headers
