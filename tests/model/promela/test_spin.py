"""The second model, in Promela: proved as it stands, and violated in every broken variant."""

from __future__ import annotations

import functools
import os
import tempfile
from pathlib import Path

import pytest

from tests.model.promela import spin, verdicts
from tests.model.promela.spin import AT_REST, BIGGER, CONFIGURATIONS, VARIANTS, Ran

pytestmark = pytest.mark.timeout(900)

NEVER_REACHED = {
    # Second lines of defence, which nothing gets past the first to try.
    ("Coordinator", "out = 2"),  # the promise's index refuses a begin
}
PROVED = {
    **CONFIGURATIONS,
    # By hand: `make model-spin`.
    **(BIGGER if os.environ.get("MODEL_SPIN") == "big" else {}),
}


@pytest.fixture(scope="module", autouse=True)
def _installed() -> None:
    spin.install()
    if absent := spin.missing():
        pytest.skip(f"not installed (Debian packages): {', '.join(absent)}")


@functools.cache
def proved(name: str) -> Ran:
    with tempfile.TemporaryDirectory() as made:
        return spin.search(Path(made), spin.defines(PROVED[name]), "promise", optimise=1)


@pytest.mark.parametrize("name", PROVED)
def test_the_promise_holds_in_every_state(name: str) -> None:
    ran = proved(name)
    assert ran.whole, ran.said
    assert not ran.violated, ran.said
    assert ran.states > 10_000
    if name in CONFIGURATIONS:
        assert not verdicts.read().configurations[name]


@pytest.mark.parametrize("name", VARIANTS)
def test_a_broken_variant_violates_what_is_written_down(name: str, tmp_path: Path) -> None:
    variant = VARIANTS[name]
    broken = spin.broken(tmp_path, name)
    assert variant.breaks in broken
    assert {*broken} == verdicts.read().variants[name]
    # A variant is no proof where the same sizes break without it.
    assert any(spin.trail(tmp_path, spin.defines(variant.sizes, name.upper())))


@pytest.mark.parametrize("name", ["rescue_requeues_sending", "nobody_rescues_a_claim"])
def test_without_its_fault_a_variant_holds(name: str, tmp_path: Path) -> None:
    variant = VARIANTS[name]
    ran = spin.search(tmp_path, spin.defines(variant.sizes), variant.breaks)
    assert ran.whole
    assert not ran.violated


def test_it_comes_to_rest(tmp_path: Path) -> None:
    """When faults stop, it ends or is a doubt that shows; nothing stays claimed or sending."""
    ran = spin.search(tmp_path, spin.defines(AT_REST), "comes_to_rest", optimise=1)
    assert ran.whole
    assert not ran.violated, ran.said


def test_nothing_goes_round_for_ever(tmp_path: Path) -> None:
    """No cycle at all: so what holds at the end of every run is what every run comes to."""
    ran = spin.search(tmp_path, spin.defines(AT_REST), "", optimise=1, endless=True)
    assert ran.whole
    assert not ran.violated, ran.said


def test_every_line_of_the_model_is_reached() -> None:
    never = frozenset.intersection(*(proved(name).unreached for name in CONFIGURATIONS))
    lines = {(process, what) for process, _, what in never if what != "-end-"}
    assert {line for line in lines if line[1] != "(dead[me])"} == NEVER_REACHED
