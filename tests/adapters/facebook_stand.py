"""Facebook Pages on the sandbox, for the conformance suite."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from publisher.adapters.facebook_pages import FacebookPages
from publisher.adapters.facebook_pages.listing import Bounds
from publisher.engine.adapter import Adapter
from publisher.engine.job import Channel
from publisher.sandbox.behaviours import Behaviour
from publisher.sandbox.pages import APPLICATION
from publisher.sandbox.process import SandboxProcess
from publisher.transport import Transport
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
    Fault.STRANGE_REFUSAL: (Behaviour.REFUSE_INVALID, {"code": 31337}),
    Fault.DUPLICATE: (Behaviour.REFUSE_DUPLICATE_FALSELY, {}),
    Fault.TOKEN_REFUSED: (Behaviour.REFUSE_TOKEN, {}),
    Fault.SILENT: (Behaviour.HANG, {}),
}
_numbers = itertools.count(9001)


class Locked(RuntimeError):
    """What a vault may raise."""


class FacebookStand:
    """One Page of its own, with a token nobody else has."""

    def __init__(self, sandbox: SandboxProcess, transport: Transport) -> None:
        self.page = str(next(_numbers))
        self.secret = f"canary-{self.page}-EAABwzLixnjYBO"
        self.seen: list[object] = []
        self.control = sandbox.control
        self.url = sandbox.url
        self.control.add_pages([{"id": self.page, "name": "A Page", "token": self.secret}])
        self.store = Store(dict.fromkeys("abc", JPEG))
        self.adapter: Adapter = self.adapter_at(transport, sandbox.url, application=APPLICATION)
        self.channel = self._channel(b"sealed", None)
        self.broken = self._channel(None, None)
        self.unreachable = self._channel(b"sealed", "http://127.0.0.1:1")

    def adapter_at(
        self,
        transport: Transport,
        url: str,
        *,
        application: str | None = None,
        bounds: Bounds | None = None,
    ) -> FacebookPages:
        """The adapter, with Graph at ``url``."""
        return FacebookPages(
            transport, self._open, self.store, base_url=url, application=application, bounds=bounds
        )

    def misbehave(self, fault: Fault, times: int | None = 1, *, endpoint: str = "publish") -> None:
        """See ``Stand``."""
        behaviour, error = _BEHAVIOURS[fault]
        endpoint = "any" if fault is Fault.TOKEN_REFUSED else endpoint
        self.control.behave(behaviour, page=self.page, endpoint=endpoint, times=times, error=error)

    def texts(self) -> list[str]:
        """See ``Stand``."""
        return [post["message"] for post in self.control.posts(self.page)]

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

    def _channel(self, sealed: bytes | None, base_url: str | None) -> Channel:
        return Channel(
            id=int(self.page),
            platform="facebook_pages",
            name="A Page",
            remote_id=self.page,
            base_url=base_url,
            sealed=sealed,
            generation=1,
        )
