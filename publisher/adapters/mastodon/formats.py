"""What a Mastodon post may be: its formats, their limits, and what is wrong with one."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from publisher import limits
from publisher.adapters.mastodon.servers import MEDIA_LIMIT, TEXT_LIMIT, URL_LENGTH, Server
from publisher.engine.adapter import Capabilities, Problem, Promise, TextUnit
from publisher.engine.content import ContentError, Post
from publisher.words import N_

IMAGE_BYTES = 16_000_000
VIDEO_BYTES = 99_000_000
"""mastodon/documentation ``content/en/user/posting.md``."""
IMAGE_TYPES = ("image/jpeg", "image/png", "image/gif", "image/webp")
VIDEO_TYPES = ("video/mp4", "video/quicktime", "video/webm")
IMAGE_PIXELS = 33_177_600
VIDEO_PIXELS = 8_294_400
"""``image_matrix_limit`` and ``video_matrix_limit`` of a server's instance: mastodon#26709."""
ALT_LIMIT = 1_500
"""``app/models/media_attachment.rb``; GoToSocial's default is the same."""


class Format(StrEnum):
    """What a post is made of."""

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
    pixels: int = 0


_IMAGES = _MediaLimits(MEDIA_LIMIT, IMAGE_TYPES, IMAGE_BYTES, IMAGE_PIXELS)
_MEDIA: dict[Format, _MediaLimits] = {
    Format.TEXT: _MediaLimits(),
    Format.LINK: _MediaLimits(),
    Format.PHOTO: _IMAGES,
    Format.PHOTOS: _IMAGES,
    Format.VIDEO: _MediaLimits(1, VIDEO_TYPES, VIDEO_BYTES, VIDEO_PIXELS),
}


def format_of(post: Post) -> Format:
    """The format of a post; a mix that is refused counts as what comes first in it."""
    if post.media:
        if post.media[0].kind == "video":
            return Format.VIDEO
        return Format.PHOTO if len(post.media) == 1 else Format.PHOTOS
    return Format.LINK if post.link else Format.TEXT


def capabilities(content: str, server: Server | None) -> Capabilities:
    """What ``server`` can do for this content; None: it was not asked yet, so the least.

    Content that cannot be read counts as a text.
    """
    try:
        kind = format_of(Post.from_json(content))
    except ContentError:
        kind = Format.TEXT
    files = _MEDIA[kind]
    repeat_for = server.conduct.repeat_for if server else None
    keyed = Promise.SAFE_WHILE_THE_KEY_LIVES
    return Capabilities(
        format=kind,
        noun="post",
        promise=Promise.AT_MOST_ONCE_WITH_EVIDENCE if repeat_for is None else keyed,
        can_look=True,
        listing_is_exhaustive=server is not None and server.conduct.listing_is_exhaustive,
        text_limit=server.characters if server else TEXT_LIMIT,
        text_unit=TextUnit.GRAPHEMES,
        media_limit=min(files.count, server.media if server else MEDIA_LIMIT),
        media_types=files.types,
        media_bytes=files.bytes,
        can_delete=True,
        delete_repeats=True,
        repeat_for=repeat_for,
        # The key is written after the post, so a second request under way finds none.
        repeat_is_atomic=False,
        name=N_("This server") if server else "Mastodon",
        url_length=server.url if server else URL_LENGTH,
        mentions_lose_domain=True,
        tags_end_early=True,
        # There is no field for a link; a server makes a preview of one that stands in the text.
        link_in_text=True,
        media_kinds=("image", "video"),
        media_pixels=files.pixels or None,
        alt_limit=ALT_LIMIT,
    )


def problems(content: str, server: Server | None = None) -> tuple[Problem, ...]:
    """Everything ``server`` would refuse in this content; None: one with default limits. Pure."""
    return limits.of_content(content, lambda content: capabilities(content, server))


def status_text(post: Post) -> str:
    """The text that is sent: the post's own, with its link behind it where it is not in it."""
    return limits.sent(post, _ANY)


_ANY = capabilities("", None)
