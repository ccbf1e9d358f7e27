"""A worker from claim to settle: each outcome, each kind of step, and nothing sent twice."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from publisher.engine import ledger
from publisher.engine.adapter import More, Ready, Step, Task, Wait
from publisher.engine.errors import NotFound
from publisher.engine.job import State
from publisher.engine.outcome import Deferred, Reason, Rejected, Unauthorized
from publisher.engine.retry import Policy
from publisher.engine.worker import Timing
from tests.engine import platform
from tests.engine.crew import PATIENCE, Crew, Run
from tests.engine.ground import await_that
from tests.engine.platform import Act

S = State


def test_a_post_is_published_once_and_its_trail_is_complete(crew: Crew) -> None:
    (job,) = crew.add()
    with crew.working() as run:
        crew.await_state(S.PUBLISHED, jobs=[job])
    assert run.code == 0
    assert crew.fake.page.on_it == {job.key: 1}
    row, attempt = crew.row(job), crew.ground.attempt(crew.id(job))
    assert row["remote_id"] == attempt["remote_id"] == crew.fake.page.ids[job.key]
    assert attempt["answer"]["status"] == 200
    assert attempt["incarnation"] == run.worker.incarnation
    end = crew.ground.sql("SELECT * FROM incarnations WHERE id = %s", run.worker.incarnation)[0]
    assert end["end_reason"] == "drained"
    assert list(crew.folder.iterdir()) == []


def test_a_hundred_posts_on_few_hands(crew: Crew) -> None:
    jobs = crew.add(100)
    with crew.working():
        crew.await_state(S.PUBLISHED, jobs=jobs)
    assert crew.fake.page.on_it == dict.fromkeys((job.key for job in jobs), 1)


@pytest.mark.parametrize(
    ("act", "state", "sent", "reason"),
    [
        (platform.refuse, S.FAILED, 1, Reason.CONTENT_REFUSED),
        (platform.lose_answer, S.UNKNOWN, 1, Reason.NO_ANSWER),
        (platform.break_after, S.UNKNOWN, 1, Reason.ADAPTER_BROKE),
        (platform.lie_about_sending, S.UNKNOWN, 1, Reason.ADAPTER_BROKE),
        (platform.refuse_without_a_row, S.UNKNOWN, 1, Reason.UNLISTED_REFUSAL),
        (platform.revoke_without_a_row, S.UNKNOWN, 1, Reason.UNLISTED_REFUSAL),
        (platform.defer_without_a_row, S.UNKNOWN, 1, Reason.UNLISTED_REFUSAL),
    ],
)
def test_an_end_that_is_final(
    crew: Crew, act: Act, state: State, sent: int, reason: Reason
) -> None:
    (job,) = crew.add()
    crew.fake.acts[job.key].append(act)
    with crew.working():
        crew.await_state(state, jobs=[job])
    assert crew.row(job)["reason"] == reason
    assert crew.fake.page.calls[job.key] == sent


@pytest.mark.parametrize(
    ("act", "calls"),
    [
        (platform.unreachable, 1),
        (platform.busy, 2),
        (platform.break_before, 1),
        (platform.claim_success_unsent, 1),
    ],
)
def test_what_certainly_was_not_published_is_tried_again(crew: Crew, act: Act, calls: int) -> None:
    (job,) = crew.add()
    crew.fake.acts[job.key].append(act)
    with crew.working():
        crew.await_state(S.PUBLISHED, jobs=[job])
    assert crew.fake.page.calls[job.key] == calls
    assert crew.fake.page.on_it[job.key] == 1
    row = crew.row(job)
    assert (row["attempts"], row["failures"]) == (2, 1)
    assert crew.ground.attempt(crew.id(job))["proof"] in {"not_sent", "refused"}


def test_tries_are_used_up(crew: Crew) -> None:
    (job,) = crew.add()
    crew.fake.acts[job.key].extend([platform.unreachable] * 9)
    with crew.working():
        crew.await_state(S.FAILED, jobs=[job])
    assert crew.row(job)["failures"] == PATIENCE.tries


def test_an_unknown_is_never_sent_again_over_ten_restarts(crew: Crew) -> None:
    (lost,) = crew.add()
    crew.fake.acts[lost.key].append(platform.lose_answer)
    for _ in range(10):
        (other,) = crew.add()
        with crew.working():
            crew.await_state(S.UNKNOWN, jobs=[lost])
            crew.await_state(S.PUBLISHED, jobs=[other])
    assert crew.fake.page.calls[lost.key] == 1
    assert crew.fake.page.calls.total() == 11
    assert crew.row(lost)["attempts"] == 1


def test_a_refused_credential_closes_the_channel_until_a_person_reconnects(crew: Crew) -> None:
    first, second = crew.add(2)
    crew.lane.ground.sql(
        "UPDATE gates SET max_in_flight = 1 WHERE channel_id = %s", crew.lane.channel_id
    )
    crew.fake.acts[first.key].append(platform.token_refused)
    gate = "SELECT blocked_reason FROM gates WHERE channel_id = %s"
    with crew.working():
        await_that(lambda: crew.ground.one(gate, crew.lane.channel_id))
        crew.await_state(S.SCHEDULED, jobs=[first, second])
        assert crew.fake.page.on_it.total() == 0
        crew.ground.sql("UPDATE channels SET generation = 2 WHERE id = %s", crew.lane.channel_id)
        with crew.ground.app.engine.begin() as conn:
            ledger.unblock(conn, crew.lane.channel_id)
        crew.await_state(S.PUBLISHED, jobs=[first, second])
    assert crew.row(first)["failures"] == 0
    assert crew.fake.page.on_it.total() == 2


def test_a_limit_rests_the_whole_channel(crew: Crew) -> None:
    (job,) = crew.add()
    crew.fake.acts[job.key].append(platform.limit)
    slow = Policy(first=60.0, longest=60.0, settling=0.0)
    gate = "SELECT not_before > now() FROM gates WHERE channel_id = %s"
    with crew.working(policy=slow):
        await_that(lambda: crew.ground.one(gate, crew.lane.channel_id))
    assert crew.state(job) is S.SCHEDULED
    assert crew.fake.page.calls.total() == 1


# Steps


def test_steps_keep_their_progress(crew: Crew) -> None:
    (job,) = crew.add()
    crew.fake.steps[job.key].extend([More({"a": 1}), More({"a": 1}), Ready({"a": 1, "b": 2})])
    with crew.working():
        crew.await_state(S.PUBLISHED, jobs=[job])
    assert [dict(task.progress) for task in crew.fake.stepped] == [{}, {"a": 1}, {"a": 1}]
    kept = crew.ground.one("SELECT progress FROM job_contents WHERE job_id = %s", crew.id(job))
    assert kept == {"a": 1, "b": 2}
    assert crew.row(job)["claims"] == 1


def test_waiting_counts_no_failure(crew: Crew) -> None:
    (job,) = crew.add()
    crew.fake.steps[job.key].extend([Wait({"v": 1}, 0.01, "encoding"), Ready({"v": 2})])
    with crew.working():
        crew.await_state(S.PUBLISHED, jobs=[job])
    assert dict(crew.fake.stepped[1].progress) == {"v": 1}
    row = crew.row(job)
    assert (row["failures"], row["claims"], row["attempts"]) == (0, 2, 1)


@pytest.mark.parametrize(
    ("step", "state"),
    [
        (Rejected(Reason.MEDIA_REFUSED, "too big"), S.FAILED),
        (Deferred(Reason.STEP_FAILED, "again"), S.PUBLISHED),
        (RuntimeError("broke"), S.PUBLISHED),
    ],
)
def test_a_step_that_fails(crew: Crew, step: Step | Exception, state: State) -> None:
    (job,) = crew.add()
    crew.fake.steps[job.key].append(step)
    with crew.working():
        crew.await_state(state, jobs=[job])
    row = crew.row(job)
    assert row["attempts"] == (state is S.PUBLISHED)
    assert row["failures"] == (state is S.PUBLISHED)


def test_a_step_whose_credential_is_refused_closes_the_channel(crew: Crew) -> None:
    (job,) = crew.add()
    crew.fake.steps[job.key].append(Unauthorized(Reason.MISSING_PERMISSION, "x"))
    gate = "SELECT blocked_reason FROM gates WHERE channel_id = %s"
    with crew.working():
        await_that(lambda: crew.ground.one(gate, crew.lane.channel_id))
        crew.await_state(S.SCHEDULED, jobs=[job])


@pytest.mark.parametrize("progress", [{"id": "\x00"}, {"id": "\ud800"}, {"at": datetime.now(UTC)}])
def test_progress_that_cannot_be_stored_is_a_failed_step_and_harms_nobody(
    crew: Crew, progress: dict[str, object]
) -> None:
    bad, good = crew.add(2)
    crew.fake.steps[bad.key].extend([More(progress)] * 9)
    crew.fake.steps[good.key].append(More({"fine": True}))
    with crew.working():
        crew.await_state(S.PUBLISHED, jobs=[good])
        crew.await_state(S.FAILED, jobs=[bad])
    assert crew.row(bad)["reason"] == Reason.STEP_FAILED
    assert crew.fake.page.on_it == {good.key: 1}


def test_progress_of_other_content_is_discarded(crew: Crew) -> None:
    (job,) = crew.add()
    crew.ground.sql(
        "UPDATE job_contents SET progress = '{\"old\": 1}', progress_sha256 = 'other'"
        " WHERE job_id = %s",
        crew.id(job),
    )
    crew.fake.steps[job.key].append(Ready({"new": 1}))
    with crew.working():
        crew.await_state(S.PUBLISHED, jobs=[job])
    assert dict(crew.fake.stepped[0].progress) == {}


def test_a_preparation_that_breaks_is_a_failed_step(crew: Crew) -> None:
    (job,) = crew.add()

    def broken(task: Task) -> Ready:
        raise KeyError(task.key)

    crew.fake.prepare = broken
    with crew.working():
        crew.await_state(S.FAILED, jobs=[job])
    assert crew.row(job)["reason"] == Reason.STEP_FAILED


# What a worker does not take


def test_a_platform_without_adapter_waits_for_one(crew: Crew) -> None:
    other = crew.ground.lane(platform="elsewhere")
    job = other.new(queue=crew.lane.queue)
    ledger.enqueue(crew.ground.conn, [job])
    with crew.working():
        await_that(lambda: crew.row(job)["claims"] == 1 and crew.state(job) is S.SCHEDULED)
    row = crew.row(job)
    assert row["reason"] == Reason.NO_ADAPTER
    assert row["run_at"] > datetime.now(UTC) + timedelta(seconds=50)


def test_too_late_is_missed(crew: Crew) -> None:
    (job,) = crew.add(useful_until=datetime.now(UTC) - timedelta(seconds=1))
    with crew.working():
        crew.await_state(S.MISSED, jobs=[job])
    assert crew.fake.page.calls.total() == 0


def test_a_channels_posts_keep_their_order(crew: Crew) -> None:
    crew.ground.sql("UPDATE gates SET max_in_flight = 1 WHERE channel_id = %s",
                    crew.lane.channel_id)  # fmt: skip
    start = datetime.now(UTC) - timedelta(hours=1)
    jobs = [crew.lane.new(run_at=start + timedelta(minutes=n)) for n in range(5)]
    ledger.enqueue(crew.ground.conn, jobs[::-1])
    with crew.working():
        crew.await_state(S.PUBLISHED, jobs=jobs)
    assert list(crew.fake.page.ids) == [job.key for job in jobs]


def test_jobs_that_workers_died_over_are_done_one_by_one(crew: Crew) -> None:
    jobs = crew.add(6)
    suspects = jobs[:3]
    for job in suspects:
        crew.ground.sql("UPDATE jobs SET deaths = 1 WHERE id = %s", crew.id(job))
    together: list[int] = []

    def watch(task: Task) -> Ready:
        held = crew.ground.engine.connect_driver()
        with held:
            row = held.execute(
                "SELECT count(*), max(deaths) FROM jobs WHERE channel_id = %s"
                " AND incarnation IS NOT NULL",
                [crew.lane.channel_id],
            ).fetchone()
        if row is not None and row[1]:
            together.append(row[0])
        return Ready(task.progress)

    crew.fake.prepare = watch
    with crew.working():
        crew.await_state(S.PUBLISHED, jobs=jobs)
    assert together == [1, 1, 1]


class Asleep(Timing):
    """A worker that hardly ever looks by itself."""

    @property
    def beat_every(self) -> float:
        return 60.0


def test_hints_wake_a_worker_that_would_sleep(crew: Crew) -> None:
    (first,) = crew.add()
    with crew.working(timing=Asleep(poll=60.0, drain=5.0), listen=crew.connect):
        crew.await_state(S.PUBLISHED, jobs=[first])
        await_that(
            lambda: crew.ground.one(
                "SELECT count(*) FROM pg_stat_activity WHERE query = 'LISTEN publisher_due'"
                " AND state = 'idle'"
            )
        )
        (second,) = crew.add()
        crew.await_state(S.PUBLISHED, jobs=[second])


def test_a_worker_that_may_not_start_says_so(crew: Crew) -> None:
    def refuse() -> object:
        message = "the database is a standby"
        raise NotFound(message)

    run = Run(crew.worker(connect=refuse))  # type: ignore[arg-type]
    with pytest.raises(NotFound, match="standby"):
        run.join()
    assert list(crew.folder.iterdir()) == []
