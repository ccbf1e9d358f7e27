"""What is sent: frozen into the job as canonical JSON text, and hashed over those very bytes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Self, TypeVar

_T = TypeVar("_T")


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
            link = None if parts["link"] is None else _a(str, parts["link"])
            return cls(text=_a(str, parts["text"]), link=link, media=media)
        except (ValueError, KeyError, TypeError) as error:
            message = f"not the content of a post: {error}"
            raise ContentError(message) from error


@dataclass(frozen=True, slots=True)
class Letter:
    """A mail to one recipient. ``at``: the instant its Date shows, the same on every attempt.

    ``about``: what it tells of, for whoever adds to it before it is sent; not part of the mail.
    """

    to: str
    subject: str
    text: str
    at: datetime
    html: str | None = None
    about: Mapping[str, object] = field(default_factory=dict)

    def to_json(self) -> str:
        """Canonical JSON text. Raises ``ContentError``."""
        return canonical(
            {
                "about": dict(self.about),
                "at": self.at.isoformat(),
                "html": self.html,
                "subject": self.subject,
                "text": self.text,
                "to": self.to,
            }
        )

    @classmethod
    def from_json(cls, content: str) -> Self:
        """Read what ``to_json`` wrote. Raises ``ContentError`` on anything else."""
        try:
            parts = json.loads(content)
            return cls(
                to=_a(str, parts["to"]),
                subject=_a(str, parts["subject"]),
                text=_a(str, parts["text"]),
                at=_instant(parts["at"]),
                html=None if parts.get("html") is None else _a(str, parts["html"]),
                about=_a(dict, parts.get("about", {})),
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            message = "not the content of a mail: it needs to, subject, text and at, an instant"
            raise ContentError(message) from error


@dataclass(frozen=True, slots=True)
class Happening:
    """Something that a webhook tells of: its ``type`` as in the event catalogue, and its facts."""

    type: str
    at: datetime
    data: Mapping[str, object]

    def to_json(self) -> str:
        """Canonical JSON text. Raises ``ContentError``."""
        return canonical({"at": self.at.isoformat(), "data": dict(self.data), "type": self.type})

    @classmethod
    def from_json(cls, content: str) -> Self:
        """Read what ``to_json`` wrote. Raises ``ContentError`` on anything else."""
        try:
            parts = json.loads(content)
            return cls(_a(str, parts["type"]), _instant(parts["at"]), _a(dict, parts["data"]))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            message = "not the content of a webhook: it needs type, data and at, an instant"
            raise ContentError(message) from error


def _a(kind: type[_T], value: object) -> _T:
    """The value, if it is of that kind. Raises ``TypeError``."""
    if not isinstance(value, kind):
        message = f"not a {kind.__name__}"
        raise TypeError(message)
    return value


def _instant(value: str) -> datetime:
    at = datetime.fromisoformat(value)
    if at.tzinfo is None:
        message = "a time without a zone is no instant"
        raise ValueError(message)
    return at


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
