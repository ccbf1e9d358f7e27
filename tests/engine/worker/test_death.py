"""A worker dies at each point there is, and the next one finishes: once on the page, or a doubt."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from threading import Event, current_thread

import pytest

from publisher.engine import ledger
from publisher.engine.adapter import More, Ready
from publisher.engine.job import NewJob, State
from publisher.engine.outcome import Proof, Reason
from publisher.engine.points import Point
from tests.engine.crew import BRISK, PATIENCE, Crew, Death, Run
from tests.engine.ground import await_that

S = State
P = Point

BEFORE_ANYTHING = [P.BEFORE_RESCUE, P.AFTER_RESCUE, P.BEFORE_CLAIM, P.AFTER_CLAIM]
IN_STEPS = [P.BEFORE_STEP, P.AFTER_STEP, P.BEFORE_SAVE_PROGRESS, P.AFTER_SAVE_PROGRESS]
NOT_STARTED = [P.BEFORE_BEGIN, P.AFTER_BEGIN, P.AFTER_SPOOL_OPEN, P.BEFORE_START]
IN_DOUBT = [P.AFTER_START, P.AFTER_PUBLISH]
ANSWERED = [P.AFTER_ANSWER, P.BEFORE_SETTLE, P.AFTER_SETTLE]
# No worker comes by there: tests/reconciler/test_points.py.
RECONCILERS = [P.BEFORE_DOUBTS, P.AFTER_DOUBTS, P.BEFORE_VERDICT, P.AFTER_VERDICT]


def test_every_point_is_in_one_of_these_lists() -> None:
    workers = BEFORE_ANYTHING + IN_STEPS + NOT_STARTED + IN_DOUBT + ANSWERED
    assert Counter(workers + RECONCILERS) == Counter(Point)


def steps(crew: Crew, jobs: list[NewJob]) -> None:
    for job in jobs:
        crew.fake.steps[job.key].extend([More({"n": 1}), Ready({"n": 2})])


@pytest.mark.parametrize("point", BEFORE_ANYTHING + IN_STEPS + NOT_STARTED)
def test_before_the_send_is_started_nothing_is_lost_or_doubted(crew: Crew, point: Point) -> None:
    jobs = crew.add(3)
    steps(crew, jobs)
    crew.dies_at(point)
    assert crew.fake.page.calls.total() == 0
    with crew.working():
        crew.await_state(S.PUBLISHED, jobs=jobs)
    assert crew.fake.page.on_it == dict.fromkeys((job.key for job in jobs), 1)
    begun = point in {P.AFTER_BEGIN, P.AFTER_SPOOL_OPEN, P.BEFORE_START}
    proofs = crew.ground.sql(
        "SELECT proof, reason FROM attempts WHERE job_id = ANY(%s) AND number = 1",
        [crew.id(job) for job in jobs],
    )
    unsent = [row for row in proofs if row["proof"] == Proof.NOT_SENT]
    assert bool(unsent) is begun
    assert all(row["reason"] == Reason.NOT_STARTED for row in unsent)


@pytest.mark.parametrize("point", IN_DOUBT)
def test_between_start_and_answer_it_is_a_doubt_for_ever(crew: Crew, point: Point) -> None:
    (job,) = crew.add()
    crew.dies_at(point)
    for _ in range(3):
        with crew.working():
            crew.await_state(S.UNKNOWN, jobs=[job])
    assert crew.row(job)["attempts"] == 1
    assert crew.fake.page.on_it[job.key] == (point is P.AFTER_PUBLISH)


@pytest.mark.parametrize("point", ANSWERED)
def test_after_the_answer_line_it_is_settled_from_there(crew: Crew, point: Point) -> None:
    (job,) = crew.add()
    crew.dies_at(point)
    with crew.working():
        crew.await_state(S.PUBLISHED, jobs=[job])
    assert crew.fake.page.on_it == {job.key: 1}
    assert crew.row(job)["remote_id"] == crew.fake.page.ids[job.key]
    assert crew.row(job)["attempts"] == 1


def test_progress_outlives_the_worker_that_made_it(crew: Crew) -> None:
    (job,) = crew.add()
    crew.fake.steps[job.key].extend([More({"photo": 7}), Ready({"photo": 7, "done": True})])
    crew.dies_at(P.AFTER_SAVE_PROGRESS)
    with crew.working():
        crew.await_state(S.PUBLISHED, jobs=[job])
    assert [dict(task.progress) for task in crew.fake.stepped] == [{}, {"photo": 7}]


def test_a_job_that_kills_its_workers_is_poison_and_only_it(crew: Crew) -> None:
    deadly, other = crew.add(2)
    crew.fake.steps[other.key].append(Ready({}))
    for _ in range(PATIENCE.deaths):
        crew.fake.steps[deadly.key].append(Ready({}))
        crew.dies_at(P.BEFORE_STEP)
    with crew.working():
        crew.await_state(S.FAILED, jobs=[deadly])
        crew.await_state(S.PUBLISHED, jobs=[other])
    assert (crew.row(deadly)["reason"], crew.row(deadly)["attempts"]) == (Reason.POISON, 0)


# Frozen, and taken for dead


class Freezer:
    """A probe at which one hand freezes until it is thawed."""

    def __init__(self, point: Point) -> None:
        self.point = point
        self.frozen = Event()
        self.thaw = Event()

    def __call__(self, point: Point) -> None:
        is_first = not self.frozen.is_set()
        if point is self.point and is_first and current_thread().name.startswith("hand-"):
            self.frozen.set()
            assert self.thaw.wait(30)


def lease_runs_out(crew: Crew, job: NewJob) -> None:
    crew.ground.sql("UPDATE jobs SET lease_until = 'epoch' WHERE id = %s", crew.id(job))
    crew.await_state(S.UNKNOWN, jobs=[job])


def test_a_late_published_wins_over_the_doubt_that_rescue_made(crew: Crew) -> None:
    (job,) = crew.add()
    freezer = Freezer(P.AFTER_PUBLISH)
    with crew.working(probe=freezer):
        assert freezer.frozen.wait(20)
        lease_runs_out(crew, job)
        freezer.thaw.set()
        crew.await_state(S.PUBLISHED, jobs=[job])
    assert crew.fake.page.on_it == {job.key: 1}
    assert crew.ground.events(crew.id(job))[-1]["event"] == "late_answer"


def test_a_hand_that_thaws_after_its_window_sends_nothing(crew: Crew) -> None:
    (job,) = crew.add()
    freezer = Freezer(P.BEFORE_START)
    with crew.working(probe=freezer) as run:
        assert freezer.frozen.wait(20)
        permit = run.worker._station.stock.held[crew.id(job)].permit
        assert permit is not None
        permit.deadline = 0.0
        lease_runs_out(crew, job)
        freezer.thaw.set()
        # Its answer is that nothing was sent, so the job goes on and is published, once.
        crew.await_state(S.PUBLISHED, jobs=[job])
    assert crew.fake.page.on_it == {job.key: 1}
    first = crew.ground.attempt(crew.id(job), 1)
    assert first["proof"] == Proof.NOT_SENT


def test_a_claim_that_was_rescued_meanwhile_is_not_begun_by_its_old_holder(crew: Crew) -> None:
    (job,) = crew.add()
    crew.fake.steps[job.key].append(Ready({"n": 1}))
    freezer = Freezer(P.AFTER_STEP)
    with crew.working(probe=freezer):
        assert freezer.frozen.wait(20)
        crew.ground.sql(
            "UPDATE jobs SET run_at = now() + interval '1 hour', state = 'scheduled', token = NULL,"
            " incarnation = NULL, claimed_at = NULL, hand_at = NULL, lease_until = NULL"
            " WHERE id = %s",
            crew.id(job),
        )
        freezer.thaw.set()
        worker_is_free(crew)
    assert crew.fake.page.calls.total() == 0
    assert crew.row(job)["attempts"] == 0


def worker_is_free(crew: Crew) -> None:
    """Another job has gone all the way through, so whatever came before it has, too."""
    (other,) = crew.add()
    crew.await_state(S.PUBLISHED, jobs=[other])
    crew.fake.page.calls.clear()


def test_the_clock_of_the_database_and_ours_must_run_alike(
    crew: Crew, monkeypatch: pytest.MonkeyPatch
) -> None:
    beat, beats = ledger.beat, Counter[str]()

    def jump(*args: object, **how: object) -> ledger.Beat:
        beats["all"] += 1
        told = beat(*args, **how)  # type: ignore[arg-type]
        late = told.now.replace(year=told.now.year + 1) if beats["all"] > 2 else told.now
        return replace(told, now=late)

    monkeypatch.setattr(ledger, "beat", jump)
    run = Run(crew.worker())
    assert run.join() == 1
    why = crew.ground.one(
        "SELECT end_reason FROM incarnations WHERE id = %s", run.worker.incarnation
    )
    assert "parted" in why


def test_death_is_what_the_reaper_says_it_is(crew: Crew) -> None:
    """The helper of this module really ends a run, lets its file go, and its hands with it."""
    crew.add()
    crew.dies_at(P.AFTER_CLAIM)
    (path,) = crew.folder.iterdir()
    assert path.suffix == ".spool"
    with pytest.raises(Death):
        raise Death
    await_that(lambda: BRISK.beat_every < 1)
