"""Each broken variant is caught, as what it is, by a trace that a person can follow."""

from __future__ import annotations

import pytest

from tests.model.explore import explore
from tests.model.variants import HOLES, VARIANTS, Variant


@pytest.mark.timeout(300)
@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)
def test_a_broken_variant_is_caught(variant: Variant) -> None:
    result = explore(variant.broken(), ways_out=False)
    assert result.broken == variant.caught_as, "\n".join(result.trace)
    assert result.trace


@pytest.mark.timeout(300)
@pytest.mark.parametrize("hole", HOLES.values(), ids=HOLES)
def test_a_hole_that_the_code_has_shows_itself(hole: Variant) -> None:
    result = explore(hole.broken(), ways_out=False)
    assert result.broken == hole.caught_as


def test_there_are_variants_enough_and_no_rule_twice() -> None:
    assert len(VARIANTS) >= 20
    assert len({variant.rule for variant in VARIANTS.values()}) == len(VARIANTS)
