"""A channel's account and the app password that opens it, read from the vault's text."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field

from publisher.adapters.bluesky.xrpc import Server
from publisher.engine.errors import PublisherError
from publisher.engine.job import Channel
from publisher.engine.outcome import Deferred, Reason, Unauthorized

ENTRYWAY = "https://bsky.social"
"""Where accounts without a server of their own log in; it keeps no records itself."""

_DID = re.compile(r"did:[a-z]+:[A-Za-z0-9._:%-]{1,2000}")
_HANDLE = re.compile(
    r"(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?\.)+"
    r"[a-zA-Z](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
)


@dataclass(frozen=True, slots=True)
class Closed:
    """Why a channel's access cannot be used: ``lasting`` until a person reconnects it."""

    detail: str
    lasting: bool

    def outcome(self) -> Unauthorized | Deferred:
        """The same as a step's outcome."""
        if self.lasting:
            return Unauthorized(Reason.NEEDS_RECONNECTING, self.detail)
        return Deferred(Reason.BUSY, self.detail)


@dataclass(frozen=True, slots=True)
class Account:
    """Who logs in where. ``name``: the DID or handle that the channel stands for."""

    channel_id: int
    generation: int
    name: str
    identifier: str
    password: str = field(repr=False)
    url: str
    trusted: bool

    @property
    def mark(self) -> str:
        """Equal for equal access: where and as whom, with which password."""
        parts = f"{self.url}\0{self.identifier}\0{self.password}"
        return hashlib.sha256(parts.encode()).hexdigest()

    @property
    def server(self) -> Server:
        """Where to log in, before there is a session."""
        return Server(self.url, self.trusted, secrets=(self.password,))

    @property
    def may_live_elsewhere(self) -> bool:
        """Whether its records are on another server than the one it logs in to."""
        return self.url == ENTRYWAY

    def is_also(self, did: str, handle: str) -> bool:
        """Whether the account that was opened is the one the channel stands for."""
        if is_did(self.name):
            return self.name == did
        # A server that cannot check a handle just now calls it handle.invalid; it let us in by it.
        name = self.name.casefold()
        return name in (handle.casefold(), self.identifier.casefold())


def account_of(
    channel: Channel, vault_open: Callable[[Channel], str], default_url: str
) -> Account | Closed:
    """The channel's account, or why there is none. Never raises."""
    try:
        text = vault_open(channel)
    except OSError:
        return Closed("The stored access could not be read just now.", lasting=False)
    except PublisherError as error:
        return Closed(str(error), lasting=True)
    except Exception:  # noqa: BLE001 - whatever else a vault raises may hold secrets
        return Closed("The stored access of this account cannot be opened.", lasting=True)
    name = channel.remote_id.removeprefix("@")
    identifier, password = _credential(text, name)
    if not is_name(name) or not password or not identifier:
        return Closed("The stored access of this account is not an app password.", lasting=True)
    return Account(
        channel_id=channel.id,
        generation=channel.generation,
        name=name,
        identifier=identifier,
        password=password,
        url=(channel.base_url or default_url).rstrip("/"),
        trusted=channel.base_url is None or channel.trusted,
    )


def is_own_address(url: str, channel: Channel, default_url: str) -> bool:
    """Whether ``url`` is where the operator sends this channel, and not what a server told us."""
    own = (channel.base_url or default_url).rstrip("/")
    return url == own and (channel.base_url is None or channel.trusted)


def is_name(text: str) -> bool:
    """Whether ``text`` is a DID or a handle (https://atproto.com/specs/handle)."""
    return is_did(text) or _HANDLE.fullmatch(text) is not None


def is_did(text: object) -> bool:
    """Whether ``text`` is a DID (https://atproto.com/specs/did)."""
    return isinstance(text, str) and _DID.fullmatch(text) is not None


def _credential(text: str, name: str) -> tuple[str, str]:
    """Read ``{"identifier", "password"}``, or a password alone for the channel's own name."""
    text = text.strip()
    if not text.startswith("{"):
        return name, text
    try:
        given = json.loads(text)
    except (ValueError, RecursionError):
        return "", ""
    identifier, password = given.get("identifier", name), given.get("password")
    if not isinstance(identifier, str) or not isinstance(password, str):
        return "", ""
    return identifier.removeprefix("@"), password
