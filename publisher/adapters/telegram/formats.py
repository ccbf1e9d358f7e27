"""What a Telegram post may be: its formats, their limits, and what is wrong with one."""

from __future__ import annotations

from enum import StrEnum

from publisher import limits
from publisher.engine.adapter import Capabilities, Problem, Promise, TextUnit
from publisher.engine.content import ContentError, Post

TEXT_LIMIT = 4096
CAPTION_LIMIT = 1024
"""Both in UTF-16 units, as entity offsets are: python-telegram-bot@1183d40 ``constants.py``."""
ALBUM_LIMIT = 10
"""https://core.telegram.org/bots/api#sendmediagroup: two to ten; one photo is no album."""
PHOTO_BYTES = 10_000_000
"""https://core.telegram.org/bots/api#sending-files"""
PHOTO_SIDES = 10_000
PHOTO_RATIO = 20
"""https://core.telegram.org/bots/api#sendphoto: width and height together, and one by the other."""
PHOTO_TYPES = ("image/jpeg", "image/png", "image/webp")


class Format(StrEnum):
    """What a post is made of, which decides the call that makes it."""

    TEXT = "text"
    LINK = "link"
    PHOTO = "photo"
    ALBUM = "album"


_WITH_PHOTOS = frozenset({Format.PHOTO, Format.ALBUM})


def format_of(post: Post) -> Format:
    """The format of a post."""
    if post.media:
        return Format.PHOTO if len(post.media) == 1 else Format.ALBUM
    return Format.LINK if post.link else Format.TEXT


def capabilities(content: str) -> Capabilities:
    """What Telegram can do for this content; for content that cannot be read, as for a text."""
    try:
        kind = format_of(Post.from_json(content))
    except ContentError:
        kind = Format.TEXT
    with_photos = kind in _WITH_PHOTOS
    return Capabilities(
        format=kind,
        noun="channel post",
        promise=Promise.AT_MOST_ONCE_WITHOUT_EVIDENCE,
        # No call lists a channel's messages, and a bot gets no update about its own.
        can_look=False,
        listing_is_exhaustive=False,
        text_limit=CAPTION_LIMIT if with_photos else TEXT_LIMIT,
        text_unit=TextUnit.UTF_16,
        media_limit=ALBUM_LIMIT if with_photos else 0,
        media_types=PHOTO_TYPES if with_photos else (),
        media_bytes=PHOTO_BYTES if with_photos else 0,
        can_delete=True,
        delete_repeats=True,
        name="Telegram",
        text_is_caption=with_photos,
        link_with_media=False,
        media_kinds=("image",),
        fetches_media=True,
        media_sides=PHOTO_SIDES,
        media_ratio=PHOTO_RATIO,
        # No method of the Bot API takes one.
        alt_limit=0,
    )


def problems(content: str) -> tuple[Problem, ...]:
    """Everything Telegram would refuse in this content; pure."""
    return limits.of_content(content, capabilities)
