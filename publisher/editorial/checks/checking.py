"""Everything to fix or to know about what one channel would be sent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from typing import Final

from publisher import limits
from publisher.editorial.checks import channel
from publisher.engine.adapter import Adapter, Capabilities, Problem, Severity
from publisher.engine.content import Post
from publisher.limits import Measures
from publisher.limits.text import characters, is_too_large
from publisher.words import _


@dataclass(frozen=True, slots=True)
class Variant:
    """What one channel would be sent.

    ``post``: as it would be frozen into the job. ``first_comment``: what is to be said under it.
    ``measured``: pixels and seconds of its files where they are known, by ``sha256`` or ``url``.
    """

    post: Post
    first_comment: str | None = None
    measured: Mapping[str, Measures] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Place:
    """Where to and when: one channel, as far as it is known.

    ``name``: the channel's. ``can``: what its platform can do for the format of this very post.
    ``due_at``: None while no time was chosen. ``expires_at``: when its token ends, if it does.
    ``needs_reconnecting``: the platform no longer takes its token.
    """

    name: str
    can: Capabilities
    due_at: datetime | None = None
    expires_at: datetime | None = None
    needs_reconnecting: bool = False


@dataclass(frozen=True, slots=True)
class Wants:
    """What a workspace asks for beyond its platforms. ``alt_text``: a missing one is a fix."""

    alt_text: bool = False


NOTHING: Final = Wants()


def problems(
    variant: Variant, place: Place, *, of: tzinfo = UTC, wants: Wants = NOTHING
) -> tuple[Problem, ...]:
    """Say everything to fix, then everything to know, about a variant on its channel.

    Pure: it asks no clock, no database and no platform. ``of``: the zone times are written in.
    Each ``Problem`` names its field (``text``, ``link``, ``media``, ``media.2``, ``media.2.alt``,
    ``first_comment`` or ``channel``), a stable code, what is wrong and what to do. One of severity
    ``fix`` keeps a post from being approved, imported or scheduled, never from being saved as a
    draft; a ``note`` keeps it from nothing. ``stands_in_the_way`` tells the two apart.

    What the channel itself lacks, such as a token that ends too early, is a note: it is not the
    post's fault, reconnecting mends it, and the job waits for that.
    """
    found = [*limits.problems(variant.post, place.can, variant.measured)]
    if place.can.takes_posts:
        found += _alt_texts(variant.post, place.can, wants)
        found += _first_comment(variant.first_comment, place.can)
    found += channel.problems(
        place.name, place.due_at, place.expires_at, of, broken=place.needs_reconnecting
    )
    return tuple(sorted(found, key=_order))


def anywhere(variant: Variant) -> tuple[Problem, ...]:
    """Say what is wrong wherever it goes: for a draft without channels, or one that is unknown."""
    return limits.anywhere(variant.post)


def of_link(link: str | None) -> tuple[Problem, ...]:
    """Say what is no link anywhere, where the rest cannot be judged yet."""
    return tuple(limits.of_link(link))


def of_channel(
    adapter: Adapter,
    post: Post,
    name: str,
    *,
    due_at: datetime | None = None,
    expires_at: datetime | None = None,
    needs_reconnecting: bool = False,
) -> Place:
    """The place that ``adapter`` speaks for, with its capabilities for the format of ``post``."""
    can = adapter.capabilities(limits.shape(post))
    return Place(name, can, due_at, expires_at, needs_reconnecting)


def stands_in_the_way(found: Iterable[Problem]) -> bool:
    """Whether anything has to be fixed first."""
    return any(problem.severity is Severity.FIX for problem in found)


def _alt_texts(post: Post, can: Capabilities, wants: Wants) -> Iterator[Problem]:
    """Which pictures tell nothing to whoever cannot see them, where the platform could tell it."""
    if can.alt_limit == 0:
        return
    for number, item in enumerate(post.media, start=1):
        if item.alt.strip():
            continue
        what = (
            _("Video {number} has no alt text.")
            if item.kind == "video"
            else _("Photo {number} has no alt text.")
        )
        fix = _("Say what it shows, for whoever cannot see it.")
        severity = Severity.FIX if wants.alt_text else Severity.NOTE
        named = what.format(number=number)
        yield Problem(f"media.{number}.alt", "alt-missing", named, fix, severity)


def _first_comment(comment: str | None, can: Capabilities) -> Iterator[Problem]:
    if comment is None:
        return
    name = can.name or _("This channel")
    if not can.comment_limit:
        what = _("{name} takes no first comment from here.").format(name=name)
        fix = _("Take it out, or put it into the text.")
        yield Problem("first_comment", "first-comment-not-taken", what, fix)
        return
    if not comment.strip():
        fix = _("Write it, or take it out.")
        yield Problem("first_comment", "empty", _("The first comment is empty."), fix)
    yield from characters("first_comment", comment, _("The first comment"))
    yield from _too_long_a_comment(comment, name, can)


def _too_long_a_comment(comment: str, name: str, can: Capabilities) -> Iterator[Problem]:
    if is_too_large(comment):
        what = _("The first comment is longer than any channel takes.")
        yield Problem("first_comment", "text-too-large", what, _("Shorten it."))
    elif (over := (count := limits.length(comment, can)) - can.comment_limit) > 0:
        what = _(
            "{name} takes {limit} characters in a first comment as it counts them; this is {count}."
        ).format(name=name, limit=f"{can.comment_limit:,}", count=f"{count:,}")
        fix = _("Shorten by {over}.").format(over=f"{over:,}")
        yield Problem("first_comment", "text-too-long", what, fix)


def _order(problem: Problem) -> bool:
    return problem.severity is Severity.NOTE
