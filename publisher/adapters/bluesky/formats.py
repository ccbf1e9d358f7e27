"""What a Bluesky post may be: its formats, their limits, and what is wrong with one that is not."""

from __future__ import annotations

import math
from collections.abc import Iterator
from enum import StrEnum
from urllib.parse import urlsplit

import regex

from publisher.engine.adapter import Capabilities, Problem, Promise
from publisher.engine.content import ContentError, Media, Post

TEXT_GRAPHEMES = 300
TEXT_BYTES = 3_000
"""lexicons/app/bsky/feed/post.json; so are the graphemes."""
IMAGE_LIMIT = 4
IMAGE_BYTES = 2_000_000
"""lexicons/app/bsky/embed/images.json; so is the count."""
IMAGE_TYPES = ("image/jpeg", "image/png", "image/webp", "image/gif")
"""The lexicon takes any picture; these are what every client shows. A GIF stands still."""
LINK_BYTES = 2_048
"""Our own bound; the lexicon has none but a record's."""


class Format(StrEnum):
    """What a post is made of."""

    TEXT = "text"
    LINK = "link"
    PHOTO = "photo"
    PHOTOS = "photos"


def format_of(post: Post) -> Format:
    """The format of a post; a mix that Bluesky refuses counts as what comes first in it."""
    if post.media:
        return Format.PHOTO if len(post.media) == 1 else Format.PHOTOS
    return Format.LINK if post.link else Format.TEXT


def graphemes(text: str) -> int:
    """How many characters a reader sees, as Bluesky counts: 👨‍👩‍👧 is one (UAX #29)."""
    return len(regex.findall(r"\X", text))


def capabilities(content: str) -> Capabilities:
    """What Bluesky can do for this content; for content that cannot be read, as for a text."""
    try:
        kind = format_of(Post.from_json(content))
    except ContentError:
        kind = Format.TEXT
    has_media = kind in (Format.PHOTO, Format.PHOTOS)
    return Capabilities(
        format=kind,
        noun="Bluesky post",
        promise=Promise.EXACTLY_ONCE,
        can_look=True,
        # A look asks for the one record under our key, and is answered from the same transactional
        # store that keeps it (pds/src/api/com/atproto/repo/getRecord.ts).
        listing_is_exhaustive=True,
        text_limit=TEXT_GRAPHEMES,
        media_limit=IMAGE_LIMIT if has_media else 0,
        media_types=IMAGE_TYPES if has_media else (),
        media_bytes=IMAGE_BYTES if has_media else 0,
        can_delete=True,
        repeat_for=math.inf,
        repeat_is_atomic=True,
    )


def problems(content: str) -> tuple[Problem, ...]:
    """Everything Bluesky would refuse in this content; pure."""
    try:
        post = Post.from_json(content)
    except ContentError as error:
        return (Problem("content", "content-unreadable", f"This post cannot be read: {error}."),)
    if any("\ud800" <= c <= "\udfff" for c in post.text):
        message = "The text holds half of a surrogate pair, which is no character. Take it out."
        return (Problem("text", "character-not-allowed", message),)
    return (*_text_problems(post), *_link_problems(post), *_media_problems(post))


def _text_problems(post: Post) -> Iterator[Problem]:
    if not post.text.strip() and not post.link and not post.media:
        yield Problem(
            "text", "empty", "This post is empty. Write a text, or add a link or a photo."
        )
    count, size = graphemes(post.text), len(post.text.encode())
    if (over := count - TEXT_GRAPHEMES) > 0:
        yield Problem(
            "text",
            "text-too-long",
            f"Bluesky takes {TEXT_GRAPHEMES} characters as it counts them; this is {count:,}. "
            f"Shorten by {over:,}, or write its own text.",
        )
    elif (over := size - TEXT_BYTES) > 0:
        yield Problem(
            "text",
            "text-too-long",
            f"Bluesky takes {TEXT_BYTES:,} bytes of text; this is {size:,}, since its characters "
            f"are made of many parts. Shorten by {over:,} bytes, or write its own text.",
        )
    if "\0" in post.text:
        yield Problem(
            "text",
            "character-not-allowed",
            "The text holds the character NUL, which cannot be stored or sent. Take it out.",
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
            "Bluesky shows either a link card or photos, not both. Put the link into the text, or "
            "take the photos out.",
        )


def _media_problems(post: Post) -> Iterator[Problem]:
    if any(item.kind != "image" for item in post.media):
        yield Problem("media", "media-kind", "Bluesky takes photos here, nothing else.")
        return
    if (over := len(post.media) - IMAGE_LIMIT) > 0:
        yield Problem(
            "media",
            "too-many-media",
            f"Bluesky takes {IMAGE_LIMIT} photos in one post; this has {len(post.media)}. "
            f"Take {over} out.",
        )
    for number, item in enumerate(post.media, start=1):
        yield from _item_problems(item, number)


def _item_problems(item: Media, number: int) -> Iterator[Problem]:
    name, field = f"Photo {number}", f"media.{number}"
    if item.type not in IMAGE_TYPES:
        known = ", ".join(kind.partition("/")[2] for kind in IMAGE_TYPES)
        yield Problem(
            field,
            "media-type",
            f"{name} is {item.type or 'of no known type'}; Bluesky takes {known}. Convert it.",
        )
    if item.sha256 is None:
        yield Problem(
            field,
            "media-missing",
            f"{name} has no file: Bluesky takes bytes, not an address. Add the file.",
        )
    elif item.size is None:
        yield Problem(field, "media-size", f"{name} has no known size. Add it again.")
    elif not 0 < item.size <= IMAGE_BYTES:
        size = f"{item.size / 1e6:,.1f} MB" if item.size else "empty"
        yield Problem(
            field,
            "media-size",
            f"{name} is {size}; Bluesky takes up to {IMAGE_BYTES / 1e6:,.0f} MB. Replace it.",
        )


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    clean = not any(
        c.isspace() or c < " " or c == "\ufeff" or "\ud800" <= c <= "\udfff" for c in url
    )
    short = clean and len(url.encode()) <= LINK_BYTES
    return short and parts.scheme in ("http", "https") and bool(parts.hostname)
