"""How many sequences, how long, and from which seed."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.stateful.life import Stage
from tests.stateful.machine import Happenings

SEED: Final = 5
EXAMPLES: Final = 60
STEPS: Final = 40


def play(
    stage: Stage,
    *,
    at: int,
    examples: int,
    shrinks: bool = True,
    without: Collection[str] = (),
) -> None:
    """Play so many sequences, those of this seed; raises what was broken, with its steps.

    ``without``: rules that are left out, for those who look for something certain.
    """
    left_out = dict.fromkeys(without)
    played = type("Happenings", (Happenings,), {"stage": stage, **left_out})
    how = settings(
        max_examples=examples,
        stateful_step_count=STEPS,
        deadline=None,
        database=None,
        print_blob=False,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink] if shrinks else [Phase.generate],
    )
    run_state_machine_as_test(seed(at)(played), settings=how)
