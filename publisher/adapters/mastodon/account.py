"""Builds requests as one account on one server; the token is in a header, never in the URL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import quote

from publisher.transport import FilePart, Request

HIDDEN = "…"


@dataclass(frozen=True, slots=True)
class Account:
    """An account's id on its server, the server's address, and the token that opens it.

    ``trusted``: the address is the operator's own and not one that a page was told, so that
    transport need not check where it leads.
    """

    id: str
    token: str = field(repr=False)
    base_url: str
    trusted: bool

    def get(self, path: str, params: Mapping[str, str] | None = None) -> Request:
        """Read ``path``, which begins with ``/api/``."""
        return Request(
            method="GET",
            url=self._url(path),
            params=dict(params or {}),
            headers=self._headers(),
            secrets=(self.token,),
            trusted=self.trusted,
        )

    def upload(self, path: str, form: Sequence[tuple[str, str]], file: FilePart) -> Request:
        """Send one file."""
        return Request(
            method="POST",
            url=self._url(path),
            headers=self._headers(),
            form=tuple(form),
            files=(file,),
            secrets=(self.token,),
            trusted=self.trusted,
        )

    def post(self, path: str, body: Mapping[str, object], idempotency_key: str) -> Request:
        """Create something. JSON: from a form one server made an empty public post."""
        return Request(
            method="POST",
            url=self._url(path),
            headers={**self._headers(), "Idempotency-Key": idempotency_key},
            json=dict(body),
            secrets=(self.token,),
            trusted=self.trusted,
        )

    def delete(self, path: str) -> Request:
        """Delete what ``path`` names."""
        return Request(
            method="DELETE",
            url=self._url(path),
            headers=self._headers(),
            secrets=(self.token,),
            trusted=self.trusted,
        )

    @property
    def statuses(self) -> str:
        """The path of the account's own listing."""
        return f"/api/v1/accounts/{quote(self.id, safe='')}/statuses"

    def hide(self, text: str) -> str:
        """Take the token out of something the server wrote."""
        return text.replace(self.token, HIDDEN)

    def _url(self, path: str) -> str:
        return f"{self.base_url.rstrip('/')}{path}"

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}


def token_is_sendable(token: str) -> bool:
    """Whether a token can stand in a header at all: visible ASCII, nothing else."""
    return bool(token) and all("!" <= c <= "~" for c in token)
