"""One real sandbox for the tests of a file, and an account of its own for each."""

from __future__ import annotations

import socket
import time
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import httpx
import pytest

from publisher.sandbox import log
from publisher.sandbox.process import SandboxProcess

from .senders import BlueskyUnderTest, MastodonUnderTest, TelegramUnderTest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from publisher.sandbox.log import LoggedPost, LoggedRequest

_NUMBERS = count(5001)


@dataclass(frozen=True)
class Received:
    """What came over a raw socket, and how it ended: ``fin``, ``rst`` or ``open``."""

    data: bytes
    end: str
    seconds: float

    @property
    def status(self) -> int | None:
        parts = self.data.split(b" ", 2)
        return int(parts[1]) if self.data.startswith(b"HTTP/1.1 ") else None


class PageUnderTest:
    """A page of the sandbox and the means to use it."""

    def __init__(self, sandbox: SandboxProcess, client: httpx.Client, page: str) -> None:
        self.sandbox = sandbox
        self.control = sandbox.control
        self.client = client
        self.id = page
        self.token = f"sandbox-token-{page}"

    def feed(self, message: str = "", **params: Any) -> httpx.Response:  # noqa: ANN401
        return self.call("POST", f"{self.id}/feed", message=message, **params)

    def listing(self, edge: str = "published_posts", /, **params: Any) -> httpx.Response:  # noqa: ANN401
        return self.call("GET", f"{self.id}/{edge}", **params)

    def call(self, method: str, path: str, **params: Any) -> httpx.Response:  # noqa: ANN401
        files = params.pop("files", None)
        params.setdefault("access_token", self.token)
        in_query = method in ("GET", "DELETE")
        return self.client.request(
            method,
            f"/v26.0/{path}",
            files=files,
            params=params if in_query else None,
            data=None if in_query else params,
        )

    def raw(self, message: str, *, path: str | None = None, seconds: float = 5.0) -> Received:
        """Send one feed call over a plain socket and read until it ends or time is up."""
        body = urlencode({"access_token": self.token, "message": message}).encode()
        head = (
            f"POST /v26.0/{path or f'{self.id}/feed'} HTTP/1.1\r\nHost: sandbox\r\n"
            "Content-Type: application/x-www-form-urlencoded\r\nConnection: close\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        return self.send(head.encode() + body, seconds=seconds)

    def send(self, data: bytes, *, seconds: float = 5.0, most: int = 2_000_000) -> Received:
        return send(self.sandbox.url, data, seconds=seconds, most=most)

    @property
    def logged(self) -> list[LoggedPost]:
        """What the sandbox's log says was ever on the page, by us."""
        ever = log.read(self.sandbox.log).ever_posted
        return [post for post in ever if post.page == self.id and not post.foreign]

    @property
    def requests(self) -> list[LoggedRequest]:
        return [it for it in log.read(self.sandbox.log).requests if it.page == self.id]


def send(url: str, data: bytes, *, seconds: float = 5.0, most: int = 2_000_000) -> Received:
    """Send bytes over a plain socket and read until it ends or time is up."""
    host, port = url.removeprefix("http://").split(":")
    begun = time.monotonic()
    received = bytearray()
    end = "open"
    with socket.create_connection((host, int(port)), timeout=seconds) as sock:
        try:
            sock.sendall(data)
            while len(received) < most:
                piece = sock.recv(65536)
                if not piece:
                    end = "fin"
                    break
                received += piece
        except TimeoutError:
            pass
        except ConnectionError:
            end = "rst"
    return Received(bytes(received), end, time.monotonic() - begun)


def until(holds: Callable[[], Any], seconds: float = 10.0) -> Any:  # noqa: ANN401
    """Wait until something that another process does has happened."""
    end = time.monotonic() + seconds
    while not (value := holds()):
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.01)
    return value


@pytest.fixture(scope="module")  # each test reads the log whole, so it should stay short
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxProcess]:
    with SandboxProcess.start(tmp_path_factory.mktemp("sandbox"), fsync=False) as process:
        yield process
    assert (process.log / "stderr.txt").read_text() == ""


@pytest.fixture(scope="module")
def client(sandbox: SandboxProcess) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=sandbox.url, trust_env=False, timeout=10) as client:
        yield client


@pytest.fixture
def page(sandbox: SandboxProcess, client: httpx.Client) -> Iterator[PageUnderTest]:
    number = str(next(_NUMBERS))
    sandbox.control.add_pages([{"id": number, "name": f"Page {number}"}])
    yield PageUnderTest(sandbox, client, number)
    sandbox.control.heal()


@pytest.fixture
def bluesky(sandbox: SandboxProcess, client: httpx.Client) -> Iterator[BlueskyUnderTest]:
    yield BlueskyUnderTest(sandbox, client, next(_NUMBERS))
    sandbox.control.heal()


@pytest.fixture
def mastodon(sandbox: SandboxProcess, client: httpx.Client) -> Iterator[MastodonUnderTest]:
    yield MastodonUnderTest(sandbox, client, next(_NUMBERS))
    sandbox.control.heal()


@pytest.fixture
def telegram(sandbox: SandboxProcess, client: httpx.Client) -> Iterator[TelegramUnderTest]:
    yield TelegramUnderTest(sandbox, client, next(_NUMBERS))
    sandbox.control.heal()
