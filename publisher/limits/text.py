"""What is wrong with a text: empty, too long, or with characters that nobody can be shown."""

from __future__ import annotations

import unicodedata
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import regex

from publisher.engine.adapter import Capabilities, Problem, Severity, TextUnit
from publisher.engine.content import Post
from publisher.limits import counting
from publisher.words import _

LARGEST: Final = 300_000
"""Bytes of any text, before it is counted at all; no platform takes so many."""

_ALLOWED: Final = "\t\n\r"
_UNSHOWN = regex.compile(r"[\p{Cc}\p{Cs}]")
# A hashtag of which the server takes less than was written: it ends at the first mark that stands
# alone, as all do in NFD, or at a ZWNJ. Seen on three servers of Mastodon's kind.
_TAG = regex.compile(r"(?<![\w/&])#(\w[\w\p{M}\u200c]*)")
_ENDS_A_TAG = regex.compile(r"[\u200c\p{M}]")


def sent(post: Post, can: Capabilities) -> str:
    """The text that is sent: with the link behind it where a link has no field of its own."""
    if not can.link_in_text or post.link is None or post.link in post.text:
        return post.text
    return f"{post.text}\n\n{post.link}" if post.text.strip() else post.link


@dataclass(frozen=True, slots=True)
class Extent:
    """``used`` of ``limit`` in the platform's unit: what a counter beside the text shows.

    ``excess_at``: the place in the post's text, in code points, from which on it is too much; None
    where nothing is. It never parts what a reader takes for one character.
    """

    used: int
    limit: int
    excess_at: int | None


def extent(post: Post, can: Capabilities) -> Extent:
    """How much of what the platform takes a text uses, its link included where it counts.

    Of a text that is past counting, code points are counted.
    """
    if is_too_large(post.text):
        return Extent(len(post.text), can.text_limit, min(can.text_limit, len(post.text)))
    used = counting.length(sent(post, can), can)
    if _fits(post, can):
        return Extent(used, can.text_limit, None)
    ends = [0, *counting.boundaries(post.text)]
    # A longer beginning is never shorter, but for the few letters that make a URL or a mention.
    fitting = bisect_left(ends, True, key=lambda end: not _fits(_cut(post, end), can)) - 1
    return Extent(used, can.text_limit, ends[max(fitting, 0)])


def _cut(post: Post, end: int) -> Post:
    return replace(post, text=post.text[:end])


def _fits(post: Post, can: Capabilities) -> bool:
    return not any(too_long("text", sent(post, can), can))


def anywhere(post: Post) -> Iterator[Problem]:
    """What no platform takes, media and link apart."""
    if not post.text.strip() and not post.link and not post.media:
        fix = _("Write a text, or add a link, a photo or a video.")
        yield Problem("text", "empty", _("This post is empty."), fix)
    if is_too_large(post.text):
        yield _too_large(post.text)
        return
    yield from characters("text", post.text, _("The text"))


def is_too_large(text: str) -> bool:
    """Whether a text is past counting."""
    # A character has four bytes at most, so that most texts need no encoding.
    return 4 * len(text) > LARGEST and counting.utf_8_bytes(text) > LARGEST


def characters(field: str, text: str, name: str) -> Iterator[Problem]:
    """NUL, halves of surrogate pairs, and control characters but for tabs and line breaks.

    Every kind is told once, with its first place. Joiners, marks of direction and ZWNJ are none
    of these: Persian and emoji are not written without them.
    """
    told: set[str] = set()
    for match in _UNSHOWN.finditer(text):
        character = match[0]
        kind = _kind(character)
        if character in _ALLOWED or kind in told:
            continue
        told.add(kind)
        yield Problem(
            field,
            "character-not-allowed",
            kind.format(name=name, code=ord(character), place=f"{match.start() + 1:,}"),
            _("Take it out."),
        )


def problems(post: Post, can: Capabilities) -> Iterator[Problem]:
    """What the platform would refuse in the text, given that ``anywhere`` found nothing."""
    text = sent(post, can)
    yield from too_long("text", text, can)
    if can.tags_end_early:
        yield from _short_tags(post.text, who(can))


def too_long(field: str, text: str, can: Capabilities) -> Iterator[Problem]:
    """Whether it is over the limit, counted as the platform does."""
    count = counting.length(text, can)
    size = counting.utf_8_bytes(text) if can.text_bytes is not None else 0
    if (over := count - can.text_limit) > 0:
        yield Problem(
            field,
            "text-too-long",
            _wanted(can).format(name=who(can), limit=f"{can.text_limit:,}", count=f"{count:,}"),
            _("Shorten by {over}, or write its own text.").format(over=f"{over:,}"),
        )
    elif can.text_bytes is not None and (over := size - can.text_bytes) > 0:
        what = _(
            "{name} takes {limit} bytes of text; this is {count}, since its characters are made of "
            "many parts."
        )
        yield Problem(
            field,
            "text-too-long",
            what.format(name=who(can), limit=f"{can.text_bytes:,}", count=f"{size:,}"),
            _("Shorten by {over} bytes, or write its own text.").format(over=f"{over:,}"),
        )


def who(can: Capabilities) -> str:
    """The platform as a sentence begins with it."""
    return _(can.name) if can.name else _("This channel")


def _wanted(can: Capabilities) -> str:
    if can.text_unit is TextUnit.BYTES:
        return _("{name} takes {limit} bytes of text; this is {count}.")
    if can.text_is_caption:
        return _("{name} takes {limit} characters under photos as it counts them; this is {count}.")
    return _("{name} takes {limit} characters as it counts them; this is {count}.")


def _kind(character: str) -> str:
    if character == "\0":
        return _(
            "{name} holds the character NUL at position {place}, which cannot be stored or sent."
        )
    if unicodedata.category(character) == "Cs":
        return _(
            "{name} holds half of a surrogate pair at position {place}, which is no character."
        )
    return _("{name} holds the control character U+{code:04X} at position {place}.")


def _too_large(text: str) -> Problem:
    what = _("The text has {size} bytes; no channel takes more than {limit}.")
    size = counting.utf_8_bytes(text)
    return Problem(
        "text",
        "text-too-large",
        what.format(size=f"{size:,}", limit=f"{LARGEST:,}"),
        _("Shorten it."),
    )


def _short_tags(text: str, name: str) -> Iterator[Problem]:
    """Say which hashtags would be shorter than they look; each once."""
    tags = (match[1] for match in _TAG.finditer(text))
    for tag in dict.fromkeys(tags):
        end = _ENDS_A_TAG.search(tag)
        if end is None:
            continue
        kept = tag[: end.start()]
        what = _("{name} ends the hashtag #{tag} after #{kept}.").format(
            name=name, tag=tag, kept=kept
        )
        fix = _("Write it without a ZWNJ, and with its accents in one piece (NFC).")
        yield Problem("text", "tag-cut", what, fix, Severity.NOTE)
