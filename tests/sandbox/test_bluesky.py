"""The sandbox speaks the AT Protocol as the reference server does."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from publisher.sandbox import log
from publisher.sandbox.bluesky import cids, tids

from .conftest import send, until
from .senders import MP4, PNG, POSTS, BlueskyUnderTest

if TYPE_CHECKING:
    import httpx

TEXTS = [
    "Xin chào  Việt Nam\n https://example.com ",
    "👩‍👩‍👧‍👦 🏳️‍🌈 🇻🇳🇮🇷 #️⃣",
    "Tiệm mở cửa",  # NFD
    "می‌خواهیم صفحه‌ها را ببینیم؛ ۱۲۳",  # noqa: RUF001  Persian, with joiners
    "' \" & < > null \x00 inside",
]


def _error(response: httpx.Response) -> tuple[int, str]:
    assert set(response.json()) == {"error", "message"}
    return response.status_code, response.json()["error"]


@pytest.mark.parametrize("text", TEXTS)
def test_a_record_comes_back_as_it_went(bluesky: BlueskyUnderTest, text: str) -> None:
    rkey = bluesky.rkey()
    made = bluesky.put(rkey, bluesky.record(text), swapRecord=None).json()
    uri = f"at://{bluesky.id}/{POSTS}/{rkey}"
    assert (made["uri"], made["validationStatus"]) == (uri, "valid")
    assert set(made["commit"]) == {"cid", "rev"}
    shown = bluesky.get(rkey).json()
    assert shown == {"uri": uri, "cid": made["cid"], "value": bluesky.record(text)}
    assert (bluesky.logged[0].id, bluesky.logged[0].message) == (uri, text)
    assert bluesky.logged[0].client_mutation_id == rkey


def test_the_key_makes_a_repeat_safe(bluesky: BlueskyUnderTest) -> None:
    rkey, record = bluesky.rkey(), bluesky.record("Once")
    assert _error(bluesky.get(rkey)) == (400, "RecordNotFound")
    first = bluesky.write("createRecord", rkey, record=record).json()
    repeated = bluesky.write("createRecord", rkey, record=record)
    assert _error(repeated) == (500, "InternalServerError")
    for more in ({}, {"swapRecord": None}):
        again = bluesky.put(rkey, record, **more)
        assert (again.status_code, again.json()["cid"]) == (200, first["cid"])
        assert "commit" not in again.json()
        assert bluesky.requests[-1].repeats == first["uri"]
    changed = bluesky.put(rkey, bluesky.record("Other"), swapRecord=None)
    assert _error(changed) == (400, "InvalidSwap")
    assert first["cid"] in changed.json()["message"]
    assert bluesky.get(rkey).json()["value"] == record
    assert [post.message for post in bluesky.logged] == ["Once"]


def test_a_record_is_changed_when_nothing_forbids_it(bluesky: BlueskyUnderTest) -> None:
    rkey = bluesky.rkey()
    first = bluesky.put(rkey, bluesky.record("First")).json()["cid"]
    second = bluesky.put(rkey, bluesky.record("Second")).json()["cid"]
    stale = bluesky.put(rkey, bluesky.record("Third"), swapRecord=first)
    assert _error(stale) == (400, "InvalidSwap")
    assert bluesky.put(rkey, bluesky.record("Third"), swapRecord=second).status_code == 200
    missing = bluesky.put(bluesky.rkey(), bluesky.record("New"), swapRecord=second)
    assert _error(missing) == (400, "InvalidSwap")
    assert bluesky.control.texts(bluesky.id) == ["Third"]
    assert [post.message for post in bluesky.logged] == ["Third"]


def test_a_replay_after_a_deletion_is_on_the_page_again(bluesky: BlueskyUnderTest) -> None:
    rkey, record = bluesky.rkey(), bluesky.record("Again")
    bluesky.put(rkey, record)
    assert bluesky.write("deleteRecord", rkey).status_code == 200
    assert bluesky.write("deleteRecord", rkey).json() == {}
    assert _error(bluesky.get(rkey)) == (400, "RecordNotFound")
    bluesky.put(rkey, record, swapRecord=None)
    read = log.read(bluesky.sandbox.log)
    assert read.copies("Again", bluesky.id) == 2
    assert [post.message for post in read.posts if post.page == bluesky.id] == ["Again"]


def test_a_late_record_does_not_double_one_that_was_repeated(bluesky: BlueskyUnderTest) -> None:
    rkey, record = bluesky.rkey(), bluesky.record("Late")
    bluesky.control.behave("accept-late", page=bluesky.id, seconds=0.3)
    path, headers, given = bluesky.publishing("Late")
    given |= {"rkey": rkey, "record": record}
    with pytest.raises(Exception, match="disconnected"):
        bluesky.client.post(path, json=given, headers=headers)
    assert _error(bluesky.get(rkey)) == (400, "RecordNotFound")
    assert bluesky.put(rkey, record, swapRecord=None).status_code == 200
    until(lambda: log.read(bluesky.sandbox.log).promised == ())
    assert [post.message for post in bluesky.logged] == ["Late"]


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"text": "é" * 301}, "300 graphemes"),
        ({"text": "👩‍👩‍👧‍👦" * 121}, "3000"),
        ({"text": None}, "text"),
        ({"createdAt": "yesterday"}, "createdAt"),
        ({"createdAt": None}, "createdAt"),
        ({"langs": ["vi", "fa", "en", "de"]}, "langs"),
        ({"$type": "app.bsky.feed.like"}, "type"),
        ({"facets": "none"}, "facets"),
        ({"facets": [{"index": {"byteStart": 0, "byteEnd": 99}, "features": []}]}, "inside"),
        ({"facets": [{"index": {"byteStart": 0, "byteEnd": 2}, "features": []}]}, "cut"),
        ({"facets": [{"index": {"byteStart": 0, "byteEnd": 1}, "features": [{}]}]}, "property"),
        ({"embed": {"$type": "app.bsky.embed.images", "images": []}}, "4"),
        ({"embed": {"$type": "app.bsky.embed.external", "external": {"uri": "x"}}}, "title"),
        ({"embed": 7}, "embed"),
        ({"number": 1.5}, "1.5"),
    ],
)
def test_a_record_amiss_is_refused(
    bluesky: BlueskyUnderTest, more: dict[str, Any], says: str
) -> None:
    response = bluesky.put(bluesky.rkey(), bluesky.record("aé") | more)
    assert _error(response) == (400, "InvalidRequest")
    assert says in response.json()["message"]
    assert bluesky.logged == []


@pytest.mark.parametrize(
    "text", ["é" * 300, "👩‍👩‍👧‍👦" * 120, "🇻🇳" * 300, "한" * 300, "a\u0301" * 300]
)
def test_a_text_at_its_limit_is_taken(bluesky: BlueskyUnderTest, text: str) -> None:
    response = bluesky.put(bluesky.rkey(), bluesky.record(text))
    assert response.status_code == (200 if len(text.encode()) <= 3000 else 400)


def test_a_place_amiss_is_refused(bluesky: BlueskyUnderTest) -> None:
    record = bluesky.record("x")
    assert _error(bluesky.put("not-a-tid", record)) == (400, "InvalidRequest")
    elsewhere = {"repo": bluesky.control.accounts("bluesky")[0]["id"], "rkey": bluesky.rkey()}
    given = {**elsewhere, "collection": POSTS, "record": record}
    assert _error(bluesky.call("repo.putRecord", given)) == (401, "AuthenticationRequired")
    assert _error(bluesky.read("getRecord", repo="nobody.test")) == (400, "RepoNotFound")
    assert bluesky.call("repo.applyWrites", {}).status_code == 501
    headers = {**bluesky.headers(), "Content-Type": "application/json"}
    torn = bluesky.client.post("/xrpc/com.atproto.repo.putRecord", content=b"{", headers=headers)
    assert _error(torn) == (400, "InvalidRequest")


def test_images_are_uploaded_then_embedded(bluesky: BlueskyUnderTest) -> None:
    blob = bluesky.upload().json()["blob"]
    assert blob == {
        "$type": "blob",
        "ref": {"$link": cids.of_bytes(PNG)},
        "mimeType": "image/png",
        "size": len(PNG),
    }

    def put(**changes: Any) -> httpx.Response:  # noqa: ANN401
        images = [{"alt": "A square", "image": {**blob, **changes}}]
        embed = {"$type": "app.bsky.embed.images", "images": images}
        return bluesky.put(bluesky.rkey(), bluesky.record("Photo", embed=embed))

    unknown = {"$link": cids.of_bytes(b"never uploaded")}
    assert _error(put(ref=unknown)) == (400, "BlobNotFound")
    assert _error(put(size=7)) == (400, "InvalidMimeType")
    assert _error(put(mimeType="video/mp4")) == (400, "InvalidRequest")
    uri = put().json()["uri"]
    media = bluesky.logged[0].media[0]
    assert f'<img src="/media/{media}"' in bluesky.client.get(f"/a/{uri}").text
    assert bluesky.client.get(f"/media/{media}").content == PNG


def test_what_is_uploaded_is_looked_into(bluesky: BlueskyUnderTest) -> None:
    assert bluesky.upload(MP4, "image/png").json()["blob"]["mimeType"] == "video/mp4"
    assert _error(bluesky.upload(b"")) == (400, "InvalidRequest")
    big = bluesky.upload(PNG + bytes(2_000_000)).json()["blob"]
    embed = {"$type": "app.bsky.embed.images", "images": [{"alt": "", "image": big}]}
    response = bluesky.put(bluesky.rkey(), bluesky.record("Big", embed=embed))
    assert _error(response) == (400, "BlobTooLarge")


def test_a_listing_has_the_highest_key_first(bluesky: BlueskyUnderTest) -> None:
    keys = [bluesky.rkey() for _ in range(5)]
    for rkey in (keys[3], keys[0], keys[4], keys[1], keys[2]):
        bluesky.put(rkey, bluesky.record(rkey))

    def page(**given: Any) -> tuple[list[str], str | None]:  # noqa: ANN401
        shown = bluesky.read("listRecords", **given).json()
        return [it["value"]["text"] for it in shown["records"]], shown.get("cursor")

    assert page(limit=2) == (keys[:2:-1], keys[3])
    assert page(limit=2, cursor=keys[3]) == ([keys[2], keys[1]], keys[1])
    assert page(cursor=keys[0]) == ([], None)
    assert page(limit=2, reverse="true") == (keys[:2], keys[1])
    assert _error(bluesky.read("listRecords", limit=101)) == (400, "InvalidRequest")
    bluesky.control.behave("listing-gap", page=bluesky.id)
    assert page(limit=2)[0] == [keys[2], keys[1]]
    bluesky.control.behave("listing-delayed", page=bluesky.id, seconds=30)
    assert page()[0] == []
    assert page(collection="app.bsky.feed.like")[0] == []


def test_a_session_is_made_and_renewed(bluesky: BlueskyUnderTest) -> None:
    session = bluesky.session
    assert (session["did"], session["handle"], session["active"]) == (
        bluesky.id,
        bluesky.handle,
        True,
    )
    assert bluesky.sign_in(identifier=bluesky.id).status_code == 200
    wrong = bluesky.sign_in(password="wrong")
    assert _error(wrong) == (401, "AuthenticationRequired")
    renewed = bluesky.call("server.refreshSession", token=session["refreshJwt"]).json()
    headers = bluesky.headers(renewed["accessJwt"])
    shown = bluesky.client.get("/xrpc/com.atproto.server.getSession", headers=headers).json()
    assert (shown["did"], "accessJwt" in shown) == (bluesky.id, False)
    wrong_way = bluesky.call("server.refreshSession", token=renewed["accessJwt"])
    assert _error(wrong_way) == (400, "InvalidToken")
    assert _error(bluesky.call("repo.putRecord", {}, token="x.y.z")) == (400, "InvalidToken")
    assert _error(bluesky.call("repo.putRecord", {}, token="")) == (401, "AuthMissing")
    resolved = bluesky.client.get(
        "/xrpc/com.atproto.identity.resolveHandle", params={"handle": bluesky.handle}
    )
    assert resolved.json() == {"did": bluesky.id}


def test_an_access_token_expires_with_400(bluesky: BlueskyUnderTest) -> None:
    bluesky.control.expire_sessions(bluesky.id)
    assert _error(bluesky.publish("Expired")) == (400, "ExpiredToken")
    bluesky.session = bluesky.call(
        "server.refreshSession", token=bluesky.session["refreshJwt"]
    ).json()
    assert bluesky.publish("Renewed").status_code == 200
    bluesky.control.bluesky(bluesky.id, access_for=0.2)
    bluesky.session = bluesky.sign_in().json()
    assert bluesky.publish("In time").status_code == 200
    until(lambda: bluesky.publish("Later").status_code == 400, 2)


def test_a_used_refresh_token_has_a_grace(bluesky: BlueskyUnderTest) -> None:
    token = bluesky.session["refreshJwt"]
    assert bluesky.call("server.refreshSession", token=token).status_code == 200
    assert bluesky.call("server.refreshSession", token=token).status_code == 200
    bluesky.control.bluesky(bluesky.id, refresh_grace_for=0)
    refused = bluesky.call("server.refreshSession", token=token)
    assert _error(refused) == (400, "ExpiredToken")


def test_a_revoked_account_has_no_session(bluesky: BlueskyUnderTest) -> None:
    bluesky.control.revoke(bluesky.id)
    token = bluesky.session["refreshJwt"]
    assert _error(bluesky.publish("No")) == (400, "ExpiredToken")
    assert _error(bluesky.call("server.refreshSession", token=token)) == (400, "ExpiredToken")
    assert _error(bluesky.sign_in()) == (401, "AuthenticationRequired")


def test_limits_are_told_in_headers(bluesky: BlueskyUnderTest) -> None:
    bluesky.control.behave("refuse-limited", page=bluesky.id, seconds=90)
    response = bluesky.publish("Limited")
    assert _error(response) == (429, "RateLimitExceeded")
    assert 80 < int(response.headers["ratelimit-reset"]) - time.time() < 100
    assert response.headers["ratelimit-remaining"] == "0"
    bluesky.control.behave("refuse-429", page=bluesky.id)
    assert "ratelimit-reset" not in bluesky.publish("Limited").headers


def test_an_error_is_changed_by_its_rule(bluesky: BlueskyUnderTest) -> None:
    error = {"status": 401, "error": "AccountTakedown", "message": "Taken down"}
    bluesky.control.behave("refuse-token", page=bluesky.id, error=error)
    assert _error(bluesky.publish("No")) == (401, "AccountTakedown")


def test_an_unreadable_record_stays_so(bluesky: BlueskyUnderTest) -> None:
    bluesky.control.behave("unreadable", page=bluesky.id, endpoint="publish")
    rkey = bluesky.rkey()
    bluesky.put(rkey, bluesky.record("There"))
    for _ in range(2):
        assert _error(bluesky.get(rkey)) == (400, "RecordNotFound")
    assert len(bluesky.read("listRecords").json()["records"]) == 1


def test_someone_elses_record_has_a_key_of_its_own(bluesky: BlueskyUnderTest) -> None:
    bluesky.control.behave("accept-with-twin", page=bluesky.id)
    send(bluesky.sandbox.url, bluesky.raw("Same"))
    shown = bluesky.read("listRecords").json()["records"]
    assert [it["value"]["text"] for it in shown] == ["Same", "Same"]
    assert all(tids.is_tid(it["uri"].rpartition("/")[2]) for it in shown)
    assert [cids.of_record(it["value"]) for it in shown] == [it["cid"] for it in shown]


def test_cids_are_the_real_ones() -> None:
    """The first two are known from elsewhere: of ``{}`` in DAG-CBOR, and of no bytes."""
    empty = "bafyreigbtj4x7ip5legnfznufuopl4sg4knzc2cof6duas4b3q2fy6swua"
    assert cids.of_record({}) == empty
    assert cids.of_bytes(b"") == "bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku"
    ordered = {"bb": 1, "a": [True, None, -1, 23, 24, 256, 70_000, 2**40]}
    assert cids.encode(ordered).hex() == (
        "a261618" + "8f5f620171818190100" + "1a00011170" + "1b0000010000000000" + "626262" + "01"
    )
    assert cids.encode({"$link": empty})[:5].hex() == "d82a582500"
    assert cids.encode({"$bytes": "aGk"}).hex() == "426869"
    for wrong in ({"x": 1.5}, {"$link": "bafy"}, {"x": 2**63}):
        with pytest.raises(cids.NotARecord):
            cids.of_record(wrong)
