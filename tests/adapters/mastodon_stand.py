"""Mastodon on the sandbox, for the conformance suite."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from publisher.adapters.mastodon import Mastodon
from publisher.adapters.mastodon.formats import capabilities
from publisher.adapters.mastodon.servers import Server
from publisher.adapters.mastodon.statuses import Bounds
from publisher.engine.adapter import Adapter, Capabilities, SendPermit, Task
from publisher.engine.job import Channel
from publisher.engine.outcome import Deferred, Unknown
from publisher.sandbox.behaviours import Behaviour
from publisher.sandbox.process import SandboxProcess
from publisher.transport import Failed, Reply, Request, Transport
from tests.adapters.stand import JPEG, Fault, Store

_BEHAVIOURS: dict[Fault, tuple[Behaviour, Mapping[str, Any]]] = {
    Fault.LOSE_ANSWER: (Behaviour.LOSE_ANSWER, {}),
    Fault.RESET: (Behaviour.ACCEPT_AND_RESET, {}),
    Fault.HALF_ANSWER: (Behaviour.HALF_ANSWER, {}),
    Fault.GARBAGE: (Behaviour.GARBAGE_ANSWER, {}),
    Fault.SERVER_ERROR: (Behaviour.ACCEPT_AND_500, {}),
    Fault.GATEWAY: (Behaviour.ACCEPT_AND_502, {}),
    Fault.TIMEOUT_PAGE: (Behaviour.ACCEPT_AND_504, {}),
    Fault.NO_ID: (Behaviour.ANSWER_WITHOUT_ID, {}),
    Fault.FALSE_LIMIT: (Behaviour.ACCEPT_AND_LIMIT, {}),
    Fault.OLDER_ID: (Behaviour.OLDER_ID, {}),
    Fault.DROPPED: (Behaviour.DROP, {}),
    Fault.REDIRECTED: (Behaviour.REDIRECT_307, {}),
    Fault.LIMITED: (Behaviour.REFUSE_LIMITED, {}),
    Fault.REFUSED: (Behaviour.REFUSE_INVALID, {}),
    Fault.STRANGE_REFUSAL: (Behaviour.REFUSE_INVALID, {"status": 410, "error": "Gone fishing"}),
    Fault.TOKEN_REFUSED: (Behaviour.REFUSE_TOKEN, {}),
    Fault.SILENT: (Behaviour.HANG, {}),
}
_SOURCES = {
    "mastodon": "https://github.com/mastodon/mastodon",
    "hollo": "https://github.com/fedify-dev/hollo",
    "gotosocial": "https://codeberg.org/superseriousbusiness/gotosocial",
    "takahe": "https://github.com/jointakahe/takahe",
}
_numbers = itertools.count(5_000_001)


class Locked(RuntimeError):
    """What a vault may raise."""


class Sourced(Transport):
    """HTTP to the sandbox, which says what version it is but not whose: that is put in here."""

    def __init__(self, inner: Transport, server: str) -> None:
        self.inner = inner
        self.server = server

    def publish(self, request: Request, permit: SendPermit) -> Reply | Deferred | Unknown:
        return self.inner.publish(request, permit)

    def step(self, request: Request, *, timeout: float | None = None) -> Reply | Failed:
        return self.inner.step(request, timeout=timeout)

    def read(self, request: Request, *, timeout: float | None = None) -> Reply | Failed:
        reply = self.inner.read(request, timeout=timeout)
        if isinstance(reply, Failed) or not request.url.endswith("/api/v2/instance"):
            return reply
        body = reply.json()
        if not isinstance(body, dict) or body.get("source_url"):
            return reply
        source = _SOURCES.get(self.server, "")
        return replace(reply, body=json.dumps({**body, "source_url": source}).encode())


class MastodonStand:
    """One account of its own, on a server of a kind, with a token nobody else has."""

    lacks = frozenset({Fault.DUPLICATE})

    def __init__(
        self, sandbox: SandboxProcess, transport: Transport, server: str = "mastodon"
    ) -> None:
        self.page = str(next(_numbers))
        self.secret = f"canary-{self.page}-mXkq7Zr0"
        self.seen: list[object] = []
        self.control = sandbox.control
        self.url = sandbox.url
        self.control.add_account(
            "mastodon", id=self.page, username=f"user{self.page}", token=self.secret
        )
        self.control.mastodon(self.page, server=server)
        self.store = Store(dict.fromkeys("abc", JPEG))
        self.transport = Sourced(transport, server)
        self.adapter: Adapter = self.adapter_with(self.transport)
        self.channel = self.channel_at(sandbox.url)
        self.broken = replace(self.channel, sealed=None)
        self.unreachable = self.channel_at("http://127.0.0.1:1")

    def adapter_with(self, transport: Transport, *, bounds: Bounds | None = None) -> Mastodon:
        """The adapter on other HTTP."""
        return Mastodon(transport, self._open, self.store, bounds=bounds)

    def channel_at(self, url: str) -> Channel:
        """The account, at another address."""
        return Channel(
            id=int(self.page),
            platform="mastodon",
            name="An account",
            remote_id=self.page,
            base_url=url,
            sealed=b"sealed",
            generation=1,
        )

    def capabilities(self, task: Task) -> Capabilities:
        """What the adapter says once it knows the server."""
        return capabilities(task.content, Server.kept(task.progress))

    def misbehave(self, fault: Fault, times: int | None = 1, *, endpoint: str = "publish") -> None:
        """See ``Stand``."""
        behaviour, error = _BEHAVIOURS[fault]
        endpoint = "any" if fault is Fault.TOKEN_REFUSED else endpoint
        self.control.behave(behaviour, page=self.page, endpoint=endpoint, times=times, error=error)

    def texts(self) -> list[str]:
        """See ``Stand``."""
        return self.control.texts(self.page)

    def post_by_someone(self, text: str, *, at: datetime | None = None) -> str:
        """See ``Stand``."""
        return self.control.foreign_post(self.page, text, created_at=at)

    def fill_listing(self, posts: int) -> None:
        """See ``Stand``."""
        for number in range(posts):
            name = hashlib.sha256(str(number).encode()).hexdigest()
            self.control.foreign_post(self.page, f"Notice {name}")

    def hide_newest(self) -> None:
        """See ``Stand``."""
        self.control.behave(Behaviour.LISTING_GAP, page=self.page, endpoint="list")

    def fail_listing(self) -> None:
        """See ``Stand``."""
        self.control.behave(Behaviour.FAIL_500, page=self.page, endpoint="list", times=9)

    def _open(self, channel: Channel) -> str:
        if channel.sealed is None:
            message = f"no key for {self.secret}"
            raise Locked(message)
        return self.secret
