"""Where a piece of SQL guards something, and what it would be without that guard.

A small tokenizer and a split of every condition at its own AND and OR, so that a guard written
tomorrow is found by itself. It knows what this product writes, PL/pgSQL included, and no more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""
    (?P<space>\s+|--[^\n]*|/\*.*?\*/)
  | (?P<text>[eE]?'(?:[^']|'')*'|"(?:[^"]|"")*")
  | (?P<body>\$\w*\$)
  | (?P<given>%\(\w+\)s|%s|\{[^{}]*\})
  | (?P<word>[A-Za-z_]\w*(?:\.[A-Za-z_*]\w*)*)
  | (?P<number>\d+(?:\.\d+)?)
  | (?P<open>[(\[])
  | (?P<close>[)\]])
  | (?P<other>::|:=|<>|<=|>=|\|\||->>|->|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_ENDS = frozenset(
    {
        *("select", "from", "where", "group", "order", "having", "limit", "offset", "for", "with"),
        *("returning", "union", "intersect", "except", "set", "values", "on", "join", "left"),
        *("right", "inner", "cross", "full", "lateral", "using", "into", "as", "then", "else"),
        *("when", "if", "elsif", "loop", "execute", "begin", "raise", "perform", "do", "conflict"),
        *("check", "constraint", "return", "query", "delete", "update", "insert", "end"),
        *("declare", "exit", ",", ";", ":="),
    }
)
"""Words at which one expression ends and another thing begins."""
_CONDITIONS = {
    "where": "true",
    "having": "true",
    "on": "true",
    "check": "true",
    "exit when": "true",
}
_CHOICES = {"if": "false", "elsif": "false", "case when": "false"}


@dataclass(frozen=True, slots=True)
class Token:
    """A word of SQL and where it stands."""

    kind: str
    text: str
    start: int
    end: int

    @property
    def low(self) -> str:
        """The word in lower case; nothing for what is no word."""
        return self.text.lower() if self.kind in {"word", "other"} else ""


@dataclass(frozen=True, slots=True)
class Cut:
    """``start`` to ``end`` of the text, and what stands there instead."""

    kind: str
    start: int
    end: int
    instead: str


@dataclass(frozen=True, slots=True)
class _Group:
    """What stands between two brackets, or between CASE and END, its own groups folded.

    ``items``: tokens, and groups in the order they stand.
    """

    items: tuple[Token | _Group, ...]
    start: int
    end: int
    is_case: bool = False


def tokens(text: str) -> list[Token]:
    """The words of ``text``, without what only separates them."""
    found = (
        Token(str(match.lastgroup), match.group(), match.start(), match.end())
        for match in _TOKEN.finditer(text)
    )
    return [token for token in found if token.kind != "space"]


def cuts(text: str) -> list[Cut]:
    """Every guard of ``text``, each with what it would be without it."""
    words = tokens(text)
    if words and words[0].low == "and":  # added to a statement that stands elsewhere
        return [Cut("guard", 0, len(text), "")]
    found = [*_conditions(text, _fold(words)), *_conflicts(words), *_unique(words)]
    found += _triggers(words)
    plain = _plain_indexes(words)
    kept = {cut for cut in found if not any(a <= cut.start < b for a, b in plain)}
    return sorted(kept, key=lambda cut: (cut.start, cut.end, cut.kind))


def _fold(words: list[Token]) -> _Group:
    """Brackets and CASE … END as groups; an END of PL/pgSQL closes nothing."""
    stack: list[tuple[int, bool, list[Token | _Group]]] = [(0, False, [])]
    for word in words:
        opens_case = word.low == "case"
        if word.kind == "open" or opens_case:
            stack.append((word.start, opens_case, []))
        elif (word.kind == "close" or (word.low == "end" and stack[-1][1])) and len(stack) > 1:
            start, is_case, items = stack.pop()
            stack[-1][2].append(_Group(tuple(items), start, word.end, is_case))
        else:
            stack[-1][2].append(word)
    while len(stack) > 1:  # a fragment that is put together with another
        start, is_case, items = stack.pop()
        stack[-1][2].append(_Group(tuple(items), start, words[-1].end, is_case))
    return _Group(tuple(stack[0][2]), 0, words[-1].end if words else 0)


def _conditions(text: str, group: _Group) -> Iterator[Cut]:
    for opener, items in _segments(group):
        yield from _of_segment(text, opener, items)
    for item in group.items:
        if isinstance(item, _Group):
            yield from _conditions(text, item)


def _segments(group: _Group) -> Iterator[tuple[str, list[Token | _Group]]]:
    """The expressions of one group, each with the word it follows."""
    opener, held, joins = "", list[Token | _Group](), False
    items = group.items
    for at, item in enumerate(items):
        word = "" if isinstance(item, _Group) else item.low
        is_plain = word not in _ENDS and not (isinstance(item, Token) and item.kind == "body")
        if is_plain or _is_distinct_from(items, at):
            held.append(item)
            continue
        yield opener, held
        held = []
        if word == "join":
            joins = True
        opener = word
        if word == "on":
            opener, joins = ("on" if joins else "on table"), False
        elif word == "when":
            before = items[at - 1] if at else None
            is_exit = isinstance(before, Token) and before.low == "exit"
            opener = "case when" if group.is_case else "exit when" if is_exit else "trigger when"
    yield opener, held


def _is_distinct_from(items: tuple[Token | _Group, ...], at: int) -> bool:
    before = items[at - 1] if at else None
    item = items[at]
    return (
        isinstance(item, Token)
        and item.low == "from"
        and isinstance(before, Token)
        and before.low == "distinct"
    )


def _of_segment(text: str, opener: str, items: list[Token | _Group]) -> Iterator[Cut]:
    if not items:
        return
    either = _split(items, "or")
    for part in either:
        if len(either) > 1:
            yield _cut(text, "or", part, "false")
        each = _split(part, "and")
        if len(each) > 1:
            for one in each:
                yield _cut(text, "guard", one, "true")
        elif len(either) == 1 and opener in _CONDITIONS and not _is_true(text, items):
            yield _cut(text, "guard", part, _CONDITIONS[opener])
    if opener in _CHOICES:
        yield _cut(text, "rule" if opener != "case when" else "case", items, _CHOICES[opener])


def _is_true(text: str, items: list[Token | _Group]) -> bool:
    return text[items[0].start : items[-1].end].strip("() \n").lower() == "true"


def _split(items: list[Token | _Group], word: str) -> list[list[Token | _Group]]:
    """At every ``word`` of their own; the AND of a BETWEEN is not one."""
    parts: list[list[Token | _Group]] = [[]]
    between = False
    for item in items:
        low = "" if isinstance(item, _Group) else item.low
        between = between or low == "between"
        if low == word and not (word == "and" and between):
            parts.append([])
            continue
        if low == "and":
            between = False
        parts[-1].append(item)
    return [part for part in parts if part]


def _cut(text: str, kind: str, items: list[Token | _Group], instead: str) -> Cut:
    """A CHECK is cut inside its brackets; a value by place is still asked for."""
    start, end = items[0].start, items[-1].end
    if len(items) == 1 and isinstance(items[0], _Group) and not items[0].is_case:
        start, end = start + 1, end - 1
    places = [token for token in tokens(text[start:end]) if token.text == "%s"]
    if places:
        kept = " AND ".join("%s::text IS NULL" for _ in places)
        instead = f"({kept} OR true)" if instead == "true" else f"({kept} AND false)"
    return Cut(kind, start, end, instead)


def _conflicts(words: list[Token]) -> Iterator[Cut]:
    for at, word in enumerate(words):
        if word.low != "on" or at + 1 == len(words) or words[at + 1].low != "conflict":
            continue
        do = next(n for n in range(at, len(words)) if words[n].low == "do")
        if words[do + 1].low == "nothing":
            yield Cut("conflict", word.start, words[do + 1].end, "")
            continue
        last = _last_of_clause(words, do)
        yield Cut("conflict", word.start, last.end, "")
        yield Cut("conflict", words[do + 1].start, last.end, "NOTHING")


def _last_of_clause(words: list[Token], at: int) -> Token:
    depth = 0
    for n in range(at, len(words)):
        depth += (words[n].kind == "open") - (words[n].kind == "close")
        if depth < 0 or (depth == 0 and words[n].low in {"returning", ";"}):
            return words[n - 1]
    return words[-1]


def _unique(words: list[Token]) -> Iterator[Cut]:
    for at, word in enumerate(words):
        after = words[at + 1] if at + 1 < len(words) else None
        if word.low == "unique" and after is not None and after.low == "index":
            yield Cut("unique", word.start, after.start, "")
        elif word.low == "unique":
            yield Cut("unique", word.start, _brackets(words, at), "CHECK (true)")
        elif word.low == "primary":
            yield Cut("unique", word.start, _brackets(words, at + 1), "CHECK (true)")


def _brackets(words: list[Token], at: int) -> int:
    """The end of the brackets after ``at``, or of that word where there are none."""
    if at + 1 == len(words) or words[at + 1].text != "(":
        return words[at].end
    close = next(n for n in range(at, len(words)) if words[n].kind == "close")
    return words[close].end


def _triggers(words: list[Token]) -> Iterator[Cut]:
    for at, word in enumerate(words):
        if word.low != "create" or words[at + 1].low != "trigger":
            continue
        stop = next((n for n in range(at, len(words)) if words[n].text == ";"), len(words) - 1)
        yield Cut("trigger", word.start, words[stop].end, "")
        on = next(n for n in range(at, stop) if words[n].low == "on")
        either = next((n for n in range(at, on) if words[n].low == "or"), None)
        if either is not None:
            yield Cut("trigger", words[either - 1].start, words[either + 1].start, "")
            yield Cut("trigger", words[either].start, words[either + 1].end, "")


def _plain_indexes(words: list[Token]) -> list[tuple[int, int]]:
    """Where an index is made that refuses nothing: what it leaves out is a matter of speed."""
    return [
        (word.start, next((end.end for end in words[at:] if end.text == ";"), words[-1].end))
        for at, word in enumerate(words[:-1])
        if word.low == "create" and words[at + 1].low == "index"
    ]
