"""How long a text is as Mastodon counts it.

Grapheme clusters, with every URL as long as the server says (23) and the domain of a mention left
out: ``app/validators/status_length_validator.rb``. Other servers count code points, or URLs at
full length, and say so with a refusal.
"""

from __future__ import annotations

import re
import unicodedata

_URL = re.compile(r"https?://[^\s<>\"]+", re.IGNORECASE)
_MENTION = re.compile(r"(?<![\w/])@([\w.-]+)@[\w.-]*\w")
_JOINER = "\u200d"
_KEEPS_ON = ("Mn", "Me", "Mc")
_CONTROLS = ("Cc", "Zl", "Zp")


def length(text: str, url_length: int) -> int:
    """Characters of ``text`` as the server counts them."""
    urls = len(_URL.findall(text))
    rest = _MENTION.sub(r"@\1", _URL.sub("\n", text))
    # Each URL left one control character behind, which is a cluster of its own.
    return graphemes(rest) + urls * (url_length - 1)


def graphemes(text: str) -> int:
    """Count extended grapheme clusters, near enough to UAX #29 for a limit.

    Marks, Hangul in NFD, flags, skin tones and joined emoji are; prepended signs of a few Indic
    scripts are counted apart, which is one more than a server counts.
    """
    count, before, flags = 0, "", 0
    for character in text:
        flags = flags + 1 if _is_flag_letter(character) else 0
        if not (before and _goes_on(before, character, flags)):
            count += 1
        before = character
    return count


def _goes_on(before: str, character: str, flags: int) -> bool:
    """Whether ``character`` belongs to the cluster that ``before`` is in."""
    if before == "\r" and character == "\n":
        return True
    if _is_control(before) or _is_control(character):
        return False
    return (
        _extends(character)
        or (before == _JOINER and _is_pictograph(character))
        or (flags > 0 and flags % 2 == 0)
        or _is_one_syllable(before, character)
    )


def _is_control(character: str) -> bool:
    return unicodedata.category(character) in _CONTROLS


def _extends(character: str) -> bool:
    """Marks, joiners, skin tones (U+1F3FB …) and the tag letters of regional flags."""
    return (
        unicodedata.category(character) in _KEEPS_ON
        or character in "\u200c\u200d"
        or "\U0001f3fb" <= character <= "\U0001f3ff"
        or "\U000e0020" <= character <= "\U000e007f"
    )


def _is_pictograph(character: str) -> bool:
    return unicodedata.category(character) == "So" or character >= "\U0001f000"


def _is_flag_letter(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _is_one_syllable(before: str, character: str) -> bool:
    """Hangul in NFD: a leading consonant, then vowels, then trailing consonants."""
    vowel = "\u1160" <= character <= "\u11a7"
    trailing = "\u11a8" <= character <= "\u11ff"
    leading = "\u1100" <= before <= "\u115f"
    inside = "\u1160" <= before <= "\u11ff" or "\uac00" <= before <= "\ud7a3"
    if leading:
        return vowel or "\u1100" <= character <= "\u115f" or "\uac00" <= character <= "\ud7a3"
    return inside and (trailing or (vowel and before < "\u11a8"))
