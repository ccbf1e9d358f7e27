"""What a Bluesky post may be: its formats, their limits, and what is wrong with one that is not."""

from __future__ import annotations

import math
from enum import StrEnum

from publisher import limits
from publisher.engine.adapter import Capabilities, Problem, Promise, TextUnit
from publisher.engine.content import ContentError, Post

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
        text_unit=TextUnit.GRAPHEMES,
        media_limit=IMAGE_LIMIT if has_media else 0,
        media_types=IMAGE_TYPES if has_media else (),
        media_bytes=IMAGE_BYTES if has_media else 0,
        can_delete=True,
        delete_repeats=True,
        repeat_for=math.inf,
        repeat_is_atomic=True,
        name="Bluesky",
        text_bytes=TEXT_BYTES,
        link_with_media=False,
        link_bytes=LINK_BYTES,
        media_kinds=("image",),
    )


def problems(content: str) -> tuple[Problem, ...]:
    """Everything Bluesky would refuse in this content; pure."""
    return limits.of_content(content, capabilities)
