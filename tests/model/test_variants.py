"""Each broken variant is caught, as what it is, by a trace that a person can follow."""

from __future__ import annotations

import pytest

from tests.model.explore import explore
from tests.model.invariants import NO_WAY_OUT
from tests.model.variants import VARIANTS, Variant


@pytest.mark.timeout(300)
@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)
def test_a_broken_variant_is_caught(variant: Variant) -> None:
    result = explore(variant.broken(), ways_out=variant.caught_as == NO_WAY_OUT)
    assert result.broken == variant.caught_as, "\n".join(result.trace)
    assert result.trace


def test_there_are_variants_enough_and_no_rule_twice() -> None:
    assert len(VARIANTS) >= 20
    assert len({variant.rule for variant in VARIANTS.values()}) == len(VARIANTS)
