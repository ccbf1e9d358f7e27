"""Reads a Graph error body into a noun.

https://developers.facebook.com/docs/graph-api/guides/error-handling
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from publisher.transport import Reply

_DETAIL_LIMIT = 300


@dataclass(frozen=True, slots=True)
class Complaint:
    """What Graph says is wrong. ``user_message`` is in the language of the token's person."""

    status: int
    code: int
    subcode: int | None
    message: str
    user_message: str
    is_transient: bool

    @classmethod
    def read(cls, reply: Reply) -> Self | None:
        """The error in a reply, or None when its body is not one that Graph writes."""
        body = reply.json()
        error = body.get("error") if isinstance(body, dict) else None
        if not isinstance(error, dict):
            return None
        code = _whole(error.get("code"))
        if code is None:
            return None
        subcode = error.get("error_subcode")
        if subcode is not None and _whole(subcode) is None:
            return None
        title, words = _text(error.get("error_user_title")), _text(error.get("error_user_msg"))
        return cls(
            status=reply.status,
            code=code,
            subcode=_whole(subcode),
            message=_text(error.get("message")),
            user_message=f"{title} {words}".strip(),
            is_transient=error.get("is_transient") not in (None, False),
        )

    def says(self, parts: tuple[str, ...]) -> bool:
        """Whether any of ``parts`` (lower case) stands in what Graph wrote."""
        words = f"{self.message} {self.user_message}".casefold()
        return any(part in words for part in parts)

    @property
    def detail(self) -> str:
        """One line for a person: Graph's words and its numbers."""
        words = " ".join((self.user_message or self.message).split())
        if len(words) > _DETAIL_LIMIT:
            words = words[: _DETAIL_LIMIT - 1] + "…"
        numbers = f"code {self.code}"
        if self.subcode is not None:
            numbers += f", subcode {self.subcode}"
        return f"{words or 'Graph gave no words'} ({numbers})"


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
