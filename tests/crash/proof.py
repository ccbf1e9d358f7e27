"""The proof that the harness can fail: each broken variant must break a rule, within few tries."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tests.crash.broken import TRIES, VARIANTS
from tests.crash.crew import each
from tests.crash.run import Result

__all__ = ["VARIANTS", "prove"]


def prove(
    lanes: int, *, said: Callable[[str], object], names: Iterable[str] = tuple(VARIANTS)
) -> dict[str, str | None]:
    """Run variants until they are caught; returns variant → what it was caught at, or None."""
    caught: dict[str, str | None] = dict.fromkeys(names)
    for seed in range(1, TRIES + 1):
        left = [name for name, found in caught.items() if found is None]
        if not left:
            break
        aimed = [VARIANTS[name].aim(name, seed) for name in left]
        for result in each(aimed, lanes=lanes):
            found = _caught(result)
            if found is not None and result.variant is not None:
                caught[result.variant] = found
                said(f"  caught after {seed}  {result.variant:40} {found[:100]}")
    return caught


def _caught(result: Result) -> str | None:
    """The first breach of the very rule that this variant must break."""
    if result.variant is None:
        return None
    rule = VARIANTS[result.variant].rule
    return next((broken for broken in result.broken if broken.startswith(f"{rule}: ")), None)
