"""Holes that the model found, in the engine itself and on PostgreSQL; the open ones fail there.

Whoever makes the engine keep the rule takes the mark away, and moves the hole in ``variants.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from publisher.engine import ledger
from publisher.engine.guard import Guard
from publisher.engine.job import JobId, State
from publisher.engine.witness import Cause
from publisher.witness.file import File
from tests.engine.ground import Ground, Lane, not_sent
from tests.postgres import Postgres

UNTOLD = (
    "a database that was put back under living connections is noticed by one worker alone: it"
    " brings the count up to the witness's, and the others go on under run numbers that the"
    " database no longer holds, or has given to another"
)


@pytest.fixture
def lane(pg: Postgres) -> Iterator[Lane]:
    with Ground.open(pg) as ground:
        yield ground.lane()


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


@pytest.mark.xfail(strict=True, raises=AssertionError, reason=UNTOLD)
def test_every_living_worker_notices_that_the_database_went_back(
    lane: Lane, tmp_path: Path
) -> None:
    ground = lane.ground
    before = ground.one("SELECT value FROM tick")
    guards = [Guard(File(tmp_path / "witness")) for _ in range(2)]
    with ground.engine.connect_driver() as one, ground.engine.connect_driver() as another:
        both = list(zip(guards, (one, another), strict=True))
        for guard, conn in both:
            guard.admit(conn)
            guard.floor = ledger.raise_tick(conn, ceiling=guard.ceiling, apart=0.0)
        ground.sql("UPDATE tick SET value = %s", before)
        assert [guard.beat(conn) for guard, conn in both] == [False, False]
