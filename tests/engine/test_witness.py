"""What the database and its witness say of each other, and what a damaged record is."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from publisher.engine.witness import (
    Cause,
    Doubted,
    Record,
    Stands,
    WitnessUnreadable,
    doubt_of,
)

STEP = 60
RECORD = Record("one", "77", 1, 3, 500, "aa", "2026-11-30T12:00:00+00:00")
STANDS = Stands(
    deployment="one", system="77", timeline=1, generation=3, tick=470, marks=["99", "aa", "bb"],
    raised_at=datetime(2026, 11, 30, tzinfo=UTC), quorum=False, used=True,
)  # fmt: skip


def test_they_agree() -> None:
    assert doubt_of(STANDS, RECORD, step=STEP) is None


@pytest.mark.parametrize("tick", [440, 500])
def test_the_tick_may_be_anywhere_within_the_step(tick: int) -> None:
    assert doubt_of(replace(STANDS, tick=tick), RECORD, step=STEP) is None


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        ({"tick": 439}, Cause.TICK),
        ({"tick": 501}, Cause.TICK),
        ({"marks": ["99", "bb"]}, Cause.MARK),
        ({"marks": []}, Cause.MARK),
        ({"generation": 2}, Cause.GENERATION),
        ({"system": "78"}, Cause.SYSTEM),
        ({"timeline": 2}, Cause.TIMELINE),
        ({"timeline": 0}, Cause.TIMELINE),
    ],
)
def test_each_sign_of_a_loss_is_strict(change: dict[str, object], cause: Cause) -> None:
    assert doubt_of(replace(STANDS, **change), RECORD, step=STEP) == Doubted(cause, strict=True)  # type: ignore[arg-type]


def test_a_failover_that_lost_no_commit_is_looked_after_and_no_more() -> None:
    stands = replace(STANDS, timeline=2, quorum=True)
    assert doubt_of(stands, RECORD, step=STEP) == Doubted(Cause.TIMELINE, strict=False)


@pytest.mark.parametrize(
    "change", [{"tick": 1}, {"marks": []}, {"generation": 1}, {"system": "78"}]
)
def test_a_quorum_excuses_nothing_else(change: dict[str, object]) -> None:
    stands = replace(STANDS, timeline=2, quorum=True, **change)  # type: ignore[arg-type]
    doubt = doubt_of(stands, RECORD, step=STEP)
    assert doubt is not None
    assert doubt.strict


def test_a_later_generation_is_no_sign() -> None:
    """A dump raises it before the witness hears of it."""
    assert doubt_of(replace(STANDS, generation=4), RECORD, step=STEP) is None


@pytest.mark.parametrize("used", [True, False])
def test_without_a_witness_only_a_used_database_is_looked_after(*, used: bool) -> None:
    expected = Doubted(Cause.NO_WITNESS, strict=False) if used else None
    assert doubt_of(replace(STANDS, used=used), None, step=STEP) == expected


def test_a_record_comes_back_as_it_was_written() -> None:
    assert Record.from_json(RECORD.to_json()) == RECORD


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{}",
        b"[]",
        b"null",
        b"12",
        b"\xff\xfe",
        RECORD.to_json()[:-20],
        RECORD.to_json().replace(b"500", b'"500"'),
        RECORD.to_json().replace(b"500", b"true"),
        RECORD.to_json().replace(b"500", b"-1"),
        RECORD.to_json().replace(b"500", b"500.0"),
        RECORD.to_json().replace(b'"aa"', b"null"),
        b" " * 5000 + RECORD.to_json(),
    ],
)
def test_anything_else_is_unreadable(text: bytes) -> None:
    with pytest.raises(WitnessUnreadable):
        Record.from_json(text)


def test_a_step_that_was_made_smaller_is_no_sign() -> None:
    stands = replace(STANDS, tick=445)
    assert doubt_of(stands, RECORD, step=10) == Doubted(Cause.TICK, strict=True)
    assert doubt_of(stands, replace(RECORD, step=60), step=10) is None


def test_a_record_of_before_steps_were_kept_is_read() -> None:
    text = RECORD.to_json().replace(b', "step": 0', b"")
    assert b"step" not in text
    assert Record.from_json(text) == RECORD
