"""Telegram on the sandbox, for the conformance suite."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from publisher.adapters.telegram import Telegram
from publisher.engine.adapter import Adapter
from publisher.engine.job import Channel
from publisher.sandbox.behaviours import Behaviour
from publisher.sandbox.process import SandboxProcess
from publisher.transport import Transport
from tests.adapters.stand import JPEG, Fault, Store

_STRANGE = {"description": "Bad Request: the moon is in the wrong house"}
_BEHAVIOURS: dict[Fault, tuple[Behaviour, Mapping[str, Any]]] = {
    Fault.LOSE_ANSWER: (Behaviour.LOSE_ANSWER, {}),
    Fault.RESET: (Behaviour.ACCEPT_AND_RESET, {}),
    Fault.HALF_ANSWER: (Behaviour.HALF_ANSWER, {}),
    Fault.GARBAGE: (Behaviour.GARBAGE_ANSWER, {}),
    Fault.SERVER_ERROR: (Behaviour.ACCEPT_AND_500, {}),
    Fault.GATEWAY: (Behaviour.ACCEPT_AND_502, {}),
    Fault.TIMEOUT_PAGE: (Behaviour.ACCEPT_AND_504, {}),
    Fault.NO_ID: (Behaviour.ANSWER_WITHOUT_ID, {}),
    Fault.OLDER_ID: (Behaviour.OLDER_ID, {}),
    Fault.DROPPED: (Behaviour.DROP, {}),
    Fault.REDIRECTED: (Behaviour.REDIRECT_307, {}),
    Fault.LIMITED: (Behaviour.REFUSE_LIMITED, {}),
    Fault.REFUSED: (Behaviour.REFUSE_INVALID, {}),
    Fault.STRANGE_REFUSAL: (Behaviour.REFUSE_INVALID, _STRANGE),
    Fault.TOKEN_REFUSED: (Behaviour.REFUSE_TOKEN, {}),
    Fault.SILENT: (Behaviour.HANG, {}),
}
_numbers = itertools.count(7_000_001)


class Locked(RuntimeError):
    """What a vault may raise."""


class TelegramStand:
    """One channel of its own, with a bot nobody else has."""

    lacks = frozenset({Fault.DUPLICATE})

    def __init__(self, sandbox: SandboxProcess, transport: Transport) -> None:
        number = next(_numbers)
        self.page = f"-100{number}"
        self.username = f"channel_{number}"
        self.secret = f"{number}:{'CanaryBotToken_' + str(number):x<35}"
        self.seen: list[object] = []
        self.control = sandbox.control
        self.url = sandbox.url
        self.transport = transport
        self.control.add_account(
            "telegram", id=self.page, username=self.username, token=self.secret, name="A channel"
        )
        self.store = Store(dict.fromkeys("abc", JPEG))
        self.adapter: Adapter = self.adapter_at(sandbox.url)
        self.channel = Channel(
            id=number,
            platform="telegram",
            name="A channel",
            remote_id=self.page,
            base_url=None,
            sealed=b"sealed",
            generation=1,
        )
        self.broken = replace(self.channel, sealed=None)
        self.unreachable = replace(self.channel, base_url="http://127.0.0.1:1")

    def adapter_at(self, url: str) -> Telegram:
        """The adapter, with the Bot API at ``url``."""
        return Telegram(self.transport, self._open, self.store, base_url=url)

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
        """See ``Stand``; there is no listing."""

    def hide_newest(self) -> None:
        """See ``Stand``; there is no listing."""

    def fail_listing(self) -> None:
        """See ``Stand``; there is no listing."""

    def _open(self, channel: Channel) -> str:
        if channel.sealed is None:
            message = f"no key for {self.secret}"
            raise Locked(message)
        return self.secret
