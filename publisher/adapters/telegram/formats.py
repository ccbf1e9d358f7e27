"""What a Telegram post may be: its formats, their limits, and what is wrong with one."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from urllib.parse import urlsplit

from publisher.engine.adapter import Capabilities, Problem, Promise
from publisher.engine.content import ContentError, Media, Post

TEXT_LIMIT = 4096
CAPTION_LIMIT = 1024
"""Both in UTF-16 units, as entity offsets are: python-telegram-bot@1183d40 ``constants.py``."""
ALBUM_LIMIT = 10
"""https://core.telegram.org/bots/api#sendmediagroup: two to ten; one photo is no album."""
PHOTO_BYTES = 10_000_000
"""https://core.telegram.org/bots/api#sending-files"""
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


def units(text: str) -> int:
    """Length in UTF-16 units: two for a character beyond the basic plane."""
    return len(text) + sum(character > "\uffff" for character in text)


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
        text_unit="UTF-16 units",
        media_limit=ALBUM_LIMIT if with_photos else 0,
        media_types=PHOTO_TYPES if with_photos else (),
        media_bytes=PHOTO_BYTES if with_photos else 0,
        can_delete=True,
    )


def problems(content: str) -> tuple[Problem, ...]:
    """Everything Telegram would refuse in this content; pure."""
    try:
        post = Post.from_json(content)
    except ContentError as error:
        return (Problem("content", "content-unreadable", f"This post cannot be read: {error}."),)
    return (*_text_problems(post), *_link_problems(post), *_media_problems(post))


def _text_problems(post: Post) -> Iterator[Problem]:
    if not post.text.strip() and not post.link and not post.media:
        yield Problem("text", "empty", "This post is empty. Write a text, or add a link or photo.")
    limit, what = (CAPTION_LIMIT, " under photos") if post.media else (TEXT_LIMIT, "")
    if (over := units(post.text) - limit) > 0:
        yield Problem(
            "text",
            "text-too-long",
            f"Telegram takes {limit:,} characters{what} as it counts them; this is "
            f"{units(post.text):,}. Shorten by {over:,}, or write its own text.",
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
            "Telegram shows either a link preview or photos, not both. Put the link into the "
            "text, or take the photos out.",
        )


def _media_problems(post: Post) -> Iterator[Problem]:
    if any(item.kind != "image" for item in post.media):
        yield Problem("media", "media-kind", "Telegram takes photos here, nothing else.")
        return
    if (over := len(post.media) - ALBUM_LIMIT) > 0:
        yield Problem(
            "media",
            "too-many-media",
            f"Telegram takes {ALBUM_LIMIT} photos in one post; this has {len(post.media)}. "
            f"Take {over} out.",
        )
    for number, item in enumerate(post.media, start=1):
        yield from _item_problems(item, number)


def _item_problems(item: Media, number: int) -> Iterator[Problem]:
    name, field = f"Photo {number}", f"media.{number}"
    if item.type not in PHOTO_TYPES:
        known = ", ".join(kind.partition("/")[2] for kind in PHOTO_TYPES)
        yield Problem(
            field,
            "media-type",
            f"{name} is {item.type or 'of no known type'}; Telegram takes {known}. Convert it.",
        )
    if item.size is not None and not 0 < item.size <= PHOTO_BYTES:
        size = f"{item.size / 1e6:,.1f} MB" if item.size else "empty"
        yield Problem(
            field,
            "media-size",
            f"{name} is {size}; Telegram takes up to {PHOTO_BYTES / 1e6:,.0f} MB. Replace it.",
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
