"""What is sent is what is stored: texts, facets, pictures, cards, and the limits."""

from __future__ import annotations

import hashlib
import struct
import zlib
from dataclasses import replace

import pytest

from publisher.adapters.bluesky.formats import problems
from publisher.engine.content import Media, Post
from publisher.engine.evidence import Found
from publisher.engine.outcome import Published
from publisher.limits.counting import graphemes
from tests.adapters.conformance import CORPUS
from tests.bluesky.account import RealAccount

pytestmark = [pytest.mark.bluesky, pytest.mark.timeout(900)]


def png(width: int, height: int, shade: int = 0) -> bytes:
    """A grey picture."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = zlib.compress((b"\0" + bytes([shade]) * width) * height)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def picture(account: RealAccount, content: bytes, alt: str) -> Media:
    name = hashlib.sha256(content).hexdigest()
    account.store.files[name] = content
    return Media(kind="image", type="image/png", alt=alt, sha256=name, size=len(content))


@pytest.mark.parametrize("name", CORPUS)
def test_text_byte_for_byte_and_found(account: RealAccount, name: str) -> None:
    task, outcome = account.send(account.job(Post(CORPUS[name])))
    assert isinstance(outcome, Published)
    assert [text.encode() for text in account.texts()] == [CORPUS[name].encode()]
    evidence = account.look(task)
    assert isinstance(evidence, Found)
    assert evidence.remote_id == outcome.remote_id


def test_facets_are_at_their_bytes(account: RealAccount) -> None:
    other = account.pds.account(f"reader-of-{account.login.handle.partition('.')[0]}")
    text = (
        f"👨‍👩‍👧 chào @{other.handle} và @nobody-at-all.test: "
        "https://example.org/bản-tin?q=1. #tiếng_việt 🇻🇳"
    )
    _, outcome = account.send(account.job(Post(text)))
    assert isinstance(outcome, Published)
    (record,) = account.pds.records(account.did)
    stored = record["value"]["text"].encode()
    shown = {
        stored[f["index"]["byteStart"] : f["index"]["byteEnd"]].decode(): f["features"][0]
        for f in record["value"]["facets"]
    }
    kind = "app.bsky.richtext.facet#"
    assert shown == {
        f"@{other.handle}": {"$type": f"{kind}mention", "did": other.did},
        "https://example.org/bản-tin?q=1": {
            "$type": f"{kind}link",
            "uri": "https://example.org/bản-tin?q=1",
        },
        "#tiếng_việt": {"$type": f"{kind}tag", "tag": "tiếng_việt"},
    }


def test_pictures_with_what_they_show(account: RealAccount) -> None:
    media = tuple(picture(account, png(8, 4 + n, n), f"Sân {n} 🏞️") for n in range(4))
    task, outcome = account.send(account.job(Post("", media=media)))
    assert isinstance(outcome, Published)
    (record,) = account.pds.records(account.did)
    images = record["value"]["embed"]["images"]
    assert [image["alt"] for image in images] == [item.alt for item in media]
    assert [image["aspectRatio"]["height"] for image in images] == [4, 5, 6, 7]
    assert {image["image"]["mimeType"] for image in images} == {"image/png"}
    commit = account.pds.commit(account.did)
    # A later attempt uploads anew, and the record is still the same.
    task, again = account.send(task)
    assert isinstance(again, Published)
    _, rebuilt = account.send(replace(task, progress={}))
    assert isinstance(rebuilt, Published)
    assert account.pds.commit(account.did) == commit
    assert isinstance(account.look(task), Found)


def test_link_card(account: RealAccount) -> None:
    link = "https://www.example.org/tin-tức?a=1&b=2"
    _, outcome = account.send(account.job(Post("Đọc thêm", link=link)))
    assert isinstance(outcome, Published)
    (record,) = account.pds.records(account.did)
    assert record["value"]["embed"]["external"] == {
        "uri": link,
        "title": "example.org",
        "description": "",
    }


@pytest.mark.parametrize(
    "text",
    [
        *(unit * 300 for unit in ("é", "e\u0301", "한", "क्षि", "🇻🇳", "👍🏽", "\r\n")),
        *(unit * 301 for unit in ("é", "e\u0301", "한", "🇻🇳", "\r\n")),
        "x" + "👨‍👩‍👧‍👦" * 119 + "y" * 24,  # 3,000 bytes
        "x" + "👨‍👩‍👧‍👦" * 119 + "y" * 25,
        *CORPUS.values(),
    ],
)
def test_limits_are_counted_as_the_server_counts_them(account: RealAccount, text: str) -> None:
    post = Post(f"{text}")
    wanted = [problem.code for problem in problems(post.to_json())]
    wanted = [code for code in wanted if code != "empty"]
    record = {"$type": "app.bsky.feed.post", "text": text, "createdAt": "2026-01-01T00:00:00Z"}
    given = {"repo": account.did, "collection": record["$type"], "record": record, "validate": True}
    said = account.pds.post("com.atproto.repo.createRecord", given, account.login.token)
    assert (said.status, wanted) in [(200, []), (400, ["text-too-long"])], graphemes(text)
