"""A secret goes over the wire and nowhere else."""

from __future__ import annotations

import html
import json
import logging
from urllib.parse import quote, quote_plus

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from publisher.engine.adapter import SendPermit
from publisher.engine.outcome import Answer
from publisher.transport import Reply, Request, Transport
from publisher.transport.redaction import CUT, Redaction
from tests.transport.peer import Connection, Peer, Script, answering, closed_port

CANARY = 'EAAB/canary+|token="é'
SPELLINGS = [
    CANARY,
    quote(CANARY),
    quote(CANARY, safe=""),
    quote(quote(CANARY, safe=""), safe=""),
    quote_plus(CANARY),
    json.dumps(CANARY)[1:-1],
    json.dumps(CANARY, ensure_ascii=False)[1:-1],
    json.dumps(CANARY)[1:-1].replace("/", "\\/"),
    html.escape(CANARY),
]


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_each_spelling_is_cut_out(spelling: str) -> None:
    cut = Redaction([CANARY])
    assert cut(f"before {spelling} after", 1000) == f"before {CUT} after"


def test_lower_case_escapes_are_cut_out() -> None:
    assert Redaction(["a|b"])("x=a%7cb&y", 100) == f"x={CUT}&y"


@given(st.text(min_size=1), st.text(), st.text(), st.integers(0, 60))
def test_a_secret_never_survives(secret: str, before: str, after: str, limit: int) -> None:
    text = Redaction([secret])(before + secret + after, limit)
    assert len(text) <= limit + 1
    if CUT not in secret and "\ufffd" not in secret and "\x00" not in secret:
        # What is put in its place may complete it again only where it holds that character.
        assert secret not in text


@pytest.mark.parametrize("length", range(6, len(CANARY)))
def test_a_secret_that_is_cut_in_two_goes_as_well(length: int) -> None:
    cut = Redaction([CANARY])
    assert cut(f"token={CANARY[:length]}", 1000) == f"token={CUT}"
    assert CANARY[:7] not in cut("x" * (100 - length) + CANARY, 100)


def test_one_secret_inside_another_leaves_no_rest() -> None:
    assert Redaction(["abc", "abcdef", ""])("1 abcdef 2 abc", 100) == f"1 {CUT} 2 {CUT}"


def test_what_postgresql_cannot_store_is_replaced() -> None:
    assert Redaction([])("a\x00b", 100) == "a\ufffdb"


def _echo(connection: Connection) -> None:
    connection.request()
    name = quote(CANARY)
    body = " ".join(SPELLINGS).encode()
    connection.send(
        b"HTTP/1.1 400 %b\r\nLocation: https://x.test/?access_token=%b\r\n"
        b"Set-Cookie: session=sid-of-a-person\r\nX-Echo: %b\r\nContent-Length: %d\r\n\r\n%b"
        % (name.encode(), name.encode(), quote_plus(CANARY).encode(), len(body), body)
    )


def _garbage(connection: Connection) -> None:
    connection.request()
    connection.send(quote(CANARY).encode() + b"\r\n\r\n")


def _undecodable(connection: Connection) -> None:
    connection.request()
    connection.send(
        b"HTTP/1.1 200 OK\r\nContent-Encoding: %b\r\nContent-Length: 1\r\n\r\nx"
        % quote(CANARY).encode()
    )


@pytest.mark.parametrize(
    "script",
    [_echo, _garbage, _undecodable, Connection.request],
    ids=lambda script: script.__name__,
)
def test_the_canary_is_in_no_answer_error_or_log(
    transport: Transport,
    permit: SendPermit,
    script: Script,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG)
    with Peer(script) as peer, structlog.testing.capture_logs() as logs:
        request = Request(
            "POST",
            peer.url(),
            params={"access_token": CANARY},
            headers={"Authorization": f"Bearer {quote(CANARY)}"},
            form=[("access_token", CANARY)],
            secrets=(CANARY,),
        )
        outcome = transport.publish(request, permit)
        step = transport.step(request)
        assert quote_plus(CANARY) in peer.requests[0].decode()
    kept = [outcome, step, request, transport, logs, caplog.text, *capfd.readouterr()]
    for spelling in ("canary", "CANARY", "sid-of-a-person"):
        assert all(spelling not in repr(thing) for thing in kept)


def test_the_canary_is_not_in_a_refused_request(transport: Transport, permit: SendPermit) -> None:
    for request in (
        Request("POST", f"ftp://{CANARY}/", secrets=(CANARY,)),
        Request("POST", f"http://127.0.0.1:{closed_port()}/{CANARY}", secrets=(CANARY,)),
        Request("POST", "https://x.test/", headers={"A": f"{CANARY}\n"}, secrets=(CANARY,)),
    ):
        assert "canary" not in repr(transport.publish(request, permit))


def test_a_reply_keeps_what_the_adapter_needs_and_shows_none_of_it(transport: Transport) -> None:
    body = b'{"access_token":"EAABnew"}'
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
    with Peer(answering(answer)) as peer:
        reply = transport.step(Request("POST", peer.url(), secrets=("EAABnew",)))
    assert isinstance(reply, Reply)
    assert reply.json() == {"access_token": "EAABnew"}
    assert reply.answer.body == f'{{"access_token":"{CUT}"}}'
    assert "EAABnew" not in repr(reply)


def test_a_long_answer_is_kept_in_part(transport: Transport) -> None:
    body = "é".encode() * 100_000
    headers = b"".join(b"X-%d: %b\r\n" % (n, b"y" * 600) for n in range(100))
    answer = b"HTTP/1.1 200 OK\r\n%bContent-Length: %d\r\n\r\n%b" % (headers, len(body), body)
    with Peer(answering(answer)) as peer:
        reply = transport.step(Request("POST", peer.url()))
    assert isinstance(reply, Reply)
    assert len(reply.body) == 200_000
    kept: Answer = reply.answer
    assert kept.body == "é" * 4_000 + CUT
    assert len(kept.headers) <= 60
    assert max(map(len, kept.headers.values())) <= 501
