"""Where a mail is handed over, with what access; and the mail itself, as it goes on the wire."""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Self
from urllib.parse import parse_qs, unquote, urlsplit

_HOST: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?|[0-9A-Fa-f:.]+")
# RFC 5321, 4.1.2: dot-atoms only. Quoted local parts and Unicode addresses (RFC 6531) are left
# out: hardly anybody has one, and each is a way to smuggle something past a check.
_ATOM: Final = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_LABEL: Final = r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_ADDRESS: Final = re.compile(rf"{_ATOM}(\.{_ATOM})*@{_LABEL}(\.{_LABEL})*")
_LOCAL_PART, _PATH = 64, 254
_LARGEST_PORT = 65_535


class BadRelay(ValueError):
    """A credential that names no relay; the sentence never holds any of it."""


class Tls(StrEnum):
    """How the connection is made private. ``NONE`` never leaves this machine."""

    STARTTLS = "starttls"
    TLS = "tls"
    NONE = "none"


_PORTS: Final = {Tls.STARTTLS: 587, Tls.TLS: 465, Tls.NONE: 25}
"""RFC 6409 and RFC 8314, 3.3."""


@dataclass(frozen=True, slots=True)
class Relay:
    """A server that takes mail from us.

    ``hello``: the name we greet it with, where it insists on one. ``trusted``: whoever runs this
    machine gave it; where any other leads is checked before it is connected to.
    """

    host: str
    port: int
    tls: Tls
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    hello: str | None = None
    trusted: bool = False

    @classmethod
    def read(cls, credential: str, *, trusted: bool = False) -> Self:
        """Read a channel's credential: JSON, or ``smtp://user:password@host:587``.

        JSON has ``host`` and may have ``port``, ``user``, ``password``, ``tls`` (starttls, tls, or
        none for a relay on this machine) and ``hello``. A URL begins with ``smtp://`` (STARTTLS)
        or ``smtps://`` (TLS) and may end in ``?tls=none``. Raises ``BadRelay``.
        """
        text = credential.strip()
        parts = _json(text) if text.startswith("{") else _url(text)
        try:
            tls = Tls(parts.get("tls") or Tls.STARTTLS)
        except ValueError:
            message = 'Its "tls" is none of starttls, tls and none.'
            raise BadRelay(message) from None
        relay = cls(
            host=parts["host"],
            port=_port(parts.get("port"), tls),
            tls=tls,
            user=parts.get("user"),
            password=parts.get("password"),
            hello=parts.get("hello"),
            trusted=trusted,
        )
        relay._check()
        return relay

    def _check(self) -> None:
        if not _HOST.fullmatch(self.host):
            message = "It names no host."
            raise BadRelay(message)
        if (self.user is None) != (self.password is None):
            message = "It holds a user without a password, or a password without a user."
            raise BadRelay(message)
        if self.tls is Tls.NONE and not self.is_on_this_machine:
            message = (
                "Without TLS a relay must be on this machine: give 127.0.0.1, or use starttls."
            )
            raise BadRelay(message)
        if self.hello is not None and not _HOST.fullmatch(self.hello.strip("[]")):
            message = 'Its "hello" is no host name.'
            raise BadRelay(message)
        for text in (self.user, self.password):
            if text is not None and ("\0" in text or not text):
                message = "Its user or password is empty, or holds a NUL."
                raise BadRelay(message)

    @property
    def is_on_this_machine(self) -> bool:
        """Whether the host is a loopback address, written as such."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


@dataclass(frozen=True, slots=True)
class Envelope:
    """One message to one recipient. ``data``: the whole of it, CRLF at each line's end."""

    sender: str
    recipient: str
    data: bytes = field(repr=False)


def is_address(text: str) -> bool:
    """Whether ``text`` is one plain mail address: ASCII, a dot-atom, @ and a domain."""
    local, _, _ = text.rpartition("@")
    return _ADDRESS.fullmatch(text) is not None and len(local) <= _LOCAL_PART and len(text) <= _PATH


def _json(text: str) -> Mapping[str, str]:
    try:
        parts = json.loads(text)
    except ValueError:
        message = "It begins like JSON and is none."
        raise BadRelay(message) from None
    known = {"host", "port", "user", "password", "tls", "hello"}
    if not isinstance(parts.get("host"), str) or not parts.keys() <= known:
        message = f"Its JSON needs a host, and may hold {', '.join(sorted(known - {'host'}))}."
        raise BadRelay(message)
    return {name: str(value) for name, value in parts.items() if value is not None}


def _url(text: str) -> Mapping[str, str]:
    try:
        url = urlsplit(text)
        port = url.port
    except ValueError:
        url, port = urlsplit(""), None
    if url.scheme not in {"smtp", "smtps"} or not url.hostname or url.path.strip("/"):
        message = "It is neither JSON nor like smtp://user:password@relay.example.org:587."
        raise BadRelay(message)
    asked = parse_qs(url.query)
    parts = {"host": url.hostname, "tls": "tls" if url.scheme == "smtps" else "starttls"}
    if port is not None:
        parts["port"] = str(port)
    if url.username:
        parts["user"] = unquote(url.username)
    if url.password:
        parts["password"] = unquote(url.password)
    for name in ("tls", "hello"):
        if name in asked:
            parts[name] = asked[name][-1]
    return parts


def _port(text: str | None, tls: Tls) -> int:
    if text is None:
        return _PORTS[tls]
    if not text.isascii() or not text.isdigit() or not 0 < int(text) <= _LARGEST_PORT:
        message = "Its port is no number from 1 to 65535."
        raise BadRelay(message)
    return int(text)
