"""Builds Graph requests: address, version, and a token that is in a header, never in the URL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import quote

from publisher.transport import FilePart, Request

VERSION = "v26.0"
"""Of 29 July 2026. https://developers.facebook.com/docs/graph-api/changelog"""
DEFAULT_URL = "https://graph.facebook.com"
"""Videos go here too: graph-video.facebook.com is deprecated.
https://developers.facebook.com/docs/video-api/overview"""
HIDDEN = "…"


@dataclass(frozen=True, slots=True)
class Node:
    """One object of the graph, such as a page, and the token that opens it.

    ``trusted``: the address is the operator's own setting and not one that a page was told, so
    that transport need not check where it leads.
    """

    id: str
    token: str = field(repr=False)
    base_url: str = DEFAULT_URL
    trusted: bool = True

    def get(self, edge: str = "", params: Mapping[str, str] | None = None) -> Request:
        """Read the node, or one of its edges."""
        return Request(
            method="GET",
            url=self._url(edge),
            params=dict(params or {}),
            headers=self._headers(),
            secrets=(self.token,),
            trusted=self.trusted,
        )

    def post(
        self,
        edge: str,
        form: Sequence[tuple[str, str]],
        files: Sequence[FilePart] = (),
    ) -> Request:
        """Create something on an edge. Values go out byte for byte, in UTF-8."""
        return Request(
            method="POST",
            url=self._url(edge),
            headers=self._headers(),
            form=tuple(form),
            files=tuple(files),
            secrets=(self.token,),
            trusted=self.trusted,
        )

    def delete(self) -> Request:
        """Delete the node itself."""
        return Request(
            method="DELETE",
            url=self._url(""),
            headers=self._headers(),
            secrets=(self.token,),
            trusted=self.trusted,
        )

    def hide(self, text: str) -> str:
        """Take the token out of something the platform wrote: Graph quotes malformed ones."""
        return text.replace(self.token, HIDDEN) if self.token else text

    def _url(self, edge: str) -> str:
        path = quote(self.id, safe="") + (f"/{edge}" if edge else "")
        return f"{self.base_url.rstrip('/')}/{VERSION}/{path}"

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}


def token_is_sendable(token: str) -> bool:
    """Whether a token can stand in a header at all: visible ASCII, nothing else."""
    return bool(token) and all("!" <= c <= "~" for c in token)
