"""Any sequence of what may happen keeps the promise, and every transition is gone through."""

from __future__ import annotations

import pytest

from tests.stateful.life import Stage
from tests.stateful.settings import EXAMPLES, SEED, play


@pytest.mark.timeout(600)
def test_every_sequence_keeps_the_promise(stage: Stage) -> None:
    play(stage, at=SEED, examples=EXAMPLES)
