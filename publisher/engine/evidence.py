"""What a look at the platform found."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class Candidate:
    """A post on the page that could be ours.

    ``text`` is what the page shows, already turned back from the platform's own rewriting.
    ``ours``: True when an id of ours is on it (our app, our media), False when another's is, None
    when the platform does not say.
    """

    remote_id: str
    text: str
    created_at: datetime
    permalink: str | None = None
    ours: bool | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """It is on the page: exactly one post is ours beyond doubt."""

    remote_id: str
    permalink: str | None = None
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Absent:
    """A complete listing holds nothing that could even loosely be ours. ``searched``: how many."""

    searched: int


@dataclass(frozen=True, slots=True)
class Inconclusive:
    """The look proves nothing.

    ``clean``: nothing loosely ours was seen, but the listing is not one that absence may be
    declared from.
    """

    reason: str
    candidates: tuple[Candidate, ...] = ()
    searched: int = 0
    clean: bool = False


Evidence = Found | Absent | Inconclusive


class Mismatch(StrEnum):
    """Why a post that a person named is not taken for the one that was sent."""

    NO_LINK = "no-link"
    """It is no link to, or id of, a post on this platform."""
    ANOTHER_PAGE = "another-page"
    NOT_FOUND = "not-found"
    TOO_EARLY = "too-early"
    """It was created before we sent."""
    TEXT_DIFFERS = "text-differs"
    NOT_OURS = "not-ours"
    """Another application made it, or it holds other media."""
    UNREADABLE = "unreadable"
    """It cannot be read just now; that proves nothing either way."""


@dataclass(frozen=True, slots=True)
class NotThisPost:
    """What a person named is not the post in question; ``message`` is the sentence that says so."""

    code: Mismatch
    message: str
