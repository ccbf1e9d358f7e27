"""What an editor writes: one text for all channels, and a form of its own for some.

A variant says only what differs; what it leaves out is the text, link, media or first comment for
all. ``Document.post_for`` is the whole of what a channel is sent.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, Self

from publisher.engine.content import ContentError, Media, Post, canonical, digest
from publisher.engine.errors import PublisherError

TEXT_LONGEST: Final = 200_000
"""Characters; no platform takes a tenth of it."""
LARGEST: Final = 2_000_000
"""Bytes of a whole document."""
MEDIA_MOST: Final = 100
_FIELDS: Final = frozenset(Media.__slots__)


class Part(StrEnum):
    """What may differ from channel to channel."""

    TEXT = "text"
    LINK = "link"
    MEDIA = "media"
    FIRST_COMMENT = "first_comment"


class DocumentRefused(PublisherError):
    """Something that cannot be kept as a post; ``field`` names the part."""

    code = "content-refused"

    def __init__(self, message: str, *, field: str, code: str = "content-refused") -> None:
        super().__init__(message)
        self.field = field
        self.code = code


@dataclass(frozen=True, slots=True)
class Variant:
    """The form of a post on one channel: the parts that are ``own``, and what they are there."""

    own: frozenset[Part]
    text: str = ""
    link: str | None = None
    media: tuple[Media, ...] = ()
    first_comment: str | None = None

    @classmethod
    def of(cls, **parts: Any) -> Self:  # noqa: ANN401 - the fields
        """A variant whose own parts are those that are given."""
        return cls(frozenset(Part(name) for name in parts), **parts)

    def as_json(self) -> dict[str, object]:
        """Its own parts."""
        return {str(part): _plain(getattr(self, part)) for part in sorted(self.own)}


@dataclass(frozen=True, slots=True)
class Document:
    """A post as it is written. ``variants``: by channel id."""

    post: Post
    first_comment: str | None = None
    variants: Mapping[int, Variant] = field(default_factory=dict)

    def post_for(self, channel_id: int) -> Post:
        """What that channel is sent."""
        variant = self.variants.get(channel_id)
        if variant is None:
            return self.post
        return Post(
            variant.text if Part.TEXT in variant.own else self.post.text,
            variant.link if Part.LINK in variant.own else self.post.link,
            variant.media if Part.MEDIA in variant.own else self.post.media,
        )

    def first_comment_for(self, channel_id: int) -> str | None:
        """What is said first below it there, or None."""
        variant = self.variants.get(channel_id)
        if variant is None or Part.FIRST_COMMENT not in variant.own:
            return self.first_comment
        return variant.first_comment

    def to_json(self) -> str:
        """Canonical JSON text. Raises ``DocumentRefused`` with the part that cannot be kept."""
        self._check()
        parts = {
            "text": self.post.text,
            "link": self.post.link,
            "media": _plain(self.post.media),
            "first_comment": self.first_comment,
            "variants": {str(at): self.variants[at].as_json() for at in sorted(self.variants)},
        }
        text = canonical(parts)
        if len(text.encode()) > LARGEST:
            message = f"This post is larger than {LARGEST:,} bytes. Nothing was stored. Shorten it."
            raise DocumentRefused(message, field="text", code="content-too-large")
        return text

    @classmethod
    def from_json(cls, document: str) -> Self:
        """Read what ``to_json`` wrote. Raises ``ContentError`` on anything else."""
        try:
            parts = json.loads(document)
            return cls(
                Post(parts["text"], parts["link"], _media(parts["media"])),
                parts["first_comment"],
                {int(at): _variant(own) for at, own in parts["variants"].items()},
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            message = f"not a post as it is written: {error}"
            raise ContentError(message) from error

    def sha256(self) -> bytes | None:
        """The hash of everything it sends anywhere; None where that of its content says it all.

        The database computes the same (``version_sha256``) and refuses a version that differs.
        """
        if not self.variants and self.first_comment is None:
            return None
        whole = [digest(self.post.to_json()), _comment_sha256(self.first_comment)]
        for channel_id in sorted(self.variants):
            whole += [
                channel_id.to_bytes(4, "big"),
                digest(self.post_for(channel_id).to_json()),
                _comment_sha256(self.first_comment_for(channel_id)),
            ]
        return hashlib.sha256(b"".join(whole)).digest()

    def _check(self) -> None:
        _check_part("", Variant.of(**_parts(self)))
        for channel_id, variant in self.variants.items():
            if not variant.own:
                message = f"The variant for channel {channel_id} says nothing of its own."
                raise DocumentRefused(message, field=f"variants.{channel_id}")
            _check_part(f"variants.{channel_id}.", variant)


def _parts(document: Document) -> dict[str, object]:
    post = document.post
    return {
        "text": post.text,
        "link": post.link,
        "media": post.media,
        "first_comment": document.first_comment,
    }


def _check_part(where: str, parts: Variant) -> None:
    for name in ("text", "link", "first_comment"):
        value = getattr(parts, name)
        if value is None:
            continue
        at = f"{where}{name}"
        if len(value) > TEXT_LONGEST:
            message = (
                f"The {name.replace('_', ' ')} has {len(value):,} characters; {TEXT_LONGEST:,} is "
                "the most that is kept. Nothing was stored. Shorten it."
            )
            raise DocumentRefused(message, field=at, code="content-too-large")
        try:
            canonical(value)
        except ContentError as error:
            message = f"The {name.replace('_', ' ')} {error}. Nothing was stored. Take it out."
            raise DocumentRefused(message, field=at) from error
    if parts.first_comment == "":
        message = "The first comment is empty. Leave it out."
        raise DocumentRefused(message, field=f"{where}first_comment")
    if len(parts.media) > MEDIA_MOST:
        message = f"A post has at most {MEDIA_MOST} pictures and videos. Nothing was stored."
        raise DocumentRefused(message, field=f"{where}media", code="content-too-large")
    try:
        canonical(_plain(parts.media))
    except ContentError as error:
        message = f"What is said of a picture {error}. Nothing was stored."
        raise DocumentRefused(message, field=f"{where}media") from error


def _comment_sha256(comment: str | None) -> bytes:
    return hashlib.sha256((comment or "").encode()).digest()


def _plain(value: object) -> object:
    if isinstance(value, tuple):
        return [{name: getattr(item, name) for name in sorted(_FIELDS)} for item in value]
    return value


def _media(items: list[dict[str, Any]]) -> tuple[Media, ...]:
    return tuple(Media(**item) for item in items)


def _variant(own: dict[str, Any]) -> Variant:
    given = {**own, "media": _media(own["media"])} if "media" in own else own
    return Variant.of(**given)
