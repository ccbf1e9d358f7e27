"""What a standstill leaves: marked, held, let go in turn behind what is fresh, or missed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from psycopg import errors as pg

from publisher.engine import ledger, retry
from publisher.engine.errors import NotFound
from publisher.engine.job import Backlog, Hold, JobId, State
from publisher.engine.ledger.claim import next_due
from publisher.engine.outcome import Reason
from tests.engine.ground import Ground, Lane

S = State
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


def ago(age: timedelta) -> datetime:
    return datetime.now(UTC) - age


@pytest.fixture
def lane(ground: Ground) -> Lane:
    """The only channel with such a rule: these verbs look at every one."""
    ground.sql("UPDATE pulse SET beat_at = clock_timestamp()")
    ground.sql("UPDATE gates SET backlog = 'send', backlog_before = NULL, backlog_turn_at = NULL")
    lane = ground.lane(in_flight=1)
    rule(lane, "release")
    return lane


def set_gate(lane: Lane, sets: str, *values: object) -> None:
    where = " WHERE channel_id = %s"
    lane.ground.sql(f"UPDATE gates SET {sets}{where}", *values, lane.channel_id)


def rule(lane: Lane, name: str, **more: object) -> None:
    values: dict[str, object] = {"backlog": name, **more}
    set_gate(lane, ", ".join(f"{column} = %s" for column in values), *values.values())


def gate(lane: Lane) -> dict[str, Any]:
    return lane.ground.sql("SELECT * FROM gates WHERE channel_id = %s", lane.channel_id)[0]


def mark(lane: Lane, age: timedelta = 30 * MINUTE) -> None:
    set_gate(lane, "backlog_before = clock_timestamp() - %s", age)


def sort(lane: Lane) -> int:
    return ledger.sort_backlog(lane.ground.conn, who="w")


def release(lane: Lane) -> frozenset[JobId]:
    return ledger.release_backlog(lane.ground.conn, who="w")


def miss(lane: Lane) -> frozenset[JobId]:
    return ledger.miss_backlog(lane.ground.conn, who="w")


def held(lane: Lane) -> list[int]:
    rows = lane.ground.sql(
        "SELECT id FROM jobs WHERE channel_id = %s AND hold_reason = %s ORDER BY run_at, id",
        lane.channel_id,
        str(Hold.BACKLOG),
    )
    return [row["id"] for row in rows]


def beat(lane: Lane, silent: timedelta, *, number: int = 0, gap: float = 60.0) -> None:
    """A worker's first word after a silence; another one was there before."""
    lane.ground.sql("UPDATE pulse SET beat_at = clock_timestamp() - %s", silent)
    ledger.beat(lane.ground.conn, number or lane.ground.incarnation(), gap=gap, pause=1.0)


# The mark


@pytest.mark.parametrize(
    ("silent", "name", "after", "marked"),
    [
        (3 * DAY, "release", 30 * MINUTE, True),
        (3 * DAY, "miss", 30 * MINUTE, True),
        (3 * DAY, "send", 30 * MINUTE, False),
        (31 * MINUTE, "release", 30 * MINUTE, True),
        (29 * MINUTE, "release", 30 * MINUTE, False),
        (29 * MINUTE, "release", 5 * MINUTE, True),
    ],
)
def test_the_first_beat_after_a_standstill_marks_channels(
    lane: Lane, silent: timedelta, name: str, after: timedelta, *, marked: bool
) -> None:
    rule(lane, name, overdue_after=after)
    lane.ground.incarnation()
    beat(lane, silent)
    before = gate(lane)["backlog_before"]
    assert (before is not None) is marked
    if marked:
        assert abs(before - ago(after)) < timedelta(seconds=20)
    # The next one finds no silence.
    set_gate(lane, "backlog_before = NULL")
    beat(lane, timedelta(0))
    assert gate(lane)["backlog_before"] is None


def test_where_there_never_was_a_worker_none_was_away(own_ground: Ground) -> None:
    lane = own_ground.lane()
    rule(lane, "release")
    first = own_ground.incarnation()
    beat(lane, DAY, number=first)
    assert gate(lane)["backlog_before"] is None
    beat(lane, DAY)
    assert gate(lane)["backlog_before"] is not None


def test_a_silence_that_no_lease_outlives_marks_nothing(lane: Lane) -> None:
    lane.ground.incarnation()
    beat(lane, 3 * DAY, gap=4 * 86_400.0)
    assert gate(lane)["backlog_before"] is None


@pytest.mark.parametrize("closed", ["paused", "blocked"])
@pytest.mark.parametrize(
    ("age", "name", "marked"),
    [(HOUR, "release", True), (HOUR, "send", False), (MINUTE, "release", False)],
)
def test_a_channel_that_stood_still_alone_is_marked_when_it_opens(
    lane: Lane, closed: str, age: timedelta, name: str, *, marked: bool
) -> None:
    rule(lane, name)
    whom = ", paused_by = 'p'" if closed == "paused" else ", blocked_reason = 'needs_reconnecting'"
    set_gate(lane, f"{closed}_at = clock_timestamp() - %s{whom}", age)
    with lane.ground.app.engine.begin() as conn:
        (ledger.resume if closed == "paused" else ledger.unblock)(conn, lane.channel_id)
    assert gate(lane)[f"{closed}_at"] is None
    assert (gate(lane)["backlog_before"] is not None) is marked


def test_opening_what_was_open_keeps_a_mark(lane: Lane) -> None:
    mark(lane)
    before = gate(lane)["backlog_before"]
    with lane.ground.app.engine.begin() as conn:
        ledger.resume(conn, lane.channel_id)
        ledger.unblock(conn, lane.channel_id)
    assert gate(lane)["backlog_before"] == before


def test_reconnecting_forgets_a_limit_but_not_the_spacing(lane: Lane) -> None:
    def opened(spacing: timedelta, not_before: datetime | None) -> Any:  # noqa: ANN401 - a column
        rule(lane, "send", spacing=spacing, not_before=not_before)
        with lane.ground.app.engine.begin() as conn:
            ledger.unblock(conn, lane.channel_id)
        return gate(lane)["not_before"]

    nothing, soon, far = timedelta(0), ago(-MINUTE), ago(-DAY)
    assert opened(nothing, far) is None
    assert opened(HOUR, None) is None
    assert opened(HOUR, soon) == soon
    limited = opened(HOUR, far)
    assert abs(limited - ago(-HOUR)) < timedelta(seconds=20)


def test_nothing_is_claimed_from_a_marked_channel(lane: Lane) -> None:
    fresh = lane.add()
    mark(lane)
    conn = lane.ground.conn
    since = ago(DAY)
    assert lane.claim() == []
    assert next_due(conn, [lane.queue], since=since, within=60.0) is None
    sort(lane)
    assert next_due(conn, [lane.queue], since=since, within=60.0) is not None
    assert [job.id for job in lane.claim()] == [fresh]


# Sorted out


def test_what_is_overdue_is_held_and_the_journal_says_so(lane: Lane) -> None:
    late, fresh = lane.add(run_at=ago(2 * DAY)), lane.add(run_at=ago(29 * MINUTE))
    mark(lane)
    assert sort(lane) == 1
    assert held(lane) == [late]
    assert lane.ground.row(fresh)["hold_reason"] is None
    (event,) = lane.ground.events(late)
    assert (event["event"], event["who"]) == ("hold", "w")
    assert event["detail"]["rule"] == "release"
    assert gate(lane)["backlog_before"] is None
    turn = gate(lane)["backlog_turn_at"]
    assert turn is not None
    assert sort(lane) == 0
    # A second standstill does not put off the turn that the first one left.
    mark(lane)
    assert sort(lane) == 0
    assert gate(lane)["backlog_turn_at"] == turn


@pytest.mark.parametrize(
    "state", [S.CLAIMED, S.SENDING, S.UNKNOWN, S.PUBLISHED, S.FAILED, S.MISSED, S.CANCELLED]
)
def test_nothing_else_than_what_waits_is_held(lane: Lane, state: State) -> None:
    job = lane.put(state)
    lane.ground.sql(
        "UPDATE jobs SET run_at = clock_timestamp() - interval '2 days' WHERE id = %s", job.id
    )
    before = lane.ground.everything(job.id)
    mark(lane)
    assert sort(lane) == 0
    assert gate(lane)["backlog_before"] is None
    assert lane.ground.everything(job.id) == before


def test_what_was_begun_is_left_alone_by_every_verb(lane: Lane) -> None:
    job = lane.put(S.SCHEDULED, begun=True)
    lane.ground.sql(
        "UPDATE jobs SET run_at = clock_timestamp() - interval '2 days' WHERE id = %s", job.id
    )
    before = lane.ground.everything(job.id)
    mark(lane)
    assert sort(lane) == 0
    assert gate(lane)["backlog_before"] is None
    rule(lane, "miss", backlog_turn_at=ago(HOUR))
    assert miss(lane) == frozenset()
    assert release(lane) == frozenset()
    assert lane.ground.everything(job.id) == before
    # Nor is it missed should it bear the hold all the same.
    lane.ground.sql("UPDATE jobs SET hold_reason = %s WHERE id = %s", str(Hold.BACKLOG), job.id)
    rule(lane, "miss", backlog_turn_at=ago(HOUR))
    assert miss(lane) == frozenset()


def test_other_holds_kinds_and_channels_are_left_alone(lane: Lane) -> None:
    by_hand = lane.add(run_at=ago(DAY))
    with lane.ground.app.engine.begin() as conn:
        ledger.hold(conn, by_hand, who="p")
    lane.add(run_at=ago(DAY), kind="delete", removes=lane.put(State.PUBLISHED).id)
    lane.ground.lane().add(run_at=ago(DAY))
    mark(lane)
    assert sort(lane) == 0
    assert lane.ground.row(by_hand)["hold_reason"] == Hold.PERSON
    assert gate(lane)["backlog_before"] is None


def test_a_row_that_somebody_holds_keeps_the_channel_closed(lane: Lane) -> None:
    first, second = lane.add(run_at=ago(DAY)), lane.add(run_at=ago(DAY))
    mark(lane)
    other = lane.ground.engine.connect_driver()
    with other, other.transaction():
        other.execute("SELECT FROM jobs WHERE id = %s FOR UPDATE", [first])
        assert sort(lane) == 1
        assert held(lane) == [second]
        assert gate(lane)["backlog_before"] is not None
    assert sort(lane) == 1
    assert gate(lane)["backlog_before"] is None


def test_more_than_a_set_is_held_at_once(lane: Lane, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("publisher.engine.ledger.backlog._SET", 2)
    late = [lane.add(run_at=ago(DAY)) for _ in range(5)]
    mark(lane)
    assert sort(lane) == 5
    assert sorted(held(lane)) == late


# Let go


@contextmanager
def backlog(lane: Lane, number: int = 3) -> Iterator[list[JobId]]:
    """So many overdue jobs, the oldest first, added the other way round, sorted out."""
    late = [lane.add(run_at=ago(DAY - n * MINUTE)) for n in reversed(range(number))][::-1]
    mark(lane)
    assert sort(lane) == number
    yield late


def test_one_at_a_time_in_order_of_their_time(lane: Lane) -> None:
    with backlog(lane) as late:
        for job_id in late:
            assert release(lane) == {job_id}
            assert release(lane) == frozenset()
            (claimed,) = lane.claim()
            assert claimed.id == job_id
            set_gate(lane, "backlog_turn_at = clock_timestamp()")
            assert release(lane) == frozenset()  # one is in flight
            assert lane.end(claimed, retry.wait("x", 3600.0)).done
            set_gate(lane, "backlog_turn_at = clock_timestamp() + interval '1 minute'")
            assert release(lane) == frozenset()
            set_gate(lane, "backlog_turn_at = clock_timestamp()")
    assert release(lane) == frozenset()
    assert gate(lane)["backlog_turn_at"] is None
    assert [event["event"] for event in lane.ground.events(late[0])][:2] == ["hold", "release_hold"]


@pytest.mark.parametrize(
    "closed",
    [
        "paused_at = clock_timestamp(), paused_by = 'p'",
        "blocked_at = clock_timestamp(), blocked_reason = 'needs_reconnecting'",
        "not_before = clock_timestamp() + interval '1 minute'",
        "backlog_turn_at = clock_timestamp() + interval '1 minute'",
        "backlog_before = clock_timestamp() - interval '1 hour'",
        "backlog = 'miss'",
    ],
)
def test_nothing_is_let_go_while(lane: Lane, closed: str) -> None:
    with backlog(lane):
        set_gate(lane, closed)
        assert release(lane) == frozenset()


def test_a_limit_that_is_over_is_none(lane: Lane) -> None:
    with backlog(lane) as late:
        set_gate(lane, "not_before = clock_timestamp() - interval '1 minute'")
        assert release(lane) == {late[0]}


def test_fresh_ones_go_first(lane: Lane) -> None:
    with backlog(lane, 1) as late:
        fresh = lane.add()
        held_back = lane.add()
        lane.add(run_at=ago(-HOUR))
        with lane.ground.app.engine.begin() as conn:
            ledger.hold(conn, held_back, who="p")
        assert release(lane) == frozenset()
        assert lane.claim()[0].id == fresh
        assert release(lane) == frozenset()
        with lane.ground.app.engine.begin() as conn:
            ledger.cancel(conn, fresh, who="p")
        assert release(lane) == set(late)


@pytest.mark.parametrize(
    ("every", "spacing"), [(timedelta(seconds=6), MINUTE), (MINUTE, timedelta(seconds=6))]
)
def test_fresh_ones_take_ten_turns_and_no_more(
    lane: Lane, every: timedelta, spacing: timedelta
) -> None:
    with backlog(lane, 2) as late:
        lane.add()
        rule(lane, "release", release_every=every, spacing=spacing)
        set_gate(lane, "backlog_turn_at = clock_timestamp() - interval '9 min'")
        assert release(lane) == frozenset()
        set_gate(lane, "backlog_turn_at = clock_timestamp() - interval '10 min'")
        assert release(lane) == {late[0]}
        turn = gate(lane)["backlog_turn_at"]
        assert MINUTE - timedelta(seconds=20) < turn - datetime.now(UTC) <= MINUTE


def test_what_is_no_longer_useful_is_passed_over(lane: Lane) -> None:
    with backlog(lane, 2) as late:
        lane.ground.sql(
            "UPDATE jobs SET useful_until = clock_timestamp() + CASE WHEN id = %s"
            " THEN interval '0' ELSE interval '1 hour' END WHERE id = ANY(%s)",
            late[0],
            late,
        )
        assert release(lane) == {late[1]}
    assert late[0] in ledger.expire(lane.ground.conn, who="w")


def test_the_oldest_is_waited_for_when_somebody_holds_it(lane: Lane) -> None:
    with backlog(lane, 2) as late:
        other = lane.ground.engine.connect_driver()
        with other, other.transaction():
            other.execute("SELECT FROM jobs WHERE id = %s FOR UPDATE", [late[0]])
            assert release(lane) == frozenset()
        assert release(lane) == {late[0]}


def test_two_workers_do_not_both_let_one_go(lane: Lane) -> None:
    with backlog(lane, 2) as late:
        other = lane.ground.engine.connect_driver()
        with other, other.transaction():
            assert ledger.release_backlog(other, who="x") == {late[0]}
            assert release(lane) == frozenset()
        assert release(lane) == frozenset()


def test_another_channels_turn_is_its_own(lane: Lane) -> None:
    with backlog(lane, 2) as late:
        other = lane.ground.lane(in_flight=1)
        rule(other, "release")
        lane.add()
        with backlog(other, 2) as others:
            assert release(lane) == {others[0]}
            turn = gate(lane)["backlog_turn_at"]
            assert turn < datetime.now(UTC) < gate(other)["backlog_turn_at"]
    assert held(lane) == late


def test_what_a_person_moved_to_a_time_to_come_waits_no_turn(lane: Lane) -> None:
    with backlog(lane, 2) as late:
        set_gate(lane, "backlog_turn_at = clock_timestamp() + interval '1 hour'")
        assert release(lane) == frozenset()
        with lane.ground.app.engine.begin() as conn:
            ledger.reschedule(conn, late[1], at=ago(-HOUR), who="p")
        assert release(lane) == {late[1]}
    assert held(lane) == [late[0]]


def test_a_person_may_send_one_at_once(lane: Lane) -> None:
    with backlog(lane, 2) as late:
        with lane.ground.app.engine.begin() as conn:
            ledger.release_hold(conn, late[1], who="p")
        assert lane.claim()[0].id == late[1]


def test_taking_the_rule_back_lets_all_go(lane: Lane) -> None:
    with backlog(lane) as late:
        by_hand = lane.add(run_at=ago(DAY))
        with lane.ground.app.engine.begin() as conn:
            ledger.hold(conn, by_hand, who="p")
            ledger.set_rules(conn, lane.channel_id, backlog=Backlog.SEND)
        assert release(lane) == set(late)
    assert gate(lane)["backlog_turn_at"] is None
    assert lane.ground.row(by_hand)["hold_reason"] == Hold.PERSON


# Missed


def test_missed_by_the_channels_rule(lane: Lane) -> None:
    with backlog(lane) as late:
        fresh = lane.add()
        assert miss(lane) == frozenset()
        rule(lane, "miss")
        assert miss(lane) == set(late)
    assert {lane.ground.state(job_id) for job_id in late} == {S.MISSED}
    assert lane.ground.state(fresh) is S.SCHEDULED
    row = lane.ground.row(late[0])
    assert (row["reason"], row["hold_reason"]) == (Reason.BACKLOG, None)
    assert row["settled_at"] is not None
    event = lane.ground.events(late[0])[-1]
    assert (event["event"], event["detail"]) == ("expire", {"to": "missed", "rule": "miss"})
    # A person may still want it.
    with lane.ground.app.engine.begin() as conn:
        ledger.requeue(conn, late[0], who="p")
    assert miss(lane) == frozenset()


def test_what_is_moved_or_held_by_a_person_is_not_missed(lane: Lane) -> None:
    with backlog(lane) as late:
        rule(lane, "miss")
        with lane.ground.app.engine.begin() as conn:
            ledger.reschedule(conn, late[0], at=ago(-HOUR), who="p")
            ledger.hold(conn, late[1], who="p")
        assert miss(lane) == {late[2]}


def test_another_channels_rule_is_its_own(lane: Lane) -> None:
    with backlog(lane) as late:
        other = lane.ground.lane(in_flight=1)
        rule(other, "miss", backlog_turn_at=ago(HOUR))
        assert miss(lane) == frozenset()
    assert held(lane) == late


# Spacing, when a send is taken from its worker


def rests(lane: Lane) -> bool:
    """Whether the channel rests for its hour; and it never rested for another reason."""
    not_before = gate(lane)["not_before"]
    assert not_before is None or HOUR - MINUTE < not_before - datetime.now(UTC) <= HOUR
    return not_before is not None


def test_the_channel_of_a_run_that_is_over_rests(lane: Lane) -> None:
    rule(lane, "send", spacing=HOUR)
    lane.sending()
    ledger.space(lane.ground.conn, lane.incarnation + 1)
    assert not rests(lane)
    ledger.space(lane.ground.conn, lane.incarnation)
    assert rests(lane)


def test_a_longer_rest_stays(lane: Lane) -> None:
    lane.sending()
    rule(lane, "send", spacing=HOUR, not_before=ago(-DAY))
    before = gate(lane)["not_before"]
    ledger.space(lane.ground.conn, lane.incarnation)
    assert gate(lane)["not_before"] == before


@pytest.mark.parametrize("state", [S.CLAIMED, S.UNKNOWN, S.PUBLISHED])
def test_nothing_rests_for_what_was_not_being_sent(lane: Lane, state: State) -> None:
    rule(lane, "send", spacing=HOUR)
    lane.put(state)
    ledger.space(lane.ground.conn, lane.incarnation)
    assert not rests(lane)


def test_nothing_rests_without_spacing_or_for_another_channels_send(lane: Lane) -> None:
    lane.sending()
    other = lane.ground.lane(in_flight=1)
    rule(other, "send", spacing=HOUR)
    ledger.space(lane.ground.conn, lane.incarnation)
    assert not rests(lane)
    assert not rests(other)


@pytest.mark.parametrize("is_over", [True, False])
def test_a_rescued_send_leaves_its_channel_resting(lane: Lane, *, is_over: bool) -> None:
    rule(lane, "send", spacing=HOUR)
    job = lane.sending()
    if is_over:
        lane.ground.sql(
            "UPDATE jobs SET lease_until = clock_timestamp() - interval '1 min' WHERE id = %s",
            job.id,
        )
    ledger.rescue(lane.ground.conn, grace=1.0, deaths=3, who="w")
    assert lane.ground.state(job.id) is (S.UNKNOWN if is_over else S.SENDING)
    assert rests(lane) is is_over


# What the database refuses


@pytest.mark.parametrize(
    "wrong",
    [
        "backlog = 'forget'",
        "overdue_after = '4 minutes'",
        "overdue_after = '8 days'",
        "release_every = '0'",
        "release_every = '25 hours'",
        "useful_for = '0'",
        "useful_for = '367 days'",
        "spacing = '25 hours'",
        "spacing = '1 minute', max_in_flight = 2",
    ],
)
def test_rules_out_of_bounds(lane: Lane, wrong: str) -> None:
    with pytest.raises(pg.CheckViolation):
        set_gate(lane, wrong)


@pytest.mark.parametrize(
    "right",
    [
        "overdue_after = '5 minutes'",
        "overdue_after = '7 days'",
        "release_every = '1 day'",
        "useful_for = '366 days'",
        "useful_for = NULL",
        "spacing = '1 day'",
        "spacing = '0', max_in_flight = 2",
    ],
)
def test_rules_at_their_bounds(lane: Lane, right: str) -> None:
    set_gate(lane, right)


def test_rules_are_set_and_the_rest_stays(lane: Lane) -> None:
    before = gate(lane)
    with lane.ground.app.engine.begin() as conn:
        ledger.set_rules(conn, lane.channel_id)
        assert gate(lane) == before
        ledger.set_rules(conn, lane.channel_id, spacing=HOUR, useful_for=DAY)
    assert gate(lane) == before | {"spacing": HOUR, "useful_for": DAY}
    with lane.ground.app.engine.begin() as conn:
        ledger.set_rules(conn, lane.channel_id, useful_for=timedelta(0))
        with pytest.raises(NotFound):
            ledger.set_rules(conn, 999_999, spacing=HOUR)
    assert gate(lane) == before | {"spacing": HOUR}
