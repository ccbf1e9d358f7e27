"""The proof that a rehearsal can fail: each broken variant must break a rule, within few tries."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from publisher.rehearsal.plan import variants
from publisher.rehearsal.stage.crew import each
from publisher.rehearsal.stage.result import Result


def prove(
    lanes: int, *, said: Callable[[str], object], names: Iterable[str] | None = None
) -> dict[str, str | None]:
    """Run variants until they are caught; returns variant → what it was caught at, or None.

    Raises ``SetUpError`` where the variants are not installed.
    """
    known = variants.load("crashes")
    caught: dict[str, str | None] = dict.fromkeys(known if names is None else names)
    for seed in range(1, variants.TRIES + 1):
        left = [name for name, found in caught.items() if found is None]
        if not left:
            break
        aimed = [known[name].aim(name, seed) for name in left]
        for result in each(aimed, lanes=lanes):
            if result.variant is None:
                continue
            found = _caught(result, known[result.variant].rule)
            if found is not None:
                caught[result.variant] = found
                said(f"  caught after {seed}  {result.variant:40} {found[:100]}")
    return caught


def _caught(result: Result, rule: str) -> str | None:
    """The first breach of the very rule that this variant must break."""
    return next((broken for broken in result.broken if broken.startswith(f"{rule}: ")), None)
