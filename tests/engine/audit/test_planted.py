"""Each corruption that is planted is found by the very invariant that is about it."""

from __future__ import annotations

import re

import pytest

from publisher.engine.audit import CATALOGUE
from tests.engine.audit.planted import PLANTED
from tests.engine.audit.ruin import Ruin

BY_ID = {one.id: one for one in CATALOGUE}


def test_two_or_more_are_planted_for_each_invariant() -> None:
    assert list(PLANTED) == [one.id for one in CATALOGUE]
    assert min(map(len, PLANTED.values())) >= 2


@pytest.mark.parametrize(
    ("asked", "sql"),
    [pytest.param(asked, sql, id=f"{asked}-{number}")
     for asked, planted in PLANTED.items() for number, sql in enumerate(planted, 1)],
)  # fmt: skip
def test_it_is_found(ruin: Ruin, asked: str, sql: str) -> None:
    assert not list(ruin.broken([BY_ID[asked]]))
    named = re.sub(r"\[([a-z0-9, ]+)\]", lambda name: str(ruin.past.jobs[name[1]]), sql)
    with ruin.undone():
        assert sum(changed for changed in (ruin.change(one) for one in named.split(";")) if changed)
        assert list(ruin.broken([BY_ID[asked]])) == [asked]
