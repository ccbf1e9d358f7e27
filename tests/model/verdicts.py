"""Every promise that each variant of the model in Python breaks, not only the first, written down.

    python -m tests.model.verdicts

searches the worlds, and each variant that the other model has too, which takes some minutes, and
writes ``VERDICTS.json``, as ``promela.verdicts`` does for the other.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Final

from publisher.engine.transitions import TABLE
from tests.model.agree import SAME
from tests.model.explore import explore
from tests.model.invariants import NO_WAY_OUT
from tests.model.promela import verdicts as of_spin
from tests.model.promela.verdicts import Verdicts
from tests.model.state import FENCES, World
from tests.model.variants import TRIGGER, VARIANTS
from tests.model.worlds import QUICK

HERE: Final = Path(__file__).parent
KEPT: Final = HERE / "VERDICTS.json"
_SOURCES: Final = (
    "state", "ledger", "tidying", "invariants", "explore", "worlds", "variants",
    *(f"acts/{act}" for act in (
        "all", "losses", "people", "platform", "reconciler", "rescue", "sending", "worker",
    )),
)  # fmt: skip


def read() -> Verdicts:
    """Those that are kept; worlds are its configurations."""
    return of_spin.read(KEPT)


def searched() -> str:
    """A hash of the model, of its worlds and variants, and of the transition table."""
    whole = hashlib.sha256(repr(sorted(TABLE.items())).encode())
    for source in _SOURCES:
        whole.update((HERE / f"{source}.py").read_bytes())
    return whole.hexdigest()


def world_of(name: str) -> World:
    """Where a variant is searched to the end: with a second send, and without what does not matter

    to those of its world.
    """
    variant = VARIANTS[name]
    # The table stops nothing here, it only speaks; and what it says is asked of both models.
    world = variant.broken()
    world = replace(world, broken=world.broken - {TRIGGER})
    match variant.world:
        case "kernel" if variant.rule in FENCES:
            # Claims that were taken away may go on: every one of them is another state.
            return replace(world, foreign=False, faults=(), answers=("published",))
        case "kernel":
            return replace(world, foreign=False, faults=(("crash", 1), ("unacknowledged", 1)))
        case "two lookers":
            return replace(world, attempts=3, people=False)
        case "host":
            return replace(world, attempts=2, faults=(("crash", 1), ("reboot", 1)))
        case _:
            return world


def broken(name: str) -> frozenset[str]:
    """Search on past the first broken rule, to the end."""
    ways_out = VARIANTS[name].caught_as == NO_WAY_OUT
    return frozenset(explore(world_of(name), goes_on=True, ways_out=ways_out).all_broken)


def _main() -> None:
    """Search what is not kept of these sources; each is written down as soon as it is found."""
    of = searched()
    kept = read() if KEPT.exists() else None
    worlds = dict(kept.configurations) if kept and kept.of == of else {}
    variants = dict(kept.variants) if kept and kept.of == of else {}
    for name in [each for each in QUICK if each not in worlds]:
        worlds[name] = frozenset(explore(QUICK[name], goes_on=True).all_broken)
        of_spin.write(Verdicts(of, worlds, variants), KEPT)
        of_spin.say(name, worlds[name])
    for name in [each for each in SAME if each not in variants]:
        variants[name] = broken(name)
        of_spin.write(Verdicts(of, worlds, variants), KEPT)
        of_spin.say(name, variants[name])


if __name__ == "__main__":
    _main()
