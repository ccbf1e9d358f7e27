"""Bluesky on the sandbox, for the conformance suite."""

from __future__ import annotations

import base64
import hashlib
import itertools
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from publisher.adapters.bluesky import Bluesky
from publisher.adapters.bluesky.account import Account, account_of
from publisher.adapters.bluesky.sessions import Session
from publisher.engine.adapter import Adapter
from publisher.engine.job import Channel
from publisher.sandbox.behaviours import Behaviour
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
    Fault.STRANGE_REFUSAL: (Behaviour.REFUSE_INVALID, {"error": "MoonInTheWrongHouse"}),
    # A session that has ended is renewed without anybody's help; see test_bluesky.
    Fault.TOKEN_REFUSED: (Behaviour.REFUSE_TOKEN, {"error": "InvalidToken"}),
    Fault.SILENT: (Behaviour.HANG, {}),
}
_numbers = itertools.count(3_000_001)


class Locked(RuntimeError):
    """What a vault may raise."""


class BlueskyStand:
    """One account of its own, with an app password nobody else has."""

    lacks = frozenset({Fault.DUPLICATE})

    def __init__(self, sandbox: SandboxProcess, transport: Transport) -> None:
        number = next(_numbers)
        self.handle = f"writer{number}.test"
        self.page = f"did:plc:{_letters(self.handle)}"
        self.secret = f"canary-{number}-abcd-efgh-ijkl"
        self.seen: list[object] = []
        self.control = sandbox.control
        self.url = sandbox.url
        self.transport = transport
        self.control.add_account(
            "bluesky", id=self.page, handle=self.handle, token=self.secret, name="An account"
        )
        self.store = Store(dict.fromkeys("abc", JPEG))
        self.real = self.adapter_at(sandbox.url)
        self.adapter: Adapter = self.real
        self.channel = Channel(
            id=number,
            platform="bluesky",
            name="An account",
            remote_id=self.page,
            base_url=None,
            sealed=b"sealed",
            generation=1,
        )
        self.broken = replace(self.channel, sealed=None)
        self.unreachable = replace(
            self.channel, id=number + 1_000_000, base_url="http://127.0.0.1:1"
        )
        # Logging in is a step; here it was done before the server went away.
        self.keep_session(self.unreachable, url="http://127.0.0.1:1")

    def adapter_at(self, url: str, transport: Transport | None = None) -> Bluesky:
        """The adapter, with the server at ``url``."""
        return Bluesky(transport or self.transport, self._open, self.store, base_url=url)

    def account(self, channel: Channel | None = None) -> Account:
        """The account as the adapter sees it."""
        account = account_of(channel or self.channel, self._open, self.url)
        assert isinstance(account, Account)
        return account

    def keep_session(self, channel: Channel | None = None, **changes: Any) -> Session:  # noqa: ANN401 - any field
        """Put a session into the adapter's memory: a true one, with changes."""
        true = self.real._sessions.ensure(self.account())
        assert isinstance(true, Session)
        account, made = self.account(channel), replace(true, **changes)
        self.real._sessions._kept[account.channel_id] = (
            account.generation,
            account.mark,
            made,
        )
        return made

    def tokens(self) -> set[str]:
        """Every token of a session the adapter has at present."""
        sessions = [kept[2] for kept in self.real._sessions._kept.values()]
        return {token for session in sessions for token in (session.access, session.refresh)}

    def records(self) -> list[dict[str, Any]]:
        """What is on the account, by the sandbox's own record, newest first."""
        return [post["data"]["record"] for post in self.control.posts(self.page)]

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
            self.control.foreign_post(self.page, f"Notice {number}")

    def hide_newest(self) -> None:
        """See ``Stand``; one record is asked for by its key, and no listing is read."""

    def fail_listing(self) -> None:
        """See ``Stand``."""
        self.control.behave(Behaviour.FAIL_500, page=self.page, endpoint="read", times=9)

    def _open(self, channel: Channel) -> str:
        if channel.sealed is None:
            message = f"no key for {self.secret}"
            raise Locked(message)
        return self.secret


def _letters(text: str) -> str:
    """The part of a did:plc after its method: 24 letters and digits."""
    return base64.b32encode(hashlib.sha256(text.encode()).digest()).decode().lower()[:24]
