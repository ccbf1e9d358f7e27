"""Every call ends by its budget, whatever the other side does."""

from __future__ import annotations

import time

import pytest

from publisher.engine.outcome import Reason
from publisher.transport import Request, Transport
from tests.transport.claims import assert_unknown, post, zeros
from tests.transport.conftest import MakePermit
from tests.transport.peer import (
    Certificate,
    Connection,
    Peer,
    Script,
)

HEADERS = b"HTTP/1.1 200 OK\r\nX-Id: 7\r\nContent-Length: 50\r\n\r\n"


def _dribble(start: bytes, drop: bytes) -> Script:
    def script(connection: Connection) -> None:
        connection.request()
        connection.send(start)
        while connection.send(drop) and not connection.hang(0.02):
            pass

    return script


@pytest.mark.parametrize(
    ("script", "reason", "status"),
    [
        pytest.param(lambda c: (c.request(), c.hang()), Reason.NO_ANSWER, None, id="silence"),
        pytest.param(
            _dribble(b"HTTP/1.1 200 OK\r\n", b"A: b\r\n"),
            Reason.ANSWER_CUT,
            None,
            id="header dribble",
        ),
        pytest.param(_dribble(HEADERS, b"x"), Reason.ANSWER_CUT, 200, id="body dribble"),
        pytest.param(
            _dribble(b"", b"HTTP/1.1 100 Continue\r\n\r\n"), Reason.ANSWER_CUT, None, id="100s"
        ),
    ],
)
@pytest.mark.parametrize("secure", [False, True], ids=["plain", "tls"])
def test_a_call_ends_by_its_budget(
    transport: Transport,
    make_permit: MakePermit,
    certificate: Certificate,
    script: Script,
    reason: Reason,
    status: int | None,
    secure: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    permit = make_permit(budget=0.4)
    with Peer(script, certificate.server if secure else None) as peer:
        began = time.monotonic()
        outcome = transport.publish(post(peer), permit)
        took = time.monotonic() - began
    answer = assert_unknown(outcome, permit, reason)
    assert answer.status == status
    assert 0.35 < took < 2


@pytest.mark.parametrize("secure", [False, True], ids=["plain", "tls"])
def test_a_server_that_never_reads_ends_by_the_budget(
    transport: Transport,
    make_permit: MakePermit,
    certificate: Certificate,
    secure: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    permit = make_permit(budget=0.4)
    size = 20_000_000
    with Peer(lambda c: c.hang() and None, certificate.server if secure else None) as peer:
        began = time.monotonic()
        outcome = transport.publish(Request("POST", peer.url(), files=[zeros(size)]), permit)
        took = time.monotonic() - began
    answer = assert_unknown(outcome, permit, Reason.NO_ANSWER)
    assert answer.sent is not None
    assert 0 < answer.sent < size
    assert took < 2


def test_a_server_that_reads_slowly_ends_by_the_budget(
    transport: Transport, make_permit: MakePermit
) -> None:
    def script(connection: Connection) -> None:
        while connection.sock.recv(65_536) and not connection.hang(0.02):
            pass

    permit = make_permit(budget=0.5)
    with Peer(script) as peer:
        request = Request("POST", peer.url(), files=[zeros(60_000_000, chunk=60_000_000)])
        began = time.monotonic()
        outcome = transport.publish(request, permit)
        took = time.monotonic() - began
    answer = assert_unknown(outcome, permit, Reason.NO_ANSWER)
    assert answer.sent is not None
    assert 0 < answer.sent < 60_000_000
    assert took < 2
