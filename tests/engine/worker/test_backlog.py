"""A worker that was away: fresh posts first, late ones by their channel's rule, spacing kept."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from publisher.engine.job import Hold, NewJob, State
from publisher.engine.outcome import Reason
from publisher.engine.points import Point
from tests.engine.crew import Crew
from tests.engine.ground import await_that
from tests.engine.platform import Page, accept, lose_answer, refuse, unreachable

S = State
AWAY = timedelta(days=3)
SPACING = timedelta(seconds=0.25)


def set_gate(crew: Crew, **values: object) -> None:
    sets = ", ".join(f"{name} = %s" for name in values)
    where = "WHERE channel_id = %s"
    crew.ground.sql(f"UPDATE gates SET {sets} {where}", *values.values(), crew.lane.channel_id)


def away(crew: Crew, for_: timedelta = AWAY) -> None:
    """There was a worker, and none has said a word for so long."""
    crew.ground.incarnation()
    crew.ground.sql(
        "UPDATE pulse SET beat_at = clock_timestamp() - %s, rescue_not_before = beat_at", for_
    )


def piled_up(crew: Crew, late: int, fresh: int) -> tuple[list[NewJob], list[NewJob]]:
    """Posts due over three days, of use for a week, and some due within minutes; in their order.

    They are added the other way round, so that no number gives the order away.
    """
    now = datetime.now(UTC)
    ages = [timedelta(hours=1) + AWAY * (late - n) / late for n in range(late)]
    fresh_ages = [timedelta(minutes=fresh - n) for n in range(fresh)]
    useful = timedelta(days=7)
    jobs = {
        age: crew.add(run_at=now - age, useful_until=now - age + useful)[0]
        for age in reversed([*ages, *fresh_ages])
    }
    return [jobs[age] for age in ages], [jobs[age] for age in fresh_ages]


def begun(crew: Crew) -> list[datetime]:
    rows = crew.ground.sql(
        "SELECT a.begun_at FROM attempts a JOIN jobs j ON j.id = a.job_id"
        " WHERE j.channel_id = %s ORDER BY a.begun_at",
        crew.lane.channel_id,
    )
    return [row["begun_at"] for row in rows]


def is_spaced(crew: Crew, by: timedelta = SPACING) -> bool:
    return all(later - one >= by for one, later in pairwise(begun(crew)))


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a slow machine ten short turns go by while five fresh posts are sent."""
    monkeypatch.setattr("publisher.engine.ledger.backlog._PATIENCE", 1_000_000)


def test_three_days_away_and_the_late_ones_follow_in_order(crew: Crew, impatient: None) -> None:
    set_gate(
        crew, max_in_flight=1, backlog="release", spacing=SPACING,
        release_every=timedelta(seconds=0.05),
    )  # fmt: skip
    late, fresh = piled_up(crew, 50, 5)
    away(crew)
    with crew.working():
        await_that(lambda: len(crew.fake.page.ids) == 55, within=100)
        crew.await_state(S.PUBLISHED, jobs=[*late, *fresh])
    assert list(crew.fake.page.ids) == [job.key for job in [*fresh, *late]]
    assert is_spaced(crew)
    assert set(crew.fake.page.on_it.values()) == {1}


def test_three_days_away_and_the_late_ones_are_missed(crew: Crew) -> None:
    set_gate(crew, max_in_flight=1, backlog="miss", spacing=SPACING)
    late, fresh = piled_up(crew, 50, 5)
    away(crew)
    with crew.working():
        crew.await_state(S.PUBLISHED, jobs=fresh)
        # Ending them waits, as every rescue does, until the living have had time to settle.
        assert {crew.state(job) for job in late} == {S.SCHEDULED}
        crew.ground.sql("UPDATE pulse SET rescue_not_before = clock_timestamp()")
        crew.await_state(S.MISSED, jobs=late)
    assert list(crew.fake.page.ids) == [job.key for job in fresh]
    assert {crew.row(job)["reason"] for job in late} == {Reason.BACKLOG}
    assert is_spaced(crew)


def test_what_comes_due_while_a_backlog_lasts_does_not_wait_for_it(
    crew: Crew, impatient: None
) -> None:
    set_gate(crew, max_in_flight=1, backlog="release", release_every=timedelta(seconds=0.3))
    late, fresh = piled_up(crew, 6, 1)
    away(crew)
    with crew.working():
        crew.await_state(S.PUBLISHED, jobs=[*fresh, late[0], late[1]])
        (new,) = crew.add(run_at=datetime.now(UTC))
        crew.await_state(S.PUBLISHED, jobs=[new])
        crew.await_state(S.PUBLISHED, jobs=late)
    order = list(crew.fake.page.ids)
    assert [key for key in order if key != new.key] == [job.key for job in [*fresh, *late]]
    assert order.index(new.key) < order.index(late[-1].key)


def test_without_a_rule_all_goes_out_by_its_time(crew: Crew) -> None:
    set_gate(crew, max_in_flight=1)
    late, fresh = piled_up(crew, 5, 2)
    away(crew)
    with crew.working():
        crew.await_state(S.PUBLISHED, jobs=[*late, *fresh])
    assert list(crew.fake.page.ids) == [job.key for job in [*late, *fresh]]


def test_a_short_absence_leaves_no_backlog(crew: Crew) -> None:
    set_gate(crew, max_in_flight=1, backlog="miss")
    late, fresh = piled_up(crew, 3, 1)
    away(crew, timedelta(minutes=20))
    with crew.working():
        crew.await_state(S.PUBLISHED, jobs=[*late, *fresh])
    assert list(crew.fake.page.ids) == [job.key for job in [*late, *fresh]]


def test_several_workers_that_come_back_at_once_keep_one_order(crew: Crew, impatient: None) -> None:
    set_gate(
        crew, max_in_flight=1, backlog="release", spacing=SPACING,
        release_every=timedelta(seconds=0.05),
    )  # fmt: skip
    late, fresh = piled_up(crew, 10, 3)
    away(crew)
    with crew.working(), crew.working(), crew.working():
        crew.await_state(S.PUBLISHED, jobs=[*late, *fresh])
    assert list(crew.fake.page.ids) == [job.key for job in [*fresh, *late]]
    assert is_spaced(crew)


def test_what_was_begun_before_is_neither_held_nor_missed(crew: Crew) -> None:
    set_gate(crew, max_in_flight=1, backlog="miss")
    useful = datetime.now(UTC) + AWAY
    (tried,) = crew.add(run_at=datetime.now(UTC) - AWAY, useful_until=useful)
    (doubt,) = crew.add(run_at=datetime.now(UTC) - AWAY, useful_until=useful)
    crew.fake.acts[tried.key].append(unreachable)
    crew.fake.acts[doubt.key].append(lose_answer)
    with crew.working():
        crew.await_state(S.UNKNOWN, jobs=[doubt])
        await_that(lambda: crew.row(tried)["failures"] == 1 or crew.state(tried) is S.PUBLISHED)
    crew.ground.sql(
        "UPDATE jobs SET run_at = clock_timestamp() - interval '2 days' WHERE id = %s",
        crew.id(tried),
    )
    away(crew)
    with crew.working():
        crew.await_state(S.PUBLISHED, jobs=[tried])
        crew.ground.sql("UPDATE pulse SET rescue_not_before = clock_timestamp()")
    assert crew.state(doubt) is S.UNKNOWN
    assert crew.fake.page.on_it == {tried.key: 1, doubt.key: 1}
    events = [event["event"] for event in crew.ground.events(crew.id(tried))]
    assert "hold" not in events


def test_held_ones_say_why(crew: Crew) -> None:
    set_gate(crew, max_in_flight=1, backlog="release", release_every=timedelta(hours=1))
    late, fresh = piled_up(crew, 3, 1)
    away(crew)
    with crew.working():
        crew.await_state(S.PUBLISHED, jobs=[*fresh, late[0]])
    assert [crew.row(job)["hold_reason"] for job in late[1:]] == [Hold.BACKLOG] * 2


# Spacing


@pytest.mark.parametrize("act", [accept, lose_answer])
def test_spacing_is_kept_after_what_is_live_or_may_be(
    crew: Crew, act: Callable[..., object]
) -> None:
    set_gate(crew, max_in_flight=1, spacing=SPACING)
    jobs = crew.add(4)
    for job in jobs:
        crew.fake.acts[job.key].append(act)  # type: ignore[arg-type]
    with crew.working(), crew.working():
        crew.await_state(S.PUBLISHED, S.UNKNOWN, jobs=jobs)
    assert len(begun(crew)) == 4
    assert is_spaced(crew)


def test_what_is_certainly_not_on_the_page_needs_no_distance(crew: Crew) -> None:
    set_gate(crew, max_in_flight=1, spacing=timedelta(hours=1))
    refused, unsent, good, next_one = crew.add(4)
    crew.fake.acts[refused.key].append(refuse)
    crew.fake.acts[unsent.key].append(unreachable)
    with crew.working():
        crew.await_state(S.FAILED, jobs=[refused])
        crew.await_state(S.PUBLISHED, jobs=[good])
        await_that(lambda: not crew.row(good)["token"])
    assert {crew.state(unsent), crew.state(next_one)} <= {S.SCHEDULED, S.PUBLISHED}
    assert len(crew.fake.page.ids) == 1


@pytest.mark.parametrize("point", [Point.AFTER_BEGIN, Point.BEFORE_SETTLE, Point.AFTER_SETTLE])
def test_spacing_is_kept_whoever_dies_when(crew: Crew, point: Point) -> None:
    spacing = timedelta(hours=1)
    set_gate(crew, max_in_flight=1, spacing=spacing)
    jobs = crew.add(2)
    crew.dies_at(point)
    with crew.working():
        await_that(
            lambda: (
                crew.ground.one(
                    "SELECT count(*) FROM jobs WHERE channel_id = %s AND incarnation IS NOT NULL",
                    crew.lane.channel_id,
                )
                == 0
            )
        )
        await_that(lambda: crew.state(jobs[0]) in {S.PUBLISHED, S.UNKNOWN, S.SCHEDULED})
    closed = crew.ground.one(
        "SELECT not_before > clock_timestamp() + interval '59 minutes' FROM gates"
        " WHERE channel_id = %s",
        crew.lane.channel_id,
    )
    assert closed
    assert len(crew.fake.page.ids) <= 1
    assert crew.state(jobs[1]) is S.SCHEDULED


def test_a_gate_that_somebody_holds_keeps_no_answer_from_being_written(crew: Crew) -> None:
    set_gate(crew, max_in_flight=1, spacing=timedelta(hours=1))
    (job,) = crew.add()
    other = crew.connect()

    def hold_the_gate(task: object, permit: object, page: Page) -> object:
        other.execute("BEGIN")
        other.execute("SELECT FROM gates WHERE channel_id = %s FOR UPDATE", [crew.lane.channel_id])
        return accept(task, permit, page)  # type: ignore[arg-type]

    crew.fake.acts[job.key].append(hold_the_gate)  # type: ignore[arg-type]
    with crew.working():
        crew.await_state(S.PUBLISHED, jobs=[job])
        other.execute("ROLLBACK")
        await_that(
            lambda: crew.ground.one(
                "SELECT not_before > clock_timestamp() FROM gates WHERE channel_id = %s",
                crew.lane.channel_id,
            )
        )
    other.close()
