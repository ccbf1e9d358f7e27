"""Claims a worker holds in memory: renewed while they are its own, dropped when they are not."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest

from publisher.engine import ledger
from publisher.engine.adapter import More, Ready, SendPermit, Task, Wait
from publisher.engine.job import JobId, NewJob, State
from publisher.engine.outcome import Outcome, Published, Reason
from publisher.engine.points import Point
from publisher.engine.retry import Policy, Rest, not_sent
from publisher.engine.worker import Timing
from publisher.engine.worker.chores import Chores
from publisher.engine.worker.stock import _longer
from tests.engine import platform
from tests.engine.crew import BRISK, Brisk, Crew
from tests.engine.ground import await_that, decided
from tests.engine.platform import Page, Stuck
from tests.engine.worker.test_death import Freezer

S = State
HELD_OVER = Brisk(lease=0.3, distrust=0.25, rescue_after=30.0, poll=0.02, drain=5.0)


def lease(crew: Crew, job: NewJob) -> datetime:
    until: datetime = crew.row(job)["lease_until"]
    return until


def put_on_hold(crew: Crew, job: NewJob) -> None:
    with crew.ground.app.engine.begin() as conn:
        ledger.hold(conn, crew.id(job), who="me")


def two_with_one_hand(crew: Crew) -> tuple[NewJob, NewJob, Freezer]:
    """The first one's hand freezes in its step; the second waits, claimed, for that hand."""
    first, second = crew.add(2)
    for job in (first, second):
        crew.fake.steps[job.key].append(Ready({"n": 1}))
    return first, second, Freezer(Point.AFTER_STEP)


def test_a_claim_that_waits_for_a_hand_is_renewed(crew: Crew) -> None:
    first, second, freezer = two_with_one_hand(crew)
    with crew.working(probe=freezer, timing=HELD_OVER, concurrency=1):
        assert freezer.frozen.wait(20)
        crew.await_state(S.CLAIMED, jobs=[first, second])
        before = [lease(crew, job) for job in (first, second)]
        await_that(
            lambda: all(lease(crew, j) > b for j, b in zip((first, second), before, strict=True))
        )
        freezer.thaw.set()
        crew.await_state(S.PUBLISHED, jobs=[first, second])
    assert [crew.row(job)["claims"] for job in (first, second)] == [1, 1]


def test_a_claim_taken_away_while_it_waits_is_dropped_at_its_renewal(crew: Crew) -> None:
    _, second, freezer = two_with_one_hand(crew)
    with crew.working(probe=freezer, timing=HELD_OVER, concurrency=1) as run:
        assert freezer.frozen.wait(20)
        await_that(lambda: len(run.worker._station.stock.held) == 2)
        with crew.ground.app.engine.begin() as conn:
            held = run.worker._station.stock.held
            waiting = next(iter(set(held) - {one.id for one in held.values() if one.busy}))
            ledger.hold(conn, waiting, who="me")
        await_that(lambda: waiting not in run.worker._station.stock.held)
        freezer.thaw.set()
    assert crew.ground.row(waiting)["attempts"] == 0
    assert crew.id(second) is not None


def test_a_lease_that_is_no_longer_trusted_is_given_back(crew: Crew) -> None:
    (job,) = crew.add()
    with crew.working(timing=Brisk(distrust=-1.0, poll=0.02, drain=5.0)):
        await_that(lambda: crew.row(job)["claims"] > 2)
    row = crew.row(job)
    assert (row["attempts"], row["failures"]) == (0, 0)


class Meanwhile:
    """A probe: something happens just after the first claim, and is over two claims later."""

    def __init__(self, crew: Crew, job: NewJob, *, nth: int = 1, take_away: bool = False) -> None:
        self.crew = crew
        self.job = job
        self.nth = nth
        self.take_away = take_away
        self.other = crew.connect()
        self.claims = 0
        self.ticks = 0

    def __call__(self, point: Point) -> None:
        if self.ticks and point is Point.BEFORE_CLAIM:
            self.ticks += 1
            if self.ticks == 4 and not self.take_away:
                self.other.execute("ROLLBACK")
        if point is Point.AFTER_CLAIM and not self.ticks:
            row = self.crew.row(self.job)
            if row["claims"] == self.nth and row["state"] == S.CLAIMED:
                self.ticks = 1
                self._happen(row["id"])

    def _happen(self, job_id: JobId) -> None:
        if self.take_away:
            put_on_hold(self.crew, self.job)
        else:
            self.other.execute("BEGIN")
            self.other.execute("SELECT FROM jobs WHERE id = %s FOR UPDATE", [job_id])


@pytest.mark.parametrize("nth", [1, 2], ids=["step", "look"])
def test_a_row_somebody_holds_is_recorded_later(crew: Crew, nth: int) -> None:
    (job,) = crew.add()
    if nth == 1:
        crew.fake.steps[job.key].append(Ready({"n": 1}))
    else:
        crew.fake.acts[job.key].append(platform.busy)
    meanwhile = Meanwhile(crew, job, nth=nth)
    with crew.working(probe=meanwhile):
        crew.await_state(S.PUBLISHED, jobs=[job])
    meanwhile.other.close()
    assert meanwhile.ticks >= 4
    assert crew.row(job)["claims"] == nth


@pytest.mark.parametrize("nth", [1, 2], ids=["step", "look"])
def test_a_job_taken_away_before_its_hand_starts_is_left(crew: Crew, nth: int) -> None:
    (job,) = crew.add()
    if nth == 1:
        crew.fake.steps[job.key].append(Ready({"n": 1}))
    else:
        crew.fake.acts[job.key].append(platform.busy)
    meanwhile = Meanwhile(crew, job, nth=nth, take_away=True)
    with crew.working(probe=meanwhile) as run:
        await_that(lambda: meanwhile.ticks > 4 and not run.worker._station.stock.held)
    meanwhile.other.close()
    assert crew.row(job)["hold_reason"] is not None
    assert crew.fake.looks == []
    assert crew.fake.stepped == []


class Restless(Timing):
    """A worker that does its chores in every tick."""

    @property
    def beat_every(self) -> float:
        return 0.0


def test_what_lies_in_a_queue_but_is_no_longer_held_is_passed_over(crew: Crew) -> None:
    """Steps, looks and sends alike: the claim was dropped after they were queued."""
    stepping, looking, ready = crew.add(3)
    crew.fake.steps[stepping.key].append(Ready({"n": 1}))
    crew.fake.acts[looking.key].append(platform.busy)
    crew.ground.sql("UPDATE jobs SET run_at = 'infinity' WHERE id = ANY(%s)",
                    [crew.id(stepping), crew.id(ready)])  # fmt: skip
    paused = Policy(first=600.0, longest=600.0, settling=0.0)
    with crew.working(policy=paused):
        await_that(
            lambda: crew.row(looking)["attempts"] == 1 and crew.state(looking) is S.SCHEDULED
        )
    crew.ground.sql("UPDATE jobs SET run_at = now() WHERE channel_id = %s", crew.lane.channel_id)
    dropped: list[int] = []

    def drop(point: Point) -> None:
        # The claim's jobs are queued by now; at the next tick's rescue all of them are lost.
        held = run.worker._station.stock.held if point is Point.BEFORE_RESCUE else {}
        if len(held) == 3 and not dropped:
            dropped.extend(held)
            for one in list(held.values()):
                run.worker._station.lose(one)

    with crew.working(probe=drop, timing=Restless(poll=0.02, drain=5.0)) as run:
        await_that(lambda: dropped)
        (other,) = crew.add()
        crew.await_state(S.PUBLISHED, jobs=[other])
    assert crew.fake.looks == []
    assert crew.fake.stepped == []
    assert crew.fake.page.on_it == {other.key: 1}


def test_a_suspect_waits_until_nothing_else_is_held(crew: Crew) -> None:
    (first,) = crew.add()
    stuck = Stuck()
    crew.fake.acts[first.key].append(stuck)
    with crew.working() as run:
        assert stuck.reached.wait(20)
        (suspect,) = crew.add()
        crew.ground.sql("UPDATE jobs SET deaths = 1 WHERE id = %s AND state = 'scheduled'",
                        crew.id(suspect))  # fmt: skip
        if crew.row(suspect)["deaths"]:
            await_that(lambda: run.worker._claiming.suspects)
            assert crew.row(suspect)["claims"] == 0
        stuck.let_go.set()
        crew.await_state(S.PUBLISHED, jobs=[first, suspect])


def test_a_renewal_that_meets_a_held_row_keeps_the_claim(crew: Crew) -> None:
    first, second, freezer = two_with_one_hand(crew)
    other = crew.connect()
    with crew.working(probe=freezer, timing=HELD_OVER, concurrency=1) as run:
        assert freezer.frozen.wait(20)
        held = run.worker._station.stock.held
        await_that(lambda: len(held) == 2)
        waiting, worked_on = sorted(held.values(), key=lambda one: one.busy)
        with other.transaction():
            other.execute("SELECT FROM jobs WHERE id = %s FOR UPDATE", [waiting.id])
            before = crew.ground.row(worked_on.id)["lease_until"]
            await_that(lambda: crew.ground.row(worked_on.id)["lease_until"] > before)
            assert waiting.id in held
        freezer.thaw.set()
        crew.await_state(S.PUBLISHED, jobs=[first, second])
    other.close()


def test_a_claim_beyond_the_last_channel_starts_anew_at_once(crew: Crew) -> None:
    with crew.working() as run:
        run.worker._claiming.after = 2**30
        (job,) = crew.add()
        crew.await_state(S.PUBLISHED, jobs=[job])
    assert run.worker._claiming.after == 0


def test_a_job_that_a_bug_left_lying_nowhere_is_picked_up(
    crew: Crew, monkeypatch: pytest.MonkeyPatch
) -> None:
    (job,) = crew.add()
    real, times = ledger.begin_send, [1]

    def break_once(*args: Any, **how: Any) -> Any:  # noqa: ANN401
        if times.pop() if times else False:
            message = "a bug"
            raise RuntimeError(message)
        return real(*args, **how)

    monkeypatch.setattr(ledger, "begin_send", break_once)
    with crew.working():
        crew.await_state(S.PUBLISHED, jobs=[job])
    assert crew.row(job)["claims"] == 1
    assert crew.fake.page.on_it == {job.key: 1}


# Rescue and late answers meanwhile


def test_while_rescue_pauses_leases_are_left_but_files_are_read(crew: Crew) -> None:
    (begun,) = crew.add()
    crew.dies_at(Point.AFTER_BEGIN)
    over = crew.lane.sending()
    crew.ground.sql("UPDATE jobs SET lease_until = now() - interval '1 day' WHERE id = %s", over.id)
    crew.ground.sql("UPDATE pulse SET rescue_not_before = 'infinity'")
    with crew.working():
        crew.await_state(S.PUBLISHED, jobs=[begun])
        assert crew.ground.state(over.id) is S.SENDING
        crew.ground.sql("UPDATE pulse SET rescue_not_before = now()")
        await_that(lambda: crew.ground.state(over.id) is S.UNKNOWN)


def test_an_older_attempt_that_turns_out_live_ends_the_job(crew: Crew) -> None:
    (job,) = crew.add()
    stuck = Stuck()

    def then_busy(task: Task, permit: SendPermit, page: Page) -> Outcome:
        outcome = platform.busy(task, permit, page)
        stuck.reached.set()
        assert stuck.let_go.wait(30)
        return outcome

    crew.fake.acts[job.key].extend([platform.busy, then_busy])
    with crew.working():
        assert stuck.reached.wait(20)
        first = crew.ground.attempt(crew.id(job))
        late = decided(Published(f"first {job.key}"))
        told = ledger.record_late(
            crew.ground.conn, crew.id(job), first["token"], late, who="worker run 9"
        )
        assert told is ledger.Late.KEPT_ALERT
        stuck.let_go.set()
        crew.await_state(S.PUBLISHED, jobs=[job])
    assert crew.row(job)["remote_id"] == f"first {job.key}"


def test_an_end_without_outcome_of_a_lost_claim_is_dropped(crew: Crew) -> None:
    (job,) = crew.add(useful_until=None)
    crew.ground.sql("UPDATE gates SET paused_at = NULL WHERE channel_id = %s",
                    crew.lane.channel_id)  # fmt: skip
    crew.fake.steps[job.key].append(Wait({"n": 1}, 0.01, "encoding"))
    taken: list[bool] = []

    def take(point: Point) -> None:
        if point is Point.BEFORE_SETTLE and not taken:
            taken.append(True)
            put_on_hold(crew, job)

    with crew.working(probe=take) as run:
        await_that(lambda: taken and not run.worker._station.stock.ends)
    assert crew.row(job)["hold_reason"] is not None


@pytest.mark.parametrize("verb", ["save_progress", "settle", "record_late"])
def test_an_error_of_the_moment_in_a_row_by_itself_comes_again(
    crew: Crew, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    """The set failed for its data; alone, a row failed for want of a lock: that parks nothing."""
    jobs = crew.add(2)
    for job in jobs:
        crew.fake.steps[job.key].append(More({"n": 1}))
    errors = iter([psycopg.errors.CheckViolation, psycopg.errors.LockNotAvailable])
    if verb == "record_late":
        errors = iter([psycopg.errors.LockNotAvailable])
    real = getattr(ledger, verb)

    def fail_twice(*args: object, **how: object) -> object:
        error = next(errors, None)
        if error is not None:
            raise error
        return real(*args, **how)

    monkeypatch.setattr(ledger, verb, fail_twice)
    freezer = Freezer(Point.AFTER_PUBLISH)
    with crew.working(probe=freezer) as run:
        if verb == "record_late":
            assert freezer.frozen.wait(20)
            ledger.forsake(crew.ground.conn, run.worker.incarnation, deaths=9, who="me")
        freezer.thaw.set()
        crew.await_state(S.PUBLISHED, jobs=jobs)
        assert run.worker._station.parked == 0
    assert crew.fake.page.on_it == dict.fromkeys((job.key for job in jobs), 1)


# Small things


def test_before_the_first_heartbeat_our_own_clock_must_do() -> None:
    chores = Chores(None, None, None)  # type: ignore[arg-type]
    assert abs((chores.now() - datetime.now(UTC)).total_seconds()) < 5


def test_heartbeats_come_well_within_what_a_lease_is_trusted_for() -> None:
    assert Timing().beat_every == 5.0
    assert Timing(distrust=2.0).beat_every == 0.4
    assert Timing().grace == 15.0
    assert BRISK.beat_every < 1


def test_of_two_rests_the_longer_holds_and_a_block_is_kept() -> None:
    short, long, none = Rest(seconds=1.0), Rest(seconds=9.0), Rest()
    blocked = Rest(blocked=Reason.NEEDS_RECONNECTING, detail="expired")
    assert _longer(None, short) == short
    assert _longer(long, short).seconds == _longer(short, long).seconds == 9.0
    assert _longer(blocked, long) == Rest(9.0, Reason.NEEDS_RECONNECTING, "expired")
    assert _longer(long, blocked) == Rest(9.0, Reason.NEEDS_RECONNECTING, "expired")
    assert _longer(none, none).seconds is None
    assert not not_sent(Reason.SPOOL_FAILED, "", 1.0).may_be_live
