"""Decides, from a listing of a page, whether a post is there: pure, and for every platform.

Two questions with two yardsticks. *Is this one ours beyond doubt?* is strict: text, time, marks
and bindings must all agree, and exactly one post may pass. *Could any of these be ours?* is wide:
a shared beginning, a resemblance, a mark of ours, or no readable text at all is enough. Absence is
decided by the wide yardstick alone, since a platform may cut, translate or decorate what it shows.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache

from publisher.engine.evidence import Absent, Candidate, Evidence, Found, Inconclusive

SKEW = timedelta(seconds=60)
"""How far the platform's clock may be from the database's."""
WIDE_SKEW = timedelta(hours=1)
"""The same, when absence is at stake."""
SHOWN = 20
"""Candidates put before a person; more than that help nobody."""

_SHARED_BEGINNING = 24
"""Characters that two texts begin with alike; fewer are chance."""
_PIECE = 5
"""Three characters would not do: half of those in any two long texts of a language are shared."""
_RESEMBLANCE = 0.3
"""Share of the smaller text's pieces that the other one holds too."""
_COMPARED = 5000
"""Characters of a text that resemblance is judged by."""

# Characters that show nothing, and that platforms drop, add or turn into another as they please:
# soft hyphen, zero-width space, ZWNJ, direction marks and isolates, word joiner, byte order mark.
# The zero-width joiner stays: with it 👨‍👩‍👧 is one family, without it three people.
_INVISIBLE = re.compile(
    "[\u00ad\u061c\u200b\u200c\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]"
)
_ADDRESS = re.compile(r"(?:https?://|www\.)[!-~]+", re.IGNORECASE)
_UNSPOKEN = re.compile(r"[\W_]+")


@dataclass(frozen=True, slots=True)
class Sought:
    """What is looked for: the facts of one begun attempt.

    ``text`` is what was sent. ``began_at``: the earliest instant its first byte may have left;
    ``now``: when the listing was read; both on the database's clock. ``bound``: remote ids that
    belong to other jobs of this channel. ``remote_handle``: an id that the lost answer left.
    ``sender_is_gone``: nothing of this attempt can arrive any more. ``needs_mark``: this platform
    shows whose a post is, so text alone finds nothing there: anybody may have written the same.
    """

    text: str
    began_at: datetime
    now: datetime
    bound: frozenset[str] = frozenset()
    remote_handle: str | None = None
    sender_is_gone: bool = False
    needs_mark: bool = False


@dataclass(frozen=True, slots=True)
class Listing:
    """What a look read.

    ``complete``: everything since the attempt began was read and understood; where it was not,
    ``trouble`` says why, in words for a person.
    """

    candidates: tuple[Candidate, ...]
    complete: bool = True
    trouble: str = ""


def match(sought: Sought, listing: Listing, *, exhaustive: bool) -> Evidence:
    """Weigh a listing.

    ``exhaustive``: the platform's listing leaves nothing out, so that a complete one may prove
    absence.

    ``Found`` and ``Absent`` both need a complete listing: a page that was not read may hold a
    second post like the first, or the only one.
    """
    seen = _once_each(listing.candidates)
    exact = [post for post in seen if is_ours(sought, post)]
    loose = [post for post in seen if could_be_ours(sought, post)]
    if not listing.complete:
        reason = listing.trouble or "the page could not be read to the end"
        return _unclear(reason, exact, loose, searched=len(seen))
    if len(exact) == 1 and _shown_once(exact[0], seen):
        only = exact[0]
        return Found(only.remote_id, only.permalink, only.created_at)
    if len(exact) == 1:
        reason = f"the page shows {exact[0].remote_id} in two forms"
        return _unclear(reason, exact, loose, searched=len(seen))
    if exact:
        reason = f"{len(exact)} posts on the page could be this one"
        return _unclear(reason, exact, loose, searched=len(seen))
    if loose:
        reason = "something on the page resembles this post, but not beyond doubt"
        return _unclear(reason, exact, loose, searched=len(seen))
    return _nothing_seen(sought, len(seen), exhaustive=exhaustive)


def is_ours(sought: Sought, post: Candidate) -> bool:
    """Whether ``post`` agrees with the attempt in everything; the strict yardstick."""
    if post.ours is False or post.remote_id in sought.bound:
        return False
    if sought.needs_mark and post.ours is not True:
        return False
    if not sought.began_at - SKEW <= post.created_at <= sought.now + SKEW:
        return False
    text = normalised(sought.text)
    # Two posts without text are equal and prove nothing: then a mark of ours must be on it.
    return text == normalised(post.text) and (bool(text) or post.ours is True)


def could_be_ours(sought: Sought, post: Candidate) -> bool:
    """Whether ``post`` could be ours at all; the wide yardstick, for absence.

    A post bound to another job is left out, unless it passes for ours in text and time as well:
    then one of the two bindings may be wrong.
    """
    if post.remote_id in sought.bound:
        unbound = Sought(sought.text, sought.began_at, sought.now)
        return is_ours(unbound, post)
    if sought.remote_handle is not None and post.remote_id == sought.remote_handle:
        return True
    if post.created_at < sought.began_at - WIDE_SKEW:
        return False
    return post.ours is True or resembles(sought.text, post.text)


@lru_cache(maxsize=4)
def normalised(text: str) -> str:
    """Text as the strict yardstick compares it: NFC, without invisible marks, blanks as one."""
    visible = _INVISIBLE.sub("", unicodedata.normalize("NFC", text))
    # A mark between two combining characters had kept them from composing.
    return " ".join(unicodedata.normalize("NFC", visible).split())


def resembles(one: str, other: str) -> bool:
    """Whether either text could be what a platform made of the other.

    Symmetric, and true of every pair that is equal for the strict yardstick. A text of which
    nothing can be read, such as a picture alone, resembles everything.
    """
    if normalised(one) == normalised(other):
        return True
    if _alike(_spoken(one), _spoken(other)):
        return True
    # Once more without addresses, which platforms shorten, wrap and add.
    return bool(_ADDRESS.search(one) or _ADDRESS.search(other)) and _alike(
        _spoken(_ADDRESS.sub(" ", one)), _spoken(_ADDRESS.sub(" ", other))
    )


def _alike(a: str, b: str) -> bool:
    if not a or not b or a in b or b in a:
        return True
    if a[:_SHARED_BEGINNING] == b[:_SHARED_BEGINNING]:
        return True
    pieces, others = _pieces(a), _pieces(b)
    return len(pieces & others) >= _RESEMBLANCE * min(len(pieces), len(others))


@lru_cache(maxsize=4)  # the text that is sought meets every candidate
def _spoken(text: str) -> str:
    """What is left of a text without case, marks, punctuation and blanks."""
    folded = unicodedata.normalize("NFKD", text[:_COMPARED]).casefold()
    kept = "".join(c for c in folded if not unicodedata.combining(c))
    return _UNSPOKEN.sub("", kept)


@lru_cache(maxsize=4)
def _pieces(text: str) -> frozenset[str]:
    """Every run of ``_PIECE`` characters; of a shorter text, its characters."""
    if len(text) < _PIECE:
        return frozenset(text)
    return frozenset(text[i : i + _PIECE] for i in range(len(text) - _PIECE + 1))


def _once_each(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Drop repetitions: pages of a moving listing overlap. The same id in two forms stays."""
    return list(dict.fromkeys(candidates))


def _shown_once(post: Candidate, seen: list[Candidate]) -> bool:
    """A listing that contradicts itself is no clear find."""
    return sum(other.remote_id == post.remote_id for other in seen) == 1


def _unclear(
    reason: str, exact: list[Candidate], loose: list[Candidate], *, searched: int
) -> Inconclusive:
    shown = list(dict.fromkeys([*exact, *loose]))[:SHOWN]
    return Inconclusive(reason, tuple(shown), searched)


def _nothing_seen(sought: Sought, searched: int, *, exhaustive: bool) -> Evidence:
    if not exhaustive:
        reason = "nothing like it is on the page, but this platform's listing may leave posts out"
        return Inconclusive(reason, searched=searched, clean=True)
    if not sought.sender_is_gone:
        reason = "nothing like it is on the page yet, but it may still arrive"
        return Inconclusive(reason, searched=searched, clean=True)
    return Absent(searched)
