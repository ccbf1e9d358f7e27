"""The bytes of a body: exact, of the declared length, and the same each time."""

from __future__ import annotations

import email
import email.policy
import json
from collections.abc import Iterator
from email.message import MIMEPart
from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from publisher.transport import BadRequest, FilePart, Request, Transport
from publisher.transport.body import encode
from tests.transport.conftest import MakePermit
from tests.transport.peer import OK, Peer, answering

text = st.text(st.characters(exclude_categories=["Cs"]))
names = st.text('abc[]é"\r\n;', min_size=1)
AWKWARD = "Grüße 🎉\r\n--x\r\n&=+%  \u200c"


def file(content: bytes, name: str = "a.png", *, size: int | None = None) -> FilePart:
    def read() -> Iterator[bytes]:
        yield content[:3]
        yield content[3:]

    return FilePart("source", name, "image/png", len(content) if size is None else size, read)


def whole(request: Request) -> tuple[str | None, bytes]:
    body = encode(request)
    content = b"".join(body)
    assert len(content) == body.length
    return body.type, content


def post(**parts: object) -> Request:
    return Request("POST", "https://platform.test/", **parts)  # type: ignore[arg-type]


@given(st.lists(st.tuples(text, text)))
def test_a_form_holds_exactly_its_fields(form: list[tuple[str, str]]) -> None:
    type_, content = whole(post(form=form))
    assert type_ == "application/x-www-form-urlencoded"
    assert content.isascii()
    assert parse_qsl(content.decode(), keep_blank_values=True) == form


@given(text)
def test_json_is_utf8_without_escapes_it_does_not_need(value: str) -> None:
    type_, content = whole(post(json={"text": value}))
    assert type_ == "application/json"
    assert json.loads(content) == {"text": value}
    assert b"\\u00e9" not in whole(post(json="é"))[1]


def parsed(type_: str | None, content: bytes) -> list[MIMEPart]:
    """Read multipart with the standard library's parser, which is none of ours."""
    head = f"Content-Type: {type_}\r\n\r\n".encode()
    message = email.message_from_bytes(head + content, policy=email.policy.HTTP)
    assert message.is_multipart()
    return list(message.iter_parts())


@given(st.binary(max_size=200))
def test_multipart_holds_exactly_its_parts(content: bytes) -> None:
    request = post(form=[("message", AWKWARD)], files=[file(content)])
    field, part = parsed(*whole(request))
    raw = whole(request)[1]
    assert field.get_param("name", header="content-disposition") == "message"
    assert part.get_filename() == "a.png"
    assert part.get_content_type() == "image/png"
    assert b"\r\n\r\n" + AWKWARD.encode() + b"\r\n--" in raw
    assert b"\r\nContent-Type: image/png\r\n\r\n" + content + b"\r\n--" in raw


@given(names)
def test_a_name_cannot_end_its_header(name: str) -> None:
    _, content = whole(post(form=[(name, "v")], files=[file(b"x", name)]))
    boundary = content[: content.index(b"\r\n")]
    heads = [part.partition(b"\r\n\r\n")[0] for part in content.split(boundary)[1:-1]]
    assert [head.count(b"\r\n") for head in heads] == [1, 2]
    assert [head.count(b'"') for head in heads] == [2, 4]
    assert all(byte not in head.replace(b"\r\n", b"") for head in heads for byte in (b"\r", b"\n"))


def test_a_file_cannot_hold_its_own_boundary() -> None:
    """A boundary made from what is known beforehand could be written into the file."""
    first = whole(post(files=[file(b"x" * 60)]))[1]
    boundary = first[: first.index(b"\r\n")]
    forged = boundary + b"\r\n" + b"y" * (58 - len(boundary))
    content = whole(post(files=[file(forged)]))[1]
    assert len(forged) == 60
    assert content[: content.index(b"\r\n")] not in forged


def test_another_request_has_another_boundary() -> None:
    requests = [
        post(files=[file(b"1234")]),
        post(files=[file(b"1235")]),
        post(files=[file(b"1234", "b.png")]),
        post(files=[file(b"1234")], form=[("a", "b")]),
        post(files=[file(b"1234")], form=[("ab", "")]),
    ]
    assert len({whole(request)[0] for request in requests}) == len(requests)


def test_a_file_of_another_size_is_refused() -> None:
    with pytest.raises(BadRequest, match="has 4 bytes, not 5"):
        encode(post(files=[file(b"1234", size=5)]))


def test_a_media_type_cannot_end_its_header() -> None:
    part = FilePart("a", "b", "image/png\r\nX: y", 0, lambda: iter(()))
    with pytest.raises(BadRequest, match="line break"):
        encode(post(files=[part]))


def test_no_body() -> None:
    assert whole(post()) == (None, b"")
    assert whole(post(form=[])) == ("application/x-www-form-urlencoded", b"")


@pytest.mark.parametrize(
    "parts",
    [
        {"form": [("message", AWKWARD), ("a", "b")]},
        {"json": {"message": AWKWARD, "n": [1, 2.5, None]}},
        {"form": [("message", AWKWARD)], "files": [file(b"\x89PNG" * 1000)]},
    ],
    ids=["form", "json", "multipart"],
)
def test_each_attempt_sends_the_same_bytes(
    transport: Transport, make_permit: MakePermit, parts: dict[str, object]
) -> None:
    with Peer(answering(OK)) as peer:
        for _ in range(3):
            transport.publish(
                Request("POST", peer.url(), params={"q": AWKWARD}, **parts),  # type: ignore[arg-type]
                make_permit(),
            )
        requests = peer.requests
    assert len(requests) == 3
    assert len(set(requests)) == 1
    assert requests[0].endswith(whole(post(**parts))[1])


def test_a_body_that_is_one_file_is_that_file() -> None:
    content = AWKWARD.encode() + bytes(range(256))
    assert whole(post(content=file(content))) == ("image/png", content)


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        ({"content": file(b"four", size=5)}, "has 4 bytes, not 5"),
        ({"content": file(b"four"), "json": {}}, "no other body"),
        ({"content": file(b"four"), "form": [("a", "b")]}, "no other body"),
        ({"content": file(b"four"), "files": (file(b"x"),)}, "no other body"),
    ],
)
def test_a_file_as_a_body_is_refused_when_it_is_cut_or_not_alone(
    parts: dict[str, object], says: str
) -> None:
    with pytest.raises(BadRequest, match=says):
        encode(post(**parts))
