"""Holes that the model found, in the engine itself and on PostgreSQL, closed since.

An open one is marked as expected to fail; whoever closes it takes the mark away, and moves the hole
in ``variants.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from publisher.engine import ledger
from publisher.engine.guard import Guard
from publisher.engine.job import JobId, State
from publisher.engine.ledger import Conn
from publisher.engine.witness import Cause
from publisher.witness.file import File
from tests.engine.ground import Ground, Lane, not_sent
from tests.postgres import Postgres


@pytest.fixture
def own_ground(pg: Postgres) -> Iterator[Ground]:
    with Ground.open(pg) as ground:
        yield ground


@pytest.fixture
def lane(own_ground: Ground) -> Lane:
    return own_ground.lane()


def _lose_commits(lane: Lane) -> None:
    """Whoever asked the witness first has opened the quarantine; nothing may be let go for long."""
    ledger.open_quarantine(
        lane.ground.conn, Cause.TICK, strict=True, absent_after=3_600.0, who="test"
    )


def _is_claimed(lane: Lane, job: JobId) -> bool:
    """Whether the freed job is at once anybody's to send."""
    assert lane.ground.state(job) is State.SCHEDULED
    lane.ground.sql("UPDATE jobs SET run_at = now() WHERE id = %s", job)
    return bool(lane.claim(queues=[lane.ground.row(job)["queue"]]))


def test_a_send_that_its_file_frees_after_a_loss_is_looked_for_first(lane: Lane) -> None:
    sending = lane.sending()
    _lose_commits(lane)
    ledger.record_late(
        lane.ground.conn, sending.id, sending.token, not_sent(), who="test", event="spool_read"
    )
    assert not _is_claimed(lane, sending.id)


def test_a_send_that_its_own_worker_frees_after_a_loss_is_looked_for_first(lane: Lane) -> None:
    """Its first settle was lost with all that followed; with its connection it lost the answer."""
    sending = lane.sending()
    _lose_commits(lane)
    assert lane.end(sending, not_sent()).done
    assert not _is_claimed(lane, sending.id)


@pytest.fixture
def two(own_ground: Ground, tmp_path: Path) -> Iterator[list[tuple[Guard, Conn]]]:
    """Two workers' guards, each admitted, and a tick further than that."""
    own_ground.lane().put(State.SCHEDULED)
    engine = own_ground.engine
    with engine.connect_driver() as one, engine.connect_driver() as another:
        both = [(Guard(File(tmp_path / "witness")), conn) for conn in (one, another)]
        for guard, conn in both:
            guard.admit(conn)
        for guard, conn in both:
            guard.floor = ledger.raise_tick(conn, ceiling=guard.ceiling, apart=0.0)
        yield both


def test_every_living_worker_notices_that_the_database_went_back(
    own_ground: Ground, two: list[tuple[Guard, Conn]]
) -> None:
    own_ground.sql("UPDATE tick SET value = value - 2")
    assert [guard.beat(conn) for guard, conn in two] == [False, False]
    assert len(own_ground.sql("SELECT id FROM quarantines")) == 1
    for guard, conn in two:  # each has a new connection now, and goes on
        guard.admit(conn)
        guard._ticked_at = 0.0
    assert [guard.beat(conn) for guard, conn in two] == [True, True]
    assert len(own_ground.sql("SELECT id FROM quarantines")) == 1


def test_a_loss_that_a_new_worker_found_is_noticed_by_the_old_ones(
    own_ground: Ground, two: list[tuple[Guard, Conn]], tmp_path: Path
) -> None:
    """Nothing shows it to them: their count is as the new one left it."""
    own_ground.sql("UPDATE tick SET value = value - 2, marks = '{}'")
    with own_ground.engine.connect_driver() as conn:
        Guard(File(tmp_path / "witness")).admit(conn)
    assert [guard.beat(conn) for guard, conn in two] == [False, False]


def test_a_quarantine_that_is_not_for_lost_commits_sends_nobody_away(
    own_ground: Ground, two: list[tuple[Guard, Conn]]
) -> None:
    ledger.open_quarantine(
        own_ground.conn, Cause.TIMELINE, strict=False, absent_after=60.0, who="test"
    )
    assert [guard.beat(conn) for guard, conn in two] == [True, True]


def test_nothing_is_claimed_under_a_number_that_is_another_runs(own_ground: Ground) -> None:
    """Put back to before the old run registered; the new one was given its number."""
    lane = own_ground.lane()
    lane.put(State.SCHEDULED)
    number, _ = ledger.register(own_ground.conn, host="h", boot_id="b", pid=1, file="new run")
    own_ground.sql("UPDATE jobs SET run_at = now()")
    assert not lane.claim(incarnation=number, file="old run")
    assert not lane.claim(incarnation=number + 1, file="new run")
    assert lane.claim(incarnation=number, file="new run")
