"""What a Page post may be: its formats, their limits, and what is wrong with one that is not."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from publisher import limits
from publisher.engine.adapter import Capabilities, Problem, Promise
from publisher.engine.content import ContentError, Post

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
    files = _MEDIA[kind]
    return Capabilities(
        format=kind,
        noun="video" if kind is Format.VIDEO else "Page post",
        promise=Promise.AT_MOST_ONCE_WITH_EVIDENCE,
        can_look=True,
        # Listings are ranked, omit expired posts, and show about 600 a year.
        # https://developers.facebook.com/docs/graph-api/reference/page/feed
        listing_is_exhaustive=False,
        text_limit=TEXT_LIMIT,
        media_limit=files.count,
        media_types=files.types,
        media_bytes=files.bytes,
        can_delete=True,
        delete_repeats=True,
        name="Facebook",
        link_with_media=False,
        media_kinds=("image", "video"),
        fetches_media=True,
    )


def problems(content: str) -> tuple[Problem, ...]:
    """Everything Facebook would refuse in this content; pure."""
    return limits.of_content(content, capabilities)
