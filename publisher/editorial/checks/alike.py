"""Whether something like it is live, may be live or is scheduled on the same channel.

A warning and nothing else: it stands in no post's way, and equal posts are never one. Texts and
media are compared apart, for a weekly notice has an old text and a new photo.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from enum import StrEnum
from functools import lru_cache
from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from rapidfuzz import fuzz
from sqlalchemy import Connection

from publisher.editorial.checks import dates
from publisher.engine import queries
from publisher.engine.adapter import Problem, Severity
from publisher.engine.content import ContentError, Media, Post
from publisher.engine.job import JobId, State
from publisher.engine.matching import normalised
from publisher.engine.queries import Neighbour
from publisher.limits import counting
from publisher.words import N_, _

SHOWN: Final = 3
"""Posts that are told of; more help nobody."""
NEAR: Final = 85
"""Per cent from which two texts are told of; less is chance, or another week's notice."""
_SHORTEST: Final = 20
"""Characters that both texts need to be near: short ones are near by chance."""
_ALL: Final = 100
_COMPARED: Final = 5_000
"""Characters that nearness is judged by. Equality is judged by all of them."""

# What Persian and Arabic keyboards write differently and readers take for one; digits likewise.
_ONE_LETTER: Final = str.maketrans(
    "\u064a\u0649\u0643\u06c0\u0629" + "۰۱۲۳۴۵۶۷۸۹" + "٠١٢٣٤٥٦٧٨٩",
    "\u06cc\u06cc\u06a9\u0647\u0647" + "0123456789" * 2,
)  # fmt: skip
# Kashida only stretches a word.
_STRETCH: Final = "\u0640"
_TRACKING = re.compile(
    r"utm_\w+|fbclid|gclid|dclid|gbraid|wbraid|msclkid|yclid|twclid|ttclid|igshid|igsh|mc_[ce]id"
    r"|_hs(?:enc|mi)|li_fat_id|ref_src|s_cid|si",
    re.IGNORECASE,
)


class Files(StrEnum):
    """How the media of two posts compare, as sets: their order says nothing."""

    NONE = "none"
    """Neither has any."""
    SAME = "same"
    SOME = "some"
    """They share some, not all."""
    OTHER = "other"
    """They share none, or only one has any."""


@dataclass(frozen=True, slots=True)
class Alike:
    """One post that is like it.

    ``percent``: how much of the text is the same, 100 only where all of it is, 0 where it was told
    of for its files. ``severity`` is always a note. ``words``: what a page says, in one line.
    """

    job_id: JobId
    post_id: int | None
    state: State
    at: datetime
    percent: int
    files: Files
    words: str
    severity: Severity = Severity.NOTE

    @property
    def is_twin(self) -> bool:
        """Whether nothing tells the two apart: the same text, and the same files or none."""
        return self.percent == _ALL and self.files in {Files.NONE, Files.SAME}

    @property
    def problem(self) -> Problem:
        """The note it is beside a post, with what to do."""
        field = "text" if self.percent else "media"
        if self.is_twin:
            fix = _("If it is meant to go out once, keep one of the two.")
            return Problem(field, "alike-twin", f"{self.words}.", fix, self.severity)
        fix = _("Check that both are meant.")
        return Problem(field, "alike", f"{self.words}.", fix, self.severity)


def near(
    conn: Connection, channel_id: int, at: datetime, *, but: int | None = None
) -> tuple[Neighbour, ...]:
    """Read what ``resembling`` compares with; ``but``: the post itself, whose own jobs are none."""
    return queries.neighbours(conn, channel_id, at, but=but)


def resembling(
    post: Post, near: Iterable[Neighbour], at: datetime, *, of: tzinfo = UTC
) -> tuple[Alike, ...]:
    """Say which of ``near`` are like ``post``, the likest first and at most ``SHOWN``.

    Pure. ``near``: what stands on the channel around ``at``, when the post is due; ``of``: the zone
    days are written in. Told of are equal texts, texts of which ``NEAR`` per cent are the same, and
    the very same files under another text. A post without text and files is like nothing.
    """
    text = said(post)
    found = [
        one
        for neighbour in near
        if (one := _compared(text, post.media, neighbour, at, of)) is not None
    ]
    found.sort(key=lambda one: (not one.is_twin, -one.percent, abs(one.at - at)))
    return tuple(found[:SHOWN])


def percent(one: str, other: str) -> int:
    """How much of two normalised texts is the same: 100 for equal ones alone, 0 below ``NEAR``.

    Symmetric. The ratio is of the insertions and deletions that make one of the other:
    https://rapidfuzz.github.io/RapidFuzz/Usage/fuzz.html#ratio
    """
    if one == other:
        return _ALL if one else 0
    if min(len(one), len(other)) < _SHORTEST:
        return 0
    score = fuzz.ratio(one[:_COMPARED], other[:_COMPARED], score_cutoff=NEAR)
    return min(int(score), _ALL - 1)


def said(post: Post) -> str:
    """What a post says, as it is compared: its text, and its link where that is not in it."""
    text = folded(post.text)
    link = folded(post.link) if post.link else ""
    return text if link in text else f"{text} {link}".strip()


def folded(text: str) -> str:
    """A text without what readers pass over, and addresses without what only tracks them.

    NFC, case, blanks, invisible marks and ZWNJ, ي for ی and ك for ک, and digits of any script.
    """
    for url in dict.fromkeys(counting.urls(text)):
        text = text.replace(url, _untracked(url))
    letters = unicodedata.normalize("NFC", text).translate(_ONE_LETTER).replace(_STRETCH, "")
    return normalised(normalised(letters).casefold())


def _untracked(url: str) -> str:
    """The address with its host in small letters, and without parameters that say who sent it."""
    try:
        parts = urlsplit(url)
        query = [
            (name, value)
            for name, value in parse_qsl(parts.query, keep_blank_values=True)
            if not _TRACKING.fullmatch(name)
        ]
    except ValueError:
        return url
    path = parts.path.rstrip("/")
    host = parts.netloc.lower().removeprefix("www.")
    return urlunsplit(("https", host, path, urlencode(query), parts.fragment))


def _files(media: Sequence[Media]) -> frozenset[str]:
    return frozenset(item.sha256 or item.url or "" for item in media)


def _compared(
    text: str, ours: Sequence[Media], neighbour: Neighbour, at: datetime, of: tzinfo
) -> Alike | None:
    read = _read(neighbour.content)
    if read is None:
        return None
    other, their_text = read
    same = percent(text, their_text)
    match = _match(_files(ours), _files(other.media))
    if not same and match is not Files.SAME:
        return None
    films = any(item.kind == "video" for item in (*ours, *other.media))
    words = _words(neighbour, same, match, at, of, films=films)
    return Alike(
        neighbour.job_id, neighbour.post_id, neighbour.state, neighbour.at, same, match, words
    )


@lru_cache(maxsize=1024)
def _read(content: str) -> tuple[Post, str] | None:
    """A post as it is compared; None for a mail, or an event. An import asks of each for each."""
    try:
        post = Post.from_json(content)
    except ContentError:
        return None
    return post, said(post)


def _match(ours: frozenset[str], theirs: frozenset[str]) -> Files:
    if ours == theirs:
        return Files.SAME if ours else Files.NONE
    return Files.SOME if ours & theirs else Files.OTHER


# Whole sentences, for languages that bend a noun by its place: of photos alone, and of others too.
_BESIDE: Final = {
    Files.SAME: (N_("{text}, the same photos"), N_("{text}, the same photos and videos")),
    Files.SOME: (N_("{text}, some of the photos"), N_("{text}, some of the photos and videos")),
    Files.OTHER: (N_("{text}, other photos"), N_("{text}, other photos or videos")),
}
_BELOW: Final = (
    N_("The same photos as {post}, another text"),
    N_("The same photos and videos as {post}, another text"),
)


def _words(
    neighbour: Neighbour, same: int, files: Files, at: datetime, of: tzinfo, *, films: bool
) -> str:
    """``92 % of a post live here on 30 Nov, other photos``."""
    post = _where(neighbour.state).format(day=dates.day(neighbour.at, of, beside=at))
    if not same:
        return _(_BELOW[films]).format(post=post)
    if same == _ALL:
        text = _("The same text as {post}").format(post=post)
    else:
        text = _("{percent} % of {post}").format(percent=same, post=post)
    return text if files is Files.NONE else _(_BESIDE[files][films]).format(text=text)


def _where(state: State) -> str:
    match state:
        case State.PUBLISHED:
            return _("a post live here on {day}")
        case State.UNKNOWN | State.SENDING:
            return _("a post that may be live here since {day}")
        case _:
            return _("a post scheduled here for {day}")
