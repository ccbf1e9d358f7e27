"""The page about the model says what there is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.model import agree
from tests.model.coverage import NEVER, OF_LOST_COMMITS, UNMADE
from tests.model.variants import VARIANTS
from tests.model.worlds import QUICK

PAGE = (Path(__file__).parents[2] / "docs" / "model.md").read_text()


@pytest.mark.parametrize("name", VARIANTS)
def test_a_variant_stands_in_the_table(name: str) -> None:
    assert f"| {name} | {VARIANTS[name].caught_as} |" in PAGE


@pytest.mark.parametrize("name", QUICK)
def test_a_world_stands_in_the_table(name: str) -> None:
    assert f"\n| {name} | " in PAGE


def test_the_two_models_are_counted() -> None:
    both, here, there = map(len, (agree.SAME, agree.ONLY_IN_PYTHON, agree.ONLY_IN_PROMELA))
    told = f"{both} slips are known to both, {here} to this one alone, {there} to Promela's"
    assert told in " ".join(PAGE.split())


def test_the_kept_traces_are_counted() -> None:
    kept = (Path(__file__).parent / "traces.jsonl").read_text().splitlines()
    assert f"keeps {len(kept)} traces" in " ".join(PAGE.split())


@pytest.mark.parametrize("move", [*NEVER, *UNMADE, *sorted(OF_LOST_COMMITS)])
def test_a_row_that_no_kept_trace_takes_says_why_not(move: tuple[str, str, str]) -> None:
    was, event, to = move
    rows = [line for line in PAGE.splitlines() if f"→ {to}, `{event}` |" in line]
    assert any(was in line.partition("→")[0] for line in rows)
