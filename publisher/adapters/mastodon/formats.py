"""What a Mastodon post may be: its formats, their limits, and what is wrong with one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import urlsplit

from publisher.adapters.mastodon.length import length
from publisher.adapters.mastodon.servers import MEDIA_LIMIT, TEXT_LIMIT, URL_LENGTH, Server
from publisher.engine.adapter import Capabilities, Problem, Promise
from publisher.engine.content import ContentError, Media, Post

IMAGE_BYTES = 16_000_000
VIDEO_BYTES = 99_000_000
"""mastodon/documentation ``content/en/user/posting.md``."""
IMAGE_TYPES = ("image/jpeg", "image/png", "image/gif", "image/webp")
VIDEO_TYPES = ("video/mp4", "video/quicktime", "video/webm")


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


_IMAGES = _MediaLimits(MEDIA_LIMIT, IMAGE_TYPES, IMAGE_BYTES)
_MEDIA: dict[Format, _MediaLimits] = {
    Format.TEXT: _MediaLimits(),
    Format.LINK: _MediaLimits(),
    Format.PHOTO: _IMAGES,
    Format.PHOTOS: _IMAGES,
    Format.VIDEO: _MediaLimits(1, VIDEO_TYPES, VIDEO_BYTES),
}


def format_of(post: Post) -> Format:
    """The format of a post; a mix that is refused counts as what comes first in it."""
    if post.media:
        if post.media[0].kind == "video":
            return Format.VIDEO
        return Format.PHOTO if len(post.media) == 1 else Format.PHOTOS
    return Format.LINK if post.link else Format.TEXT


def status_text(post: Post) -> str:
    """The text that is sent: the post's own, with its link behind it where it is not in it.

    There is no field for a link; a server makes a preview of one that stands in the text.
    """
    if post.link is None or post.link in post.text:
        return post.text
    return f"{post.text}\n\n{post.link}" if post.text.strip() else post.link


def capabilities(content: str, server: Server | None) -> Capabilities:
    """What ``server`` can do for this content; None: it was not asked yet, so the least.

    Content that cannot be read counts as a text.
    """
    try:
        kind = format_of(Post.from_json(content))
    except ContentError:
        kind = Format.TEXT
    limits = _MEDIA[kind]
    repeat_for = server.conduct.repeat_for if server else None
    keyed = Promise.SAFE_WHILE_THE_KEY_LIVES
    return Capabilities(
        format=kind,
        noun="post",
        promise=Promise.AT_MOST_ONCE_WITH_EVIDENCE if repeat_for is None else keyed,
        can_look=True,
        listing_is_exhaustive=server is not None and server.conduct.listing_is_exhaustive,
        text_limit=server.characters if server else TEXT_LIMIT,
        media_limit=min(limits.count, server.media if server else MEDIA_LIMIT),
        media_types=limits.types,
        media_bytes=limits.bytes,
        can_delete=True,
        repeat_for=repeat_for,
        # The key is written after the post, so a second request under way finds none.
        repeat_is_atomic=False,
    )


def problems(content: str) -> tuple[Problem, ...]:
    """Everything a Mastodon server with its default limits would refuse in this content; pure."""
    try:
        post = Post.from_json(content)
    except ContentError as error:
        return (Problem("content", "content-unreadable", f"This post cannot be read: {error}."),)
    return (*_text_problems(post), *_link_problems(post), *_media_problems(post))


def beyond(server: Server, post: Post) -> str | None:
    """What this very server would refuse, in words; None when nothing."""
    characters = length(status_text(post), server.url)
    if characters > server.characters:
        return _too_long("This server", server.characters, characters)
    if len(post.media) > server.media:
        return f"This server takes {server.media} files in one post; this has {len(post.media)}."
    return None


def _too_long(who: str, limit: int, characters: int) -> str:
    return (
        f"{who} takes {limit:,} characters as it counts them; this is {characters:,}. "
        f"Shorten by {characters - limit:,}, or write its own text."
    )


def _text_problems(post: Post) -> Iterator[Problem]:
    if not post.text.strip() and not post.link and not post.media:
        yield Problem(
            "text", "empty", "This post is empty. Write a text, or add a link, a photo or a video."
        )
    characters = length(status_text(post), URL_LENGTH)
    if characters > TEXT_LIMIT:
        message = _too_long("Mastodon", TEXT_LIMIT, characters)
        yield Problem("text", "text-too-long", message)
    # NUL is answered with a 500 by every server that was tried.
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
    if post.link is not None and not _is_address(post.link):
        yield Problem(
            "link",
            "link-not-an-address",
            "The link is not a web address. It starts with https:// and names a site.",
        )


def _media_problems(post: Post) -> Iterator[Problem]:
    kinds = {item.kind for item in post.media}
    if not kinds <= {"image", "video"}:
        yield Problem("media", "media-kind", "Mastodon takes photos and videos here, nothing else.")
        return
    if len(kinds) > 1:
        yield Problem(
            "media",
            "media-mixed",
            "Mastodon takes photos or a video in one post, not both. Make two posts of it.",
        )
        return
    limits = _MEDIA[format_of(post)]
    if (over := len(post.media) - limits.count) > 0:
        noun = "video" if kinds == {"video"} else "photos"
        yield Problem(
            "media",
            "too-many-media",
            f"Mastodon takes {limits.count} {noun} in one post; this has {len(post.media)}. "
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
            f"{name} is {item.type or 'of no known type'}; Mastodon takes {known}. Convert it.",
        )
    if item.size is not None and not 0 < item.size <= limits.bytes:
        size = f"{item.size / 1e6:,.1f} MB" if item.size else "empty"
        yield Problem(
            field,
            "media-size",
            f"{name} is {size}; Mastodon takes up to {limits.bytes / 1e6:,.0f} MB. Replace it.",
        )
    if item.sha256 is not None and item.size is None:
        yield Problem(field, "media-size", f"{name} has no known size. Add it again.")
    if item.sha256 is None:
        yield Problem(
            field,
            "media-missing",
            f"{name} is a web address, and Mastodon fetches none. Add the file itself.",
        )


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    clean = not any(c.isspace() or c < " " for c in url)
    return clean and parts.scheme in ("http", "https") and bool(parts.hostname)
