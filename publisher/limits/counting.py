"""How long a text is, as each platform counts it: pure, and each rule with its source.

``length`` is what callers use; the others are its parts. None of them raises for any string, half
surrogate pairs included, and all are quick up to a million characters.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import Final

import regex

from publisher.engine.adapter import Capabilities, TextUnit

X_URL_LENGTH: Final = 23
"""twitter-text ``config/v3.json``: every address becomes a t.co link of that length."""

_LONGEST_HOST: Final = 253
_CLUSTER = regex.compile(r"\X")
# Without a bound, a text of nothing but hosts takes minutes.
_HOST: Final = rf"[^\s<>\"「」/?#@]{{1,{_LONGEST_HOST}}}"
# Mastodon, config/initializers/twitter_regex.rb: an address stands behind no letter and ends at a
# blank, angle bracket or quotation mark; what would end a sentence is left outside.
_URL = regex.compile(
    rf"(?<![a-z0-9@$#])https?://{_HOST}\.[^\s<>\"「」/?#.@]++(?:[/?#][^\s<>\"「」]*+)?",
    regex.IGNORECASE,
)
_ENDS_A_SENTENCE: Final = "()?!*'\":;=,.$%[]~&|@«»“”’…"
_PAIRS: Final = {")": "(", "]": "["}
# app/models/account.rb, MENTION_RE. What stands before it may be no letter, slash or equals sign.
_MENTION = regex.compile(r"(?<![\w/=])@(\w+(?:[\w.-]+\w)?)@\w+(?:[.-]+\w+)*")

# twitter-text, js/src/regexp: a path holds ASCII, Latin letters with marks and Cyrillic, a query
# ASCII alone; without https:// only an ASCII host counts as one. Of its list of endings these are
# the generic ones met most, and any two letters.
_X_TAIL = regex.compile(
    r"(?:/[!->@-~\u00c0-\u024f\u0253-\u02bb\u0300-\u036f\u0400-\u04ff\u1e00-\u1eff]*)?(?:\?[!-~]*)?"
)
_X_ENDING = regex.compile(
    r"com|org|net|edu|gov|info|biz|app|dev|news|blog|site|online|[a-z]{2}", regex.IGNORECASE
)
_X_URL = regex.compile(
    rf"(?<![\w@$#])(?:(https?://{_HOST}\.[^\W\d_]{{2,63}}+(?!\w)(?::\d+)?)"
    rf"|(?<![.\-/])([a-z0-9][a-z0-9_.-]*+)(?![\w@]|://))",
    regex.IGNORECASE,
)
_X_HEAVY = regex.compile(r"[^\u0000-\u10ff\u2000-\u200d\u2010-\u201f\u2032-\u2037]")
_X_EMOJI = regex.compile(
    r"\p{RI}{2}|[0-9#*]\ufe0f?\u20e3|\p{Extended_Pictographic}[\ufe0f\p{Emoji_Modifier}"
    r"\U000e0020-\U000e007f]*(?:\u200d\p{Extended_Pictographic}[\ufe0f\p{Emoji_Modifier}]*)*"
)


def length(text: str, can: Capabilities) -> int:
    """How long ``text`` is for ``can.text_limit``, in ``can.text_unit``."""
    if can.text_unit is TextUnit.WEIGHTS:
        return weights(text, can.url_length or X_URL_LENGTH)
    if can.mentions_lose_domain:
        text = without_domains(text)
    if can.url_length is not None:
        text = with_urls_as(text, can.url_length)
    match can.text_unit:
        case TextUnit.CHARACTERS:
            return len(text)
        case TextUnit.GRAPHEMES:
            return graphemes(text)
        case TextUnit.UTF_16:
            return utf_16_units(text)
        case TextUnit.BYTES:
            return utf_8_bytes(text)


def graphemes(text: str) -> int:
    """Extended grapheme clusters: 👨‍👩‍👧 is one, and so is e with its accent, NFC or NFD.

    https://www.unicode.org/reports/tr29/. Bluesky's ``maxGraphemes`` and Mastodon's
    ``grapheme_length`` both follow it.
    """
    if text.isascii():
        return len(text) - text.count("\r\n")
    return sum(1 for _ in _CLUSTER.finditer(text))


def boundaries(text: str) -> list[int]:
    """Where each grapheme cluster ends, in code points."""
    return [match.end() for match in _CLUSTER.finditer(text)]


def utf_16_units(text: str) -> int:
    """Two for a character beyond the basic plane; as Telegram counts entities.

    https://core.telegram.org/api/entities#entity-length
    """
    return len(text) + sum(character > "\uffff" for character in text)


def utf_8_bytes(text: str) -> int:
    """Bytes of UTF-8; half of a surrogate pair, which has none, counts as the three it would be."""
    return len(text.encode("utf-8", "surrogatepass"))


def weights(text: str, url_length: int = X_URL_LENGTH) -> int:
    """X's count: NFC; a URL as ``url_length``; an emoji two, however many parts it has.

    One for code points up to U+10FF, for blanks, dashes, quotation marks and primes, and two for
    any other, which CJK is, and so are Vietnamese letters from U+1EA0 on: ``ế`` is two, ``ê`` one.
    twitter-text ``config/v3.json`` and ``rb/lib/twitter-text/validation.rb``.
    """
    text = unicodedata.normalize("NFC", text)
    total, at = 0, 0
    for start, end in _x_urls(text):
        total += _weights_without_urls(text[at:start]) + url_length
        at = end
    return total + _weights_without_urls(text[at:])


def with_urls_as(text: str, url_length: int) -> str:
    """The text with every http or https URL replaced by so many letters.

    Mastodon's ``app/validators/status_length_validator.rb`` counts it like this. A full stop or
    bracket after a URL is not part of it, and an address without a dot in its host is none.
    """
    return _URL.sub(lambda found: _as_letters(found[0], url_length), text)


def without_domains(text: str) -> str:
    """The text with ``@name@server`` as ``@name``; same source."""
    return _MENTION.sub(r"@\1", text)


def urls(text: str) -> tuple[str, ...]:
    """The http and https URLs in a text, as they stand there."""
    return tuple(_trimmed(found[0]) for found in _URL.finditer(text))


def _as_letters(url: str, url_length: int) -> str:
    return "x" * url_length + url[len(_trimmed(url)) :]


def _trimmed(url: str) -> str:
    """The URL without what ends the sentence around it; a bracket stays when it opened inside."""
    end = len(url)
    spare = {closing: url.count(closing) - url.count(_PAIRS[closing]) for closing in _PAIRS}
    while url[end - 1] in _ENDS_A_SENTENCE:
        last = url[end - 1]
        if last in _PAIRS and spare[last] <= 0:
            break
        spare[last] = spare.get(last, 0) - 1
        end -= 1
    return url[:end]


def _x_urls(text: str) -> Iterator[tuple[int, int]]:
    """Where each URL begins and ends."""
    at = 0
    for match in _X_URL.finditer(text):
        if match.start() < at:
            continue
        end = match.end() if match[1] else match.start() + _bare(match[2])
        if end == match.start():
            continue
        tail = _X_TAIL.match(text, end)
        at = match.start() + len(_trimmed(text[match.start() : tail.end() if tail else end]))
        yield match.start(), at


def _bare(run: str) -> int:
    """How much of a run of letters, digits and dots is a host; 0 when none is."""
    labels = run[:_LONGEST_HOST].split(".")
    whole = labels.index("") if "" in labels else len(labels)
    for count in range(whole, 1, -1):
        if _X_ENDING.fullmatch(labels[count - 1]):
            return len(".".join(labels[:count]))
    return 0


def _weights_without_urls(text: str) -> int:
    total, at = 0, 0
    for match in _X_EMOJI.finditer(text):
        total += _code_points(text[at : match.start()]) + 2
        at = match.end()
    return total + _code_points(text[at:])


def _code_points(text: str) -> int:
    return len(text) + sum(1 for _ in _X_HEAVY.finditer(text))
