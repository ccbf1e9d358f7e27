"""Where a name that was given to us may lead."""

from __future__ import annotations

import socket
from ipaddress import ip_address, ip_network

import pytest

from publisher.config import Settings
from publisher.engine.adapter import SendPermit
from publisher.engine.outcome import Deferred, Reason
from publisher.transport import Failed, Reply, Request, Transport
from publisher.transport.addresses import AddressRefused, checked, refusal
from publisher.transport.connection import TrustRoots
from tests.transport.peer import OK, Certificate, Peer, answering


@pytest.mark.parametrize(
    ("address", "what"),
    [
        ("127.0.0.1", "loopback"),
        ("127.255.255.254", "loopback"),
        ("::1", "loopback"),
        ("0.0.0.0", "unspecified"),
        ("0.1.2.3", "unspecified"),
        ("::", "unspecified"),
        ("10.0.0.1", "private"),
        ("172.16.0.1", "private"),
        ("172.31.255.255", "private"),
        ("192.168.1.1", "private"),
        ("fc00::1", "private"),
        ("fd12:3456::1", "private"),
        ("fec0::1", "private"),
        ("100.64.0.1", "carrier"),
        ("100.127.255.255", "carrier"),
        ("169.254.1.1", "link-local"),
        ("fe80::1", "link-local"),
        ("169.254.169.254", "metadata"),
        ("100.100.100.200", "metadata"),
        ("168.63.129.16", "metadata"),
        ("192.0.0.192", "metadata"),
        ("fd00:ec2::254", "metadata"),
        ("224.0.0.1", "multicast"),
        ("239.255.255.255", "multicast"),
        ("ff02::1", "multicast"),
        ("255.255.255.255", "reserved"),
        ("240.0.0.1", "reserved"),
        ("192.0.2.1", "reserved"),
        ("198.18.0.1", "reserved"),
        ("203.0.113.1", "reserved"),
        ("2001:db8::1", "reserved"),
        ("100::1", "reserved"),
        ("::ffff:127.0.0.1", "IPv4 address inside"),
        ("::ffff:8.8.8.8", "IPv4 address inside"),
        ("::127.0.0.1", "IPv4 address inside"),
        ("64:ff9b::a00:1", "IPv4 address inside"),
        ("64:ff9b:1::a00:1", "IPv4 address inside"),
        ("2002:7f00:1::", "IPv4 address inside"),
        ("2001:0:4136:e378::1", "IPv4 address inside"),
    ],
)
def test_refused_addresses(address: str, what: str) -> None:
    found = refusal(ip_address(address), ())
    assert found is not None
    assert what in found


@pytest.mark.parametrize(
    "address",
    ["8.8.8.8", "1.1.1.1", "157.240.0.35", "172.15.0.1", "172.32.0.1", "100.63.255.255",
     "100.128.0.1", "168.63.129.15", "2a03:2880:f12f:83:face:b00c:0:25de", "2606:4700::1111"],
)  # fmt: skip
def test_public_addresses(address: str) -> None:
    assert refusal(ip_address(address), ()) is None


@pytest.mark.parametrize(
    ("address", "allowed", "passes"),
    [
        ("10.1.2.3", "10.0.0.0/8", True),
        ("10.1.2.3", "10.1.2.3/32", True),
        ("10.1.2.3", "10.1.2.4/32", False),
        ("10.1.2.3", "fd00::/8", False),
        ("fd00::1", "fd00::/8", True),
        ("::ffff:10.1.2.3", "10.0.0.0/8", True),
        ("::ffff:10.1.2.3", "192.168.0.0/16", False),
        ("169.254.169.254", "10.0.0.0/8", False),
    ],
)
def test_allowed_networks(address: str, allowed: str, passes: bool) -> None:  # noqa: FBT001
    assert (refusal(ip_address(address), [ip_network(allowed)]) is None) is passes


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "2130706433", "0x7f.1", "0177.0.0.1", "127.1", "localhost", "[::1]", "0"]
)
def test_other_spellings_of_this_machine_are_refused(
    transport: Transport, permit: SendPermit, host: str
) -> None:
    with Peer(answering(OK)) as peer:
        request = Request("POST", f"http://{host}:{peer.port}/", trusted=False)
        outcome = transport.publish(request, permit)
        assert peer.requests == []
    assert isinstance(outcome, Deferred)
    assert outcome.reason is Reason.CONNECT_FAILED
    assert not permit.used


def test_the_sentence_names_the_address_and_what_to_set() -> None:
    with pytest.raises(AddressRefused) as caught:
        checked("localhost", 80, ())
    assert "localhost leads to" in str(caught.value)
    assert "PUBLISHER_ALLOWED_NETWORKS" in str(caught.value)
    assert "127.0.0.1/32" in str(caught.value) or "::1/128" in str(caught.value)


class Resolver:
    """Answers from a list, one answer per question."""

    def __init__(self, *answers: list[str]) -> None:
        self.answers = [*answers]
        self.asked: list[str] = []
        self._real = socket.getaddrinfo

    def __call__(self, host: str, port: int, **_: object) -> object:
        if host[0].isdigit():
            return self._real(host, port, type=socket.SOCK_STREAM)
        self.asked.append(host)
        return [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))
            for address in self.answers.pop(0)
        ]


def test_a_name_is_resolved_once_and_the_checked_address_is_used(
    roots: TrustRoots,
    certificate: Certificate,
    permit: SendPermit,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The second answer leads elsewhere, as in DNS rebinding. Host and SNI stay the name."""
    resolver = Resolver(["127.0.0.1"], ["127.0.0.9"])
    monkeypatch.setattr(socket, "getaddrinfo", resolver)
    names: list[str | None] = []
    monkeypatch.setattr(certificate.server, "sni_callback", lambda _s, name, _c: names.append(name))
    settings = Settings(allowed_networks=(ip_network("127.0.0.1/32"),))
    with Peer(answering(OK), certificate.server) as peer:
        request = Request("POST", peer.url(host="platform.test"), trusted=False)
        assert isinstance(Transport(settings, tls=roots).publish(request, permit), Reply)
        assert b"\r\nHost: platform.test:%d\r\n" % peer.port in peer.requests[0]
    assert resolver.asked == ["platform.test"]
    assert names == ["platform.test"]


def test_one_bad_address_among_good_ones_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", Resolver(["8.8.8.8", "10.0.0.1"]))
    with pytest.raises(AddressRefused, match=r"10\.0\.0\.1, a private address"):
        checked("platform.test", 443, ())


def test_a_given_address_is_not_followed_elsewhere(roots: TrustRoots, permit: SendPermit) -> None:
    settings = Settings(allowed_networks=(ip_network("127.0.0.1/32"),))
    with Peer(answering(OK)) as inner:
        answer = b"HTTP/1.1 302 X\r\nLocation: %b\r\nContent-Length: 0\r\n\r\n"
        with Peer(answering(answer % inner.url().encode())) as outer:
            request = Request("GET", outer.url(), trusted=False)
            reply = Transport(settings, tls=roots).read(request)
        assert inner.requests == []
    assert isinstance(reply, Reply)
    assert reply.status == 302


def test_a_refused_address_is_not_asked_for_again(
    transport: Transport, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolver = Resolver(["10.0.0.1"])
    monkeypatch.setattr(socket, "getaddrinfo", resolver)
    failed = transport.read(Request("GET", "https://platform.test/", trusted=False))
    assert isinstance(failed, Failed)
    assert "PUBLISHER_ALLOWED_NETWORKS" in failed.detail
    assert resolver.asked == ["platform.test"]


def test_a_trusted_address_may_be_this_machine(transport: Transport, permit: SendPermit) -> None:
    with Peer(answering(OK)) as peer:
        assert isinstance(transport.publish(Request("POST", peer.url()), permit), Reply)
