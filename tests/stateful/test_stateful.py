"""Any sequence of what may happen keeps the promise, and every transition is gone through."""

from __future__ import annotations

import pytest

from publisher.engine.job import State
from publisher.engine.transitions import TABLE, Event
from tests.stateful.finish import finish
from tests.stateful.life import Life, Stage
from tests.stateful.plain_ways import PLAIN_WAYS
from tests.stateful.settings import EXAMPLES, SEED, play
from tests.stateful.ways import EXCUSED, WAYS, Way

_ALL = {**WAYS, **PLAIN_WAYS}
_IDS = [f"{state}, {event}" for state, event in _ALL]


@pytest.mark.timeout(600)
def test_every_sequence_keeps_the_promise(stage: Stage) -> None:
    play(stage, at=SEED, examples=EXAMPLES)


@pytest.mark.parametrize("row", _ALL, ids=_IDS)
def test_a_way_that_chance_seldom_goes(stage: Stage, row: tuple[State, Event]) -> None:
    life = Life(stage)
    before = stage.verbs.taken[row]
    try:
        way = Way(life)
        _ALL[row](way)
        assert stage.verbs.taken[row] > before, "it leads elsewhere"
        finish(life, way.desk)
    finally:
        life.end()


def test_every_row_of_the_table_was_gone_through(stage: Stage) -> None:
    """By chance or by a way; it comes last in this module."""
    taken = {row for row, times in stage.verbs.taken.items() if times}
    assert not taken - set(TABLE)
    missing = set(TABLE) - taken - set(EXCUSED)
    assert not missing, sorted(f"{state}, {event}" for state, event in missing)
    assert not taken & set(EXCUSED), "it is reached by now: excuse it no longer"
