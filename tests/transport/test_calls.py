"""Steps, made once, and reads, made a few times."""

from __future__ import annotations

import threading
import time

import pytest

from publisher.engine.outcome import Reason
from publisher.transport import Failed, Reply, Request, Transport
from tests.transport.claims import zeros
from tests.transport.peer import OK, Connection, Peer, Script, answering, closed_port

ERROR = b"HTTP/1.1 500 X\r\nContent-Length: 4\r\n\r\noops"


@pytest.mark.parametrize("status", [200, 302, 404, 500])
def test_a_step_gives_a_whole_answer_with_any_status(transport: Transport, status: int) -> None:
    with Peer(answering(b"HTTP/1.1 %d X\r\nContent-Length: 2\r\n\r\n{}" % status)) as peer:
        reply = transport.step(Request("POST", peer.url()))
        assert isinstance(reply, Reply)
        assert reply.status == status
        assert len(peer.requests) == 1


def test_a_step_uploads_a_file_as_a_stream(transport: Transport) -> None:
    with Peer(answering(OK)) as peer:
        reply = transport.step(Request("POST", peer.url(), files=[zeros(3_000_000)]))
        assert isinstance(reply, Reply)
        [got] = peer.requests
    assert len(got.partition(b"\r\n\r\n")[2]) > 3_000_000


@pytest.mark.parametrize(
    ("script", "reason", "sent"),
    [
        (Connection.request, Reason.CONNECTION_LOST, True),
        (lambda c: (c.request(), c.hang()), Reason.NO_ANSWER, True),
        (answering(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"), Reason.ANSWER_CUT, True),
    ],
    ids=["FIN", "silence", "cut"],
)
def test_a_step_that_fails_says_whether_it_was_sent(
    transport: Transport,
    script: Script,
    reason: Reason,
    sent: bool,  # noqa: FBT001
) -> None:
    with Peer(script) as peer:
        began = time.monotonic()
        failed = transport.step(Request("POST", peer.url()), timeout=0.3)
        assert time.monotonic() - began < 2
        assert len(peer.requests) == 1
    assert isinstance(failed, Failed)
    assert (failed.reason, failed.sent) == (reason, sent)


def test_a_step_that_does_not_connect_was_not_sent(transport: Transport) -> None:
    failed = transport.step(Request("POST", f"http://127.0.0.1:{closed_port()}/"))
    assert isinstance(failed, Failed)
    assert (failed.reason, failed.sent) == (Reason.CONNECT_FAILED, False)


def scripted(*answers: bytes) -> Script:
    """Give each connection the next answer; an empty one is a connection closed."""
    left = iter(answers)
    lock = threading.Lock()

    def script(connection: Connection) -> None:
        connection.request()
        with lock:
            answer = next(left)
        connection.send(answer)

    return script


def test_a_read_is_repeated_until_it_is_answered(transport: Transport) -> None:
    with Peer(scripted(b"", ERROR, OK)) as peer:
        reply = transport.read(Request("GET", peer.url()))
        assert isinstance(reply, Reply)
        assert reply.status == 200
        assert len(peer.requests) == 3


def test_a_read_gives_the_last_answer_when_none_is_better(transport: Transport) -> None:
    with Peer(answering(ERROR)) as peer:
        reply = transport.read(Request("GET", peer.url()))
        assert isinstance(reply, Reply)
        assert (reply.status, reply.body) == (500, b"oops")
        assert len(peer.requests) == 3


@pytest.mark.parametrize("status", [200, 304, 400, 404, 429])
def test_a_read_that_was_answered_is_not_repeated(transport: Transport, status: int) -> None:
    with Peer(answering(b"HTTP/1.1 %d X\r\nContent-Length: 0\r\n\r\n" % status)) as peer:
        assert isinstance(transport.read(Request("GET", peer.url())), Reply)
        assert len(peer.requests) == 1


def test_all_tries_of_a_read_share_its_time(transport: Transport) -> None:
    with Peer(lambda c: (c.request(), c.hang())) as peer:
        began = time.monotonic()
        failed = transport.read(Request("GET", peer.url()), timeout=0.4)
        assert time.monotonic() - began < 2
    assert isinstance(failed, Failed)
    assert failed.reason is Reason.NO_ANSWER


def test_a_later_try_has_only_what_the_earlier_left(transport: Transport) -> None:
    turn = iter((0.7, 10.0))

    def script(connection: Connection) -> None:
        connection.request()
        connection.hang(next(turn))

    with Peer(script) as peer:
        began = time.monotonic()
        failed = transport.read(Request("GET", peer.url()), timeout=1.0)
        took = time.monotonic() - began
        assert len(peer.requests) == 2
    assert isinstance(failed, Failed)
    assert took < 1.4


def test_only_a_get_is_repeated(transport: Transport) -> None:
    with pytest.raises(ValueError, match="only GET"):
        transport.read(Request("POST", "https://platform.test/"))


def test_an_answer_that_is_too_large_is_no_answer(transport: Transport) -> None:
    size = 9 * 1024 * 1024
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (size, b"x" * size)
    with Peer(answering(answer)) as peer:
        failed = transport.step(Request("GET", peer.url()))
    assert isinstance(failed, Failed)
    assert failed.reason is Reason.ANSWER_UNREADABLE
    assert failed.answer is not None
    assert failed.answer.status == 200


def test_no_cookie_is_kept_from_one_call_to_the_next(transport: Transport) -> None:
    answer = b"HTTP/1.1 200 OK\r\nSet-Cookie: a=b\r\nContent-Length: 0\r\n\r\n"
    with Peer(answering(answer)) as peer:
        transport.step(Request("GET", peer.url()))
        transport.step(Request("GET", peer.url()))
        assert all(b"ookie" not in got for got in peer.requests)
