"""A download: its bytes go where they are wanted, and no further than they may."""

from __future__ import annotations

import io

import pytest

from publisher.transport import Failed, Reply, Request, Transport
from publisher.transport.exchange import ANSWER_BYTES
from publisher.transport.phases import End
from tests.transport.peer import Connection, Peer, answering

HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n"


def down(transport: Transport, peer: Peer, into: io.BytesIO, most: int = 1_000) -> Reply | Failed:
    return transport.download(Request("GET", peer.url()), into, most_bytes=most, timeout=5)


@pytest.mark.parametrize("size", [0, 1, 1_000])
def test_all_of_it_comes(transport: Transport, size: int) -> None:
    into = io.BytesIO()
    with Peer(answering(HEAD % size + bytes(size))) as peer:
        result = down(transport, peer, into)
    assert isinstance(result, Reply)
    assert (result.status, result.body, into.getvalue()) == (200, b"", bytes(size))


def test_more_than_any_answer_may_weigh_is_never_held(transport: Transport) -> None:
    largest, total = 0, 0

    class Counting(io.BytesIO):
        def write(self, chunk: bytes, /) -> int:  # type: ignore[override]
            nonlocal largest, total
            largest, total = max(largest, len(chunk)), total + len(chunk)
            return len(chunk)

    size = ANSWER_BYTES + 1
    with Peer(answering(HEAD % size + bytes(size))) as peer:
        assert isinstance(down(transport, peer, Counting(), most=size), Reply)
    assert total == size
    assert largest < ANSWER_BYTES / 8


@pytest.mark.parametrize(
    "answer",
    [HEAD % 1_001 + bytes(1_001), b"HTTP/1.1 200 OK\r\n\r\n" + bytes(1_001)],
    ids=["declared", "to the end"],
)
def test_one_byte_too_many(transport: Transport, answer: bytes) -> None:
    into = io.BytesIO()
    with Peer(answering(answer)) as peer:
        result = down(transport, peer, into)
    assert isinstance(result, Failed)
    assert result.end is End.TOO_LARGE
    assert len(into.getvalue()) <= 1_000


@pytest.mark.parametrize(
    ("answer", "end"),
    [
        (HEAD % 100 + bytes(99), End.CLOSED),
        (HEAD % 100, End.CLOSED),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\nx", End.UNDECODABLE),
        (b"", End.CLOSED),
    ],
)
def test_what_is_not_whole_is_failed(transport: Transport, answer: bytes, end: End) -> None:
    with Peer(answering(answer)) as peer:
        result = down(transport, peer, io.BytesIO())
    assert isinstance(result, Failed)
    assert result.end is end


def test_another_status_is_an_answer_as_ever(transport: Transport) -> None:
    into = io.BytesIO()
    with Peer(answering(b"HTTP/1.1 404 No\r\nContent-Length: 4\r\n\r\nnone")) as peer:
        result = down(transport, peer, into)
    assert isinstance(result, Reply)
    assert (result.status, result.body, into.getvalue()) == (404, b"none", b"")


def test_it_is_made_once(transport: Transport) -> None:
    with Peer(answering(b"HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n")) as peer:
        assert isinstance(down(transport, peer, io.BytesIO()), Reply)
        assert len(peer.requests) == 1


def test_a_sink_that_will_not_ends_it(transport: Transport) -> None:
    class Full(io.BytesIO):
        def write(self, _chunk: bytes, /) -> int:  # type: ignore[override]
            raise ValueError

    def script(connection: Connection) -> None:
        connection.request()
        connection.send(HEAD % 10_000_000)
        while connection.send(bytes(65_536)):
            pass

    with Peer(script) as peer:
        result = down(transport, peer, Full(), most=20_000_000)
    assert isinstance(result, Failed)
    assert result.end is End.BROKE


def test_only_a_get_is_a_download(transport: Transport) -> None:
    with pytest.raises(ValueError, match="POST"):
        transport.download(
            Request("POST", "http://127.0.0.1:1/"), io.BytesIO(), most_bytes=1, timeout=1
        )
