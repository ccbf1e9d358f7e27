"""A few plans of ``make crash-restores`` in every ``make test``, and one of its broken variants."""

from __future__ import annotations

import pytest
from publisher_broken_variants.restores import VARIANTS

from publisher.rehearsal.restores.campaign import prove, told
from publisher.rehearsal.restores.crew import each
from publisher.rehearsal.restores.plan import ENDS, WAYS, planned

SEEDS = (1, 3, 7)
"""In place, by ``publisher db restore``, and a clone without its key."""


@pytest.mark.timeout(300)
def test_what_a_restored_journal_lacks_is_not_sent_again() -> None:
    results = [*each(map(planned, SEEDS), lanes=2)]
    assert len(results) == len(SEEDS)
    assert not [told(result) for result in results if result.broken]
    assert any(result.verdict.causes for result in results)


@pytest.mark.timeout(300)
def test_a_guard_that_never_compares_is_caught() -> None:
    name = "the guard never compares"
    assert prove(lanes=1, say=lambda _: None, names=[name])[name] is not None


def test_a_round_of_seeds_has_every_way_and_every_end() -> None:
    plans = [planned(seed) for seed in range(1, 3 * len(WAYS) + 1)]
    assert {plan.way for plan in plans} == {*WAYS}
    assert {plan.end for plan in plans} == {*ENDS}


def test_a_seed_always_means_the_same() -> None:
    assert planned(217) == planned(217)
    name = "the guard never compares"
    assert VARIANTS[name].aim(name, 3) == VARIANTS[name].aim(name, 3)
