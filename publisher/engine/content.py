"""What is sent: frozen into the job as canonical JSON text, and hashed over those very bytes."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Literal, Self


class ContentError(ValueError):
    """Content that cannot be stored or sent as it is; the message says which part and why."""


@dataclass(frozen=True, slots=True)
class Media:
    """One picture or video: either bytes in our own store (``sha256``) or an address (``url``)."""

    kind: Literal["image", "video"]
    type: str
    alt: str = ""
    sha256: str | None = None
    size: int | None = None
    url: str | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Post:
    """The parts of a page post. Text is sent byte for byte as it stands here."""

    text: str
    link: str | None = None
    media: tuple[Media, ...] = ()

    def to_json(self) -> str:
        """Canonical JSON text: sorted keys, no spaces, no escapes beyond what JSON demands.

        Raises ``ContentError`` for text PostgreSQL or UTF-8 cannot hold.
        """
        parts = {
            "link": self.link,
            "media": [
                {name: getattr(item, name) for name in Media.__slots__} for item in self.media
            ],
            "text": self.text,
        }
        return canonical(parts)

    @classmethod
    def from_json(cls, content: str) -> Self:
        """Read what ``to_json`` wrote. Raises ``ContentError`` on anything else."""
        try:
            parts = json.loads(content)
            media = tuple(Media(**item) for item in parts["media"])
            return cls(text=parts["text"], link=parts["link"], media=media)
        except (ValueError, KeyError, TypeError) as error:
            message = f"not the content of a post: {error}"
            raise ContentError(message) from error


def canonical(value: object) -> str:
    """JSON text with one spelling per value, so that equal content has an equal hash."""
    text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    if _holds_nul(value):
        message = "holds the character NUL, which cannot be stored"
        raise ContentError(message)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        message = "holds half of a surrogate pair, which is no character"
        raise ContentError(message) from error
    return text


def _holds_nul(value: object) -> bool:
    """Whether any text in ``value`` holds NUL; the six characters that spell it in JSON do not."""
    match value:
        case str():
            return "\0" in value
        case dict():
            return any(_holds_nul(part) for pair in value.items() for part in pair)
        case list() | tuple():
            return any(_holds_nul(part) for part in value)
        case _:
            return False


def digest(content: str) -> bytes:
    """SHA-256 of the content's UTF-8 bytes."""
    return hashlib.sha256(content.encode()).digest()
