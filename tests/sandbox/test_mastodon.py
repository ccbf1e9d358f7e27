"""The sandbox speaks Mastodon: media, statuses, timelines, servers of other kinds."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from publisher.sandbox.control import ControlRefused
from publisher.sandbox.mastodon import markup
from publisher.sandbox.pages import Pages

from .conftest import until
from .senders import MP4, PNG

if TYPE_CHECKING:
    import httpx

    from .senders import MastodonUnderTest

TEXTS = [
    "👩‍👩‍👧‍👦 🏳️‍🌈 🇻🇳🇮🇷",
    "Tiệm mở cửa",  # NFD
    "می‌خواهیم صفحه‌ها را ببینیم؛ ۱۲۳",  # noqa: RUF001  Persian, with joiners
    "' \" & < > a+b=c&d=e",
    "line\nline\n\nparagraph",
]


def _error(response: httpx.Response) -> tuple[int, str]:
    return response.status_code, response.json()["error"]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("how", ["json", "form"])
def test_the_source_is_as_it_was_written(mastodon: MastodonUnderTest, text: str, how: str) -> None:
    given = {"status": f" {text}\n"}
    body: dict[str, Any] = {"json": given} if how == "json" else {"data": given}
    made = mastodon.client.post("/api/v1/statuses", headers=mastodon.headers(), **body).json()
    source = mastodon.get(f"v1/statuses/{made['id']}/source").json()
    assert source == {"id": made["id"], "text": text, "spoiler_text": ""}
    assert mastodon.logged[0].message == f" {text}\n"
    assert mastodon.get(f"v1/statuses/{made['id']}").json() == made


def test_a_status_has_the_shape_mastodon_gives_it(mastodon: MastodonUnderTest) -> None:
    made = mastodon.post("Hello", visibility="unlisted", language="vi", spoiler_text="Mind").json()
    created = datetime.fromisoformat(made["created_at"])
    assert abs(created - datetime.now(UTC)) < timedelta(seconds=10)
    assert int(made["id"]) >> 16 == round(created.timestamp() * 1000)
    assert (made["visibility"], made["language"], made["sensitive"]) == ("unlisted", "vi", True)
    assert made["application"] == {"name": "Publisher", "website": None}
    assert made["account"]["id"] == mastodon.id
    assert mastodon.client.get(made["url"]).status_code == 200
    shown = mastodon.client.get(f"/api/v1/statuses/{made['id']}").json()
    assert "application" not in shown, "only its author sees that"


def test_content_is_html_with_short_links(mastodon: MastodonUnderTest) -> None:
    me = mastodon.account["username"]
    url = "https://www.example.org/a/long/way/to/go?x=1&y=2"
    made = mastodon.post(f"See {url}, #Tết2027 @{me} @nobody 'now'\nline\n\nend").json()
    assert made["content"] == (
        '<p>See <a href="https://www.example.org/a/long/way/to/go?x=1&amp;y=2" target="_blank"'
        ' rel="nofollow noopener noreferrer" translate="no"><span class="invisible">https://www.'
        '</span><span class="ellipsis">example.org/a/long/way/to/go?x</span>'
        '<span class="invisible">=1&amp;y=2</span></a>,'
        f' <a href="{mastodon.sandbox.url}/tags/Tết2027" class="mention hashtag" rel="tag">'
        "#<span>Tết2027</span></a>"
        f' <span class="h-card" translate="no"><a href="{mastodon.sandbox.url}/@{me}"'
        f' class="u-url mention">@<span>{me}</span></a></span>'
        " @nobody &#39;now&#39;<br />line</p><p>end</p>"
    )
    assert [tag["name"] for tag in made["tags"]] == ["Tết2027"]


def test_lengths_are_counted_as_mastodon_counts(mastodon: MastodonUnderTest) -> None:
    address = "https://example.org/" + "x" * 500
    for text in ("a" * 500, "👩‍👩‍👧‍👦" * 500, "a" * 476 + " " + address, f"@user@{'d' * 600}.org"):
        assert mastodon.post(text).status_code == 200
    refused = mastodon.post("a" * 501)
    assert _error(refused) == (422, "Validation failed: Text character limit of 500 exceeded")
    assert mastodon.post("a" * 450, spoiler_text="b" * 51).status_code == 422
    assert markup.length(f"{address} {address}", 23) == 47
    assert markup.html("", "", Pages()) == ""


@pytest.mark.parametrize(
    ("given", "status"),
    [
        ({"status": "  "}, 422),
        ({"status": "x", "visibility": "secret"}, 422),
        ({"status": "x", "media_ids": ["7"]}, 422),
        ({"status": "x", "media_ids": list("12345")}, 422),
        ({"status": "x", "in_reply_to_id": "7"}, 404),
    ],
)
def test_a_status_amiss_is_refused(
    mastodon: MastodonUnderTest, given: dict[str, Any], status: int
) -> None:
    response = mastodon.client.post("/api/v1/statuses", json=given, headers=mastodon.headers())
    assert response.status_code == status
    assert response.json()["error"]
    assert mastodon.logged == []


@pytest.mark.parametrize("how", ["json", "form"])
def test_media_are_uploaded_then_attached(mastodon: MastodonUnderTest, how: str) -> None:
    made = [mastodon.upload(description=text).json() for text in ("One", "Two")]
    ids = [it["id"] for it in made]
    assert [(it["type"], it["description"]) for it in made] == [("image", "One"), ("image", "Two")]
    assert mastodon.client.get(made[0]["url"]).content == PNG
    is_json = how == "json"
    body: dict[str, Any] = (
        {"json": {"media_ids": ids}} if is_json else {"data": {"media_ids[]": ids}}
    )
    post = mastodon.client.post("/api/v1/statuses", headers=mastodon.headers(), **body).json()
    assert [it["id"] for it in post["media_attachments"]] == ids
    assert list(mastodon.logged[0].media) == ids
    assert mastodon.get(f"v1/media/{ids[0]}").status_code == 404
    again = mastodon.post("Again", media_ids=ids)
    assert again.status_code == 422


def test_media_are_described_later(mastodon: MastodonUnderTest) -> None:
    made = mastodon.upload().json()["id"]
    path = f"/api/v1/media/{made}"
    described = mastodon.client.put(path, json={"description": "Alt"}, headers=mastodon.headers())
    assert described.json()["description"] == "Alt"
    assert mastodon.get(f"v1/media/{made}").json()["description"] == "Alt"


def test_media_are_processed_for_a_while(mastodon: MastodonUnderTest) -> None:
    mastodon.control.mastodon(mastodon.id, processing_for=0.3)
    for content in (PNG, MP4):
        response = mastodon.upload(content)
        made = response.json()["id"]
        assert (response.status_code, response.json()["url"]) == (202, None)
        assert mastodon.get(f"v1/media/{made}").status_code == 206
        assert mastodon.post("Too soon", media_ids=[made]).status_code == 422
        until(partial(_is_processed, mastodon, made))
        assert mastodon.post("Processed", media_ids=[made]).status_code == 200


def _is_processed(mastodon: MastodonUnderTest, medium: str) -> bool:
    return mastodon.get(f"v1/media/{medium}").status_code == 200


@pytest.mark.parametrize(("content", "name"), [(b"text", "file"), (PNG, "other")])
def test_an_upload_amiss_is_refused(mastodon: MastodonUnderTest, content: bytes, name: str) -> None:
    files = {name: ("file", content)}
    response = mastodon.client.post("/api/v2/media", files=files, headers=mastodon.headers())
    assert response.status_code == 422


def test_images_and_a_video_do_not_mix(mastodon: MastodonUnderTest) -> None:
    mastodon.control.mastodon(mastodon.id, processing_for=0)
    ids = [mastodon.upload(content).json()["id"] for content in (PNG, MP4)]
    assert mastodon.post("Both", media_ids=ids).status_code == 422


def _ids(response: httpx.Response) -> list[str]:
    return [status["id"] for status in response.json()]


def test_a_timeline_is_read_from_either_end(mastodon: MastodonUnderTest) -> None:
    made = [mastodon.post(f"Status {number}").json()["id"] for number in range(7)]
    assert _ids(mastodon.listing(exclude_reblogs="true")) == made[::-1]
    assert _ids(mastodon.listing(limit=2)) == [made[6], made[5]]
    assert _ids(mastodon.listing(limit=2, max_id=made[5])) == [made[4], made[3]]
    assert _ids(mastodon.listing(limit=2, since_id=made[1])) == [made[6], made[5]]
    assert _ids(mastodon.listing(limit=2, min_id=made[1])) == [made[3], made[2]]
    assert _ids(mastodon.listing(limit=2, min_id=made[1], max_id=made[3])) == [made[2]]
    assert _ids(mastodon.listing(limit=99, only_media="true")) == []
    assert _ids(mastodon.listing(pinned="true")) == []


def _walk(mastodon: MastodonUnderTest) -> list[str]:
    response, seen = mastodon.listing(limit=2), []
    while True:
        seen += _ids(response)
        following = re.search(r'<([^>]+)>; rel="next"', response.headers.get("Link", ""))
        if following is None:
            return seen
        response = mastodon.client.get(following[1], headers=mastodon.headers())


def test_links_lead_through_a_timeline(mastodon: MastodonUnderTest) -> None:
    made = [mastodon.post(f"Status {number}").json()["id"] for number in range(5)]
    assert _walk(mastodon) == made[::-1]
    newer = re.search(r'<([^>]+)>; rel="prev"', mastodon.listing(max_id=made[2]).headers["Link"])
    assert newer is not None
    assert _ids(mastodon.client.get(newer[1], headers=mastodon.headers())) == made[:1:-1]
    mastodon.control.mastodon(mastodon.id, quirks=["link-loses-one"])
    assert _walk(mastodon) == [made[4], made[3], made[1], made[0]]


def test_a_listing_is_spoiled(mastodon: MastodonUnderTest) -> None:
    made = [mastodon.post(f"Status {number}").json()["id"] for number in range(4)]
    mastodon.control.behave("listing-gap", page=mastodon.id)
    assert _ids(mastodon.listing(limit=2)) == [made[1], made[0]]
    mastodon.control.behave("listing-delayed", page=mastodon.id, seconds=30)
    assert _ids(mastodon.listing()) == []
    mastodon.control.behave("fail-500", page=mastodon.id, endpoint="list")
    assert mastodon.listing().status_code == 500


def test_private_statuses_are_their_authors(mastodon: MastodonUnderTest) -> None:
    made = [
        mastodon.post("x", visibility=it).json()["id"] for it in ("public", "private", "direct")
    ]
    assert _ids(mastodon.listing()) == made[::-1]
    path = f"/api/v1/accounts/{mastodon.id}/statuses"
    assert _ids(mastodon.client.get(path)) == made[:1]
    assert mastodon.client.get(f"/api/v1/statuses/{made[1]}").status_code == 404
    mastodon.control.mastodon(mastodon.id, quirks=["own-private-hidden"])
    assert _ids(mastodon.listing()) == made[:1]


def test_a_backdated_status_stands_where_its_time_is(mastodon: MastodonUnderTest) -> None:
    new = mastodon.post("New").json()["id"]
    noon = datetime(2026, 11, 1, 12, tzinfo=UTC)
    old = mastodon.control.foreign_post(mastodon.id, "Old", created_at=noon)
    assert _ids(mastodon.listing()) == [new, old]
    assert mastodon.listing().json()[1]["created_at"] == "2026-11-01T12:00:00.000Z"


def test_a_status_is_deleted_and_its_text_given_back(mastodon: MastodonUnderTest) -> None:
    made = mastodon.post("Taken back").json()["id"]
    other = mastodon.control.accounts("mastodon")[0]["token"]
    headers = {"Authorization": f"Bearer {other}"}
    assert mastodon.client.delete(f"/api/v1/statuses/{made}", headers=headers).status_code == 403
    assert mastodon.delete(made).json()["text"] == "Taken back"
    assert _error(mastodon.delete(made)) == (404, "Record not found")
    assert mastodon.get(f"v1/statuses/{made}").status_code == 404
    assert mastodon.logged[0].deleted_at is not None


def test_tokens_are_looked_at(mastodon: MastodonUnderTest) -> None:
    path = "/api/v1/accounts/verify_credentials"
    assert mastodon.get("v1/accounts/verify_credentials").json()["id"] == mastodon.id
    assert mastodon.client.get(path).status_code == 401
    mastodon.control.revoke(mastodon.id)
    assert _error(mastodon.post("No")) == (401, "The access token was revoked")
    mastodon.token = "unknown"
    assert _error(mastodon.post("No")) == (401, "The access token is invalid")
    assert mastodon.get(f"v1/accounts/{mastodon.id}").status_code == 200
    assert mastodon.get("v1/timelines/home").status_code == 404


def test_scopes_are_a_matter_of_a_rule(mastodon: MastodonUnderTest) -> None:
    error = {"status": 403, "error": "This action is outside the authorized scopes"}
    mastodon.control.behave("refuse-token", page=mastodon.id, error=error)
    assert _error(mastodon.post("No")) == (403, error["error"])


def test_limits_are_told_in_headers(mastodon: MastodonUnderTest) -> None:
    assert mastodon.post("Fine").headers["X-RateLimit-Remaining"] == "300"
    mastodon.control.behave("refuse-limited", page=mastodon.id, seconds=90)
    response = mastodon.post("Limited")
    assert _error(response) == (429, "Too many requests")
    reset = datetime.fromisoformat(response.headers["X-RateLimit-Reset"])
    assert 80 < (reset - datetime.now(UTC)).total_seconds() < 100
    mastodon.control.behave("refuse-429", page=mastodon.id)
    assert "X-RateLimit-Reset" not in mastodon.post("Limited").headers


def test_a_fault_is_html_unless_json_is_asked_for(mastodon: MastodonUnderTest) -> None:
    mastodon.control.behave("fail-500", page=mastodon.id, times=2)
    assert mastodon.post("Broken").headers["Content-Type"].startswith("text/html")
    headers = {**mastodon.headers(), "Accept": "application/json"}
    response = mastodon.client.post("/api/v1/statuses", json={"status": "x"}, headers=headers)
    assert response.json() == {"status": 500, "error": "Internal Server Error"}


@pytest.mark.parametrize(
    ("server", "version", "limit"),
    [
        ("mastodon", "4.5.0", 500),
        ("gotosocial", "0.19.1+git-57cb4fe", 5000),
        ("pleroma", "2.7.2 (compatible; Pleroma 2.7.0)", 5000),
    ],
)
def test_a_server_looks_like_its_kind(
    mastodon: MastodonUnderTest, server: str, version: str, limit: int
) -> None:
    mastodon.control.mastodon(mastodon.id, server=server)
    shown = mastodon.get("v2/instance").json()
    assert shown["version"] == version
    assert shown["configuration"]["statuses"]["max_characters"] == limit
    assert mastodon.get("v1/instance").json()["max_toot_chars"] == limit
    assert mastodon.post("a" * limit).status_code == 200
    assert mastodon.post("a" * (limit + 1)).status_code == 422
    assert mastodon.client.get("/api/v2/instance").json()["version"] == "4.5.0"


def test_a_server_can_be_whatever_it_is_told(mastodon: MastodonUnderTest) -> None:
    held = mastodon.control.mastodon(mastodon.id, version="9.9 (made up)", max_characters=7)
    assert (held["version"], held["max_characters"], held["keys"]) == (
        "9.9 (made up)",
        7,
        "honoured",
    )
    assert mastodon.post("a" * 8).status_code == 422
    for given in ({"server": "myspace"}, {"keys": "x"}, {"colour": 1}, {"quirks": ["x"]}):
        with pytest.raises(ControlRefused):
            mastodon.control.mastodon(mastodon.id, **given)


def test_quirks_of_other_servers(mastodon: MastodonUnderTest) -> None:
    media = mastodon.upload().json()["id"]
    first = mastodon.post("Media", media_ids=[media]).json()["id"]

    def quirky(*names: str) -> None:
        mastodon.control.mastodon(mastodon.id, quirks=names)

    quirky("since-id-ignored", "application-hidden", "language-dropped", "visibility-falls-back")
    made = mastodon.post("x", language="vi", visibility="secret").json()
    assert ("application" in made, made["language"], made["visibility"]) == (False, None, "public")
    assert len(_ids(mastodon.listing(since_id=made["id"]))) == 2
    quirky("unknown-media-dropped")
    assert mastodon.post("x", media_ids=["7", media]).json()["media_attachments"] == []
    quirky("media-moves")
    assert len(mastodon.post("x", media_ids=[media]).json()["media_attachments"]) == 1
    assert mastodon.get(f"v1/statuses/{first}").json()["media_attachments"] == []
    quirky("form-empties")
    given = {"status": "Text"}
    made = mastodon.client.post("/api/v1/statuses", data=given, headers=mastodon.headers()).json()
    assert made["content"] == ""
    assert mastodon.post("Text").json()["content"] == "<p>Text</p>"
