"""What a publish call says about each answer. Every case is played over real sockets."""

from __future__ import annotations

import gzip
import socket
import ssl
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from publisher.engine.adapter import SendPermit
from publisher.engine.outcome import Answer, Reason
from publisher.transport import Reply, Request, Transport
from tests.transport.claims import POST, assert_unknown, post, zeros
from tests.transport.conftest import MakePermit
from tests.transport.peer import (
    OK,
    Certificate,
    Connection,
    Peer,
    Script,
    answering,
)

HEADERS = b"HTTP/1.1 200 OK\r\nX-Id: 7\r\nContent-Length: 50\r\n\r\n"


@pytest.mark.parametrize(
    ("answer", "status", "body"),
    [
        (OK, 200, b'{"id":"1a"}'),
        (b"HTTP/1.1 400 No\r\nContent-Length: 2\r\n\r\n{}", 400, b"{}"),
        (b"HTTP/1.1 429 No\r\nContent-Length: 0\r\nRetry-After: 7\r\n\r\n", 429, b""),
        (b"HTTP/1.1 204 Done\r\n\r\n", 204, b""),
        (
            (
                b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                b'3\r\n{"a\r\n4\r\n":1}\r\n0\r\n\r\n'
            ),
            200,
            b'{"a":1}',
        ),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + OK, 200, b'{"id":"1a"}'),
        (b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + OK, 200, b'{"id":"1a"}'),
    ],
)
def test_a_whole_2xx_or_4xx_is_a_reply(
    transport: Transport, permit: SendPermit, answer: bytes, status: int, body: bytes
) -> None:
    with Peer(answering(answer)) as peer:
        reply = transport.publish(post(peer), permit)
        assert isinstance(reply, Reply)
        assert (reply.status, reply.body) == (status, body)
        assert reply.answer.status == status
        [got] = peer.requests
        assert reply.answer.sent == len(got)
        assert permit.used


def test_what_goes_over_the_wire(transport: Transport, permit: SendPermit) -> None:
    with Peer(answering(OK)) as peer:
        request = Request("POST", peer.url(), params={"a": "1"}, headers={"X-Key": "k"}, form=POST)
        transport.publish(request, permit)
        assert peer.requests == [
            b"POST /feed?a=1 HTTP/1.1\r\n"
            b"Host: 127.0.0.1:%d\r\n"
            b"User-Agent: Publisher\r\n"
            b"Accept: */*\r\n"
            b"Accept-Encoding: identity\r\n"
            b"Connection: close\r\n"
            b"X-Key: k\r\n"
            b"Content-Type: application/x-www-form-urlencoded\r\n"
            b"Content-Length: 23\r\n\r\n"
            b"message=Gr%%C3%%BC%%C3%%9Fe" % peer.port
        ]


def test_json_of_a_reply() -> None:
    def body(text: bytes) -> object:
        return Reply(200, {}, text, Answer()).json()

    assert body(b'{"id":"1"}') == {"id": "1"}
    assert body(b"<html>") is None
    assert body(b"[" * 100_000) is None
    assert body(b"\xff") is None


def _rst_mid_body(connection: Connection) -> None:
    connection.request()
    connection.send(HEADERS + b'{"id":')
    connection.hang(0.2)
    connection.reset()


def _rst(connection: Connection) -> None:
    connection.request()
    connection.reset()


PACKED_ZEROS = gzip.compress(b"\0" * 20_000_000)


def _packed(content: bytes, encoding: bytes = b"gzip") -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Encoding: %b\r\nContent-Length: %d\r\n\r\n%b" % (
        encoding,
        len(content),
        content,
    )


@pytest.mark.parametrize(
    ("script", "reason", "status"),
    [
        pytest.param(lambda c: c.request(), Reason.CONNECTION_LOST, None, id="FIN"),
        pytest.param(_rst, Reason.CONNECTION_LOST, None, id="RST"),
        pytest.param(_rst_mid_body, Reason.ANSWER_CUT, 200, id="RST mid-body"),
        pytest.param(answering(HEADERS + b'{"id":'), Reason.ANSWER_CUT, 200, id="FIN mid-body"),
        pytest.param(answering(b"HTTP/1.1 2"), Reason.ANSWER_CUT, None, id="FIN mid-status"),
        pytest.param(
            answering(b"HTTP/1.1 100 Continue\r\n\r\n"), Reason.ANSWER_CUT, None, id="100"
        ),
        pytest.param(answering(b"garbage\r\n\r\n"), Reason.ANSWER_UNREADABLE, None, id="garbage"),
        pytest.param(
            answering(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 200_000),
            Reason.ANSWER_UNREADABLE,
            None,
            id="endless header",
        ),
        pytest.param(
            answering(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
            Reason.ANSWER_UNREADABLE,
            200,
            id="bad chunk",
        ),
        pytest.param(answering(_packed(b"abcd")), Reason.ANSWER_UNREADABLE, 200, id="no gzip"),
        pytest.param(
            answering(_packed(gzip.compress(b"{}")[:-4])),
            Reason.ANSWER_UNREADABLE,
            200,
            id="cut gzip",
        ),
        pytest.param(answering(_packed(b"{}", b"br")), Reason.ANSWER_UNREADABLE, 200, id="brotli"),
        pytest.param(
            answering(_packed(PACKED_ZEROS)), Reason.ANSWER_UNREADABLE, 200, id="gzip bomb"
        ),
        pytest.param(
            answering(b"HTTP/1.1 101 Switching\r\n\r\n"), Reason.ANSWER_UNREADABLE, None, id="101"
        ),
        pytest.param(
            answering(b"HTTP/1.1 999 No\r\nContent-Length: 0\r\n\r\n"),
            Reason.ANSWER_UNREADABLE,
            999,
            id="999",
        ),
        pytest.param(
            answering(b"HTTP/1.1 500 X\r\nContent-Length: 2\r\n\r\n{}"),
            Reason.SERVER_ERROR,
            500,
            id="500",
        ),
        pytest.param(
            answering(b"HTTP/1.1 504 X\r\nContent-Length: 0\r\n\r\n"),
            Reason.SERVER_ERROR,
            504,
            id="504",
        ),
    ],
)
def test_no_usable_answer_is_unknown(
    transport: Transport,
    permit: SendPermit,
    script: Script,
    reason: Reason,
    status: int | None,
) -> None:
    with Peer(script) as peer:
        answer = assert_unknown(transport.publish(post(peer), permit), permit, reason)
        [got] = peer.requests
    assert got.endswith(b"\r\n\r\nmessage=Gr%C3%BC%C3%9Fe")
    assert answer.sent == len(got)
    assert answer.status == status


def test_a_cut_answer_keeps_its_headers_and_what_came_of_its_body(
    transport: Transport, permit: SendPermit
) -> None:
    with Peer(answering(HEADERS + b'{"id":')) as peer:
        outcome = transport.publish(post(peer), permit)
    answer = assert_unknown(outcome, permit, Reason.ANSWER_CUT)
    assert answer.headers["x-id"] == "7"
    assert answer.body == '{"id":'
    assert answer.error is not None


def test_an_answer_that_is_packed_unasked_is_unpacked(
    transport: Transport, permit: SendPermit
) -> None:
    with Peer(answering(_packed(gzip.compress(b'{"id":"1"}')))) as peer:
        reply = transport.publish(post(peer), permit)
    assert isinstance(reply, Reply)
    assert reply.json() == {"id": "1"}


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(transport: Transport, permit: SendPermit, status: int) -> None:
    with Peer(answering(OK)) as second:
        location = second.url().encode()
        redirect = b"HTTP/1.1 %d X\r\nLocation: %b\r\nContent-Length: 0\r\n\r\n" % (
            status,
            location,
        )
        with Peer(answering(redirect)) as first:
            outcome = transport.publish(post(first), permit)
        assert second.requests == []
    answer = assert_unknown(outcome, permit, Reason.REDIRECTED)
    assert answer.headers["location"] == location.decode()


def test_an_endless_answer_is_cut_off(transport: Transport, permit: SendPermit) -> None:
    def script(connection: Connection) -> None:
        connection.request()
        connection.send(b"HTTP/1.1 200 OK\r\n\r\n")
        while connection.send(b"x" * 65_536):
            pass

    with Peer(script) as peer:
        answer = assert_unknown(
            transport.publish(post(peer), permit), permit, Reason.ANSWER_UNREADABLE
        )
    assert answer.status == 200
    assert len(answer.body) < 5_000


def test_an_early_refusal_is_read_although_the_body_did_not_go_through(
    transport: Transport, permit: SendPermit
) -> None:
    def script(connection: Connection) -> None:
        connection.sock.recv(10)
        connection.send(b"HTTP/1.1 413 No\r\nContent-Length: 0\r\n\r\n")
        connection.reset()

    size = 20_000_000
    with Peer(script) as peer:
        request = Request("POST", peer.url(), files=[zeros(size)])
        reply = transport.publish(request, permit)
    assert isinstance(reply, Reply)
    assert reply.status == 413
    assert reply.answer.sent is not None
    assert 0 < reply.answer.sent < size


def test_tls(transport: Transport, permit: SendPermit, certificate: Certificate) -> None:
    with Peer(answering(OK), certificate.server) as peer:
        reply = transport.publish(Request("POST", peer.url(host="localhost"), form=POST), permit)
        assert isinstance(reply, Reply)
        [got] = peer.requests
        assert reply.answer.sent == len(got)


def test_an_answer_cut_under_tls_is_not_taken_for_whole(
    transport: Transport, permit: SendPermit, certificate: Certificate
) -> None:
    """Without a length the answer ends with the connection, and TLS says whether it did."""

    def script(connection: Connection) -> None:
        connection.request()
        connection.send(b'HTTP/1.1 200 OK\r\n\r\n{"id":"1')
        assert isinstance(connection.sock, ssl.SSLSocket)
        connection.sock.close()

    with Peer(script, certificate.server) as peer:
        outcome = transport.publish(post(peer), permit)
    answer = assert_unknown(outcome, permit, Reason.ANSWER_CUT)
    assert (answer.status, answer.body) == (200, '{"id":"1')


def test_each_publish_has_a_connection_of_its_own(
    transport: Transport, make_permit: MakePermit
) -> None:
    """Sixty-four threads, and a server that would gladly keep its connections."""

    def script(connection: Connection) -> None:
        connection.request()
        connection.send(OK)
        connection.to_the_end()

    barrier = threading.Barrier(64)

    def publish(number: int) -> None:
        barrier.wait(10)
        for turn in range(3):
            request = Request("POST", peer.url(f"/{number}-{turn}"), form=POST)
            assert isinstance(transport.publish(request, make_permit()), Reply)

    with Peer(script) as peer, ThreadPoolExecutor(64) as pool:
        for _ in pool.map(publish, range(64)):
            pass
        requests = peer.requests
    assert len(requests) == 64 * 3
    assert all(request.count(b"POST /") == 1 for request in requests)
    assert len(set(requests)) == 64 * 3


def test_the_socket_options(
    transport: Transport, permit: SendPermit, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[int, int, int]] = []
    connect = socket.socket.connect

    def spy(sock: socket.socket, address: tuple[str, int]) -> None:
        seen.append(
            (
                sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT),
                sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE),
                sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY),
            )
        )
        connect(sock, address)

    monkeypatch.setattr(socket.socket, "connect", spy)
    with Peer(answering(OK)) as peer:
        transport.publish(post(peer), permit)
    assert seen[0] == (30_000, 1, 1)
