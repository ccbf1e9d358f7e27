"""Unique by content for a while: until the time is over or the work is done, never by accident."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from publisher.engine import ledger
from publisher.engine.errors import DuplicateJob
from publisher.engine.job import JobId, NewJob, State
from tests.engine.conftest import Connect
from tests.engine.ground import Ground, Lane, Placed, published

HOUR = timedelta(hours=1)


def same_work(lane: Lane, **changes: Any) -> NewJob:  # noqa: ANN401 - the fields of NewJob
    return lane.new(**{"content": f'"{lane.queue}"', "unique_for": HOUR, **changes})


def add(lane: Lane, job: NewJob) -> JobId:
    return ledger.enqueue(lane.ground.conn, [job])[0].job_id


def put(lane: Lane, state: State, **changes: Any) -> Placed:  # noqa: ANN401 - of NewJob
    """A job in ``state`` that holds its content, in a queue all the others are in, too."""
    return lane.put(state, content=f'"{lane.queue}"', unique_for=HOUR, **changes)


def lapse(lane: Lane) -> None:
    lane.ground.sql(
        "UPDATE unique_locks u SET lapses_at = now() - interval '1 minute' FROM jobs j"
        " WHERE j.id = u.job_id AND j.channel_id = %s",
        lane.channel_id,
    )


def twin(lane: Lane, job: Placed, **changes: Any) -> NewJob:  # noqa: ANN401 - of NewJob
    """The same work as ``job``, under another key."""
    return same_work(lane, queue=lane.ground.row(job.id)["queue"], **changes)


def test_a_duplicate_names_the_holder_and_when_it_lapses(lane: Lane) -> None:
    holder = add(lane, same_work(lane))
    new = same_work(lane)
    with pytest.raises(DuplicateJob) as refusal:
        add(lane, new)
    assert (refusal.value.key, refusal.value.holder) == (new.key, holder)
    left = refusal.value.lapses_at - datetime.now(UTC)
    assert HOUR - timedelta(minutes=1) < left <= HOUR
    assert new.key in str(refusal.value)


def test_another_queue_kind_or_content_is_other_work(lane: Lane) -> None:
    add(lane, same_work(lane))
    add(lane, same_work(lane, kind="comment"))
    add(lane, same_work(lane, queue="other"))
    add(lane, same_work(lane, content='"b"'))
    add(lane, same_work(lane, unique_for=None))


def test_fields_do_not_run_into_one_another(lane: Lane) -> None:
    add(lane, same_work(lane, kind="ab", queue=f"c{lane.queue}"))
    add(lane, same_work(lane, kind="a", queue=f"bc{lane.queue}"))


def test_twice_in_one_call_adds_nothing(lane: Lane) -> None:
    jobs = [same_work(lane), same_work(lane)]
    with pytest.raises(DuplicateJob) as refusal:
        ledger.enqueue(lane.ground.conn, jobs)
    assert refusal.value.key == jobs[1].key
    assert lane.ground.sql("SELECT 1 FROM job_keys WHERE key = %s", jobs[0].key) == []


def test_released_when_it_is_published(lane: Lane) -> None:
    job = put(lane, State.PUBLISHED)
    add(lane, twin(lane, job))


def test_released_by_its_holder_alone(lane: Lane) -> None:
    """A job whose lock was taken over by another does not release that one's."""
    first = put(lane, State.FAILED)
    lapse(lane)
    second = add(lane, twin(lane, first))
    lane.ground.sql("INSERT INTO remote_posts VALUES (%s, 'late', %s)", lane.channel_id, first.id)
    lane.ground.sql(
        "UPDATE jobs SET state = 'published', remote_id = 'late' WHERE id = %s", first.id
    )
    with pytest.raises(DuplicateJob) as refusal:
        add(lane, twin(lane, first))
    assert refusal.value.holder == second


@pytest.mark.parametrize("state", [State.FAILED, State.MISSED, State.CANCELLED, State.DROPPED])
def test_after_another_end_it_stays_until_its_time(lane: Lane, state: State) -> None:
    job = put(lane, state)
    with pytest.raises(DuplicateJob):
        add(lane, twin(lane, job))
    lapse(lane)
    assert add(lane, twin(lane, job))


@pytest.mark.parametrize("state", [State.SCHEDULED, State.CLAIMED, State.SENDING, State.UNKNOWN])
def test_it_never_lapses_while_its_job_is_unsettled(lane: Lane, state: State) -> None:
    job = put(lane, state)
    lapse(lane)
    with pytest.raises(DuplicateJob) as refusal:
        add(lane, twin(lane, job))
    assert refusal.value.holder == job.id


@pytest.mark.parametrize("verb", ["requeue", "restore"])
def test_coming_back_takes_it_again_or_is_refused(lane: Lane, verb: str) -> None:
    job = put(lane, State.FAILED if verb == "requeue" else State.CANCELLED)
    lapse(lane)
    other = add(lane, twin(lane, job))
    back = getattr(ledger, verb)
    with lane.ground.app.engine.begin() as conn, pytest.raises(DuplicateJob) as refusal:
        back(conn, job.id, who="me")
    assert refusal.value.holder == other
    assert lane.ground.state(job.id) in {State.FAILED, State.CANCELLED}
    with lane.ground.app.engine.begin() as conn:
        ledger.cancel(conn, other, who="me")
    lapse(lane)
    with lane.ground.app.engine.begin() as conn:
        back(conn, job.id, who="me")
    with pytest.raises(DuplicateJob) as refusal:
        add(lane, twin(lane, job))
    assert refusal.value.holder == job.id


def test_what_was_retaken_is_released_on_success(lane: Lane) -> None:
    job = put(lane, State.FAILED)
    lapse(lane)
    with lane.ground.app.engine.begin() as conn:
        ledger.requeue(conn, job.id, who="me")
    sending = lane.sending(job.id)
    assert lane.end(sending, published("again")).done
    assert lane.ground.sql("SELECT 1 FROM unique_locks WHERE job_id = %s", job.id) == []


def locks(lane: Lane) -> list[int]:
    """Whose each lock is, of this channel's."""
    rows = lane.ground.sql(
        "SELECT u.job_id FROM unique_locks u JOIN jobs j ON j.id = u.job_id"
        " WHERE j.channel_id = %s ORDER BY u.job_id",
        lane.channel_id,
    )
    return [row["job_id"] for row in rows]


def test_its_own_lock_is_in_nobodys_way_and_the_only_one_it_takes(lane: Lane) -> None:
    plain, job = lane.put(State.FAILED), put(lane, State.FAILED)
    lane.ground.sql("SELECT retake_unique_lock(%s)", plain.id)
    assert locks(lane) == [job.id]
    for back in (plain, job):
        with lane.ground.app.engine.begin() as conn:
            ledger.requeue(conn, back.id, who="me")
    assert locks(lane) == [job.id]
    with pytest.raises(DuplicateJob) as refusal:
        add(lane, twin(lane, job))
    assert refusal.value.holder == job.id
    content = lane.ground.one("SELECT content FROM job_contents WHERE job_id = %s", plain.id)
    queue = lane.ground.row(plain.id)["queue"]
    add(lane, lane.new(content=content, queue=queue, unique_for=HOUR))


def test_what_is_there_under_its_key_takes_no_lock(lane: Lane) -> None:
    job = same_work(lane)
    holder = add(lane, job)
    other = same_work(lane, key=job.key, content='"other"')
    (again,) = ledger.enqueue(lane.ground.conn, [other], existing="keep")
    assert (again.job_id, again.added) == (holder, False)
    assert locks(lane) == [holder]


@pytest.fixture
def slow_locks(ground: Ground) -> Iterator[None]:
    """Each lock takes so long that two calls are sure to meet half-way."""
    ground.sql(
        "CREATE FUNCTION linger() RETURNS trigger LANGUAGE plpgsql AS"
        " 'BEGIN PERFORM pg_sleep(0.02); RETURN NULL; END'"
    )
    ground.sql(
        "CREATE TRIGGER linger AFTER INSERT ON unique_locks FOR EACH ROW EXECUTE FUNCTION linger()"
    )
    yield
    ground.sql("DROP FUNCTION linger CASCADE")


@pytest.mark.usefixtures("slow_locks")
def test_calls_with_the_same_work_in_opposite_order_do_not_deadlock(lane: Lane) -> None:
    """Whatever their keys, they wait for one another in one order."""
    start = threading.Barrier(2)

    def call(jobs: list[NewJob]) -> bool:
        with lane.ground.app.connect_driver() as conn:
            conn.execute("SET lock_timeout = 0")
            start.wait(20)
            try:
                ledger.enqueue(conn, jobs)
            except DuplicateJob:
                return False
            return True

    works = [f'"{lane.queue} {n}"' for n in range(4)]
    calls = [
        [same_work(lane, key=f"{lane.queue} {name}{n}", content=c) for n, c in enumerate(order)]
        for name, order in (("a", works), ("b", works[::-1]))
    ]
    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(call, calls)) == [False, True]


def test_what_is_not_about_the_work_is_passed_on(lane: Lane, connect_app: Connect) -> None:
    job, other = put(lane, State.FAILED), connect_app()
    with other.transaction():
        other.execute("SELECT FROM unique_locks WHERE job_id = %s FOR UPDATE", [job.id])
        with lane.ground.app.engine.begin() as conn:
            conn.execute(text("SET LOCAL lock_timeout = '20ms'"))
            with pytest.raises(OperationalError, match="lock timeout"):
                ledger.requeue(conn, job.id, who="me")
    assert lane.ground.state(job.id) is State.FAILED


def test_a_race_for_the_same_work_has_one_winner(lane: Lane, connect_app: Connect) -> None:
    first, second = connect_app(), connect_app()
    second.execute("SET lock_timeout = '20ms'")
    with first.transaction():
        holder = ledger.enqueue(first, [same_work(lane)])[0].job_id
        with pytest.raises(Exception, match="being added by someone else"):
            ledger.enqueue(second, [same_work(lane)])
    with pytest.raises(DuplicateJob) as refusal:
        ledger.enqueue(second, [same_work(lane)])
    assert refusal.value.holder == holder
