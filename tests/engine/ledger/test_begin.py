"""The point of no return: recorded, acknowledged, or nothing is sent."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from publisher.engine import ledger
from publisher.engine.adapter import SendPermit, boottime
from publisher.engine.job import State, Token
from publisher.engine.ledger import BeginUnacknowledgedError, Claimed
from tests.engine.conftest import Connect
from tests.engine.ground import Driver, Ground, Lane, await_that, not_sent
from tests.postgres import throwaway


def begin(conn: Driver, *jobs: Claimed, token: Token | None = None) -> dict[Any, SendPermit]:
    held = [(job.id, token or job.token) for job in jobs]
    return ledger.begin_send(conn, held, lease=360.0, window=50.0, budget=300.0)


def test_a_begun_send_has_its_attempt_and_its_permit(lane: Lane) -> None:
    job = lane.claimed(content="x", version=3)
    ledger.start_hands(lane.ground.conn, [(job.id, job.token)], lease=60)
    before = boottime()
    permit = begin(lane.ground.conn, job)[job.id]
    assert (permit.job_id, permit.token, permit.attempt, permit.channel_id) == (
        job.id, job.token, 1, lane.channel_id,
    )  # fmt: skip
    assert permit.content_sha256 == job.content_sha256
    assert before + 50 <= permit.deadline <= boottime() + 50
    assert permit.budget == 300.0
    assert not permit.used
    row, attempt = lane.ground.row(job.id), lane.ground.attempt(job.id)
    assert (row["state"], row["attempts"], row["token"]) == ("sending", 1, job.token)
    assert row["hand_at"] is None
    assert (row["lease_until"] - attempt["begun_at"]).total_seconds() == pytest.approx(360, abs=5)
    expected = {
        "token": job.token, "incarnation": lane.incarnation, "version": 3,
        "content_sha256": job.content_sha256, "claimed_at": row["claimed_at"],
        "settled_at": None, "outcome": None, "proof": None, "answer": None,
    }  # fmt: skip
    assert expected.items() <= attempt.items()


def test_the_next_attempt_has_the_next_number(lane: Lane) -> None:
    job = lane.claimed(lane.put(State.SCHEDULED, begun=True).id)
    assert job.attempts == 1
    assert begin(lane.ground.conn, job)[job.id].attempt == 2


def test_it_is_committed_when_the_permit_comes(lane: Lane, connect: Connect) -> None:
    job, other = lane.claimed(), connect()
    begin(lane.ground.conn, job)
    assert other.execute("SELECT FROM attempts WHERE job_id = %s", [job.id]).rowcount == 1


# What may not begin


WHYS = ("lease_over", "too_late", "gate_closed", "repeat_over")
GATE = "UPDATE gates SET {} WHERE channel_id = %(channel)s"
JOB = "UPDATE jobs SET {} WHERE id = %(id)s"


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        (JOB.format("lease_until = clock_timestamp()"), "lease_over"),
        (JOB.format("useful_until = clock_timestamp()"), "too_late"),
        (GATE.format("paused_at = now()"), "gate_closed"),
        (GATE.format("blocked_at = now(), blocked_reason = 'x'"), "gate_closed"),
        (GATE.format("not_before = now() + interval '1 hour'"), "not_before"),
        (JOB.format("repeat_until = clock_timestamp()"), "repeat_over"),
        # The key must live until the last instant at which the permit lets a byte out.
        (JOB.format("repeat_until = clock_timestamp() + interval '49 seconds'"), "repeat_over"),
    ],
)
def test_what_may_not_run_is_not_begun_and_says_why(lane: Lane, sql: str, why: str) -> None:
    job = lane.claimed()
    lane.ground.root.execute(sql.encode(), {"id": job.id, "channel": lane.channel_id})
    before = lane.ground.everything(job.id)
    assert begin(lane.ground.conn, job) == {}
    assert lane.ground.everything(job.id) == before
    (stands,) = ledger.unbegun(lane.ground.conn, [job.id], window=50.0)
    reasons = {name for name in WHYS if getattr(stands, name)}
    if stands.not_before is not None:
        reasons.add("not_before")
    assert reasons == {why}
    assert (stands.state, stands.token) == ("claimed", job.token)


def test_a_lost_claim_is_not_begun(lane: Lane) -> None:
    job = lane.claimed()
    assert begin(lane.ground.conn, job, token=Token(uuid4())) == {}
    with lane.ground.app.engine.begin() as conn:
        ledger.hold(conn, job.id, who="me")
    assert begin(lane.ground.conn, job) == {}
    (stands,) = ledger.unbegun(lane.ground.conn, [job.id], window=50.0)
    assert (stands.state, stands.token, stands.lease_over) == ("scheduled", None, True)


@pytest.mark.parametrize("state", State)
def test_only_a_claimed_job_is_begun(lane: Lane, state: State) -> None:
    job = lane.put(state)
    before = lane.ground.everything(job.id)
    found = ledger.begin_send(lane.ground.conn, [job.key], lease=60, window=50, budget=50)
    if state is State.CLAIMED:
        assert set(found) == {job.id}
    else:
        assert found == {}
        assert lane.ground.everything(job.id) == before


def test_a_send_is_begun_once(lane: Lane) -> None:
    job = lane.claimed()
    assert begin(lane.ground.conn, job)
    assert begin(lane.ground.conn, job) == {}


def test_a_locked_row_is_passed_over_and_told_apart(lane: Lane, connect: Connect) -> None:
    locked, free, other = lane.claimed(), lane.claimed(), connect()
    with other.transaction():
        other.execute("SELECT FROM jobs WHERE id = %s FOR UPDATE", [locked.id])
        assert set(begin(lane.ground.conn, locked, free)) == {free.id}
        (stands,) = ledger.unbegun(lane.ground.conn, [locked.id], window=50.0)
        assert stands.token == locked.token
        assert not any(getattr(stands, why) for why in WHYS)
        assert stands.not_before is None
    assert set(begin(lane.ground.conn, locked)) == {locked.id}


# Acknowledged


@pytest.fixture
def warned(ground: Ground) -> Any:  # noqa: ANN401
    """Whoever inserts an attempt is told something, at the level of the day."""
    ground.sql(
        "CREATE FUNCTION warn() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " IF current_setting('test.level', true) = 'warning' THEN RAISE WARNING 'half';"
        " ELSE RAISE NOTICE 'fine'; END IF; RETURN NULL; END $$"
    )
    ground.sql("CREATE TRIGGER warn AFTER INSERT ON attempts FOR EACH ROW EXECUTE FUNCTION warn()")
    yield
    ground.sql("DROP FUNCTION warn CASCADE")


@pytest.mark.usefixtures("warned")
def test_a_warning_at_the_commit_is_no_acknowledgement(lane: Lane, connect: Connect) -> None:
    conn = connect()
    conn.execute("SET test.level = 'warning'")
    job = lane.claimed()
    with pytest.raises(BeginUnacknowledgedError, match="01000 half"):
        begin(conn, job)
    # The record is there all the same: this token is settled as not sent.
    assert lane.ground.state(job.id) is State.SENDING
    assert lane.end(job, not_sent()).done
    assert lane.ground.attempt(job.id)["proof"] == "not_sent"


@pytest.mark.usefixtures("warned")
def test_a_notice_is_none_of_its_business(lane: Lane, connect: Connect) -> None:
    conn = connect()
    assert begin(conn, lane.claimed())
    conn.execute("SET test.level = 'warning'")
    conn.execute("DO $$ BEGIN RAISE WARNING 'before'; END $$")
    assert conn._notice_handlers == []


def test_a_begin_inside_a_transaction_is_not_committed(lane: Lane, connect: Connect) -> None:
    conn, job = connect(), lane.claimed()
    with conn.transaction(force_rollback=True), pytest.raises(BeginUnacknowledgedError):
        begin(conn, job)
    assert lane.ground.state(job.id) is State.CLAIMED


def test_a_cancelled_wait_for_a_standby_is_no_acknowledgement() -> None:
    """The real case: PostgreSQL commits here, warns, and answers with success."""
    waits = "SELECT count(*) FROM pg_stat_activity WHERE pid = %s AND wait_event = 'SyncRep'"
    only_here = ("synchronous_standby_names=nobody", "synchronous_commit=local")
    with throwaway("embedded", *only_here) as server, Ground.open(server) as ground:
        job = ground.lane().claimed()
        ground.conn.execute("SET synchronous_commit = on")
        with ThreadPoolExecutor(1) as pool:
            future = pool.submit(begin, ground.conn, job)
            await_that(lambda: ground.one(waits, ground.conn.info.backend_pid))
            ground.sql("SELECT pg_cancel_backend(%s)", ground.conn.info.backend_pid)
            with pytest.raises(BeginUnacknowledgedError, match="01000 canceling wait"):
                future.result(20)
        assert ground.state(job.id) is State.SENDING


def test_a_lost_connection_raises(lane: Lane, connect: Connect) -> None:
    conn, job = connect(), lane.claimed()
    lane.ground.sql("SELECT pg_terminate_backend(%s)", conn.info.backend_pid)
    with pytest.raises(psycopg.OperationalError):
        begin(conn, job)
    assert conn._notice_handlers == []
    assert lane.ground.state(job.id) is State.CLAIMED
