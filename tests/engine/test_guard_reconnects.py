"""A database that went back while its worker had no connection is known by the worker's memory."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from publisher.engine import ledger
from publisher.engine.guard import Guard
from publisher.engine.job import State
from publisher.engine.witness import Held, Record, WitnessUnreachable
from publisher.engine.worker.admission import Admission
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


def test_a_clean_end_agrees_with_no_database_that_went_back(
    own_ground: Ground, tmp_path: Path
) -> None:
    """Put back since the last beat: the last record would hide it from whoever comes next."""
    ground = own_ground
    guard = Guard(File(tmp_path / "witness"), step=STEP)
    guard.admit(ground.conn)
    job = ground.lane().put(State.SCHEDULED)
    guard.floor = ledger.raise_tick(ground.conn, ceiling=guard.ceiling, apart=0.0)
    ground.sql("UPDATE tick SET value = value - 1")
    guard.close(ground.conn)
    assert [row["cause"] for row in ground.sql("SELECT cause FROM quarantines")] == ["went_back"]
    assert ground.row(job.id)["hold_reason"] == "quarantine"


class Away:
    """A store that is out of reach for a while."""

    def __init__(self, store: File) -> None:
        self.store, self.is_away = store, False
        self.name = store.name

    def read(self) -> Held | None:
        if self.is_away:
            message = "nobody answers"
            raise WitnessUnreachable(message)
        return self.store.read()

    def write(self, record: Record, *, over: str | None) -> str:
        return self.store.write(record, over=over)

    def replace(self, record: Record) -> str:
        return self.store.replace(record)


def test_a_database_that_went_back_is_claimed_from_by_nobody_while_its_witness_is_away(
    own_ground: Ground, tmp_path: Path
) -> None:
    ground = own_ground
    store = Away(File(tmp_path / "witness"))
    guard = Guard(store, step=STEP)
    admission = Admission(guard, SimpleNamespace(floor=0, begun=0))  # type: ignore[arg-type]
    admission.hold(ground.conn)
    assert admission.may_claim(ground.conn)
    ground.lane().put(State.SCHEDULED)
    guard.floor = ledger.raise_tick(ground.conn, ceiling=guard.ceiling, apart=0.0)
    ground.sql("UPDATE tick SET value = value - 1, raised_at = now()")
    store.is_away, guard._ticked_at = True, 0.0
    admission.hold(ground.conn)
    assert not admission.may_claim(ground.conn)
    store.is_away, admission.tried_at = False, 0.0
    admission.hold(ground.conn)
    assert [row["cause"] for row in ground.sql("SELECT cause FROM quarantines")] == ["went_back"]
    assert admission.may_claim(ground.conn)


def test_a_fleet_that_starts_at_once_is_no_sign_of_a_loss(
    own_ground: Ground, tmp_path: Path
) -> None:
    """Each notes a mark beside what it read of the witness, which is old news by then."""
    ground, store = own_ground, File(tmp_path / "witness")
    Guard(store, step=STEP).admit(ground.conn)
    ground.lane().put(State.SCHEDULED)
    for number in range(400):
        ledger.note_mark(ground.conn, f"{number}", given="of before")
    Guard(store, step=STEP).admit(ground.conn)
    assert ground.sql("SELECT cause FROM quarantines") == []
