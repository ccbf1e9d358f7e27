"""Searches worlds and prints what it finds.

python -m tests.model.explain                     # the larger worlds: make model
python -m tests.model.explain --quick             # those of every test run
python -m tests.model.explain "NAME OF A VARIANT" # a shortest trace of what it breaks
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable

from tests.model.explore import Explored, explore
from tests.model.invariants import NO_WAY_OUT
from tests.model.state import World
from tests.model.variants import VARIANTS, Variant
from tests.model.worlds import QUICK, WIDE


def _search(worlds: Iterable[World]) -> int:
    broken = 0
    for world in worlds:
        began = time.monotonic()
        result = explore(world)
        broken += bool(result.broken)
        seconds = time.monotonic() - began
        _say(f"{_told(result)} {seconds:7.1f} s  {result.broken or 'nothing broken'}")
        _say(*result.trace)
    return broken


def _show(variant: Variant) -> int:
    result = explore(variant.broken(), ways_out=variant.caught_as == NO_WAY_OUT)
    _say(f"Without: {variant.rule}", *(f"  and without: {rule}" for rule in variant.with_it))
    _say(*result.trace, result.broken or "nothing is broken")
    return int(result.broken != variant.caught_as)


def _told(result: Explored) -> str:
    world = result.world.name
    return f"{world:24} {result.states:10,} states {result.moves:11,} moves, {result.depth:3} deep"


def _say(*lines: str) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()


def _main(names: list[str]) -> int:
    if not names:
        return _search(WIDE.values())
    if names == ["--quick"]:
        return _search(QUICK.values())
    variants = VARIANTS
    unknown = [name for name in names if name not in variants]
    if unknown:
        _say(f"There is no variant {unknown[0]!r}. There are:", *(f"  {name}" for name in variants))
        return 2
    return max(_show(variants[name]) for name in names)


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
