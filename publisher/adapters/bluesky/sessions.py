"""Sessions: two hours of access, made from an app password, kept in this process alone.

Nothing depends on one being here. A process without it makes another, which is harmless: a session
publishes nothing and ends no other session. So they are not stored, and a worker that dies loses
none of its jobs' progress. What would have to be stored, one day, are OAuth's token pairs, whose
refresh tokens work once; they need the lease of the design's section 9.

One thread at a time makes or renews the session of a channel, and the others wait for it: thirty
logins in five minutes are the limit (``pds/src/api/com/atproto/server/createSession.ts``).
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Final
from urllib.parse import urlsplit

from publisher.adapters.bluesky.account import Account, is_did
from publisher.adapters.bluesky.refusals import Call, step_failure
from publisher.adapters.bluesky.xrpc import Server
from publisher.engine.adapter import boottime
from publisher.engine.outcome import Deferred, Reason, Rejected, Unauthorized
from publisher.transport import Failed, Reply, Transport

LOG_IN_SECONDS: Final = 30.0
WAIT_SECONDS: Final = 90.0
"""For another thread's log-in; longer than two calls of it take."""
MARGIN_SECONDS: Final = 600.0
"""A session that ends sooner is renewed first, so that none ends within a publish."""
UNKNOWN_LIFE_SECONDS: Final = 3600.0
"""Of a token that does not say; the reference server's last two hours."""


@dataclass(frozen=True, slots=True)
class Session:
    """Access to one account. ``fresh_until``: on ``CLOCK_BOOTTIME``, with the margin taken off.

    ``url`` is the server that keeps the account's records.
    """

    did: str
    handle: str
    url: str
    trusted: bool
    access: str = field(repr=False)
    refresh: str = field(repr=False)
    password: str = field(repr=False)
    fresh_until: float

    @property
    def server(self) -> Server:
        """The account's server, opened."""
        return Server(self.url, self.trusted, self.access, self.secrets)

    @property
    def secrets(self) -> tuple[str, ...]:
        """Everything that must be kept nowhere."""
        return (self.password, self.access, self.refresh)

    @property
    def is_fresh(self) -> bool:
        """Whether it outlasts a publish that begins now."""
        return boottime() < self.fresh_until


class Sessions:
    """The sessions of this process, by channel and generation of its credential."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._lock = Lock()
        self._kept: dict[int, tuple[int, str, Session]] = {}
        self._makers: dict[int, Lock] = {}

    def fresh(self, account: Account) -> Session | None:
        """The session of ``account`` if there is one that may be used. Asks nobody."""
        session = self._any(account)
        return session if session is not None and session.is_fresh else None

    def ensure(self, account: Account) -> Session | Rejected | Deferred | Unauthorized:
        """The session of ``account``, renewed or made where need be. A step."""
        if (session := self.fresh(account)) is not None:
            return session
        with self._lock:
            maker = self._makers.setdefault(account.channel_id, Lock())
        if not maker.acquire(timeout=WAIT_SECONDS):
            return Deferred(Reason.BUSY, "Another thread is still logging in to this account.")
        try:
            return self.fresh(account) or self._renewed(account)
        finally:
            maker.release()

    def expire(self, account: Account, session: Session) -> None:
        """The server no longer takes ``session``; the next ``ensure`` renews it."""
        with self._lock:
            kept = self._kept.get(account.channel_id)
            if kept is not None and kept[2].access == session.access:
                self._kept[account.channel_id] = (
                    kept[0],
                    kept[1],
                    replace(session, fresh_until=float("-inf")),
                )

    def forget(self, account: Account) -> None:
        """Drop what is kept for the channel: it was refused."""
        with self._lock:
            self._kept.pop(account.channel_id, None)

    def _any(self, account: Account) -> Session | None:
        with self._lock:
            kept = self._kept.get(account.channel_id)
        # The mark as well: a generation says that a credential is another, not that it is right.
        if kept is None or kept[:2] != (account.generation, account.mark):
            return None
        return kept[2]

    def _renewed(self, account: Account) -> Session | Rejected | Deferred | Unauthorized:
        old = self._any(account)
        refreshed = None if old is None else self._refresh(account, old)
        made = refreshed or self._create(account)
        if isinstance(made, Session):
            with self._lock:
                self._kept[account.channel_id] = (account.generation, account.mark, made)
        return made

    def _refresh(self, account: Account, old: Session) -> Session | Deferred | None:
        """Renew a session; None where only a new log-in helps."""
        secrets = old.secrets
        server = Server(account.url, account.trusted, old.refresh, secrets)
        reply = self._transport.step(server.post(Call.REFRESH_SESSION), timeout=LOG_IN_SECONDS)
        if isinstance(reply, Failed):
            return Deferred(Reason.STEP_FAILED, reply.detail)
        session = _session(account, reply)
        if session is not None:
            return session
        failure = step_failure(Call.REFRESH_SESSION, server, reply, keeps_answer=False)
        if isinstance(failure, Deferred) and failure.reason is Reason.RATE_LIMITED:
            return failure
        return None

    def _create(self, account: Account) -> Session | Rejected | Deferred | Unauthorized:
        """Log in. Nothing of the answer is kept but its words: it holds tokens, even cut short."""
        given = {"identifier": account.identifier, "password": account.password}
        request = account.server.post(Call.CREATE_SESSION, given)
        reply = self._transport.step(request, timeout=LOG_IN_SECONDS)
        if isinstance(reply, Failed):
            return Deferred(Reason.STEP_FAILED, reply.detail)
        session = _session(account, reply)
        if session is None and reply.status == 200:  # noqa: PLR2004 - HTTP's OK
            return Deferred(Reason.STEP_FAILED, "Bluesky's answer to a log-in cannot be read.")
        if session is None:
            server = account.server
            return step_failure(Call.CREATE_SESSION, server, reply, keeps_answer=False)
        if not account.is_also(session.did, session.handle):
            detail = f"The app password opens another account, {session.handle}. Reconnect it."
            return Unauthorized(Reason.NEEDS_RECONNECTING, detail)
        return session


def _session(account: Account, reply: Reply) -> Session | None:
    """Read the answer of either call, or None when it is no session."""
    body = reply.json()
    if reply.status != 200 or not isinstance(body, dict):  # noqa: PLR2004 - HTTP's OK
        return None
    did, handle = body.get("did"), body.get("handle")
    access, refresh = body.get("accessJwt"), body.get("refreshJwt")
    if not is_did(did) or not _is_token(access) or not _is_token(refresh):
        return None
    url, trusted = _records_at(account, body.get("didDoc"))
    life = _lifetime(str(access))
    return Session(
        did=str(did),
        handle=handle if isinstance(handle, str) else str(did),
        url=url,
        trusted=trusted,
        access=str(access),
        refresh=str(refresh),
        password=account.password,
        fresh_until=boottime() + life - min(MARGIN_SECONDS, life / 2),
    )


def _records_at(account: Account, document: object) -> tuple[str, bool]:
    """The server of the account's records, and whether its address is the operator's own.

    An entryway names it in the DID document. Anywhere else the account lives where it logs in, and
    a server's own idea of its public address may be none that is reached from here.
    """
    if account.may_live_elsewhere and isinstance(document, Mapping):
        services = document.get("service")
        for service in services if isinstance(services, list) else []:
            if not isinstance(service, Mapping) or service.get("type") != _PDS:
                continue
            address = service.get("serviceEndpoint")
            if isinstance(address, str) and _is_public(address):
                return address.rstrip("/"), False
    return account.url, account.trusted


_PDS = "AtprotoPersonalDataServer"


def _is_public(address: str) -> bool:
    try:
        parts = urlsplit(address)
    except ValueError:
        return False
    return parts.scheme == "https" and bool(parts.hostname) and not parts.username


def _is_token(value: object) -> bool:
    """Whether a value can stand in a header at all: visible ASCII, nothing else."""
    return isinstance(value, str) and bool(value) and all("!" <= c <= "~" for c in value)


def _lifetime(token: str) -> float:
    """Seconds for which a JWT says that it holds, by its own two times: no clock of ours."""
    try:
        part = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
        life = float(claims["exp"]) - float(claims["iat"])
    except (IndexError, ValueError, KeyError, TypeError, RecursionError):
        return UNKNOWN_LIFE_SECONDS
    return life if 0 < life < 10 * 86_400 else UNKNOWN_LIFE_SECONDS
