"""Builds XRPC requests and reads XRPC errors: one server, and a token that is never in a URL.

https://atproto.com/specs/xrpc
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from publisher.transport import FilePart, Reply, Request
from publisher.transport.redaction import Redaction

POST = "app.bsky.feed.post"

_DETAIL_LIMIT = 300


@dataclass(frozen=True, slots=True)
class Server:
    """Where a call goes, and what opens it. ``secrets`` are cut out of whatever is kept.

    ``trusted``: the address is the operator's own, so transport need not check where it leads.
    """

    url: str
    trusted: bool
    token: str | None = field(default=None, repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)

    def get(self, name: str, params: Mapping[str, str] | None = None) -> Request:
        """Ask a query."""
        return Request(
            method="GET",
            url=self._url(name),
            params=dict(params or {}),
            headers=self._headers(),
            secrets=self.secrets,
            trusted=self.trusted,
        )

    def post(self, name: str, given: Mapping[str, object] | None = None) -> Request:
        """Call a procedure with JSON, or with nothing."""
        return Request(
            method="POST",
            url=self._url(name),
            headers=self._headers(),
            json=None if given is None else dict(given),
            secrets=self.secrets,
            trusted=self.trusted,
        )

    def upload(self, name: str, part: FilePart) -> Request:
        """Call a procedure whose whole body is one file."""
        return Request(
            method="POST",
            url=self._url(name),
            headers=self._headers(),
            content=part,
            secrets=self.secrets,
            trusted=self.trusted,
        )

    def hide(self, text: str) -> str:
        """Take the secrets out of something the server wrote."""
        return Redaction(self.secrets)(text, 1000)

    def _url(self, name: str) -> str:
        return f"{self.url.rstrip('/')}/xrpc/{name}"

    def _headers(self) -> dict[str, str]:
        return {} if self.token is None else {"Authorization": f"Bearer {self.token}"}


@dataclass(frozen=True, slots=True)
class Complaint:
    """What a server says is wrong: the error's name, which is stable, and words, which are not."""

    status: int
    error: str
    message: str

    @classmethod
    def read(cls, reply: Reply) -> Self | None:
        """The error in a reply, or None when its body is not one that XRPC writes."""
        body = reply.json()
        if not isinstance(body, dict):
            return None
        error, message = body.get("error"), body.get("message")
        if not isinstance(error, str) or not error:
            return None
        return cls(reply.status, error, message if isinstance(message, str) else "")

    @property
    def detail(self) -> str:
        """One line for a person: the server's words and the error's name."""
        words = " ".join(self.message.split())
        if len(words) > _DETAIL_LIMIT:
            words = words[: _DETAIL_LIMIT - 1] + "…"
        return f"{words} ({self.error})" if words else f"{self.error}"


def words_of(server: Server, reply: Reply) -> str:
    """What a failed reply says, for a person, without secrets."""
    complaint = Complaint.read(reply)
    return f"HTTP {reply.status}" if complaint is None else server.hide(complaint.detail)
