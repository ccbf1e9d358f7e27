"""One bad row keeps nobody else's answer, and no answer is dropped before it is written."""

from __future__ import annotations

import errno
from dataclasses import replace

import psycopg
import pytest

from publisher.engine import ledger, retry
from publisher.engine import spool as spools
from publisher.engine.adapter import Ready
from publisher.engine.job import State
from publisher.engine.outcome import Published, Reason, Unknown
from publisher.engine.points import Point
from publisher.engine.spool import Spool
from tests.engine.crew import Crew, Run
from tests.engine.ground import await_that
from tests.engine.platform import Act, Page, Stuck, lose_answer

S = State


def answering(outcome: Published | Unknown) -> Act:
    def act(task: object, permit: object, page: Page) -> Published | Unknown:
        permit.use()  # type: ignore[attr-defined]
        page.on_it[task.key] += 1  # type: ignore[attr-defined]
        return outcome

    return act


@pytest.mark.parametrize("remote_id", ["", "a\x00b", "\ud800", "x" * 10_000])
def test_an_id_that_cannot_be_stored_is_a_doubt_and_harms_nobody(
    crew: Crew, remote_id: str
) -> None:
    bad, *good = crew.add(4)
    crew.fake.acts[bad.key].append(answering(Published(remote_id)))
    with crew.working() as run:
        crew.await_state(S.PUBLISHED, jobs=good)
        crew.await_state(S.UNKNOWN, jobs=[bad])
    assert run.code == 0
    assert crew.row(bad)["reason"] == Reason.NO_ID
    with crew.working():
        crew.await_state(S.UNKNOWN, jobs=[bad])
    assert crew.fake.page.on_it[bad.key] == 1


def test_two_answers_with_one_id_in_one_set(crew: Crew) -> None:
    jobs = crew.add(2)
    for job in jobs:
        crew.fake.acts[job.key].append(answering(Published(f"one id {crew.lane.queue}")))
    with crew.working():
        crew.await_state(S.PUBLISHED, S.UNKNOWN, jobs=jobs)
    assert sorted(crew.state(job) for job in jobs) == [S.PUBLISHED, S.UNKNOWN]


def test_a_row_the_database_refuses_by_itself_is_parked(
    crew: Crew, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its lease runs out later; what the platform said stays in the file, which is not removed."""
    bad, *good = crew.add(4)
    crew.fake.acts[bad.key].append(answering(Published("poison")))
    settle = retry.settle

    def spoil(*args: object) -> retry.Settlement:
        end = settle(*args)  # type: ignore[arg-type]
        return replace(end, remote_id="") if end.remote_id == "poison" else end

    monkeypatch.setattr(retry, "settle", spoil)
    with crew.working() as run:
        crew.await_state(S.PUBLISHED, jobs=good)
        await_that(lambda: run.worker._station.parked)
    monkeypatch.undo()
    assert run.code == 1
    assert crew.state(bad) is S.SENDING
    (path,) = crew.folder.iterdir()
    assert b"poison" in path.read_bytes()
    # The next process reads it there.
    run.worker._station.spool.close(remove=False)
    with crew.working():
        crew.await_state(S.PUBLISHED, jobs=[bad])
    assert crew.fake.page.on_it[bad.key] == 1


def test_a_lock_that_is_waited_for_in_vain_parks_nothing(crew: Crew) -> None:
    """The remote id is being bound by somebody else's transaction: that says nothing of the row."""
    (job,) = crew.add()
    remote_id = f"contested {crew.lane.queue}"
    crew.fake.acts[job.key].append(answering(Published(remote_id)))
    other = crew.connect()
    with crew.working() as run:
        with other.transaction(force_rollback=True):
            other.execute(
                "INSERT INTO remote_posts VALUES (%s, %s, -1)", [crew.lane.channel_id, remote_id]
            )
            await_that(lambda: run.worker._station.stock.ends)
            assert run.worker._conn is not None
            crew.ground.await_waiting(run.worker._conn)
            await_that(lambda: not waits(crew, run))
        crew.await_state(S.PUBLISHED, jobs=[job])
        assert run.worker._station.parked == 0
    other.close()


def waits(crew: Crew, run: Run) -> bool:
    assert run.worker._conn is not None
    pid = run.worker._conn.info.backend_pid
    return bool(crew.ground.one("SELECT cardinality(pg_blocking_pids(%s)) > 0", pid))


def test_an_end_of_a_locked_row_comes_again(crew: Crew) -> None:
    (job,) = crew.add()
    stuck = Stuck()
    crew.fake.acts[job.key].append(stuck)
    other = crew.connect()
    settles: list[Point] = []
    with crew.working(probe=settles.append):
        assert stuck.reached.wait(20)
        with other.transaction():
            other.execute("SELECT FROM jobs WHERE id = %s FOR UPDATE", [crew.id(job)])
            stuck.let_go.set()
            await_that(lambda: settles.count(Point.BEFORE_SETTLE) > 2)
        crew.await_state(S.PUBLISHED, jobs=[job])
    other.close()


def test_a_late_answer_of_a_locked_row_comes_again(crew: Crew) -> None:
    (job,) = crew.add()
    stuck = Stuck()
    crew.fake.acts[job.key].append(stuck)
    other = crew.connect()
    settles: list[Point] = []
    with crew.working(probe=settles.append) as run:
        assert stuck.reached.wait(20)
        ledger.forsake(crew.ground.conn, run.worker.incarnation, deaths=3, who="me")
        with other.transaction():
            other.execute("SELECT FROM jobs WHERE id = %s FOR UPDATE", [crew.id(job)])
            stuck.let_go.set()
            await_that(lambda: settles.count(Point.BEFORE_SETTLE) > 2)
        crew.await_state(S.PUBLISHED, jobs=[job])
    other.close()


def test_a_late_answer_that_cannot_be_written_is_parked(
    crew: Crew, monkeypatch: pytest.MonkeyPatch
) -> None:
    (job,) = crew.add()
    stuck = Stuck()
    crew.fake.acts[job.key].append(stuck)

    def refuse(*_: object, **__: object) -> ledger.Late:
        raise psycopg.errors.CheckViolation

    with crew.working() as run:
        assert stuck.reached.wait(20)
        ledger.forsake(crew.ground.conn, run.worker.incarnation, deaths=3, who="me")
        with monkeypatch.context() as refusing:
            refusing.setattr(ledger, "record_late", refuse)
            stuck.let_go.set()
            await_that(lambda: run.worker._station.parked)
    assert run.code == 1
    run.worker._station.spool.close(remove=False)
    with crew.working():
        crew.await_state(S.PUBLISHED, jobs=[job])
    assert crew.fake.page.on_it == {job.key: 1}


def test_published_against_a_cancelled_job_is_kept(crew: Crew) -> None:
    """Rescued, deferred by the spool of a clone, cancelled by a person, and live after all."""
    (job,) = crew.add()
    stuck = Stuck()
    crew.fake.acts[job.key].append(stuck)
    with crew.working() as run:
        assert stuck.reached.wait(20)
        ledger.forsake(crew.ground.conn, run.worker.incarnation, deaths=3, who="me")
        attempt = crew.ground.attempt(crew.id(job))
        crew.ground.sql("UPDATE jobs SET run_at = 'infinity' WHERE id = %s", crew.id(job))
        end = replace(retry.not_sent(Reason.NOT_STARTED, "wrong", 600.0))
        ledger.record_late(crew.ground.conn, crew.id(job), attempt["token"], end, who="me")
        with crew.ground.app.engine.begin() as conn:
            ledger.cancel(conn, crew.id(job), who="me")
        stuck.let_go.set()
        await_that(lambda: crew.ground.attempt(crew.id(job))["outcome"] == "published")
    assert crew.state(job) is S.CANCELLED


def test_a_doubt_is_not_forgotten_when_the_file_is_compacted(
    crew: Crew, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file without its lines would read as if it had not been started."""
    monkeypatch.setattr(spools, "_COMPACT_BYTES", 0)
    lost, settled = crew.add(2)
    crew.fake.acts[lost.key].append(lose_answer)
    with crew.working():
        crew.await_state(S.UNKNOWN, jobs=[lost])
        crew.await_state(S.PUBLISHED, jobs=[settled])
        (other,) = crew.add()
        crew.await_state(S.PUBLISHED, jobs=[other])
        (path,) = crew.folder.glob("*.spool")
        kept = path.read_bytes()
    tokens = [crew.ground.attempt(crew.id(job))["token"].hex.encode() for job in (lost, settled)]
    assert [token in kept for token in tokens] == [True, False]


# Begin


def test_a_second_record_that_fails_means_no_send(
    crew: Crew, monkeypatch: pytest.MonkeyPatch
) -> None:
    (job,) = crew.add()
    times: list[int] = []
    real = Spool.open

    def full_once(self: Spool, sends: object) -> None:
        times.append(1)
        if len(times) == 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(self, sends)  # type: ignore[arg-type]

    monkeypatch.setattr(Spool, "open", full_once)
    with crew.working():
        crew.await_state(S.PUBLISHED, jobs=[job])
    first = crew.ground.attempt(crew.id(job))
    assert (first["reason"], first["proof"]) == (Reason.SPOOL_FAILED, "not_sent")
    assert crew.fake.page.calls == {job.key: 1}
    assert crew.row(job)["failures"] == 0


def test_a_start_line_that_fails_means_no_send(crew: Crew, monkeypatch: pytest.MonkeyPatch) -> None:
    (job,) = crew.add()
    times: list[int] = []
    real = Spool.start

    def full_once(self: Spool, token: object) -> None:
        times.append(1)
        if len(times) == 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(self, token)  # type: ignore[arg-type]

    monkeypatch.setattr(Spool, "start", full_once)
    with crew.working():
        crew.await_state(S.PUBLISHED, jobs=[job])
    assert crew.ground.attempt(crew.id(job))["reason"] == Reason.SPOOL_FAILED
    assert crew.fake.page.calls == {job.key: 1}


def test_an_answer_line_that_fails_loses_a_witness_and_not_the_answer(
    crew: Crew, monkeypatch: pytest.MonkeyPatch
) -> None:
    (job,) = crew.add()

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Spool, "answer", full)
    with crew.working():
        crew.await_state(S.PUBLISHED, jobs=[job])


@pytest.mark.parametrize(
    ("sql", "state"),
    [
        ("UPDATE jobs SET useful_until = now() WHERE id = %(id)s", S.MISSED),
        ("UPDATE gates SET paused_at = now() WHERE channel_id = %(channel)s", S.SCHEDULED),
        ("UPDATE jobs SET lease_until = now() WHERE id = %(id)s", S.PUBLISHED),
        ("UPDATE jobs SET repeat_until = now() WHERE id = %(id)s", S.UNKNOWN),
    ],
)
def test_what_may_not_be_begun_goes_back(crew: Crew, sql: str, state: State) -> None:
    (job,) = crew.add()
    done: list[bool] = []

    def meanwhile(point: Point) -> None:
        if point is Point.BEFORE_BEGIN and not done:
            crew.ground.root.execute(
                sql.encode(), {"id": crew.id(job), "channel": crew.lane.channel_id}
            )
            done.append(True)

    with crew.working(probe=meanwhile):
        await_that(lambda: done)
        crew.await_state(state, jobs=[job])
    assert crew.row(job)["attempts"] == (state is S.PUBLISHED)


@pytest.mark.parametrize("point", [Point.BEFORE_BEGIN, Point.BEFORE_SAVE_PROGRESS])
def test_a_row_somebody_holds_is_begun_or_kept_later(crew: Crew, point: Point) -> None:
    (job,) = crew.add()
    crew.fake.steps[job.key].append(Ready({"n": 1}))
    other = crew.connect()
    reached: list[Point] = []

    def hold(now: Point) -> None:
        if now is point:
            reached.append(now)
            if len(reached) == 1:
                other.execute("BEGIN")
                other.execute("SELECT FROM jobs WHERE id = %s FOR UPDATE", [crew.id(job)])
            elif len(reached) == 3:
                other.execute("ROLLBACK")

    with crew.working(probe=hold):
        crew.await_state(S.PUBLISHED, jobs=[job])
    other.close()
    assert len(reached) >= 3
    assert crew.row(job)["claims"] == 1


def test_a_job_cancelled_just_before_its_begin_is_lost(crew: Crew) -> None:
    (job,) = crew.add()
    done: list[bool] = []

    def cancel(point: Point) -> None:
        if point is Point.BEFORE_BEGIN and not done:
            with crew.ground.app.engine.begin() as conn:
                ledger.cancel(conn, crew.id(job), who="me")
            done.append(True)

    with crew.working(probe=cancel) as run:
        await_that(lambda: done and not run.worker._station.stock.held)
    assert crew.state(job) is S.CANCELLED
    assert crew.fake.page.calls.total() == 0


def test_an_unproved_earlier_attempt_stops_one_job_and_not_its_set(crew: Crew) -> None:
    """It cannot happen by any verb; if it does, the promise index refuses and the others go on."""
    bad, *good = crew.add(4)
    crew.ground.sql("SET session_replication_role = replica")
    crew.ground.sql(
        "INSERT INTO attempts (job_id, number, token, incarnation, content_sha256, claimed_at)"
        " VALUES (%s, 99, gen_random_uuid(), 1, 'x', now())",
        crew.id(bad),
    )
    crew.ground.sql("RESET session_replication_role")
    with crew.working():
        crew.await_state(S.PUBLISHED, jobs=good)
        crew.await_state(S.UNKNOWN, jobs=[bad])
    assert crew.fake.page.calls[bad.key] == 0


def test_an_unexpected_error_in_one_move_does_not_end_the_worker(
    crew: Crew, monkeypatch: pytest.MonkeyPatch
) -> None:
    (job,) = crew.add()
    times: list[int] = []
    prepare = ledger.channels

    def break_once(*args: object) -> object:
        times.append(1)
        if len(times) == 1:
            message = "a bug"
            raise RuntimeError(message)
        return prepare(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(ledger, "channels", break_once)
    with crew.working() as run:
        await_that(lambda: times)
        (other,) = crew.add()
        crew.await_state(S.PUBLISHED, jobs=[other])
    assert run.code == 0
    # The claim that was cut short is nobody's: its lease runs out.
    assert crew.state(job) is S.CLAIMED
