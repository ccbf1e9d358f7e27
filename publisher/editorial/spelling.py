"""Names as people wrote them: usable, quoted in a sentence, and what was probably meant."""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Iterable

_ALIKE = 0.6
_LONGEST = 60
_BREAKING = frozenset({"Cc", "Cs", "Zl", "Zp"})


def near(
    word: str, known: Iterable[str], *, most: int = 3, alike: float = _ALIKE
) -> tuple[str, ...]:
    """The names in ``known`` that look like ``word``, the closest first, whatever their case.

    ``alike``: from 0, anything, to 1, equal but for case.
    """
    if len(word) > _LONGEST:
        return ()
    by_folded = {name.casefold(): name for name in known}
    found = difflib.get_close_matches(word.casefold(), by_folded, n=most, cutoff=alike)
    return tuple(by_folded[name] for name in found)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """``Did you mean "…"?``, or nothing when no name is close."""
    found = near(word, known, most=1)
    return f'Did you mean "{found[0]}"?' if found else ""


def quoted(text: str) -> str:
    """What was written, in quotes and not longer than a line."""
    return f'"{text}"' if len(text) <= _LONGEST else f'"{text[:_LONGEST]}…"'


def is_one_line(text: str) -> bool:
    """Whether a name holds no control character or line break.

    Joiners stay: Persian words and many emoji are not written without them, and
    ``str.isprintable`` would refuse them.
    """
    return not any(unicodedata.category(c) in _BREAKING for c in text)
