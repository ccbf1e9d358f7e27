"""Counts what a reader sees as one character: extended grapheme clusters, nearly.

After UAX #29, from what ``unicodedata`` knows. Left out: ``Prepend`` and Indic conjuncts; any
symbol outside the basic plane counts as pictographic. Emoji families, flags, keycaps, combining
marks, Hangul and joiners come out as the tables have them.
"""

from __future__ import annotations

import unicodedata

_JOINER = "\u200d"
_EXTENDING = frozenset({"Mn", "Me", "Mc"})
_FLAG_LETTERS = range(0x1F1E6, 0x1F200)
_SKIN_TONES = range(0x1F3FB, 0x1F400)
_TAGS = range(0xE0020, 0xE0080)
_LEADING, _VOWEL, _TRAILING = range(0x1100, 0x1160), range(0x1160, 0x11A8), range(0x11A8, 0x1200)
_SYLLABLES = range(0xAC00, 0xD7A4)


def count(text: str) -> int:
    """Return how many grapheme clusters ``text`` has."""
    clusters, flags, last, joins = 0, 0, "", False
    for character in text:
        code = ord(character)
        is_flag = code in _FLAG_LETTERS
        goes_on = _extends(character) or (last == "\r" and character == "\n")
        goes_on = goes_on or (is_flag and flags % 2 == 1) or _is_hangul_pair(last, character)
        goes_on = goes_on or (joins and last == _JOINER and _is_pictographic(character))
        if not last or last in "\r\n" or not goes_on:
            clusters += not (last == "\r" and character == "\n")
        flags = flags + 1 if is_flag else 0
        # A joiner joins only what began with a pictograph; marks in between do not end that.
        joins = _is_pictographic(character) or (joins and _extends(character))
        last = character
    return clusters


def _extends(character: str) -> bool:
    code = ord(character)
    if character == _JOINER or code in _SKIN_TONES or code in _TAGS:
        return True
    return character == "\u200c" or unicodedata.category(character) in _EXTENDING


def _is_pictographic(character: str) -> bool:
    code = ord(character)
    if code in _FLAG_LETTERS or code in _SKIN_TONES:
        return False
    return unicodedata.category(character) == "So" or character in "\u203c\u2049\u2194\u2195©®"


def _is_hangul_pair(last: str, character: str) -> bool:
    if not last:
        return False
    before, code = ord(last), ord(character)
    open_syllable = before in _SYLLABLES and (before - _SYLLABLES.start) % 28 == 0
    if before in _LEADING:
        return code in _LEADING or code in _VOWEL or code in _SYLLABLES
    if before in _VOWEL or open_syllable:
        return code in _VOWEL or code in _TRAILING
    return (before in _SYLLABLES or before in _TRAILING) and code in _TRAILING
