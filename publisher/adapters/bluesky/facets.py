"""Links, mentions and tags in a text, each by its place in the text's UTF-8 bytes.

https://docs.bsky.app/docs/advanced-guides/post-richtext. The text itself is never touched. What
counts as what follows the reference client (bluesky-social/atproto ``rich-text/detection``), with
two departures: a bare ``example.org`` is no link, since telling it from a sentence without a blank
needs a list of every top-level domain; and a tag goes on over a ZWNJ or ZWJ inside a word or
an emoji: Persian writes single words with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

import regex

TAG_GRAPHEMES = 64
TAG_BYTES = 640
"""Of a tag, https://github.com/bluesky-social/atproto lexicons/app/bsky/richtext/facet.json."""
HANDLE_LENGTH = 253

_LINK = regex.compile(r"(?:^|[\s(\p{Ps}\p{Pi}])\K(?i:https?)://(?!/)[^\s\ufeff<>\"\p{Cc}]+")
_MENTION = regex.compile(
    r"(?:^|[\s(])\K@((?:[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?\.)+"
    r"[a-zA-Z](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)(?![\w@-])"
)
_UNTAGGED = r"\s\u00ad\u2060\u200a\u200b\u20e2"
_TAG = regex.compile(
    rf"(?:^|\s)\K[#\uff03](?!\ufe0f)((?:[^{_UNTAGGED}\u200c\u200d]|(?<=[\p{{L}}\p{{M}}\p{{S}}])"
    r"[\u200c\u200d](?=[\p{L}\p{M}\p{S}]))+)"
)
_CLOSING = regex.compile(r"[\p{Po}\p{Pf}\p{Pe}]")
_NOT_AN_END = frozenset("/&%#@*")
_PAIRS = {")": "(", "]": "[", "}": "{"}
_TRAILING_PUNCTUATION = regex.compile(r"\p{P}+$")
_SPOKEN = regex.compile(r"[^\d\s\p{P}\u200c\u200d]")


class Kind(StrEnum):
    """What a piece of text stands for."""

    LINK = "link"
    MENTION = "mention"
    TAG = "tag"


@dataclass(frozen=True, slots=True)
class Span:
    """One piece of a text. ``start`` and ``end`` count UTF-8 bytes; ``value`` is what it names."""

    kind: Kind
    start: int
    end: int
    value: str


def spans(text: str) -> tuple[Span, ...]:
    """Every link, mention and tag, in the order of the text; none overlaps another."""
    found = sorted(_found(text), key=lambda piece: piece[1])
    kept: list[Span] = []
    reached, counted, offset = 0, 0, 0
    for kind, start, end, value in found:
        if start < reached:
            continue
        reached = end
        offset += len(text[counted:start].encode())
        length = len(text[start:end].encode())
        kept.append(Span(kind, offset, offset + length, value))
        offset, counted = offset + length, end
    return tuple(kept)


def handles(text: str) -> tuple[str, ...]:
    """The handles a text mentions, in lower case, each once."""
    return tuple(dict.fromkeys(s.value for s in spans(text) if s.kind is Kind.MENTION))


def facets(text: str, mentioned: Mapping[str, str | None]) -> list[dict[str, object]]:
    """The ``facets`` of a record. A handle that ``mentioned`` gives no DID for stays plain text."""
    made: list[dict[str, object]] = []
    for span in spans(text):
        feature = _feature(span, mentioned)
        if feature is not None:
            index = {"byteStart": span.start, "byteEnd": span.end}
            made.append({"index": index, "features": [feature]})
    return made


def _feature(span: Span, mentioned: Mapping[str, str | None]) -> dict[str, str] | None:
    kind = f"app.bsky.richtext.facet#{span.kind}"
    match span.kind:
        case Kind.LINK:
            return {"$type": kind, "uri": span.value}
        case Kind.TAG:
            return {"$type": kind, "tag": span.value}
        case Kind.MENTION:
            did = mentioned.get(span.value)
            return None if did is None else {"$type": kind, "did": did}


def _found(text: str) -> Iterator[tuple[Kind, int, int, str]]:
    """Yield kind, first and last place in characters, and what is named."""
    for match in _LINK.finditer(text):
        link = _without_end_of_sentence(match[0])
        if not link.endswith("://"):
            yield Kind.LINK, match.start(), match.start() + len(link), link
    for match in _MENTION.finditer(text):
        if len(match[1]) <= HANDLE_LENGTH:
            yield Kind.MENTION, match.start(), match.end(), match[1].lower()
    for match in _TAG.finditer(text):
        tag = _TRAILING_PUNCTUATION.sub("", match[1])
        if _is_tag(tag):
            yield Kind.TAG, match.start(), match.start() + 1 + len(tag), tag


def _without_end_of_sentence(link: str) -> str:
    """Leave out what ends the sentence around a link; a bracket stays when it was opened in it."""
    while link and link[-1] not in _NOT_AN_END and _CLOSING.fullmatch(link[-1]):
        opening = _PAIRS.get(link[-1])
        if opening is not None and link.count(opening) >= link.count(link[-1]):
            break
        link = link[:-1]
    return link


def _is_tag(tag: str) -> bool:
    return (
        _SPOKEN.search(tag) is not None
        and len(tag.encode()) <= TAG_BYTES
        and len(regex.findall(r"\X", tag)) <= TAG_GRAPHEMES
    )
