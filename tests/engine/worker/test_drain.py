"""How a worker ends: it gives back what it has not sent, waits for what it has, then stops."""

from __future__ import annotations

from publisher.engine.adapter import Ready
from publisher.engine.job import State
from publisher.engine.outcome import Reason
from publisher.engine.points import Point
from tests.engine.crew import Brisk, Crew, Run
from tests.engine.ground import await_that
from tests.engine.platform import Stuck
from tests.engine.worker.test_death import Freezer
from tests.engine.worker.test_worker import Asleep

S = State


def test_what_is_only_claimed_is_given_back_unharmed(crew: Crew) -> None:
    jobs = crew.add(4)
    stuck = Stuck()
    crew.fake.acts[jobs[0].key].append(stuck)
    run = Run(crew.worker(concurrency=1))
    assert stuck.reached.wait(20)
    await_that(lambda: len(run.worker._station.stock.held) == 2)
    run.worker.drain()
    crew.await_state(S.SCHEDULED, S.SENDING, jobs=jobs)
    stuck.let_go.set()
    assert run.join() == 0
    assert crew.state(jobs[0]) is S.PUBLISHED
    assert crew.fake.page.calls.total() == 1
    rows = [crew.row(job) for job in jobs[1:]]
    assert [(row["attempts"], row["failures"], row["deaths"]) for row in rows] == [(0, 0, 0)] * 3


def test_a_send_that_does_not_end_in_time_is_a_doubt(crew: Crew) -> None:
    (job,) = crew.add()
    stuck = Stuck()
    crew.fake.acts[job.key].append(stuck)
    run = Run(crew.worker(timing=Brisk(poll=0.02, drain=0.05)))
    assert stuck.reached.wait(20)
    assert run.drain() == 1
    row = crew.row(job)
    assert (row["state"], row["reason"]) == ("unknown", Reason.DRAINED)
    ended = "SELECT ended_at FROM incarnations WHERE id = %s"
    assert crew.ground.one(ended, run.worker.incarnation) is None
    # Its file stays, locked, until the process is gone: the hand may still write.
    assert len(list(crew.folder.iterdir())) == 1
    with crew.working():
        crew.await_state(S.UNKNOWN, jobs=[job])
    stuck.let_go.set()
    # When it is gone, the file holds the answer that came after all.
    await_that(lambda: b"Published" in next(crew.folder.glob("*.spool")).read_bytes())
    run.worker._station.spool.close(remove=False)
    with crew.working():
        crew.await_state(S.PUBLISHED, jobs=[job])
    assert crew.fake.page.on_it == {job.key: 1}


def test_a_second_signal_waits_for_nothing(crew: Crew) -> None:
    (job,) = crew.add()
    stuck = Stuck()
    crew.fake.acts[job.key].append(stuck)
    run = Run(crew.worker(timing=Brisk(poll=0.02, drain=600.0)))
    assert stuck.reached.wait(20)
    run.worker.drain()
    run.worker.drain()
    assert run.join() == 1
    assert crew.state(job) is S.UNKNOWN
    stuck.let_go.set()


def test_a_permit_that_was_not_used_is_taken_back(crew: Crew) -> None:
    """What no hand has begun to write never will be: no doubt, and no second post later."""
    (job,) = crew.add()
    stuck = Stuck(after_write=False)
    crew.fake.acts[job.key].append(stuck)
    run = Run(crew.worker(timing=Brisk(poll=0.02, drain=0.05)))
    assert stuck.reached.wait(20)
    run.drain()
    row, attempt = crew.row(job), crew.ground.attempt(crew.id(job))
    assert (row["state"], row["reason"]) == ("scheduled", Reason.NOT_STARTED)
    assert attempt["proof"] == "not_sent"
    stuck.let_go.set()
    with crew.working():
        crew.await_state(S.PUBLISHED, jobs=[job])
    assert crew.fake.page.on_it == {job.key: 1}


def test_a_step_under_way_is_dropped(crew: Crew) -> None:
    (job,) = crew.add()
    crew.fake.steps[job.key].append(Ready({}))
    freezer = Freezer(Point.AFTER_STEP)
    run = Run(crew.worker(probe=freezer))
    assert freezer.frozen.wait(20)
    run.worker.drain()
    crew.await_state(S.SCHEDULED, jobs=[job])
    freezer.thaw.set()
    assert run.join() == 0
    assert crew.row(job)["attempts"] == 0


def test_a_worker_with_nothing_to_do_ends_at_once(crew: Crew) -> None:
    run = Run(crew.worker())
    await_that(lambda: run.worker.incarnation)
    assert run.drain() == 0
    assert list(crew.folder.iterdir()) == []


def test_what_goes_wrong_while_it_drains_does_not_hurry_it(crew: Crew) -> None:
    (job,) = crew.add()
    stuck = Stuck()
    crew.fake.acts[job.key].append(stuck)
    run = Run(crew.worker())
    assert stuck.reached.wait(20)
    run.worker.drain()
    run.worker._stop("the clock jumped")
    assert not run.worker._hurried
    stuck.let_go.set()
    assert run.join() == 1
    assert crew.state(job) is S.PUBLISHED


def test_an_end_that_cannot_be_recorded_is_no_clean_end(crew: Crew) -> None:
    claims: list[Point] = []
    run = Run(crew.worker(timing=Asleep(poll=60.0, drain=5.0), probe=claims.append))
    await_that(lambda: Point.AFTER_CLAIM in claims)
    assert run.worker._conn is not None
    crew.ground.sql("SELECT pg_terminate_backend(%s)", run.worker._conn.info.backend_pid)
    assert run.drain() == 1
    assert [path.suffix for path in crew.folder.iterdir()] == [".spool"]


def test_an_answer_that_cannot_be_written_before_the_end_stays_in_the_file(crew: Crew) -> None:
    (job,) = crew.add()
    stuck = Stuck()
    crew.fake.acts[job.key].append(stuck)
    run = Run(crew.worker(timing=Brisk(poll=0.02, lease=0.2, distrust=0.1, drain=0.05)))
    assert stuck.reached.wait(20)
    other = crew.connect()
    with other.transaction():
        other.execute("SELECT FROM jobs WHERE id = %s FOR UPDATE", [crew.id(job)])
        stuck.let_go.set()
        assert run.drain() == 1
    other.close()
    assert crew.state(job) is S.SENDING
    run.worker._station.spool.close(remove=False)
    with crew.working():
        crew.await_state(S.PUBLISHED, jobs=[job])
    assert crew.fake.page.on_it == {job.key: 1}
