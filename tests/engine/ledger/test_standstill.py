"""Between the end of a standstill and its mark: nothing is claimed, nothing old is begun."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from publisher.engine import ledger, retry
from publisher.engine.job import Hold, State
from tests.engine.ground import Ground, Lane, key

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


def ago(age: timedelta) -> datetime:
    return datetime.now(UTC) - age


@pytest.fixture
def lane(own_ground: Ground) -> Lane:
    """A channel with the rule, in a database whose pulse is its own; a worker was there before."""
    lane = own_ground.lane(in_flight=1)
    lane.incarnation = own_ground.incarnation()
    own_ground.incarnation()
    rule(lane, "release")
    return lane


def rule(lane: Lane, name: str, after: timedelta = 30 * MINUTE) -> None:
    lane.ground.sql(
        "UPDATE gates SET backlog = %s, overdue_after = %s WHERE channel_id = %s",
        name, after, lane.channel_id,
    )  # fmt: skip


def silent(lane: Lane, for_: timedelta) -> None:
    lane.ground.sql("UPDATE pulse SET beat_at = clock_timestamp() - %s", for_)


def beat(lane: Lane) -> None:
    ledger.beat(lane.ground.conn, lane.incarnation, gap=60.0, pause=1.0)


def mark(lane: Lane) -> datetime | None:
    found: datetime | None = lane.ground.one(
        "SELECT backlog_before FROM gates WHERE channel_id = %s", lane.channel_id
    )
    return found


def sort(lane: Lane) -> int:
    return ledger.sort_backlog(lane.ground.conn, who="w")


@pytest.mark.parametrize(
    ("away", "name", "after", "lease", "closed"),
    [
        (3 * DAY, "release", 30 * MINUTE, 60.0, True),
        (3 * DAY, "miss", 30 * MINUTE, 60.0, True),
        (3 * DAY, "send", 30 * MINUTE, 60.0, False),
        (31 * MINUTE, "release", 30 * MINUTE, 60.0, True),
        (29 * MINUTE, "release", 30 * MINUTE, 60.0, False),
        (29 * MINUTE, "release", 5 * MINUTE, 60.0, True),
        (29 * MINUTE, "release", 5 * MINUTE, 1800.0, False),
    ],
)
def test_the_claim_waits_for_the_mark_that_a_beat_would_leave(
    lane: Lane, away: timedelta, name: str, after: timedelta, lease: float, *, closed: bool
) -> None:
    rule(lane, name, after)
    job = lane.add(run_at=ago(DAY))
    silent(lane, away)
    claimed = [one.id for one in lane.claim(lease=lease)]
    assert claimed == ([] if closed else [job])
    # And that beat would leave it.
    silent(lane, away)
    ledger.beat(lane.ground.conn, lane.incarnation, gap=lease, pause=1.0)
    assert (mark(lane) is not None) is closed


def test_after_the_mark_and_the_sorting_only_what_is_fresh_is_claimed(lane: Lane) -> None:
    lane.add(run_at=ago(DAY))
    fresh = lane.add(run_at=ago(MINUTE))
    silent(lane, 3 * DAY)
    assert lane.claim() == []
    beat(lane)
    assert lane.claim() == []
    assert sort(lane) == 1
    assert [one.id for one in lane.claim(limit=5)] == [fresh]


def test_where_there_never_was_a_worker_the_first_one_claims(own_ground: Ground) -> None:
    lane = own_ground.lane(in_flight=1)
    rule(lane, "release")
    job = lane.add(run_at=ago(DAY))
    silent(lane, 3 * DAY)
    lane.incarnation = own_ground.incarnation()
    assert [one.id for one in lane.claim()] == [job]


def test_the_only_worker_there_ever_was_may_have_been_away_itself(own_ground: Ground) -> None:
    """Frozen, or cut off from its database, and back under the same number."""
    lane = own_ground.lane(in_flight=1)
    rule(lane, "release")
    lane.add(run_at=ago(DAY))
    lane.incarnation = own_ground.incarnation()
    own_ground.sql("UPDATE incarnations SET started_at = clock_timestamp() - interval '9 days'")
    silent(lane, 3 * DAY)
    assert lane.claim() == []
    beat(lane)
    assert mark(lane) is not None
    assert sort(lane) == 1


# What was claimed before it


def claimed_before(lane: Lane, kind: str = "post", *, begun: bool = False) -> ledger.Claimed:
    """A worker's claim from before three days of silence, whose end has just been marked."""
    run_at = ago(4 * DAY)
    removes = {"removes": lane.put(State.PUBLISHED).id} if kind == "delete" else {}
    put = lane.put(State.SCHEDULED, begun=begun, run_at=run_at, kind=kind, **removes)
    job = lane.claimed(put.id)
    lane.ground.sql(
        "UPDATE jobs SET claimed_at = clock_timestamp() - interval '3 days', run_at = %s"
        " WHERE id = %s",
        run_at, job.id,
    )  # fmt: skip
    silent(lane, 3 * DAY)
    beat(lane)
    return job


def begin(lane: Lane, job: ledger.Claimed) -> bool:
    held = [key(job)]
    return bool(ledger.begin_send(lane.ground.conn, held, lease=360.0, window=50.0, budget=300.0))


def gate_closed(lane: Lane, job: ledger.Claimed) -> bool:
    (row,) = ledger.unbegun(lane.ground.conn, [job.id], window=50.0)
    return row.gate_closed


def test_it_is_not_begun_and_its_channel_opens_when_it_is_sorted_out(lane: Lane) -> None:
    job = claimed_before(lane)
    assert sort(lane) == 0
    assert mark(lane) is not None
    assert gate_closed(lane, job)
    assert not begin(lane, job)
    assert lane.end(job, retry.release()).done
    assert sort(lane) == 1
    assert mark(lane) is None
    assert lane.ground.row(job.id)["hold_reason"] == Hold.BACKLOG


def test_rescue_brings_it_back_to_be_sorted_out(lane: Lane) -> None:
    job = claimed_before(lane)
    lane.ground.sql(
        "UPDATE jobs SET lease_until = clock_timestamp() - interval '3 days' WHERE id = %s", job.id
    )
    assert sort(lane) == 0
    ledger.rescue(lane.ground.conn, grace=1.0, deaths=3, who="w")
    assert lane.claim() == []
    assert sort(lane) == 1
    assert lane.claim() == []
    assert lane.ground.row(job.id)["hold_reason"] == Hold.BACKLOG


@pytest.mark.parametrize(("kind", "begun"), [("delete", False), ("post", True)])
def test_what_is_never_of_a_backlog_keeps_nothing_closed(
    lane: Lane, kind: str, *, begun: bool
) -> None:
    job = claimed_before(lane, kind, begun=begun)
    assert not gate_closed(lane, job)
    if begun:
        # Before the sorting, too: a proof decided that it may be sent again.
        assert begin(lane, job)
    assert sort(lane) == 0
    assert mark(lane) is None
    assert begun or begin(lane, job)


def test_a_claim_that_was_begun_before_keeps_nothing_closed(lane: Lane) -> None:
    claimed_before(lane, begun=True)
    assert sort(lane) == 0
    assert mark(lane) is None


def test_a_claim_keeps_its_own_channel_closed_and_no_other(lane: Lane) -> None:
    other = lane.ground.lane(in_flight=1)
    rule(other, "release")
    claimed_before(lane)
    assert mark(other) is not None
    assert sort(lane) == 0
    assert (mark(lane) is None, mark(other) is None) == (False, True)


def test_a_claim_of_now_is_begun_in_a_channel_that_is_marked_behind_it(lane: Lane) -> None:
    """A pause that ended while a claim was under way leaves a mark, and the claim is fresh."""
    lane.ground.sql("UPDATE pulse SET beat_at = clock_timestamp()")
    job = lane.claimed()
    lane.ground.sql(
        "UPDATE gates SET backlog_before = clock_timestamp() - interval '30 minutes'"
        " WHERE channel_id = %s",
        lane.channel_id,
    )
    assert not gate_closed(lane, job)
    assert sort(lane) == 0
    assert mark(lane) is None


def test_it_is_begun_while_the_mark_stands(lane: Lane) -> None:
    lane.ground.sql("UPDATE pulse SET beat_at = clock_timestamp()")
    job = lane.claimed()
    lane.ground.sql(
        "UPDATE gates SET backlog_before = clock_timestamp() - interval '30 minutes'"
        " WHERE channel_id = %s",
        lane.channel_id,
    )
    assert begin(lane, job)
