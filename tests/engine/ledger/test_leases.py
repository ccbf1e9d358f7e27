"""Expired leases, the claims of the dead, and lateness."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from publisher.engine import ledger
from publisher.engine.job import State
from publisher.engine.ledger import Rescued
from publisher.engine.outcome import Reason
from tests.engine.conftest import Connect
from tests.engine.ground import Driver, Ground, Lane, key, lost, refused

S = State
GRACE = 15.0


@pytest.fixture
def ground(own_ground: Ground) -> Ground:
    """These verbs look at every job there is, so each test has a database of its own."""
    return own_ground


def over(lane: Lane, job_id: int, seconds: float = 20.0) -> None:
    """Let a lease have ended that long ago."""
    lane.ground.sql(
        "UPDATE jobs SET lease_until = clock_timestamp() - make_interval(secs => %s)"
        " WHERE id = %s",
        seconds, job_id,
    )  # fmt: skip


def rescue(conn: Driver, *, deaths: int = 3) -> tuple[Rescued, ...]:
    return ledger.rescue(conn, grace=GRACE, deaths=deaths, who="worker run 9")


@pytest.mark.parametrize(
    ("state", "begun"),
    [(state, False) for state in State]
    + [(state, True) for state in (S.SCHEDULED, S.CLAIMED, S.FAILED, S.MISSED)],
)
def test_what_held_leases_end_as(lane: Lane, state: State, *, begun: bool) -> None:
    """Only claimed and sending have a lease to end."""
    job = lane.put(state, begun=begun)
    if state in {S.CLAIMED, S.SENDING}:
        over(lane, job.id)
    before = lane.ground.everything(job.id)
    rescued = rescue(lane.ground.conn)
    if state not in {S.CLAIMED, S.SENDING}:
        assert rescued == ()
        assert lane.ground.everything(job.id) == before
        return
    to = S.SCHEDULED if state is S.CLAIMED else S.UNKNOWN
    assert rescued == (Rescued(job.id, state, to, lane.incarnation),)
    row = lane.ground.row(job.id)
    assert (row["state"], row["token"], row["deaths"]) == (to, None, 0)
    assert (row["settled_at"] is None) is (to is S.SCHEDULED)
    told = lane.ground.events(job.id)[-1]
    assert (told["event"], told["who"]) == ("lease_expired", "worker run 9")
    assert told["attempt"] == (1 if state is S.SENDING else None)


def test_a_begun_send_becomes_a_doubt_and_says_why(lane: Lane) -> None:
    job = lane.sending()
    over(lane, job.id)
    rescue(lane.ground.conn)
    row, attempt = lane.ground.row(job.id), lane.ground.attempt(job.id)
    assert row["reason"] == attempt["reason"] == Reason.WORKER_DIED
    assert (attempt["outcome"], attempt["proof"]) == ("unknown", None)
    assert attempt["settled_at"] is not None


@pytest.mark.parametrize("state", [S.CLAIMED, S.SENDING])
def test_a_lease_within_its_grace_is_left_alone(lane: Lane, state: State) -> None:
    job = lane.put(state)
    assert rescue(lane.ground.conn) == ()
    over(lane, job.id, GRACE - 5)
    assert rescue(lane.ground.conn) == ()
    over(lane, job.id, GRACE + 5)
    assert len(rescue(lane.ground.conn)) == 1


# Deaths


def test_a_death_counts_only_where_the_jobs_own_hand_had_started(lane: Lane) -> None:
    waiting = lane.claimed()
    over(lane, waiting.id)
    died = lane.claimed()
    ledger.start_hands(lane.ground.conn, [key(died)], lease=60)
    over(lane, died.id)
    rescue(lane.ground.conn)
    assert lane.ground.row(waiting.id)["deaths"] == 0
    assert lane.ground.row(died.id)["deaths"] == 1
    assert lane.ground.state(died.id) is S.SCHEDULED
    # ... and is then claimed alone.
    assert lane.claim(9, queues=[lane.ground.row(died.id)["queue"]]) == []


def test_after_its_last_death_it_is_poison_and_only_it(lane: Lane) -> None:
    job = lane.claimed()
    other = lane.claimed()
    for death in (1, 2, 3):
        ledger.start_hands(lane.ground.conn, [key(job)], lease=60)
        over(lane, job.id)
        over(lane, other.id)
        rescue(lane.ground.conn)
        row = lane.ground.row(job.id)
        assert row["deaths"] == death
        if death < 3:
            assert row["state"] == S.SCHEDULED
            job = lane.claimed(job.id)
            other = lane.claimed(other.id)
    row = lane.ground.row(job.id)
    assert (row["state"], row["reason"]) == ("failed", Reason.POISON)
    assert row["settled_at"] is not None
    assert lane.ground.state(other.id) is S.SCHEDULED


def test_poison_that_may_be_live_is_a_doubt(lane: Lane) -> None:
    job = lane.claimed(lane.put(S.SCHEDULED, begun=True).id)
    possibly_live(lane, job.id)
    ledger.start_hands(lane.ground.conn, [key(job)], lease=60)
    over(lane, job.id)
    rescue(lane.ground.conn, deaths=1)
    row = lane.ground.row(job.id)
    assert (row["state"], row["reason"]) == ("unknown", Reason.POISON)


def possibly_live(lane: Lane, job_id: int) -> None:
    lane.ground.sql("SET session_replication_role = replica")
    lane.ground.sql("UPDATE attempts SET proof = 'repeat_safe' WHERE job_id = %s", job_id)
    lane.ground.sql("RESET session_replication_role")


# Races

EXTEND = "UPDATE jobs SET lease_until = now() + interval '1 minute' WHERE id = %s"
SLOW_CLOCK = """
CREATE SCHEMA slow;
GRANT USAGE ON SCHEMA slow TO publisher_engine;
CREATE FUNCTION slow.clock_timestamp() RETURNS timestamptz LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_catalog.pg_advisory_lock_shared(42);
    PERFORM pg_catalog.pg_advisory_unlock_shared(42);
    RETURN pg_catalog.clock_timestamp();
END $$
"""


@pytest.mark.parametrize("state", [S.CLAIMED, S.SENDING])
def test_a_lease_extended_meanwhile_is_seen(lane: Lane, connect: Connect, state: State) -> None:
    """The rescue has its snapshot already, in which the lease is over: its clock makes it wait."""
    job, ground = lane.put(state), lane.ground
    over(lane, job.id)
    ground.sql(SLOW_CLOCK)
    rescuer = connect()
    rescuer.execute("SET lock_timeout = 0")
    rescuer.execute("SET search_path = slow, pg_catalog, publisher")
    with ThreadPoolExecutor(1) as pool:
        ground.sql("SELECT pg_advisory_lock(42)")
        future = pool.submit(rescue, rescuer)
        ground.await_waiting(rescuer)
        ground.sql(EXTEND, job.id)
        ground.sql("SELECT pg_advisory_unlock(42)")
        assert future.result(20) == ()
    assert ground.state(job.id) is state


def test_a_row_somebody_holds_is_passed_over(lane: Lane, connect: Connect) -> None:
    job, holder = lane.put(S.SENDING), connect()
    over(lane, job.id)
    with holder.transaction():
        holder.execute(EXTEND.encode(), [job.id])
        assert rescue(lane.ground.conn) == ()


def test_two_rescuers_take_a_job_once(lane: Lane, connect: Connect) -> None:
    jobs = [lane.sending() for _ in range(20)]
    for job in jobs:
        over(lane, job.id)
    connections = [connect() for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        results = [future.result(20) for future in [pool.submit(rescue, c) for c in connections]]
    taken = [rescued.id for result in results for rescued in result]
    assert sorted(taken) == sorted(job.id for job in jobs)
    assert all(len(lane.ground.events(job.id)) == 1 for job in jobs)


def test_rescue_is_too_late_for_what_was_settled(lane: Lane) -> None:
    job = lane.sending()
    over(lane, job.id)
    assert lane.end(job, refused()).done
    assert rescue(lane.ground.conn) == ()


# The dead


def test_everything_of_a_dead_run_is_taken_at_once_and_nothing_else(lane: Lane) -> None:
    begun, claimed = lane.sending(), lane.claimed()
    other = lane.ground.lane()
    other.incarnation = 8
    left = other.claimed()
    rescued = ledger.forsake(lane.ground.conn, 7, deaths=3, who="worker run 9")
    assert {(one.id, one.was, one.state) for one in rescued} == {
        (begun.id, "sending", "unknown"), (claimed.id, "claimed", "scheduled"),
    }  # fmt: skip
    assert lane.ground.state(left.id) is S.CLAIMED
    assert ledger.forsake(lane.ground.conn, 7, deaths=3, who="worker run 9") == ()
    detail = lane.ground.events(begun.id)[-1]["detail"]
    assert (detail["worker_run"], detail["from"]) == (7, "sending")


# Lateness


@pytest.mark.parametrize("state", State)
def test_only_scheduled_jobs_are_missed(lane: Lane, state: State) -> None:
    job = lane.put(state)
    lane.ground.sql("UPDATE jobs SET useful_until = now() WHERE id = %s", job.id)
    before = lane.ground.everything(job.id)
    missed = ledger.expire(lane.ground.conn, who="me")
    if state is S.SCHEDULED:
        assert missed == {job.id}
        row = lane.ground.row(job.id)
        assert (row["state"], row["reason"]) == ("missed", Reason.TOO_LATE)
        assert lane.ground.events(job.id)[-1]["event"] == "expire"
    else:
        assert missed == frozenset()
        assert lane.ground.everything(job.id) == before


def test_what_is_still_useful_or_always_is_is_not_missed(lane: Lane) -> None:
    soon = lane.add()
    lane.add()
    lane.ground.sql(
        "UPDATE jobs SET useful_until = now() + interval '1 minute' WHERE id = %s", soon
    )
    assert ledger.expire(lane.ground.conn, who="me") == frozenset()


@pytest.mark.parametrize(
    ("reason", "missed"), [("held by a person", True), ("approval withdrawn", True),
                           ("quarantine", False)],
)  # fmt: skip
def test_a_hold_does_not_stop_the_time_except_quarantine(
    lane: Lane, reason: str, *, missed: bool
) -> None:
    job_id = lane.add()
    lane.ground.sql(
        "UPDATE jobs SET useful_until = now(), hold_reason = %s WHERE id = %s", reason, job_id
    )
    assert (job_id in ledger.expire(lane.ground.conn, who="me")) is missed
    row = lane.ground.row(job_id)
    assert row["hold_reason"] == (None if missed else reason)


def test_a_retry_that_ran_out_of_time_keeps_its_reason(lane: Lane) -> None:
    job = lane.put(S.SCHEDULED, begun=True)
    lane.ground.sql("UPDATE jobs SET useful_until = now() WHERE id = %s", job.id)
    ledger.expire(lane.ground.conn, who="me")
    row = lane.ground.row(job.id)
    assert (row["state"], row["reason"]) == ("missed", Reason.BUSY)


def test_what_may_be_live_is_not_missed_but_doubted(lane: Lane) -> None:
    job = lane.put(S.SCHEDULED, begun=True)
    possibly_live(lane, job.id)
    lane.ground.sql("UPDATE jobs SET useful_until = now() WHERE id = %s", job.id)
    assert ledger.expire(lane.ground.conn, who="me") == {job.id}
    assert lane.ground.state(job.id) is S.UNKNOWN
    assert lane.ground.events(job.id)[-1]["event"] == "repeat_ended"


# Heartbeats


def beat(ground: Ground, incarnation: int) -> ledger.Beat:
    return ledger.beat(ground.conn, incarnation, gap=60.0, pause=360.0)


def test_a_heartbeat_says_who_lives_and_what_time_it_is(ground: Ground) -> None:
    incarnation = ground.incarnation()
    ground.sql("UPDATE pulse SET beat_at = clock_timestamp()")
    ground.sql("UPDATE incarnations SET seen_at = now() - interval '1 day'")
    told = beat(ground, incarnation)
    assert told.may_rescue
    seen = ground.one("SELECT seen_at FROM incarnations WHERE id = %s", incarnation)
    assert abs((seen - told.now).total_seconds()) < 5


def test_after_a_silence_of_the_whole_fleet_rescue_pauses(ground: Ground) -> None:
    incarnation = ground.incarnation()
    ground.sql("UPDATE pulse SET beat_at = now() - interval '61 seconds'")
    assert not beat(ground, incarnation).may_rescue
    assert not beat(ground, incarnation).may_rescue
    left = ground.one("SELECT rescue_not_before - beat_at FROM pulse")
    assert 355 < left.total_seconds() <= 360
    ground.sql("UPDATE pulse SET rescue_not_before = now()")
    assert beat(ground, incarnation).may_rescue


def test_the_clock_is_the_databases(ground: Ground) -> None:
    before = ground.one("SELECT clock_timestamp()")
    assert before <= ledger.clock(ground.conn) <= ground.one("SELECT clock_timestamp()")


def test_a_run_ends_once(ground: Ground) -> None:
    incarnation = ground.incarnation()
    ledger.end(ground.conn, incarnation, "drained")
    first = ground.sql("SELECT * FROM incarnations WHERE id = %s", incarnation)
    ledger.end(ground.conn, incarnation, "its file could be locked")
    assert ground.sql("SELECT * FROM incarnations WHERE id = %s", incarnation) == first
    assert first[0]["end_reason"] == "drained"


def test_what_a_run_holds_and_has_not_settled(lane: Lane) -> None:
    claimed, begun = lane.claimed(), lane.sending()
    assert lane.end(lane.sending(), refused()).done
    doubted = lane.sending()
    assert lane.end(doubted, lost()).done
    rescued = lane.sending()
    over(lane, rescued.id)
    rescue(lane.ground.conn)
    held = ledger.held_by(lane.ground.conn, lane.incarnation)
    assert held == {claimed.id: claimed.token, begun.id: begun.token}
    found = {
        one.job_id: (one.attempt, one.token, one.only_rescue_settled)
        for one in ledger.unsettled_of(lane.ground.conn, lane.incarnation)
    }
    assert found == {
        begun.id: (1, begun.token, True),
        doubted.id: (1, doubted.token, False),
        rescued.id: (1, rescued.token, True),
    }
    assert ledger.unsettled_of(lane.ground.conn, 8) == ()
