"""When a worker claims again: whatever can run is found at once, or a breath later, and not only
when it polls, which these workers do too rarely to help.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from publisher.engine import ledger, retry
from publisher.engine.job import JobId, State
from publisher.engine.ledger.claim import next_due
from publisher.engine.points import Point
from publisher.engine.worker import Timing, claiming
from tests.engine.crew import Crew
from tests.engine.ground import LEASE, await_that, key

S = State
LATER = "clock_timestamp() + interval '1 hour'"


class Lazy(Timing):
    """Does by itself nothing that a test would live to see."""

    @property
    def beat_every(self) -> float:
        return 3600.0


LAZY = Lazy(poll=600.0, drain=5.0)


class OnceAfterClaim:
    """A probe: does something just after the first claim that brought ``job``."""

    def __init__(self, crew: Crew, job_id: JobId, do: Callable[[], object]) -> None:
        self.crew, self.job_id, self.do = crew, job_id, do
        self.done = False

    def __call__(self, point: Point) -> None:
        if self.done or point is not Point.AFTER_CLAIM:
            return
        if self.crew.ground.state(self.job_id) is S.CLAIMED:
            self.done = True
            self.do()


def soon() -> datetime:
    return datetime.now(UTC) + timedelta(seconds=0.5)


def test_a_job_is_begun_when_its_time_comes(crew: Crew) -> None:
    # Nobody tells of jobs that are not due yet: the first look ahead finds them.
    first = crew.add(run_at=soon())
    second = crew.add(run_at=soon() + timedelta(seconds=0.5))
    with crew.working(timing=LAZY):
        crew.await_state(S.PUBLISHED, jobs=first + second)


def test_a_job_waits_no_longer_than_its_gate(crew: Crew) -> None:
    jobs = crew.add()
    crew.ground.sql(
        "UPDATE gates SET not_before = clock_timestamp() + interval '0.5 s' WHERE channel_id = %s",
        crew.lane.channel_id,
    )
    with crew.working(timing=LAZY):
        crew.await_state(S.PUBLISHED, jobs=jobs)


def test_a_channel_that_has_room_again_is_claimed_from_at_once(crew: Crew) -> None:
    crew.ground.sql(
        "UPDATE gates SET max_in_flight = 1 WHERE channel_id = %s", crew.lane.channel_id
    )
    jobs = crew.add(20)
    with crew.working(timing=LAZY):
        crew.await_state(S.PUBLISHED, jobs=jobs)


def test_more_than_a_channels_share_is_claimed_without_waiting(crew: Crew) -> None:
    jobs = crew.add(40)
    with crew.working(timing=LAZY, concurrency=4):
        crew.await_state(S.PUBLISHED, jobs=jobs)


@pytest.mark.parametrize("how", ["due", "released", "opened", "room"])
def test_what_may_run_just_after_a_claim_is_not_left_to_the_poll(crew: Crew, how: str) -> None:
    """Nobody tells the worker of any of these; its next tick used to find them."""
    ground = crew.ground
    (job,) = crew.add()
    other = ground.lane(in_flight=1)
    waiting = other.new(queue=crew.lane.queue)
    (added,) = ledger.enqueue(ground.conn, [waiting])
    changes = {
        "due": (
            f"UPDATE jobs SET run_at = {LATER} WHERE id = {added.job_id}",
            f"UPDATE jobs SET run_at = clock_timestamp() WHERE id = {added.job_id}",
        ),
        "released": (
            f"UPDATE jobs SET hold_reason = 'x' WHERE id = {added.job_id}",
            f"UPDATE jobs SET hold_reason = NULL WHERE id = {added.job_id}",
        ),
        "opened": (
            f"UPDATE gates SET paused_at = now() WHERE channel_id = {other.channel_id}",
            f"UPDATE gates SET paused_at = NULL WHERE channel_id = {other.channel_id}",
        ),
    }
    if how == "room":
        mine = ledger.enqueue(ground.conn, [other.new(queue="another queue")])[0].job_id
        conn = crew.connect()
        (held,) = ledger.claim(
            conn, incarnation=9, queues=["another queue"], limit=1, lease=LEASE
        ).jobs
        assert held.id == mine

        def then() -> None:
            assert ledger.settle(conn, {key(held): retry.expire()}).done
    else:
        before, after = changes[how]
        ground.sql(before)

        def then() -> None:
            with crew.connect() as conn:
                conn.execute("RESET ROLE")
                conn.execute(after.encode())

    probe = OnceAfterClaim(crew, crew.id(job), then)
    with crew.working(timing=LAZY, probe=probe):
        crew.await_state(S.PUBLISHED, jobs=[job, waiting])
    assert probe.done


def test_a_claim_that_took_all_is_not_repeated_until_something_happens(
    crew: Crew, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claiming, "_BREATH", 3600.0)
    claims = 0

    def count(point: Point) -> None:
        nonlocal claims
        claims += point is Point.BEFORE_CLAIM

    crew.ground.sql(
        "UPDATE gates SET max_in_flight = 1 WHERE channel_id = %s", crew.lane.channel_id
    )
    jobs = crew.add(20)
    with crew.working(timing=LAZY, probe=count):
        crew.await_state(S.PUBLISHED, jobs=jobs)
        await_that(lambda: claims > 20)
    assert claims == 21  # one for each, and one that found nothing


def test_a_claim_says_whether_it_took_all_there_was(crew: Crew) -> None:
    ground, queue = crew.ground, crew.lane.queue
    lanes = [ground.lane(in_flight=5) for _ in range(2)]
    ledger.enqueue(ground.conn, [lanes[0].new(queue=queue) for _ in range(4)])
    ledger.enqueue(ground.conn, [lanes[1].new(queue=queue)])
    said = []
    for limit in (1, 4, 4, 4):
        claim = ledger.claim(ground.conn, incarnation=1, queues=[queue], limit=limit, lease=LEASE)
        said.append((len(claim.jobs), claim.whole))
        for job in claim.jobs:
            assert ledger.settle(ground.conn, {key(job): retry.expire()}).done
    # A page that is full; a channel that gave its share of two; what is left of it; nothing.
    assert said == [(1, False), (3, False), (1, True), (0, True)]


def test_the_next_time_is_that_of_a_job_that_could_run_then(crew: Crew) -> None:
    ground, lane = crew.ground, crew.lane

    def after(since: datetime, within: float = 60.0) -> float | None:
        return next_due(ground.conn, [lane.queue], since=since, within=within)

    now = datetime.now(UTC)
    assert after(now) is None
    job_id = lane.add(run_at=now + timedelta(seconds=30))
    due = after(now)
    assert due is not None
    assert 0 < due <= 30
    assert after(now, within=1.0) is None
    gate = "UPDATE gates SET not_before = %s WHERE channel_id = %s"
    ground.sql(gate, now + timedelta(seconds=50), lane.channel_id)
    rests = after(now)
    assert rests is not None
    assert rests > due
    ground.sql(gate, None, lane.channel_id)
    for closed, opened in (
        ("UPDATE jobs SET hold_reason = 'x' WHERE id = %s", "SET hold_reason = NULL"),
        ("UPDATE jobs SET queue = 'x' WHERE id = %s", f"SET queue = '{lane.queue}'"),
    ):
        ground.sql(closed, job_id)
        assert after(now) is None
        ground.sql(f"UPDATE jobs {opened} WHERE id = %s", job_id)
    ground.sql("UPDATE gates SET paused_at = now() WHERE channel_id = %s", lane.channel_id)
    assert after(now) is None
