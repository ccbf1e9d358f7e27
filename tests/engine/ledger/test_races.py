"""People against workers, on two connections, in both orders: one of the two wins, cleanly."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from sqlalchemy import text

from publisher.engine import ledger
from publisher.engine.errors import Conflict
from publisher.engine.job import JobId, State
from publisher.engine.ledger import Claimed, Moved
from publisher.engine.transitions import Event
from tests.engine.conftest import Connect
from tests.engine.ground import Driver, Lane, Placed, await_that, key, published
from tests.engine.ledger.test_people import VERBS

S = State
ON_A_CLAIM = [Event.CANCEL, Event.HOLD, Event.RESCHEDULE]
ON_SCHEDULED = [*ON_A_CLAIM, Event.REPLACE]


def begin(conn: Driver, job: Claimed | Placed) -> bool:
    return bool(ledger.begin_send(conn, [key(job)], lease=60, window=50, budget=50))


def waits(lane: Lane, event: Event, job_id: JobId) -> Future[Moved]:
    """A person whose act has to wait for somebody's transaction."""
    pids: list[int] = []

    def act() -> Moved:
        with lane.ground.app.engine.begin() as conn:
            pids.append(conn.scalar(text("SELECT pg_backend_pid()")))
            return VERBS[event](conn, job_id)

    pool = ThreadPoolExecutor(1)
    future = pool.submit(act)
    pool.shutdown(wait=False)
    blocked = "SELECT cardinality(pg_blocking_pids(%s)) > 0"
    await_that(lambda: pids and lane.ground.one(blocked, pids[0]))
    return future


@pytest.mark.parametrize("event", ON_SCHEDULED)
def test_a_person_first_and_the_claim_passes_over(
    lane: Lane, connect: Connect, event: Event
) -> None:
    job_id = lane.add()
    with lane.ground.app.engine.begin() as conn:
        VERBS[event](conn, job_id)
        assert lane.claim(conn=connect()) == []
    claimed = lane.claim()
    assert [job.content for job in claimed] == (['"new"'] if event is Event.REPLACE else [])


@pytest.mark.parametrize("event", ON_A_CLAIM)
def test_a_person_first_and_the_begin_passes_over(
    lane: Lane, connect: Connect, event: Event
) -> None:
    job = lane.claimed()
    with lane.ground.app.engine.begin() as conn:
        VERBS[event](conn, job.id)
        assert not begin(connect(), job)
    assert not begin(connect(), job)
    assert lane.ground.sql("SELECT 1 FROM attempts WHERE job_id = %s", job.id) == []


@pytest.mark.parametrize("event", ON_SCHEDULED)
def test_the_claim_first_and_the_person_acts_on_what_is_claimed(
    lane: Lane, connect: Connect, event: Event
) -> None:
    job_id, worker = lane.add(), connect()
    with worker.transaction():
        (job,) = lane.claim(conn=worker)
        future = waits(lane, event, job_id)
    if event is Event.REPLACE:
        with pytest.raises(Conflict) as refusal:
            future.result(20)
        assert refusal.value.state == S.CLAIMED
        assert begin(worker, job)
    else:
        assert future.result(20).was is S.CLAIMED
        assert not begin(worker, job)


@pytest.mark.parametrize("event", ON_A_CLAIM)
def test_the_begin_first_and_the_person_is_too_late(
    lane: Lane, connect: Connect, event: Event
) -> None:
    job, worker = lane.claimed(), connect()
    with worker.transaction():
        with pytest.raises(ledger.BeginUnacknowledgedError):
            begin(worker, job)  # not committed yet, which is what it complains about
        future = waits(lane, event, job.id)
    with pytest.raises(Conflict) as refusal:
        future.result(20)
    assert (refusal.value.code, refusal.value.state) == ("sending-now", S.SENDING)
    assert lane.ground.state(job.id) is S.SENDING


@pytest.mark.parametrize("event", ON_A_CLAIM)
def test_the_settle_first_and_the_person_is_told_it_is_live(
    lane: Lane, connect: Connect, event: Event
) -> None:
    job, worker = lane.sending(), connect()
    with worker.transaction():
        assert ledger.settle(worker, {key(job): published(f"r{job.id}")}).done
        future = waits(lane, event, job.id)
    with pytest.raises(Conflict) as refusal:
        future.result(20)
    assert refusal.value.code == "already-live"


def test_a_person_that_looks_at_a_sending_job_keeps_no_answer_from_being_written(
    lane: Lane, connect: Connect
) -> None:
    job, worker = lane.sending(), connect()
    with lane.ground.app.engine.begin() as conn:
        with pytest.raises(Conflict):
            VERBS[Event.CANCEL](conn, job.id)
        # The person's transaction still holds the row: it is asked again at the next tick.
        assert ledger.settle(worker, {key(job): published("x")}).locked == {key(job)}
    assert ledger.settle(worker, {key(job): published("x")}).done == {key(job)}


def test_two_people_at_once_leave_one_act(lane: Lane) -> None:
    job = lane.put(S.SCHEDULED)
    with lane.ground.app.engine.begin() as conn:
        VERBS[Event.CANCEL](conn, job.id)
        future = waits(lane, Event.CANCEL, job.id)
    with pytest.raises(Conflict, match="is cancelled"):
        future.result(20)
    assert len(lane.ground.events(job.id)) == 1
