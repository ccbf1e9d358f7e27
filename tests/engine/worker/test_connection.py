"""Connections that die at each statement, before or after it took effect: one post all the same."""

from __future__ import annotations

import random
from threading import Event, Thread
from typing import Any

import psycopg
import pytest

from publisher.engine import ledger
from publisher.engine.adapter import More, Ready
from publisher.engine.errors import NotFound
from publisher.engine.job import State
from publisher.engine.outcome import Reason
from publisher.engine.points import Point
from tests.engine import platform
from tests.engine.crew import Crew, Run
from tests.engine.ground import Driver, await_that

S = State

BEFORE = [
    Point.BEFORE_RESCUE, Point.BEFORE_CLAIM, Point.BEFORE_SAVE_PROGRESS, Point.BEFORE_BEGIN,
    Point.BEFORE_SETTLE,
]  # fmt: skip
AFTER = [
    Point.AFTER_RESCUE, Point.AFTER_CLAIM, Point.AFTER_SAVE_PROGRESS, Point.AFTER_BEGIN,
    Point.AFTER_SPOOL_OPEN, Point.AFTER_SETTLE,
]  # fmt: skip


class Cutter:
    """A probe that ends the coordinator's session at one point, a few times."""

    def __init__(self, crew: Crew, point: Point, *, times: int = 3) -> None:
        self.crew = crew
        self.point = point
        self.left = times
        self.conn: Driver | None = None

    def connect(self) -> Driver:
        self.conn = self.crew.connect()
        return self.conn

    def __call__(self, point: Point) -> None:
        if point is self.point and self.left and self.conn is not None:
            self.left -= 1
            self.crew.ground.sql("SELECT pg_terminate_backend(%s)", self.conn.info.backend_pid)


@pytest.mark.parametrize("point", BEFORE + AFTER)
def test_a_session_ended_at_each_statement(crew: Crew, point: Point) -> None:
    jobs = crew.add(3)
    for job in jobs:
        crew.fake.steps[job.key].extend([More({"n": 1}), Ready({"n": 2})])
    cutter = Cutter(crew, point)
    with crew.working(probe=cutter, connect=cutter.connect):
        crew.await_state(S.PUBLISHED, jobs=jobs)
        assert cutter.left < 3
    assert crew.fake.page.on_it == dict.fromkeys((job.key for job in jobs), 1)


def test_sessions_that_end_at_any_moment(crew: Crew) -> None:
    jobs = crew.add(60)
    for job in jobs[::2]:
        crew.fake.acts[job.key].append(platform.unreachable)
    for job in jobs[::3]:
        crew.fake.steps[job.key].append(Ready({"n": 1}))
    over = Event()
    sessions: list[Driver] = []
    moments = random.Random(7)

    def connect() -> Driver:
        sessions.append(crew.connect())
        return sessions[-1]

    def storm() -> None:
        with crew.ground.server.superuser() as root:
            while not over.wait(moments.uniform(0.001, 0.02)):
                if sessions:
                    root.execute("SELECT pg_terminate_backend(%s)", [sessions[-1].info.backend_pid])
                if len(sessions) > 25:
                    return

    strikes = Thread(target=storm)
    with crew.working(connect=connect) as run:
        await_that(lambda: run.worker._conn)
        strikes.start()
        crew.await_state(S.PUBLISHED, S.FAILED, jobs=jobs)
        over.set()
    strikes.join()
    assert len(sessions) > 5
    assert crew.fake.page.on_it == dict.fromkeys((job.key for job in jobs), 1)
    settled = crew.ground.one(
        "SELECT count(*) FROM attempts WHERE job_id = ANY(%s) AND outcome = 'published'",
        [crew.id(job) for job in jobs],
    )
    assert settled == len(jobs)


class Cut(psycopg.Connection[Any]):
    """A connection that loses the answer to the first statement that holds certain words."""

    words = ""
    cuts = 0

    def execute(self, query: Any, *args: Any, **how: Any) -> Any:  # noqa: ANN401
        result = super().execute(query, *args, **how)
        if self.words and self.words in str(query):
            type(self).cuts += 1
            type(self).words = ""
            self.close()
            message = "server closed the connection unexpectedly"
            raise psycopg.OperationalError(message)
        return result


def cut(crew: Crew) -> Driver:
    options = "-c role=publisher_engine -c search_path=publisher -c lock_timeout=1000"
    address = crew.ground.server.url(crew.ground.name)
    return Cut.connect(address, autocommit=True, options=options)


@pytest.mark.parametrize(
    "words",
    [
        "INSERT INTO attempts",
        "INTO remote_posts",
        "INTO job_events",
        "SET progress",
        "SET hand_at",
    ],
    ids=["begin", "settle", "rescue", "progress", "hand"],
)
def test_a_statement_that_took_effect_and_whose_answer_was_lost(crew: Crew, words: str) -> None:
    (job,) = crew.add()
    crew.fake.steps[job.key].append(Ready({"n": 1}))
    Cut.words, Cut.cuts = words, 0
    with crew.working(connect=lambda: cut(crew)):
        crew.await_state(S.PUBLISHED, jobs=[job])
    assert Cut.cuts == 1
    assert crew.fake.page.on_it == {job.key: 1}
    if words == "INSERT INTO attempts":
        first = crew.ground.attempt(crew.id(job))
        assert (first["proof"], first["reason"]) == ("not_sent", Reason.BEGIN_UNACKNOWLEDGED)
        assert crew.row(job)["failures"] == 0


def test_a_connection_that_dies_while_it_is_taken_up_is_one_more_to_replace(crew: Crew) -> None:
    """Not the end of the run, which has a send under way."""
    (job,) = crew.add()
    stuck = platform.Stuck()
    crew.fake.acts[job.key].append(stuck)
    Cut.words, Cut.cuts = "JOIN attempts a ON", 0
    with crew.working(connect=lambda: cut(crew)) as run:
        assert stuck.reached.wait(20)
        assert run.worker._conn is not None
        crew.ground.sql("SELECT pg_terminate_backend(%s)", run.worker._conn.info.backend_pid)
        await_that(lambda: Cut.cuts)
        stuck.let_go.set()
        crew.await_state(S.PUBLISHED, jobs=[job])
    assert crew.fake.page.on_it == {job.key: 1}


def test_a_claim_whose_answer_was_lost_is_given_back(crew: Crew) -> None:
    (job,) = crew.add()
    times: list[Point] = []

    def lose(point: Point) -> None:
        if point is Point.AFTER_CLAIM and not times and crew.state(job) is S.CLAIMED:
            times.append(point)
            assert run.worker._conn is not None
            run.worker._conn.close()
            message = "cut"
            raise psycopg.OperationalError(message)

    with crew.working(probe=lose) as run:
        crew.await_state(S.PUBLISHED, jobs=[job])
    assert times
    row = crew.row(job)
    assert (row["claims"], row["attempts"], row["deaths"]) == (2, 1, 0)


def test_a_job_taken_away_while_there_was_no_connection_is_lost(crew: Crew) -> None:
    (job,) = crew.add()
    crew.fake.steps[job.key].append(Ready({"n": 1}))
    taken: list[bool] = []

    def take_away(point: Point) -> None:
        if point is Point.BEFORE_SAVE_PROGRESS and not taken:
            taken.append(True)
            with crew.ground.app.engine.begin() as conn:
                ledger.hold(conn, crew.id(job), who="me")
            assert run.worker._conn is not None
            run.worker._conn.close()

    with crew.working(probe=take_away) as run:
        await_that(lambda: taken and not run.worker._station.stock.held)
    row = crew.row(job)
    assert (row["state"], row["attempts"]) == ("scheduled", 0)
    assert crew.fake.page.calls.total() == 0


def test_an_unreachable_database_is_tried_again(crew: Crew) -> None:
    (job,) = crew.add()
    tries: list[int] = []

    def connect() -> Driver:
        tries.append(1)
        if 1 < len(tries) < 4:
            message = "nobody there"
            raise psycopg.OperationalError(message)
        return crew.connect()

    with crew.working(connect=connect) as run:
        crew.await_state(S.PUBLISHED, jobs=[job])
        assert run.worker._conn is not None
        crew.ground.sql("SELECT pg_terminate_backend(%s)", run.worker._conn.info.backend_pid)
        (other,) = crew.add()
        crew.await_state(S.PUBLISHED, jobs=[other])
    assert len(tries) >= 4


def test_a_database_that_may_not_be_used_any_more_ends_the_run(crew: Crew) -> None:
    tries: list[int] = []

    def connect() -> Driver:
        tries.append(1)
        if len(tries) > 1:
            message = "it is a standby now"
            raise NotFound(message)
        return crew.connect()

    run = Run(crew.worker(connect=connect))
    await_that(lambda: run.worker._conn)
    assert run.worker._conn is not None
    crew.ground.sql("SELECT pg_terminate_backend(%s)", run.worker._conn.info.backend_pid)
    assert run.join() == 1


def test_a_restored_database_that_does_not_know_this_run_ends_it(crew: Crew) -> None:
    """Its number may by now be another's: it takes nothing up again, and sends nothing more."""
    (job,) = crew.add()
    stuck = platform.Stuck()
    crew.fake.acts[job.key].append(stuck)
    run = Run(crew.worker(concurrency=1))
    assert stuck.reached.wait(20)
    (waiting,) = crew.add()
    crew.await_state(S.CLAIMED, jobs=[waiting])
    crew.ground.sql(
        "UPDATE incarnations SET file = 'of another' WHERE id = %s", run.worker.incarnation
    )
    assert run.worker._conn is not None
    crew.ground.sql("SELECT pg_terminate_backend(%s)", run.worker._conn.info.backend_pid)
    await_that(lambda: run.worker._draining)
    stuck.let_go.set()
    assert run.join() == 1
    assert crew.state(job) is S.PUBLISHED
    assert crew.state(waiting) is S.CLAIMED
    ended = "SELECT ended_at FROM incarnations WHERE id = %s"
    assert crew.ground.one(ended, run.worker.incarnation) is None


def test_a_database_that_lost_the_begin_of_a_send_under_way(crew: Crew) -> None:
    """Failed over without the last commits: the job is a doubt, not a second post."""
    (job,) = crew.add()
    stuck = platform.Stuck()
    crew.fake.acts[job.key].append(stuck)
    run = Run(crew.worker())
    assert stuck.reached.wait(20)
    crew.ground.sql("SET session_replication_role = replica")
    crew.ground.sql("DELETE FROM attempts WHERE job_id = %s", crew.id(job))
    crew.ground.sql(
        # Not due: between this and the cut the worker would claim it again.
        "UPDATE jobs SET state = 'scheduled', attempts = 0, claims = 0, token = NULL,"
        " incarnation = NULL, claimed_at = NULL, lease_until = NULL,"
        " run_at = clock_timestamp() + interval '1 hour' WHERE id = %s",
        crew.id(job),
    )
    crew.ground.sql("RESET session_replication_role")
    assert run.worker._conn is not None
    crew.ground.sql("SELECT pg_terminate_backend(%s)", run.worker._conn.info.backend_pid)
    crew.await_state(S.UNKNOWN, jobs=[job])
    stuck.let_go.set()
    assert run.join() == 1
    assert crew.state(job) is S.UNKNOWN
    assert crew.fake.page.on_it == {job.key: 1}


def test_a_run_that_the_database_no_longer_knows_leaves_its_file(crew: Crew) -> None:
    """Restored to before it began: only the file says what it sent, so it outlives the run."""
    (job,) = crew.add()
    run = Run(crew.worker())
    crew.await_state(S.PUBLISHED, jobs=[job])
    file = run.worker._station.spool.path
    crew.ground.sql("SET session_replication_role = replica")
    crew.ground.sql("DELETE FROM incarnations WHERE id = %s", run.worker.incarnation)
    crew.ground.sql("RESET session_replication_role")
    assert run.worker._conn is not None
    crew.ground.sql("SELECT pg_terminate_backend(%s)", run.worker._conn.info.backend_pid)
    assert run.join() == 1
    assert file.exists()


def test_a_hint_that_breaks_is_asked_for_again(crew: Crew) -> None:
    times: list[int] = []

    def listen() -> Driver:
        times.append(1)
        if len(times) == 1:
            message = "no more connections"
            raise psycopg.OperationalError(message)
        return crew.connect()

    with crew.working(listen=listen):
        await_that(lambda: len(times) >= 2)
