"""Calls through a proxy, whose own CONNECT must not be taken for the request."""

from __future__ import annotations

import socket
from ipaddress import ip_network

import pytest
from pydantic import SecretStr

from publisher.config import Settings
from publisher.engine.adapter import SendPermit
from publisher.engine.outcome import Deferred, Reason, Unknown
from publisher.transport import Reply, Request, Transport
from publisher.transport.connection import TrustRoots
from tests.transport.claims import POST, assert_not_sent, tunnel
from tests.transport.peer import OK, Certificate, Connection, Peer, Script, answering


def through(proxy: Peer, roots: TrustRoots, *networks: str) -> Transport:
    settings = Settings(
        proxy_url=SecretStr(f"http://user:secret-of-proxy@127.0.0.1:{proxy.port}"),
        allowed_networks=tuple(map(ip_network, networks)),
    )
    return Transport(settings, tls=roots)


@pytest.mark.parametrize(
    "script",
    [
        answering(b"HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n"),
        answering(b"HTTP/1.1 502 No\r\nContent-Length: 0\r\n\r\n"),
        answering(b"garbage\r\n\r\n"),
        Connection.request,
        lambda c: (c.request(), c.reset()),
    ],
    ids=["407", "502", "garbage", "FIN", "RST"],
)
def test_a_proxy_that_does_not_connect_has_sent_nothing(
    roots: TrustRoots, permit: SendPermit, certificate: Certificate, script: Script
) -> None:
    with Peer(answering(OK), certificate.server) as peer, Peer(script) as proxy:
        outcome = through(proxy, roots).publish(Request("POST", peer.url(), form=POST), permit)
        assert peer.requests == []
        [asked] = proxy.requests
    assert asked.startswith(b"CONNECT 127.0.0.1:")
    assert b"message=" not in asked
    assert_not_sent(outcome, permit, Reason.CONNECT_FAILED)
    assert "secret-of-proxy" not in repr(outcome)


def test_a_post_through_a_tunnel(
    roots: TrustRoots, permit: SendPermit, certificate: Certificate
) -> None:
    with Peer(answering(OK), certificate.server) as peer, Peer(tunnel(peer.port)) as proxy:
        url = peer.url(host="platform.test")
        reply = through(proxy, roots).publish(Request("POST", url, form=POST), permit)
        assert isinstance(reply, Reply)
        [got] = peer.requests
        assert reply.answer.sent == len(got)
        assert proxy.connections[0].got.startswith(b"CONNECT platform.test:%d " % peer.port)
        assert b"Proxy-Authorization" not in got


def test_an_answer_lost_in_a_tunnel_is_unknown(
    roots: TrustRoots, permit: SendPermit, certificate: Certificate
) -> None:
    with (
        Peer(Connection.request, certificate.server) as peer,
        Peer(tunnel(peer.port)) as proxy,
    ):
        outcome = through(proxy, roots).publish(Request("POST", peer.url(), form=POST), permit)
    assert isinstance(outcome, Unknown)
    assert outcome.reason is Reason.CONNECTION_LOST


def test_a_given_address_is_named_to_the_proxy_as_it_was_checked(
    roots: TrustRoots,
    permit: SendPermit,
    certificate: Certificate,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The proxy is not left to resolve the name again; the certificate must still name it."""
    real = socket.getaddrinfo

    def resolve(host: str, port: int, *rest: int, **more: int) -> object:
        return real("127.0.0.1" if host == "platform.test" else host, port, *rest, **more)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    names: list[str | None] = []
    monkeypatch.setattr(certificate.server, "sni_callback", lambda _s, name, _c: names.append(name))
    with Peer(answering(OK), certificate.server) as peer, Peer(tunnel(peer.port)) as proxy:
        transport = through(proxy, roots, "127.0.0.1/32")
        request = Request("POST", peer.url(host="platform.test"), form=POST, trusted=False)
        assert isinstance(transport.publish(request, permit), Reply)
        assert names == ["platform.test"]
        assert proxy.connections[0].got.startswith(b"CONNECT 127.0.0.1:%d " % peer.port)
        assert b"\r\nHost: platform.test:%d\r\n" % peer.port in peer.requests[0]


def test_a_given_address_without_tls_does_not_go_through_a_proxy(
    roots: TrustRoots, permit: SendPermit
) -> None:
    with Peer(answering(OK)) as proxy:
        transport = through(proxy, roots, "127.0.0.1/32")
        outcome = transport.publish(
            Request("POST", "http://127.0.0.1:1/", form=POST, trusted=False), permit
        )
        assert proxy.requests == []
    assert isinstance(outcome, Deferred)
    assert "https://" in outcome.detail


def test_plain_http_through_a_proxy_may_have_been_sent(
    roots: TrustRoots, permit: SendPermit
) -> None:
    with Peer(answering(b"HTTP/1.1 502 No\r\nContent-Length: 0\r\n\r\n")) as proxy:
        request = Request("POST", "http://platform.test/feed", form=POST)
        outcome = through(proxy, roots).publish(request, permit)
        assert proxy.requests[0].startswith(b"POST http://platform.test/feed ")
    assert isinstance(outcome, Unknown)
    assert outcome.reason is Reason.SERVER_ERROR


@pytest.mark.parametrize("name", ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy"])
def test_the_usual_proxy_variables_are_not_read(
    roots: TrustRoots, permit: SendPermit, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    with Peer(answering(OK)) as peer, Peer(answering(OK)) as proxy:
        monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        request = Request("POST", peer.url(), form=POST)
        assert isinstance(Transport(Settings(), tls=roots).publish(request, permit), Reply)
        assert proxy.requests == []


@pytest.mark.parametrize("url", ["https://proxy.test:1", "socks5://proxy.test:1", "proxy.test:1"])
def test_another_kind_of_proxy_is_refused_with_a_sentence(url: str) -> None:
    with pytest.raises(ValueError, match="PUBLISHER_PROXY_URL must be like http://"):
        Transport(Settings(proxy_url=SecretStr(url)))
