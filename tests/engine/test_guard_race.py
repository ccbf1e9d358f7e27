"""A witness that another process writes while one compares is no sign of lost commits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from publisher.engine import ledger
from publisher.engine.guard import Guard
from publisher.engine.job import State
from publisher.engine.witness import Held, Record
from publisher.witness.file import File
from tests.engine.ground import Ground

STEP = 3


class Overtaken:
    """A store at whose first read another process does something, before or after it."""

    name = "overtaken"

    def __init__(self, real: File, other: Callable[[], None], *, before: bool) -> None:
        self._real, self._other, self._before = real, other, before
        self._reads = 0

    def read(self) -> Held | None:
        self._reads += 1
        if self._reads == 1 and self._before:
            self._other()
        held = self._real.read()
        if self._reads == 1 and not self._before:
            self._other()
        return held

    def write(self, record: Record, *, over: str | None) -> str:
        return self._real.write(record, over=over)

    def replace(self, record: Record) -> str:
        return self._real.replace(record)


@pytest.mark.parametrize("before", [True, False])
def test_another_process_tells_the_witness_while_this_one_compares(
    own_ground: Ground, tmp_path: Path, *, before: bool
) -> None:
    ground, real = own_ground, File(tmp_path / "witness")
    Guard(real, step=STEP).admit(ground.conn)
    ground.lane().put(State.PUBLISHED)

    def other() -> None:
        """Start, and go on for longer than the old record allows."""
        peer = Guard(real, step=STEP)
        with ground.engine.connect_driver() as conn:
            for _ in range(2):
                peer.admit(conn)
                for _ in range(STEP):
                    ledger.raise_tick(conn, ceiling=peer.ceiling, apart=0.0)

    Guard(Overtaken(real, other, before=before), step=STEP).admit(ground.conn)
    assert ground.sql("SELECT cause FROM quarantines") == []
