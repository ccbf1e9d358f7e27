"""Every state of every quick world keeps the promise, and an end can be reached from each."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.model.coverage import ROWS, UNMADE
from tests.model.explore import Explored, explore
from tests.model.invariants import BEYOND
from tests.model.state import World
from tests.model.worlds import QUICK

PAGE = (Path(__file__).parents[2] / "docs" / "model.md").read_text()
FEWEST = 50_000
"""States of all quick worlds together: a rule by which too little is enabled proves nothing."""


@pytest.fixture(scope="module")
def explored() -> dict[str, Explored]:
    return {name: explore(world) for name, world in QUICK.items()}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("world", QUICK.values(), ids=QUICK)
def test_nothing_is_broken_in(world: World, explored: dict[str, Explored]) -> None:
    result = explored[world.name]
    assert not result.broken, f"{result.broken}:\n" + "\n".join(result.trace)


@pytest.mark.parametrize("name", QUICK)
def test_the_page_counts_what_was_searched(name: str, explored: dict[str, Explored]) -> None:
    found = explored[name]
    row = next(line for line in PAGE.splitlines() if line.startswith(f"| {name} |"))
    assert row.endswith(f"| {found.states:,} | {found.moves:,} |")


def test_the_worlds_are_large_enough_to_mean_something(explored: dict[str, Explored]) -> None:
    assert sum(result.states for result in explored.values()) >= FEWEST


def test_the_model_makes_the_moves_of_the_transition_table_and_no_others(
    explored: dict[str, Explored],
) -> None:
    made: Counter[tuple[str, str, str]] = Counter()
    for result in explored.values():
        made += result.events
    beyond = {(was, event, to) for (was, event), to in BEYOND.items()}
    assert set(made) <= ROWS | beyond
    assert ROWS - set(made) == set(UNMADE), "made or unmade, and not said so"
