"""Whether the very post that a person names is the one we sent: pure, and for every platform.

A person vouches for it, so one post is enough and nothing is searched. What can be checked still
is, with a sentence for each refusal: a post bound by mistake stays bound for ever.
"""

from __future__ import annotations

import unicodedata
from datetime import datetime

from publisher.engine.evidence import Candidate, Mismatch, NotThisPost
from publisher.engine.matching import SKEW, Sought, normalised
from publisher.words import _

_BEFORE = 16
"""Characters shown before the place where two texts part."""
_AFTER = 24

_MARKS = {
    "\u00ad": "SHY", "\u061c": "ALM", "\u200b": "ZWSP", "\u200c": "ZWNJ", "\u200d": "ZWJ",
    "\u200e": "LRM", "\u200f": "RLM", "\u202a": "LRE", "\u202b": "RLE", "\u202c": "PDF",
    "\u202d": "LRO", "\u202e": "RLO", "\u2060": "WJ", "\u2066": "LRI", "\u2067": "RLI",
    "\u2068": "FSI", "\u2069": "PDI", "\ufeff": "BOM",
}  # fmt: skip
# What a platform shows is not ours: its control characters are shown, never obeyed.
_SHOWN = {
    **{code: chr(0x2400 + code) for code in range(0x20)},
    **dict.fromkeys(range(0x7F, 0xA0), "�"),
    **{ord(mark): f"[{name}]" for mark, name in _MARKS.items()},
}
_COMPARED = {mark for mark in _MARKS if normalised(f"a{mark}b") != "ab"}
"""Marks that make two texts different: the joiner makes one family of three people."""


def recognise(sought: Sought, post: Candidate) -> Candidate | NotThisPost:
    """Give ``post`` back when nothing speaks against it being what was sent."""
    if post.created_at < sought.began_at - SKEW:
        created, sent = _times(post.created_at, sought.began_at)
        why = _("it was created at {created}, before we sent at {sent}")
        return refuse(Mismatch.TOO_EARLY, why.format(created=created, sent=sent))
    if normalised(sought.text) != normalised(post.text):
        sent, shown = difference(sought.text, post.text)
        why = _("its text differs here: we sent “{sent}”, it has “{shown}”")
        return refuse(Mismatch.TEXT_DIFFERS, why.format(sent=sent, shown=shown))
    if post.ours is False:
        why = _("somebody else made it; another application or other media are on it")
        return refuse(Mismatch.NOT_OURS, why)
    return post


def refuse(code: Mismatch, why: str) -> NotThisPost:
    """Say that a link is not this post, and ``why``: a clause, without its full stop."""
    message = _("That link is not this post: {why}. Nothing was recorded.")
    return NotThisPost(code, message.format(why=why))


def no_link(given: str, platform: str, example: str) -> NotThisPost:
    """Say that ``given`` names no post on ``platform``; ``example`` is a link that would."""
    shown = given if len(given) <= 80 else f"{given[:79]}…"  # noqa: PLR2004 - one line
    why = _("“{given}” is no link to or id of a post on {platform}, such as {example}")
    return refuse(Mismatch.NO_LINK, why.format(given=shown, platform=platform, example=example))


def not_found(where: str) -> NotThisPost:
    """Say that nothing is there. ``where``: such as *this Page*."""
    why = _("no such post is on {where}; it was taken down, or it is somebody else's")
    return refuse(Mismatch.NOT_FOUND, why.format(where=where))


def another(whose: str) -> NotThisPost:
    """Say that it belongs to somebody else. ``whose``: such as *another Page (102)*."""
    return refuse(Mismatch.ANOTHER_PAGE, _("it belongs to {whose}").format(whose=whose))


def unreadable(why: str) -> NotThisPost:
    """Say that it cannot be checked now; ``why`` may end with a full stop or not."""
    message = _("That link cannot be checked just now: {why}. Nothing was recorded.")
    return NotThisPost(Mismatch.UNREADABLE, message.format(why=why.rstrip(". ")))


def difference(sent: str, shown: str) -> tuple[str, str]:
    """Both texts around the place where they first differ, with marks that show nothing shown.

    Marks are passed over in comparing, as ``normalised`` does, but never left out of the answer:
    without them two texts that differ may look the same.
    """
    one, other = _spaced(sent), _spaced(shown)
    at, where = _next_visible(one, 0), _next_visible(other, 0)
    while at < len(one) and where < len(other) and one[at] == other[where]:
        at, where = _next_visible(one, at + 1), _next_visible(other, where + 1)
    return _around(one, at), _around(other, where)


def visible_marks(text: str) -> str:
    """The text with ZWNJ and the marks of direction shown by name."""
    return text.translate(_SHOWN)


def _spaced(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).split())


def _next_visible(text: str, at: int) -> int:
    while at < len(text) and text[at] in _MARKS and text[at] not in _COMPARED:
        at += 1
    return at


def _around(text: str, at: int) -> str:
    # The marks just before the place belong to it.
    begin = max(0, at - _BEFORE)
    end = min(len(text), at + _AFTER)
    cut = visible_marks(text[begin:end])
    return f"{'…' * (begin > 0)}{cut}{'…' * (end < len(text))}"


def _times(created: datetime, sent: datetime) -> tuple[str, str]:
    layout = "%H:%M:%S %Z" if created.date() == sent.date() else "%Y-%m-%d %H:%M:%S %Z"
    return created.strftime(layout), sent.strftime(layout)
