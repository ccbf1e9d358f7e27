"""One permit is one write, and where it was used nothing is ever called unsent."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import structlog
from pydantic import SecretStr

from publisher.config import Settings
from publisher.engine.adapter import SendPermit
from publisher.engine.outcome import Reason, Unknown
from publisher.transport import FilePart, Reply, Request, Transport
from publisher.transport import transport as transport_module
from publisher.transport.connection import TrustRoots
from publisher.transport.exchange import Exchange
from tests.transport.claims import POST, assert_not_sent, assert_unknown, post, tunnel
from tests.transport.conftest import MakePermit
from tests.transport.peer import (
    OK,
    Certificate,
    Connection,
    Peer,
    Script,
    answering,
)


def _breaking(error: BaseException, *, at: int) -> tuple[FilePart, Callable[[], int]]:
    """Make a file that cannot be read the ``at``-th time it is opened."""
    opened = 0

    def read() -> Iterator[bytes]:
        nonlocal opened
        opened += 1
        yield b"12"
        if opened == at:
            raise error
        yield b"34"

    return FilePart("source", "a.png", "image/png", 4, read), lambda: opened


@pytest.mark.parametrize(
    "error", [KeyError("sha256"), OSError("disk"), MemoryError(), TimeoutError()]
)
def test_a_file_that_breaks_half_way_is_unknown(
    transport: Transport, permit: SendPermit, error: Exception
) -> None:
    file, _ = _breaking(error, at=2)
    with Peer(lambda c: c.to_the_end() and None) as peer:
        outcome = transport.publish(Request("POST", peer.url(), files=[file]), permit)
        [got] = peer.requests
    answer = assert_unknown(outcome, permit, Reason.ADAPTER_BROKE)
    assert answer.sent == len(got)
    assert got.endswith(b"12")


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit()])
def test_what_ends_the_process_passes_and_the_permit_tells(
    transport: Transport, permit: SendPermit, error: BaseException
) -> None:
    file, _ = _breaking(error, at=2)
    with (
        Peer(lambda c: c.to_the_end() and None) as peer,
        pytest.raises(type(error)),
    ):
        transport.publish(Request("POST", peer.url(), files=[file]), permit)
    assert permit.used
    assert b"12" in peer.requests[0]


def test_a_file_that_is_not_there_is_noticed_before_connecting(
    transport: Transport, permit: SendPermit
) -> None:
    file, opened = _breaking(KeyError("sha256"), at=1)
    with Peer(answering(OK)) as peer:
        outcome = transport.publish(Request("POST", peer.url(), files=[file]), permit)
        assert peer.requests == []
    assert_not_sent(outcome, permit, Reason.CONNECT_FAILED)
    assert opened() == 1


# --- The permit ----------------------------------------------------------------------------------


def _during_handshake(certificate: Certificate, act: Callable[[], object]) -> Script:
    """Act after the connection is made and before its handshake, that is before any byte."""

    def script(connection: Connection) -> None:
        act()
        connection.sock = certificate.server.wrap_socket(connection.sock, server_side=True)
        connection.to_the_end()

    return script


def secure_post(peer: Peer) -> Request:
    return Request("POST", f"https://127.0.0.1:{peer.port}/", form=POST)


def test_a_permit_that_lapses_while_connecting_sends_no_byte(
    transport: Transport, permit: SendPermit, certificate: Certificate
) -> None:
    def lapse() -> None:
        permit.deadline = 0.0

    with Peer(_during_handshake(certificate, lapse)) as peer:
        outcome = transport.publish(secure_post(peer), permit)
        assert peer.requests == [b""]
    assert_not_sent(outcome, permit, Reason.PERMIT_LATE)


def test_a_permit_that_has_lapsed_sends_no_byte(
    transport: Transport, make_permit: MakePermit
) -> None:
    permit = make_permit(window=-1.0)
    with Peer(Connection.to_the_end) as peer:
        outcome = transport.publish(post(peer), permit)
        assert b"".join(peer.requests) == b""
    assert_not_sent(outcome, permit, Reason.PERMIT_LATE)


def test_a_used_permit_sends_no_byte_and_is_not_called_unsent(
    transport: Transport, permit: SendPermit
) -> None:
    """Whoever used it may have posted: *not sent* here would free that attempt."""
    permit.use()
    with Peer(Connection.to_the_end) as peer:
        answer = assert_unknown(transport.publish(post(peer), permit), permit, Reason.ADAPTER_BROKE)
        assert peer.requests == [b""]
    assert answer.sent is None


def test_one_permit_is_one_write_among_threads(transport: Transport, permit: SendPermit) -> None:
    barrier = threading.Barrier(8)

    def publish(_: int) -> object:
        barrier.wait(10)
        return transport.publish(post(peer), permit)

    with Peer(answering(OK)) as peer, ThreadPoolExecutor(8) as pool:
        outcomes = [*pool.map(publish, range(8))]
        sent = [request for request in peer.requests if request]
    assert len(sent) == 1
    assert sum(isinstance(outcome, Reply) for outcome in outcomes) == 1
    assert sum(isinstance(outcome, Unknown) for outcome in outcomes) == 7


def test_a_permit_is_left_as_it_was_but_used(transport: Transport, permit: SendPermit) -> None:
    def fields() -> list[object]:
        return [getattr(permit, name) for name in SendPermit.__slots__ if name != "_used"]

    before = fields()
    with Peer(answering(OK)) as peer:
        transport.publish(post(peer), permit)
    assert fields() == before
    assert permit.used


# --- What must not be, and would be noticed ------------------------------------------------------


def test_the_wire_stays_shut_when_no_trace_event_announces_the_request(
    transport: Transport, permit: SendPermit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if a new httpcore had renamed its events: the permit would never be used up."""

    def deaf(_: Exchange, name: str, info: Mapping[str, Any]) -> None:
        pass

    monkeypatch.setattr(Exchange, "trace", deaf)
    with Peer(Connection.to_the_end) as peer:
        outcome = transport.publish(post(peer), permit)
        assert peer.requests == [b""]
    assert_not_sent(outcome, permit, Reason.CONNECT_FAILED)


def test_the_wire_stays_shut_to_all_but_a_proxys_connect(
    permit: SendPermit,
    roots: TrustRoots,
    certificate: Certificate,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def deaf(_: Exchange, name: str, info: Mapping[str, Any]) -> None:
        pass

    monkeypatch.setattr(Exchange, "trace", deaf)
    with Peer(Connection.to_the_end, certificate.server) as peer, Peer(tunnel(peer.port)) as proxy:
        settings = Settings(proxy_url=SecretStr(f"http://127.0.0.1:{proxy.port}"))
        outcome = Transport(settings, tls=roots).publish(post(peer), permit)
        assert peer.requests == [b""]
    assert_not_sent(outcome, permit, Reason.CONNECT_FAILED)


def test_an_answer_over_a_connection_that_was_not_made_for_it_is_unknown_and_logged(
    transport: Transport, permit: SendPermit, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = Exchange.trace

    def without_connect(exchange: Exchange, name: str, info: Mapping[str, Any]) -> None:
        if name != "connection.connect_tcp.started":
            trace(exchange, name, info)

    monkeypatch.setattr(Exchange, "trace", without_connect)
    with Peer(answering(OK)) as peer, structlog.testing.capture_logs() as logs:
        outcome = transport.publish(post(peer), permit)
    assert_unknown(outcome, permit, Reason.ADAPTER_BROKE)
    assert [(line["log_level"], line["end"]) for line in logs] == [("error", "reused")]


def test_a_log_that_cannot_be_written_takes_nothing_away(
    transport: Transport, permit: SendPermit, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full:
        def error(self, *_: object, **__: object) -> None:
            raise BrokenPipeError

    monkeypatch.setattr(transport_module, "log", Full())
    permit.use()
    with Peer(Connection.to_the_end) as peer:
        assert_unknown(transport.publish(post(peer), permit), permit, Reason.ADAPTER_BROKE)
