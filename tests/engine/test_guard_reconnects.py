"""A database that went back while its worker had no connection is known by the worker's memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from publisher.engine import ledger
from publisher.engine.guard import Guard
from publisher.engine.job import State
from publisher.witness.file import File
from tests.engine.ground import Ground

STEP = 60


@pytest.mark.parametrize("went_back", [True, False])
def test_what_a_guard_saw_outlives_its_connection(
    own_ground: Ground, tmp_path: Path, *, went_back: bool
) -> None:
    """The backup is younger than the witness's record and within its step: only the tick tells."""
    ground = own_ground
    guard = Guard(File(tmp_path / "witness"), step=STEP)
    guard.admit(ground.conn)
    ground.lane().put(State.SCHEDULED)
    then = ground.one("SELECT value FROM tick")
    for _ in range(3):
        guard.floor = ledger.raise_tick(ground.conn, ceiling=guard.ceiling, apart=0.0)
    if went_back:
        ground.sql("UPDATE tick SET value = %s", then)
    with ground.engine.connect_driver() as conn:
        guard.admit(conn)
        guard.admit(conn)
    found = ground.sql("SELECT cause, strict FROM quarantines")
    assert found == ([{"cause": "went_back", "strict": True}] if went_back else [])
    assert guard.may_claim


def test_it_is_remembered_while_the_witness_is_away(own_ground: Ground, tmp_path: Path) -> None:
    ground, file = own_ground, tmp_path / "witness"
    guard = Guard(File(file), step=STEP)
    guard.admit(ground.conn)
    guard.floor = ledger.raise_tick(ground.conn, ceiling=guard.ceiling, apart=0.0)
    ground.sql("UPDATE tick SET value = value - 1")
    aside = file.read_bytes()
    file.write_bytes(b"{")
    guard.admit(ground.conn)
    assert [row["cause"] for row in ground.sql("SELECT cause FROM quarantines")] == [
        "witness_unreadable"
    ]
    assert file.read_bytes() != aside
    guard.admit(ground.conn)
    assert len(ground.sql("SELECT id FROM quarantines")) == 1
