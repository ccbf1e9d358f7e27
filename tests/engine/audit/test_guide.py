"""The guide names every invariant, in the catalogue's own words."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

import pytest

from publisher.engine.audit import CATALOGUE, Invariant, Severity

GUIDE = Path(__file__).parents[3] / "docs" / "audit.md"

STAKES = {
    Severity.DUPLICATE: "A post may be sent twice, or was.",
    Severity.LOST: "Something approved may never be sent, and nothing says so.",
    Severity.SILENT: "Something waits for a person or a worker, and nobody comes.",
    Severity.UNTRUE: "A row says what other rows deny.",
    Severity.CUSTODY: "Nobody answers for a row: its owner, its holder or its evidence is gone.",
}


def tables() -> str:
    """The part of the guide that the catalogue makes."""
    parts: list[str] = []
    for severity, group in groupby(CATALOGUE, key=lambda one: one.severity):
        parts += [f"## {severity.value.title()}", "", STAKES[severity], "",
                  "| id | holds | when it does not |", "|---|---|---|"]  # fmt: skip
        parts += [f"| {one.id} | {one.title} | {one.meaning} |" for one in group]
        parts.append("")
    return "\n".join(parts)


def test_the_guide_holds_the_catalogue() -> None:
    assert GUIDE.read_text().endswith(tables())


def test_ids_are_given_once_and_stand_in_their_order() -> None:
    ids = [one.id for one in CATALOGUE]
    assert len(set(ids)) == len(ids) >= 34
    for letter, group in groupby(ids, key=lambda text: text[0]):
        assert list(group) == [
            f"{letter}{number:02}" for number in range(1, 1 + sum(i[0] == letter for i in ids))
        ]


@pytest.mark.parametrize("one", CATALOGUE, ids=lambda one: one.id)
def test_each_says_what_to_do(one: Invariant) -> None:
    assert one.title[0].islower()
    assert one.meaning.endswith((".", "reconciler")) or "publisher " in one.meaning
