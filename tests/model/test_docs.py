"""The page about the model says what there is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.model.variants import VARIANTS
from tests.model.worlds import QUICK

PAGE = (Path(__file__).parents[2] / "docs" / "model.md").read_text()


@pytest.mark.parametrize("name", VARIANTS)
def test_a_variant_stands_in_the_table(name: str) -> None:
    assert f"| {name} | {VARIANTS[name].caught_as} |" in PAGE


@pytest.mark.parametrize("name", QUICK)
def test_a_world_stands_in_the_table(name: str) -> None:
    assert f"\n| {name} | " in PAGE
