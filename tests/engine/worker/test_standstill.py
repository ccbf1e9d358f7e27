"""A first beat that fails after a standstill: nothing overtakes the sorting all the same."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from threading import Event

from publisher.engine.adapter import Ready, Step, Task
from publisher.engine.job import Hold, State
from tests.engine.crew import Crew
from tests.engine.ground import await_that
from tests.engine.platform import Fake
from tests.engine.worker.test_backlog import AWAY, away, piled_up, set_gate

S = State
_COUNT = "SELECT count(*) FROM pg_stat_activity WHERE "


def test_nothing_is_claimed_while_the_first_beat_fails(crew: Crew) -> None:
    set_gate(crew, max_in_flight=1, backlog="release", release_every=timedelta(hours=1))
    late, fresh = piled_up(crew, 6, 2)
    away(crew)
    other = crew.connect()
    other.execute("BEGIN")
    other.execute("SELECT FROM pulse FOR UPDATE")
    tries = "query LIKE '%%UPDATE pulse%%' AND wait_event_type = 'Lock' AND query_start > %s"
    with crew.working():
        since = datetime.min.replace(tzinfo=UTC)
        for _ in range(3):
            # Waited for, given up, and the rest of the tick was gone through.
            await_that(lambda since=since: crew.ground.one(_COUNT + tries, since) > 0)  # type: ignore[misc]
            since = crew.ground.one("SELECT clock_timestamp()")
        assert crew.fake.page.on_it == {}
        assert {crew.state(job) for job in [*late, *fresh]} == {S.SCHEDULED}
        other.execute("ROLLBACK")
        crew.await_state(S.PUBLISHED, jobs=fresh)
        await_that(lambda: crew.row(late[-1])["hold_reason"] == Hold.BACKLOG)
    assert list(crew.fake.page.ids)[:2] == [job.key for job in fresh]
    other.close()


@dataclass
class Slow(Fake):
    """Its steps wait until they are let go."""

    reached: Event = field(default_factory=Event)
    let_go: Event = field(default_factory=Event)

    def step(self, task: Task) -> Step:
        self.reached.set()
        assert self.let_go.wait(30)
        return super().step(task)


def test_what_a_worker_held_throughout_is_sorted_out_with_the_rest(crew: Crew) -> None:
    """Cut off from its database for three days, and its claim is still its own."""
    set_gate(crew, max_in_flight=1, backlog="miss")
    (late,) = crew.add(
        run_at=datetime.now(UTC) - AWAY, useful_until=datetime.now(UTC) + timedelta(days=7)
    )
    crew.fake = slow = Slow()
    slow.steps[late.key].append(Ready(None))
    with crew.working():
        assert slow.reached.wait(30)
        with crew.ground.conn.transaction():
            crew.ground.sql(
                "UPDATE jobs SET claimed_at = clock_timestamp() - %s WHERE id = %s",
                AWAY, crew.id(late),
            )  # fmt: skip
            away(crew)
        (fresh,) = crew.add()
        marked = "SELECT backlog_before FROM gates WHERE channel_id = %s"
        await_that(lambda: crew.ground.one(marked, crew.lane.channel_id) is not None)
        slow.let_go.set()
        crew.await_state(S.PUBLISHED, jobs=[fresh])
        crew.ground.sql("UPDATE pulse SET rescue_not_before = clock_timestamp()")
        crew.await_state(S.MISSED, jobs=[late])
    assert crew.fake.page.on_it == {fresh.key: 1}
