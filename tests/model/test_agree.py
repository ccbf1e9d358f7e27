"""Both models say the same of every slip that both know; what they said is of today's sources.

No Spin is needed: what it found is kept (``promela/VERDICTS.json``), and ``promela/test_spin.py``
finds it anew wherever Spin is installed.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.model import agree, invariants, verdicts
from tests.model.promela import spin
from tests.model.promela import verdicts as of_spin
from tests.model.variants import VARIANTS
from tests.model.worlds import QUICK

PAGES = Path(__file__).parents[2] / "docs"


def disagreements(
    python: Mapping[str, frozenset[str]], promela: Mapping[str, frozenset[str]]
) -> list[str]:
    """Each (variant, promise) of which one model says that it holds, and the other that not."""
    found = []
    for here, there in agree.SAME.items():
        asked = agree.asked(there)
        told, answered = agree.in_promela(python[here]) & asked, promela[there] & asked
        found += [
            f"{here}: {promise} {'breaks' if promise in told else 'holds'} in Python,"
            f" and not so in Promela ({there})"
            for promise in sorted(told ^ answered)
            if (here, promise) not in agree.UNEQUAL
        ]
    return found


def test_both_models_say_the_same() -> None:
    assert not disagreements(verdicts.read().variants, of_spin.read().variants)


def test_every_slip_breaks_something_in_both() -> None:
    python, promela = verdicts.read().variants, of_spin.read().variants
    for here, there in agree.SAME.items():
        assert VARIANTS[here].caught_as in python[here], here
        assert spin.VARIANTS[there].breaks in promela[there], there


@pytest.mark.parametrize("world", agree.WORLDS)
def test_neither_is_broken_as_it_stands(world: str) -> None:
    assert not verdicts.read().configurations[world]
    for configuration in agree.WORLDS[world]:
        assert not of_spin.read().configurations[configuration]


def test_every_world_is_known_to_both_or_says_why_not() -> None:
    assert {*QUICK} == {*agree.WORLDS} | {*agree.WORLDS_ONLY_IN_PYTHON}
    assert {*QUICK} == {*verdicts.read().configurations}
    assert {*spin.CONFIGURATIONS} == {each for them in agree.WORLDS.values() for each in them}


@pytest.mark.parametrize("side", ["Python", "Promela"])
@pytest.mark.parametrize("here", agree.SAME)
def test_one_altered_verdict_is_noticed(here: str, side: str) -> None:
    python, promela = dict(verdicts.read().variants), dict(of_spin.read().variants)
    if side == "Python":
        python[here] ^= {VARIANTS[here].caught_as, invariants.DUPLICATE, invariants.UNHEARD}
    else:
        there = agree.SAME[here]
        promela[there] ^= {spin.VARIANTS[there].breaks}
    assert disagreements(python, promela)


def test_where_they_may_differ_they_do() -> None:
    python, promela = verdicts.read().variants, of_spin.read().variants
    for here, promise in agree.UNEQUAL:
        there = agree.SAME[here]
        assert (promise in agree.in_promela(python[here])) is not (promise in promela[there]), here


def test_what_python_said_is_of_these_sources() -> None:
    assert verdicts.read().of == verdicts.searched(), "run: python -m tests.model.verdicts"


def test_what_spin_said_is_of_these_sources() -> None:
    said = of_spin.read()
    assert said.of == of_spin.searched(), "run: python -m tests.model.promela.verdicts"
    assert {*said.configurations} == {*spin.CONFIGURATIONS}
    assert {*said.variants} == {*spin.VARIANTS}


def test_the_table_in_promela_is_the_products_own() -> None:
    assert (spin.HERE / "table.pml").read_text() == spin.table()


def test_every_variant_is_known_to_both_or_says_why_not() -> None:
    assert {*VARIANTS} == {*agree.SAME} | {*agree.ONLY_IN_PYTHON}
    assert {*spin.VARIANTS} == {*agree.SAME.values()} | {*agree.ONLY_IN_PROMELA}
    assert not agree.SAME.keys() & agree.ONLY_IN_PYTHON.keys()
    assert not {*agree.SAME.values()} & agree.ONLY_IN_PROMELA.keys()
    assert len({*agree.SAME.values()}) == len(agree.SAME)


def test_every_promise_is_known_to_both_or_says_why_not() -> None:
    caught = {variant.caught_as for variant in VARIANTS.values()}
    assert caught <= {*agree.PROMISES} | {*agree.ONLY_ASKED_HERE}
    assert not agree.PROMISES.keys() & agree.ONLY_ASKED_HERE.keys()
    assert {*agree.PROMISES.values()} == {*spin.AT_ONCE, spin.IN_TIME}


@pytest.mark.parametrize("name", spin.VARIANTS)
def test_a_variant_in_promela_stands_in_its_table(name: str) -> None:
    row = f"| `{name}` | "
    line = next(one for one in _promela().splitlines() if one.startswith(row))
    assert line.endswith(f"| `{spin.VARIANTS[name].breaks}` |")


def _promela() -> str:
    return (PAGES / "model-promela.md").read_text()
