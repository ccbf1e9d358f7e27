"""Pictures by address: what is followed, what is refused, and that nothing refused is stored."""

from __future__ import annotations

import socket
from collections.abc import Callable
from ipaddress import ip_network
from pathlib import Path

import pytest

from publisher.config import Settings
from publisher.editorial.media import Fetcher, Library, MediaRefused, add_from_url
from publisher.editorial.media import fetch as fetching
from publisher.transport import Transport, TrustRoots
from tests.editorial.media.conftest import encoded, noise
from tests.transport.conftest import certificate, roots
from tests.transport.peer import Certificate, Connection, Peer, answering, closed_port

Rows = Callable[[], dict[str, int]]
NONE = {"media": 0, "media_uploads": 0, "media_chunks": 0}
PNG = encoded(noise(), "PNG")
HERE = (ip_network("127.0.0.0/8"),)

__all__ = ["certificate", "roots"]


def answer(body: bytes, *headers: str, status: str = "200 OK") -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def to(url: str, status: int = 302) -> bytes:
    return answer(b"moved", f"Location: {url}", status=f"{status} Moved")


@pytest.fixture
def fetcher(tmp_path: Path, roots: TrustRoots) -> Fetcher:
    """One that may go to this machine, as with PUBLISHER_ALLOWED_NETWORKS=127.0.0.0/8."""
    settings = Settings(home=tmp_path, allowed_networks=HERE)
    return Fetcher(Transport(settings, tls=roots), seconds=8)


@pytest.fixture
def stranger(tmp_path: Path, roots: TrustRoots) -> Fetcher:
    """One that has been told nothing of this machine."""
    return Fetcher(Transport(Settings(home=tmp_path), tls=roots), seconds=8)


def code_of(library: Library, fetcher: Fetcher, url: str) -> str:
    with pytest.raises(MediaRefused) as caught:
        add_from_url(library, fetcher, url, who="editor")
    refused = caught.value
    assert refused.field == "url"
    assert refused.fix.endswith(".")
    assert "127.0.0.1" not in str(refused), "where a name leads is nobody's to know"
    return refused.code


@pytest.mark.parametrize("said", ["image/png", "text/html", "application/x-sh"])
def test_what_lies_there_is_kept_whatever_it_is_said_to_be(
    shelf: Library, fetcher: Fetcher, said: str
) -> None:
    with Peer(answering(answer(PNG, f"Content-Type: {said}"))) as peer:
        kept = add_from_url(shelf, fetcher, peer.url("/a.exe"), who="editor")
    assert (kept.type, kept.width) == ("image/png", 60)
    assert b"".join(shelf.read(kept.sha256)).startswith(b"\x89PNG")
    (request,) = peer.requests
    assert b"cookie" not in request.lower()
    assert b"authorization" not in request.lower()


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_followed(shelf: Library, fetcher: Fetcher, status: int) -> None:
    with Peer(answering(answer(PNG))) as last, Peer(answering(to(last.url(), status))) as first:
        assert add_from_url(shelf, fetcher, first.url(), who="editor").type == "image/png"


def test_a_relative_redirect_and_three_in_a_row(shelf: Library, fetcher: Fetcher) -> None:
    def script(connection: Connection) -> None:
        path = connection.request().split(b" ")[1].decode()
        step = int(path.strip("/"))
        connection.send(answer(PNG) if step == 3 else to(f"/{step + 1}"))

    with Peer(script) as peer:
        assert add_from_url(shelf, fetcher, peer.url("/0"), who="editor").type == "image/png"
        assert len(peer.connections) == 4


def test_four_redirects_are_too_many(shelf: Library, fetcher: Fetcher, rows: Rows) -> None:
    with Peer(answering(to("/again"))) as peer:
        assert code_of(shelf, fetcher, peer.url()) == "media-url-redirects"
        assert len(peer.connections) == fetching.REDIRECTS + 1
    assert rows() == NONE


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "localhost", "2130706433", "0x7f000001", "0177.0.0.1", "127.1", "[::1]",
     "[::ffff:127.0.0.1]", "0.0.0.0", "169.254.169.254", "[fd00:ec2::254]", "10.0.0.1",
     "192.168.0.1", "172.16.0.1", "100.64.0.1", "[fe80::1]", "[fc00::1]", "[64:ff9b::7f00:1]",
     "[2002:7f00:1::1]", "[2001:0:1::1]", "224.0.0.1", "255.255.255.255"],
)  # fmt: skip
def test_no_private_place_is_reached(
    shelf: Library, stranger: Fetcher, rows: Rows, host: str
) -> None:
    with Peer(answering(answer(PNG))) as peer:
        assert code_of(shelf, stranger, f"http://{host}:{peer.port}/a.png") == "media-url-refused"
        assert peer.requests == []
    assert rows() == NONE


@pytest.mark.parametrize("host", ["169.254.169.254", "10.0.0.1", "[::ffff:10.0.0.1]", "[::1]"])
def test_a_redirect_into_a_private_place_is_not_followed(
    shelf: Library, fetcher: Fetcher, rows: Rows, host: str
) -> None:
    with Peer(answering(to(f"http://{host}/latest/meta-data/"))) as peer:
        assert code_of(shelf, fetcher, peer.url()) == "media-url-refused"
    assert rows() == NONE


@pytest.mark.parametrize("network", ["127.0.0.0/8"])
def test_a_name_is_resolved_once(
    shelf: Library, fetcher: Fetcher, monkeypatch: pytest.MonkeyPatch, network: str
) -> None:
    real, asked = socket.getaddrinfo, []

    def rebinding(host: str, *args: object, **how: object) -> object:
        if host != "pictures.test":
            return real(host, *args, **how)  # type: ignore[arg-type]
        asked.append(host)
        leads_to = "127.0.0.1" if len(asked) == 1 else "169.254.169.254"
        return real(leads_to, *args, **how)  # type: ignore[arg-type]

    monkeypatch.setattr(socket, "getaddrinfo", rebinding)
    with Peer(answering(answer(PNG))) as peer:
        url = f"http://pictures.test:{peer.port}/a.png"
        assert add_from_url(shelf, fetcher, url, who="editor").type == "image/png"
        (request,) = peer.requests
    assert asked == ["pictures.test"]
    assert f"Host: pictures.test:{peer.port}".encode() in request


@pytest.mark.parametrize(
    "url",
    ["", "a.png", "ftp://pictures.test/a.png", "file:///etc/passwd", "gopher://127.0.0.1:25/_x",
     "https://", "https://user:canary@pictures.test/a.png", "https://pictures.test:0/a.png",
     "https://pictures.test:99999/a.png", "http://pictures.test/a b", "http://pictures.test/\n",
     "http://[::1/a", "http://pictures.test/\0", "data:image/png;base64,AAAA",
     "https://pictures.test/" + "a" * 3_000],
)  # fmt: skip
def test_what_is_no_web_address(shelf: Library, fetcher: Fetcher, url: str) -> None:
    with pytest.raises(MediaRefused) as caught:
        add_from_url(shelf, fetcher, url, who="editor")
    assert caught.value.code == "media-url"
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize(
    "target", ["ftp://pictures.test/a", "file:///etc/passwd", "http://[::1", "https:///x"]
)
def test_a_redirect_to_no_web_address(shelf: Library, fetcher: Fetcher, target: str) -> None:
    with Peer(answering(to(target))) as peer:
        assert code_of(shelf, fetcher, peer.url()) == "media-url"


def test_encryption_is_not_given_up(
    shelf: Library, fetcher: Fetcher, certificate: Certificate
) -> None:
    with (
        Peer(answering(answer(PNG))) as plain,
        Peer(answering(to(plain.url())), certificate.server) as peer,
    ):
        assert code_of(shelf, fetcher, peer.url()) == "media-url-downgraded"
        assert plain.requests == []


@pytest.mark.parametrize(
    ("response", "code"),
    [
        (answer(b"", status="404 Not Found"), "media-url-status"),
        (answer(PNG, status="500 Oops"), "media-url-status"),
        (answer(PNG, status="206 Partial Content"), "media-url-status"),
        (answer(b"", status="302 Found"), "media-url-status"),
        (answer(b"<!DOCTYPE html><p>Sign in to see the picture"), "media-type-unknown"),
        (answer(b""), "media-empty"),
        (answer(PNG[:400]), "media-unreadable"),
        (answer(PNG, "Content-Encoding: gzip"), "media-url-packed"),
        (answer(PNG)[:-20], "media-url-unreachable"),
        (b"SSH-2.0-OpenSSH\r\n", "media-url-unreachable"),
        (b"", "media-url-unreachable"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9999999999\r\n\r\n", "media-too-large"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2000000000\r\n\r\n", "media-too-large"),
    ],
)
def test_what_is_answered_and_not_taken(
    shelf: Library, fetcher: Fetcher, rows: Rows, response: bytes, code: str
) -> None:
    with Peer(answering(response)) as peer:
        assert code_of(shelf, fetcher, peer.url()) == code
    assert rows() == NONE


def test_an_endless_picture_is_broken_off(
    shelf: Library, fetcher: Fetcher, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("publisher.editorial.media.kinds.IMAGE_BYTES", 1_000_000)
    sent = 0

    def script(connection: Connection) -> None:
        nonlocal sent
        connection.request()
        connection.send(b"HTTP/1.1 200 OK\r\n\r\n" + PNG)
        while connection.send(bytes(65_536)):
            sent += 65_536

    with Peer(script) as peer:
        assert code_of(shelf, fetcher, peer.url()) == "media-too-large"
    assert sent < 20_000_000
    assert rows() == NONE


def test_what_never_ends_has_a_time(tmp_path: Path, shelf: Library, rows: Rows) -> None:
    settings = Settings(home=tmp_path, allowed_networks=HERE)
    impatient = Fetcher(Transport(settings), seconds=0.5)

    def script(connection: Connection) -> None:
        connection.request()
        connection.send(b"HTTP/1.1 200 OK\r\n\r\n" + PNG[:100])
        connection.hang()

    with Peer(script) as peer:
        assert code_of(shelf, impatient, peer.url()) == "media-url-slow"
    assert rows() == NONE


def test_nobody_there(shelf: Library, fetcher: Fetcher) -> None:
    url = f"http://127.0.0.1:{closed_port()}/a.png"
    assert code_of(shelf, fetcher, url) == "media-url-unreachable"
