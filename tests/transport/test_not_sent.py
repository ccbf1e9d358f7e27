"""What is proved not to have been sent."""

from __future__ import annotations

import socket
import time

import pytest

from publisher.engine.adapter import SendPermit
from publisher.engine.outcome import Reason
from publisher.transport import Reply, Request, Transport
from publisher.transport import transport as transport_module
from tests.transport.claims import POST, assert_not_sent, post
from tests.transport.conftest import MakePermit
from tests.transport.peer import (
    OK,
    Certificate,
    Peer,
    Script,
    answering,
    closed_port,
    full_backlog,
)


def test_a_refused_connection_is_not_sent(transport: Transport, permit: SendPermit) -> None:
    request = Request("POST", f"http://127.0.0.1:{closed_port()}/", form=POST)
    assert_not_sent(transport.publish(request, permit), permit, Reason.CONNECT_FAILED)


def test_a_name_without_address_is_not_sent(
    transport: Transport, permit: SendPermit, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", fails)
    outcome = transport.publish(Request("POST", "https://no-such.test/", form=POST), permit)
    assert_not_sent(outcome, permit, Reason.CONNECT_FAILED)


def test_a_second_address_is_tried_when_the_first_is_dead(
    transport: Transport, permit: SendPermit, monkeypatch: pytest.MonkeyPatch
) -> None:
    with full_backlog() as dead, Peer(answering(OK)) as peer:
        addresses = [("127.0.0.1", dead), ("127.0.0.1", peer.port)]
        found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", address) for address in addresses]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
        monkeypatch.setattr(transport_module, "CONNECT_SECONDS", 0.4)
        assert isinstance(transport.publish(post(peer), permit), Reply)


@pytest.mark.parametrize(("window", "connect"), [(0.3, 15.0), (5.0, 0.3)])
def test_a_connection_that_is_never_made_is_not_sent(
    transport: Transport,
    make_permit: MakePermit,
    monkeypatch: pytest.MonkeyPatch,
    window: float,
    connect: float,
) -> None:
    monkeypatch.setattr(transport_module, "CONNECT_SECONDS", connect)
    permit = make_permit(window=window)
    began = time.monotonic()
    with full_backlog() as port:
        outcome = transport.publish(Request("POST", f"http://127.0.0.1:{port}/", form=POST), permit)
    assert time.monotonic() - began < 2
    late = window < connect
    assert_not_sent(outcome, permit, Reason.PERMIT_LATE if late else Reason.CONNECT_FAILED)


@pytest.mark.parametrize(
    "script",
    [
        lambda c: c.send(b"this is not TLS at all\r\n") and c.to_the_end(),
        lambda c: c.sock.recv(10),
        lambda c: (c.sock.recv(10), c.reset()),
        lambda c: c.hang(),
    ],
    ids=["garbage", "FIN", "RST", "silence"],
)
def test_a_failed_handshake_is_not_sent(
    transport: Transport,
    permit: SendPermit,
    monkeypatch: pytest.MonkeyPatch,
    script: Script,
) -> None:
    monkeypatch.setattr(transport_module, "CONNECT_SECONDS", 0.4)
    with Peer(script) as peer:
        request = Request("POST", f"https://127.0.0.1:{peer.port}/", form=POST)
        outcome = transport.publish(request, permit)
        assert len(peer.requests) == 1
    assert_not_sent(outcome, permit, Reason.CONNECT_FAILED)


def test_a_certificate_for_another_name_is_not_sent(
    transport: Transport, permit: SendPermit, certificate: Certificate
) -> None:
    with Peer(answering(OK), certificate.server) as peer:
        request = Request("POST", peer.url(host="127.0.0.2"), form=POST)
        # The listener is on 127.0.0.1 only: have the name resolve there.
        outcome = transport.publish(request, permit)
        assert_not_sent(outcome, permit, Reason.CONNECT_FAILED)


@pytest.mark.parametrize(
    "request_",
    [
        Request("POST", "ftp://platform.test/", form=POST),
        Request("POST", "/feed", form=POST),
        Request("POST", "https://", form=POST),
        Request("POST", "https://user:pass@platform.test/", form=POST),
        Request("CONNECT", "https://platform.test/", form=POST),
        Request("POST", "https://platform.test/", form=POST, headers={"A": "token\n"}),
        Request("POST", "https://platform.test/", form=POST, headers={"A": "é"}),
        Request("POST", "https://platform.test/", form=POST, headers={"A b": "c"}),
        Request("POST", "https://platform.test/", form=POST, headers={"Host": "other"}),
        Request("POST", "https://platform.test/", form=POST, headers={"content-length": "1"}),
        Request("POST", "https://platform.test/", form=POST, json={}),
        Request("POST", "https://platform.test/", json={"a": float("nan")}),
        Request("POST", "https://platform.test/", json={"a": "\ud800"}),
        Request("POST", "https://platform.test/", form=[("a", "\ud800")]),
    ],
    ids=lambda request: f"{request.method} {request.url} {[*request.headers.items()]}",
)
def test_a_request_that_is_not_allowed_is_refused_before_connecting(
    transport: Transport,
    permit: SendPermit,
    monkeypatch: pytest.MonkeyPatch,
    request_: Request,
) -> None:
    def fails(*_: object, **__: object) -> None:
        pytest.fail("a name was resolved")

    monkeypatch.setattr(socket, "getaddrinfo", fails)
    outcome = transport.publish(request_, permit)
    assert_not_sent(outcome, permit, Reason.CONNECT_FAILED)


def test_after_close_nothing_is_sent(transport: Transport, permit: SendPermit) -> None:
    with Peer(answering(OK)) as peer:
        transport.close()
        outcome = transport.publish(post(peer), permit)
        assert peer.requests == []
    assert_not_sent(outcome, permit, Reason.CONNECT_FAILED)
