"""Many sequences: ``python -m tests.stateful --seeds 1..200``; each seed can be played again."""

from __future__ import annotations

import argparse
import sys
import time
from contextlib import ExitStack

from publisher.engine.transitions import TABLE
from tests.conftest import chosen
from tests.postgres import running
from tests.stateful.life import Stage
from tests.stateful.settings import EXAMPLES, play
from tests.stateful.ways import EXCUSED


def main() -> int:
    """Play seed after seed; the first that breaks something is shrunk, shown, and ends it."""
    parser = argparse.ArgumentParser(prog="python -m tests.stateful", description=__doc__)
    parser.add_argument("--seeds", default="1..20", metavar="A..B")
    parser.add_argument("--examples", type=int, default=EXAMPLES, help="sequences for each seed")
    parser.add_argument("--no-shrink", action="store_true", help="show what broke as it was found")
    given = parser.parse_args()
    first, _, last = given.seeds.partition("..")
    with ExitStack() as stack:
        stage = stack.enter_context(Stage.open(stack.enter_context(running(chosen()[0]))))
        for seed in range(int(first), int(last or first) + 1):
            began = time.monotonic()
            try:
                play(stage, at=seed, examples=given.examples, shrinks=not given.no_shrink)
            except AssertionError as error:
                steps = "\n".join(getattr(error, "__notes__", ()))
                sys.stdout.write(f"seed {seed}: {error}\n{steps}\n")
                sys.stdout.write(f"Again: python -m tests.stateful --seeds {seed}\n")
                return 1
            sys.stdout.write(f"seed {seed}: kept, {time.monotonic() - began:.0f} s\n")
            sys.stdout.flush()
        left = [row for row in TABLE if row not in stage.verbs.taken and row not in EXCUSED]
        never = ", ".join(f"{state}/{event}" for state, event in left) or "none"
        sys.stdout.write(f"Rows of the table that chance never went through: {never}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
