"""Jobs are added once by their key, for ever, within whatever transaction the caller has."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from sqlalchemy import text

from publisher.engine import ledger
from publisher.engine.errors import EnqueueError, KeyBusy, KeyConflict, OpenJobExists
from publisher.engine.job import NewJob, State
from publisher.engine.ledger import Enqueued
from tests.engine.conftest import Connect
from tests.engine.ground import Driver, Ground, Lane


def keys_of(ground: Ground, jobs: list[NewJob]) -> set[str]:
    found = ground.sql("SELECT key FROM job_keys WHERE key = ANY(%s)", [job.key for job in jobs])
    return {row["key"] for row in found}


def test_a_job_is_stored_as_it_was_given(lane: Lane) -> None:
    post = lane.ground.one("INSERT INTO posts (created_by) VALUES ('me') RETURNING id")
    words = "Grüße 😀 tiếng Việt"
    version = lane.ground.one(
        "INSERT INTO post_versions (post_id, number, content, content_sha256, created_by)"
        " VALUES (%s, 1, %s, sha256(convert_to(%s, 'UTF8')), 'me') RETURNING id",
        post, words, words,
    )  # fmt: skip
    lane.ground.sql("INSERT INTO approvals (version_id, approved_by) VALUES (%s, 'me')", version)
    at = datetime(2027, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
    new = lane.new(
        run_at=at, useful_until=at + timedelta(days=1), post_id=post, version_id=version,
        version=1, platform_key="pk", replaces=3, repeats=4, content=words,
    )  # fmt: skip
    (added,) = ledger.enqueue(lane.ground.conn, [new])
    assert added == Enqueued(new.key, added.job_id, "scheduled", added=True)
    row = lane.ground.row(added.job_id)
    expected = {
        "channel_id": lane.channel_id, "post_id": post, "kind": "post", "queue": lane.queue,
        "state": "scheduled", "due_at": at, "run_at": at, "useful_until": new.useful_until,
        "replaces": 3, "repeats": 4, "unique_until": None, "claims": 0, "attempts": 0,
        "failures": 0, "deaths": 0, "token": None, "hold_reason": None,
    }  # fmt: skip
    assert expected.items() <= row.items()
    content = lane.ground.sql("SELECT * FROM job_contents WHERE job_id = %s", added.job_id)[0]
    assert (content["key"], content["content"]) == (new.key, new.content)
    assert (content["version_id"], content["version"], content["platform_key"]) == (
        version, 1, "pk",
    )  # fmt: skip


def test_keys_are_taken_sorted_and_results_come_in_the_order_asked_for(lane: Lane) -> None:
    jobs = [lane.new(key=f"{lane.queue}/{letter}") for letter in "dbca"]
    added = ledger.enqueue(lane.ground.conn, jobs)
    assert [one.key for one in added] == [job.key for job in jobs]
    taken = lane.ground.sql(
        "SELECT key FROM job_keys WHERE key = ANY(%s) ORDER BY ctid", [job.key for job in jobs]
    )
    assert [row["key"] for row in taken] == sorted(job.key for job in jobs)


def test_nothing_is_nothing(ground: Ground) -> None:
    assert ledger.enqueue(ground.conn, []) == []


def test_a_time_without_zone_is_refused(lane: Lane) -> None:
    naive = datetime(2027, 1, 1)  # noqa: DTZ001 - that is the point
    with pytest.raises(EnqueueError, match="has no zone"):
        lane.add(run_at=naive)
    with pytest.raises(EnqueueError, match="has no zone"):
        lane.add(useful_until=naive)


# Keys


@pytest.mark.parametrize("state", State)
def test_a_key_is_taken_in_every_state(lane: Lane, state: State) -> None:
    new = lane.new()
    job = lane.put(state, key=new.key)
    with pytest.raises(KeyConflict) as conflict:
        ledger.enqueue(lane.ground.conn, [lane.new(), new])
    told = conflict.value
    assert (told.key, told.job_id, told.state) == (new.key, job.id, state)
    assert new.key in str(told)
    (kept,) = ledger.enqueue(lane.ground.conn, [new], existing="keep")
    assert kept == Enqueued(new.key, job.id, state, added=False)


def test_a_key_outlives_its_job(lane: Lane) -> None:
    """Pruned jobs leave their keys behind."""
    new = lane.new()
    lane.ground.sql("INSERT INTO job_keys (key, job_id) VALUES (%s, -5)", new.key)
    with pytest.raises(KeyConflict, match="is pruned"):
        ledger.enqueue(lane.ground.conn, [new])


def test_a_conflict_adds_nothing_of_the_call(lane: Lane) -> None:
    old = lane.new()
    ledger.enqueue(lane.ground.conn, [old])
    others = [lane.new(), lane.new()]
    with pytest.raises(KeyConflict):
        ledger.enqueue(lane.ground.conn, [others[0], old, others[1]])
    assert keys_of(lane.ground, others) == set()
    kept = ledger.enqueue(lane.ground.conn, [others[0], old, others[1]], existing="keep")
    assert [one.added for one in kept] == [True, False, True]


def test_the_same_key_twice_in_one_call(lane: Lane) -> None:
    one = lane.new()
    with pytest.raises(KeyConflict):
        ledger.enqueue(lane.ground.conn, [one, one])
    assert keys_of(lane.ground, [one]) == set()
    first, second = ledger.enqueue(lane.ground.conn, [one, one], existing="keep")
    assert (first.added, second.added) == (True, False)
    assert first.job_id == second.job_id


# The caller's transaction


def test_rollback_leaves_nothing_and_commit_all_from_psycopg(
    lane: Lane, connect_app: Connect
) -> None:
    conn = connect_app()
    jobs = [lane.new(), lane.new()]
    with conn.transaction(force_rollback=True):
        ledger.enqueue(conn, jobs)
        assert keys_of(lane.ground, jobs) == set()
    assert keys_of(lane.ground, jobs) == set()
    with conn.transaction():
        ledger.enqueue(conn, jobs)
    assert keys_of(lane.ground, jobs) == {job.key for job in jobs}


def test_rollback_leaves_nothing_and_commit_all_from_sqlalchemy(lane: Lane) -> None:
    jobs = [lane.new(), lane.new()]
    with lane.ground.app.engine.connect() as conn:
        ledger.enqueue(conn, jobs)
        assert conn.in_transaction()
        assert keys_of(lane.ground, jobs) == set()
        conn.rollback()
        assert keys_of(lane.ground, jobs) == set()
        ledger.enqueue(conn, jobs)
        conn.commit()
    assert keys_of(lane.ground, jobs) == {job.key for job in jobs}


def test_it_joins_a_transaction_that_sqlalchemy_began(lane: Lane) -> None:
    job = lane.new()
    with lane.ground.app.engine.begin() as conn:
        post = conn.scalar(text("INSERT INTO posts (created_by) VALUES ('me') RETURNING id"))
        ledger.enqueue(conn, [job])
        conn.rollback()
    assert keys_of(lane.ground, [job]) == set()
    assert lane.ground.sql("SELECT 1 FROM posts WHERE id = %s", post) == []


def test_an_error_leaves_the_callers_transaction_usable(lane: Lane, connect_app: Connect) -> None:
    old, new = lane.new(), lane.new()
    ledger.enqueue(lane.ground.conn, [old])
    conn = connect_app()
    with conn.transaction():
        ledger.enqueue(conn, [new])
        with pytest.raises(KeyConflict):
            ledger.enqueue(conn, [old])
        with pytest.raises(psycopg.errors.ForeignKeyViolation):
            ledger.enqueue(conn, [lane.new(channel_id=-1)])
    with lane.ground.app.engine.begin() as sqlalchemy:
        with pytest.raises(KeyConflict):
            ledger.enqueue(sqlalchemy, [new])
        assert sqlalchemy.scalar(text("SELECT 1")) == 1
    assert keys_of(lane.ground, [new]) == {new.key}


def test_a_serialization_failure_is_passed_on(lane: Lane, connect_app: Connect) -> None:
    job, conn = lane.new(), connect_app()
    with conn.transaction(force_rollback=True):
        conn.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        conn.execute("SELECT 1")
        ledger.enqueue(lane.ground.conn, [job])
        with pytest.raises(psycopg.errors.SerializationFailure):
            ledger.enqueue(conn, [job])
    engine = lane.ground.app.engine.execution_options(isolation_level="REPEATABLE READ")
    other = lane.new()
    with engine.begin() as sqlalchemy:
        sqlalchemy.execute(text("SELECT 1"))
        ledger.enqueue(lane.ground.conn, [other])
        with pytest.raises(psycopg.errors.SerializationFailure):
            ledger.enqueue(sqlalchemy, [other])


# Races


def test_twenty_callers_with_one_key_add_one_job(lane: Lane) -> None:
    job = lane.new()
    start = threading.Barrier(20)

    def add() -> str:
        with lane.ground.app.connect_driver() as conn:
            start.wait(20)
            try:
                ledger.enqueue(conn, [job])
            except (KeyConflict, KeyBusy) as refusal:
                return type(refusal).__name__
            return "added"

    with ThreadPoolExecutor(20) as pool:
        results = Counter(future.result() for future in [pool.submit(add) for _ in range(20)])
    assert results["added"] == 1
    assert sum(results.values()) == 20
    assert lane.ground.one("SELECT count(*) FROM job_contents WHERE key = %s", job.key) == 1


def waits_for(lane: Lane, jobs: list[NewJob], conn: Driver, **how: Any) -> Any:  # noqa: ANN401
    """Start an enqueue that has to wait for somebody's transaction."""
    pool = ThreadPoolExecutor(1)
    future = pool.submit(ledger.enqueue, conn, jobs, **how)
    pool.shutdown(wait=False)
    lane.ground.await_waiting(conn)
    return future


def test_the_waiter_gets_the_key_when_the_holder_rolls_back(
    lane: Lane, connect_app: Connect
) -> None:
    job, holder, waiter = lane.new(), connect_app(), connect_app()
    waiter.execute("SET lock_timeout = 0")
    with holder.transaction(force_rollback=True):
        ledger.enqueue(holder, [job])
        future = waits_for(lane, [job], waiter)
    (added,) = future.result(20)
    assert added.added


def test_the_waiter_is_told_when_the_holder_commits(lane: Lane, connect_app: Connect) -> None:
    job, holder, waiter = lane.new(), connect_app(), connect_app()
    waiter.execute("SET lock_timeout = 0")
    with holder.transaction():
        (held,) = ledger.enqueue(holder, [job])
        future = waits_for(lane, [job], waiter)
    with pytest.raises(KeyConflict) as conflict:
        future.result(20)
    assert (conflict.value.job_id, conflict.value.state) == (held.job_id, "scheduled")


def test_a_key_that_stays_held_is_busy(lane: Lane, connect_app: Connect) -> None:
    job, other = lane.new(), lane.new()
    holder, waiter = connect_app(), connect_app()
    waiter.execute("SET lock_timeout = '20ms'")
    with holder.transaction():
        ledger.enqueue(holder, [job])
        with pytest.raises(KeyBusy, match=job.key) as busy:
            ledger.enqueue(waiter, [job])
        assert busy.value.key == job.key
        with waiter.transaction(), pytest.raises(KeyBusy, match="one of 2 keys"):
            ledger.enqueue(waiter, [other, job])
    assert keys_of(lane.ground, [other]) == set()


def test_a_key_that_comes_and_goes_three_times_is_busy(ground: Ground, lane: Lane) -> None:
    """Whoever meets a key each time and never sees its holder is told to ask again."""
    job = lane.new()
    with ground.root.transaction(force_rollback=True):
        ground.sql(
            "CREATE FUNCTION pg_temp.vanish() RETURNS trigger LANGUAGE plpgsql AS"
            " 'BEGIN RETURN NULL; END'"
        )
        ground.sql(
            "CREATE TRIGGER vanish BEFORE INSERT ON job_keys FOR EACH ROW"
            " EXECUTE FUNCTION pg_temp.vanish()"
        )
        with pytest.raises(KeyBusy) as busy:
            ledger.enqueue(ground.root, [job])
        assert busy.value.key == job.key


def test_callers_with_overlapping_keys_in_opposite_order_do_not_deadlock(lane: Lane) -> None:
    jobs = [lane.new() for _ in range(20)]
    start = threading.Barrier(2)

    def add(mine: list[NewJob]) -> int:
        with lane.ground.app.connect_driver() as conn:
            conn.execute("SET lock_timeout = 0")
            start.wait(20)
            return sum(one.added for one in ledger.enqueue(conn, mine, existing="keep"))

    for turn in range(10):
        fresh = [lane.new(key=f"{job.key}.{turn}") for job in jobs]
        with ThreadPoolExecutor(2) as pool:
            futures = [
                pool.submit(add, fresh[:15]),
                pool.submit(add, fresh[:4:-1]),
            ]
            assert sum(future.result(20) for future in futures) == 20


def test_two_calls_that_each_hold_a_key_of_the_other_do_not_wait_in_a_ring(
    lane: Lane, connect_app: Connect
) -> None:
    """Sorted keys: the second caller waits at the first common key before it takes the next."""
    a, b = lane.new(key=f"{lane.queue}/a"), lane.new(key=f"{lane.queue}/b")
    first, second = connect_app(), connect_app()
    second.execute("SET lock_timeout = 0")
    with first.transaction():
        ledger.enqueue(first, [a])
        future = waits_for(lane, [b, a], second, existing="keep")
        ledger.enqueue(first, [b])
    assert [one.added for one in future.result(20)] == [False, False]


# One open job for a post on a channel


def test_a_post_has_one_open_job_on_a_channel(lane: Lane) -> None:
    post = lane.ground.one("INSERT INTO posts (created_by) VALUES ('me') RETURNING id")
    for state in (State.SCHEDULED, State.CLAIMED, State.SENDING, State.UNKNOWN):
        other = lane.ground.lane()
        job = other.put(state, post_id=post)
        new = other.new(post_id=post)
        with pytest.raises(OpenJobExists) as refusal:
            ledger.enqueue(other.ground.conn, [other.new(), new])
        assert (refusal.value.key, refusal.value.holder, refusal.value.state) == (
            new.key, job.id, state,
        )  # fmt: skip
        other.add(post_id=post, kind="comment")
    for state in (State.PUBLISHED, State.FAILED, State.MISSED, State.CANCELLED, State.DROPPED):
        other = lane.ground.lane()
        other.put(state, post_id=post)
        other.add(post_id=post)


def test_two_jobs_of_one_call_for_one_post(lane: Lane) -> None:
    post = lane.ground.one("INSERT INTO posts (created_by) VALUES ('me') RETURNING id")
    jobs = [lane.new(post_id=post), lane.new(post_id=post)]
    with pytest.raises(OpenJobExists) as refusal:
        ledger.enqueue(lane.ground.conn, jobs)
    assert (refusal.value.key, refusal.value.holder) == (jobs[1].key, 0)
    assert keys_of(lane.ground, jobs) == set()


def test_a_due_job_is_announced_and_a_later_one_not(lane: Lane, connect: Connect) -> None:
    listener = connect()
    listener.execute("LISTEN publisher_due")
    lane.add(run_at=datetime.now(UTC) + timedelta(hours=1))
    assert list(listener.notifies(timeout=0.05)) == []
    lane.add()
    assert len(list(listener.notifies(timeout=5, stop_after=1))) == 1
