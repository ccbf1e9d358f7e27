"""What a Page post may be: its formats, their limits, and what is wrong with one that is not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import urlsplit

from publisher.engine.adapter import Capabilities, Problem, Promise
from publisher.engine.content import ContentError, Media, Post

TEXT_LIMIT = 63_206
"""Characters; only third parties say so (postiz ``maxLength()``)."""
PHOTO_LIMIT = 10
"""Unsure: Meta names no figure for ``attached_media``; its own album tools and other clients stop
at ten."""
PHOTO_BYTES = 10_000_000
"""https://developers.facebook.com/docs/graph-api/reference/page/photos; one client quotes subcode
1366046 with 4 MB instead."""
PHOTO_TYPES = ("image/jpeg", "image/png", "image/gif", "image/bmp", "image/tiff")
VIDEO_BYTES = 1_000_000_000
"""Of one call that is not resumable; the chunked one takes 2 GB.
https://developers.facebook.com/documentation/video-api/reference/error-codes"""
VIDEO_TYPES = ("video/mp4", "video/quicktime")


class Format(StrEnum):
    """What a post is made of, which decides the calls that make it."""

    TEXT = "text"
    LINK = "link"
    PHOTO = "photo"
    PHOTOS = "photos"
    VIDEO = "video"


@dataclass(frozen=True, slots=True)
class _MediaLimits:
    count: int = 0
    types: tuple[str, ...] = ()
    bytes: int = 0


_MEDIA: dict[Format, _MediaLimits] = {
    Format.TEXT: _MediaLimits(),
    Format.LINK: _MediaLimits(),
    Format.PHOTO: _MediaLimits(PHOTO_LIMIT, PHOTO_TYPES, PHOTO_BYTES),
    Format.PHOTOS: _MediaLimits(PHOTO_LIMIT, PHOTO_TYPES, PHOTO_BYTES),
    Format.VIDEO: _MediaLimits(1, VIDEO_TYPES, VIDEO_BYTES),
}


def format_of(post: Post) -> Format:
    """The format of a post; a mix that Facebook refuses counts as what comes first in it."""
    if post.media:
        if post.media[0].kind == "video":
            return Format.VIDEO
        return Format.PHOTO if len(post.media) == 1 else Format.PHOTOS
    return Format.LINK if post.link else Format.TEXT


def capabilities(content: str) -> Capabilities:
    """What Facebook can do for this content; for content that cannot be read, as for a text."""
    try:
        kind = format_of(Post.from_json(content))
    except ContentError:
        kind = Format.TEXT
    limits = _MEDIA[kind]
    return Capabilities(
        format=kind,
        noun="video" if kind is Format.VIDEO else "Page post",
        promise=Promise.AT_MOST_ONCE_WITH_EVIDENCE,
        can_look=True,
        # Listings are ranked, omit expired posts, and show about 600 a year.
        # https://developers.facebook.com/docs/graph-api/reference/page/feed
        listing_is_exhaustive=False,
        text_limit=TEXT_LIMIT,
        media_limit=limits.count,
        media_types=limits.types,
        media_bytes=limits.bytes,
        can_delete=True,
    )


def problems(content: str) -> tuple[Problem, ...]:
    """Everything Facebook would refuse in this content; pure."""
    try:
        post = Post.from_json(content)
    except ContentError as error:
        return (Problem("content", "content-unreadable", f"This post cannot be read: {error}."),)
    return (*_text_problems(post), *_link_problems(post), *_media_problems(post))


def _text_problems(post: Post) -> Iterator[Problem]:
    if not post.text.strip() and not post.link and not post.media:
        yield Problem(
            "text", "empty", "This post is empty. Write a text, or add a link, a photo or a video."
        )
    if (over := len(post.text) - TEXT_LIMIT) > 0:
        yield Problem(
            "text",
            "text-too-long",
            f"Facebook takes {TEXT_LIMIT:,} characters as it counts them; this is "
            f"{len(post.text):,}. Shorten by {over:,}, or write its own text.",
        )
    if "\0" in post.text:
        yield Problem(
            "text",
            "character-not-allowed",
            "The text holds the character NUL, which cannot be stored or sent. Take it out.",
        )
    elif any("\ud800" <= c <= "\udfff" for c in post.text):
        yield Problem(
            "text",
            "character-not-allowed",
            "The text holds half of a surrogate pair, which is no character. Take it out.",
        )


def _link_problems(post: Post) -> Iterator[Problem]:
    if post.link is None:
        return
    if not _is_address(post.link):
        yield Problem(
            "link",
            "link-not-an-address",
            "The link is not a web address. It starts with https:// and names a site.",
        )
    if post.media:
        yield Problem(
            "link",
            "link-with-media",
            "Facebook shows either a link preview or photos and videos, not both. Put the link "
            "into the text, or take the media out.",
        )


def _media_problems(post: Post) -> Iterator[Problem]:
    kinds = {item.kind for item in post.media}
    if not kinds <= {"image", "video"}:
        yield Problem("media", "media-kind", "Facebook takes photos and videos here, nothing else.")
        return
    if len(kinds) > 1:
        yield Problem(
            "media",
            "media-mixed",
            "Facebook takes photos or a video in one post, not both. Make two posts of it.",
        )
        return
    limits = _MEDIA[format_of(post)]
    if (over := len(post.media) - limits.count) > 0:
        noun = "video" if kinds == {"video"} else "photos"
        yield Problem(
            "media",
            "too-many-media",
            f"Facebook takes {limits.count} {noun} in one post; this has {len(post.media)}. "
            f"Take {over} out.",
        )
    for number, item in enumerate(post.media, start=1):
        yield from _item_problems(item, number, limits)


def _item_problems(item: Media, number: int, limits: _MediaLimits) -> Iterator[Problem]:
    name = f"{'Video' if item.kind == 'video' else 'Photo'} {number}"
    field = f"media.{number}"
    if item.type not in limits.types:
        known = ", ".join(kind.partition("/")[2] for kind in limits.types)
        yield Problem(
            field,
            "media-type",
            f"{name} is {item.type or 'of no known type'}; Facebook takes {known}. Convert it.",
        )
    if item.size is not None and not 0 < item.size <= limits.bytes:
        size = f"{item.size / 1e6:,.1f} MB" if item.size else "empty"
        yield Problem(
            field,
            "media-size",
            f"{name} is {size}; Facebook takes up to {limits.bytes / 1e6:,.0f} MB. Replace it.",
        )
    if item.sha256 is not None and item.size is None:
        yield Problem(field, "media-size", f"{name} has no known size. Add it again.")
    if item.sha256 is None and not (item.url and _is_address(item.url)):
        yield Problem(
            field, "media-missing", f"{name} has neither a file nor a web address. Add it again."
        )


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    clean = not any(c.isspace() or c < " " for c in url)
    return clean and parts.scheme in ("http", "https") and bool(parts.hostname)
