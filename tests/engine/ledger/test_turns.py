"""Whose turn it is, and when: what a claim, a wait and a suspect are kept from, one cause each."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from publisher.engine import ledger
from publisher.engine.job import State
from publisher.engine.ledger.claim import next_due
from tests.engine.ground import LEASE, Ground, Lane

S = State
QUEUE = "one queue"

# What keeps the jobs of the first page from their turn. {id}: a job, {channel}: its channel.
JOB = "UPDATE jobs SET {} WHERE channel_id = %(channel)s"
GATE = "UPDATE gates SET {} WHERE channel_id = %(channel)s"
KEPT = [
    JOB.format("run_at = now() + interval '1 hour'"),
    JOB.format("hold_reason = 'person'"),
    JOB.format("queue = 'another'"),
    JOB.format("deaths = 1"),
    JOB.format("state = 'cancelled', settled_at = now()"),
    GATE.format("paused_at = now()"),
    GATE.format("blocked_at = now(), blocked_reason = 'x'"),
    GATE.format("not_before = now() + interval '1 hour'"),
]


def do(ground: Ground, sql: str, lane: Lane) -> None:
    ground.root.execute(sql.encode(), {"channel": lane.channel_id})


def claim(lane: Lane, **how: Any) -> ledger.Claim:  # noqa: ANN401 - of ``ledger.claim``
    given = {"incarnation": 7, "queues": [QUEUE], "limit": 1, "lease": LEASE, **how}
    return ledger.claim(lane.ground.conn, **given)


@pytest.mark.parametrize("kept", KEPT)
def test_a_page_with_nothing_to_claim_takes_nobodys_turn(own_ground: Ground, kept: str) -> None:
    first, second = own_ground.lane(), own_ground.lane()
    first.add(queue=QUEUE)
    job = second.add(queue=QUEUE)
    do(own_ground, kept, first)
    assert [each.id for each in claim(first).jobs] == [job]


@pytest.mark.parametrize("kept", [each for each in KEPT if "UPDATE jobs" in each])
def test_beside_one_that_may_run_another_still_may_not(own_ground: Ground, kept: str) -> None:
    lane = own_ground.lane()
    lane.add(queue=QUEUE)
    do(own_ground, kept, lane)
    job = lane.add(queue=QUEUE)
    assert [each.id for each in claim(lane, limit=8).jobs] == [job]


def test_a_full_page_takes_nobodys_turn_and_fullness_is_its_own(own_ground: Ground) -> None:
    first, second = own_ground.lane(in_flight=1), own_ground.lane(in_flight=1)
    for _ in range(2):
        first.add(queue=QUEUE)
        second.add(queue=QUEUE)
    taken = [claim(first).jobs[0].channel_id for _ in range(2)]
    assert taken == [first.channel_id, second.channel_id]
    assert claim(first).jobs == ()


def test_what_has_ended_or_waits_is_not_in_flight(own_ground: Ground) -> None:
    lane = own_ground.lane(in_flight=1)
    for state in State:
        if state not in {S.CLAIMED, S.SENDING}:
            lane.put(state)
    job = lane.add(queue=QUEUE)
    assert [each.id for each in claim(lane).jobs] == [job]


def test_each_page_has_its_own_jobs_and_room(own_ground: Ground) -> None:
    first, second = own_ground.lane(in_flight=2), own_ground.lane(in_flight=2)
    jobs = {lane.channel_id: {lane.add(queue=QUEUE) for _ in range(2)} for lane in (first, second)}
    claimed = claim(first, limit=8).jobs
    found: dict[int, set[int]] = {}
    for job in claimed:
        found.setdefault(job.channel_id, set()).add(job.id)
        row = own_ground.row(job.id)
        assert (row["channel_id"], row["token"]) == (job.channel_id, job.token)
        key = own_ground.one("SELECT key FROM job_contents WHERE job_id = %s", job.id)
        assert job.key == key
    assert found == jobs


def test_nothing_is_claimed_from_a_database_whose_tick_went_back(own_ground: Ground) -> None:
    lane = own_ground.lane()
    lane.add(queue=QUEUE)
    value = own_ground.one("SELECT value FROM tick")
    assert claim(lane, floor=value + 1).jobs == ()
    assert len(claim(lane, floor=value).jobs) == 1


def test_nothing_is_claimed_under_a_number_that_is_another_runs(own_ground: Ground) -> None:
    lane = own_ground.lane()
    ours, other = own_ground.incarnation("ours.spool"), own_ground.incarnation("other.spool")
    job = lane.add(queue=QUEUE)
    for number, file in ((ours, "other.spool"), (other, "ours.spool"), (ours, "lost.spool")):
        assert claim(lane, incarnation=number, file=file).jobs == ()
    assert claim(lane, incarnation=other + 1, file="ours.spool").jobs == ()
    assert own_ground.state(job) is S.SCHEDULED
    assert [each.id for each in claim(lane, incarnation=ours, file="ours.spool").jobs] == [job]


# When


def seconds(lane: Lane, since: datetime, within: float = 600.0) -> float | None:
    return next_due(lane.ground.conn, [QUEUE], since=since, within=within)


@pytest.fixture
def since(own_ground: Ground) -> datetime:
    at: datetime = own_ground.one("SELECT clock_timestamp()")
    return at


def later(lane: Lane, since: datetime, by: float) -> None:
    lane.add(queue=QUEUE, run_at=since + timedelta(seconds=by))


def test_the_next_is_the_first_that_is_due(own_ground: Ground, since: datetime) -> None:
    first, second = own_ground.lane(), own_ground.lane()
    assert seconds(first, since) is None
    later(first, since, 300)
    assert seconds(first, since) == pytest.approx(300, abs=30)
    later(second, since, 100)
    assert seconds(first, since) == pytest.approx(100, abs=30)
    assert seconds(first, since, within=20.0) is None


@pytest.mark.parametrize("kept", [
    JOB.format("run_at = now() + interval '1 day'"),
    JOB.format("run_at = now() - interval '1 hour'"),
    *KEPT[1:3], *KEPT[4:7],
    GATE.format("not_before = now() + interval '1 day'"),
])  # fmt: skip
def test_what_may_not_run_is_not_waited_for(own_ground: Ground, since: datetime, kept: str) -> None:
    first, second = own_ground.lane(), own_ground.lane()
    later(first, since, 100)
    later(second, since, 300)
    do(own_ground, kept, first)
    assert seconds(first, since) == pytest.approx(300, abs=30)


def test_a_gate_that_opens_is_waited_for_with_what_is_due_by_then(
    own_ground: Ground, since: datetime
) -> None:
    lane = own_ground.lane()
    later(lane, since, -100)
    do(own_ground, GATE.format("not_before = now() + interval '200 seconds'"), lane)
    assert seconds(lane, since) == pytest.approx(200, abs=30)
    do(own_ground, GATE.format("not_before = now() - interval '1 hour'"), lane)
    assert seconds(lane, since) is None
    later(lane, since, 100)
    assert seconds(lane, since) == pytest.approx(100, abs=30)


def test_a_suspect_waits_where_it_could_be_claimed(own_ground: Ground) -> None:
    lane, other = own_ground.lane(in_flight=1), own_ground.lane(in_flight=1)
    other.claimed()
    lane.add(queue=QUEUE)
    wait = lambda: ledger.suspects_wait(own_ground.conn, [QUEUE])  # noqa: E731 - asked often
    assert not wait()
    do(own_ground, KEPT[3], lane)
    assert wait()
    assert not ledger.suspects_wait(own_ground.conn, ["another"])
    do(own_ground, GATE.format("not_before = now() - interval '1 hour'"), lane)
    assert wait()


@pytest.mark.parametrize("kept", [*KEPT[:3], *KEPT[4:]])
def test_a_suspect_that_may_not_run_does_not_wait(own_ground: Ground, kept: str) -> None:
    lane = own_ground.lane()
    lane.add(queue=QUEUE)
    do(own_ground, KEPT[3], lane)
    do(own_ground, kept, lane)
    assert not ledger.suspects_wait(own_ground.conn, [QUEUE])


def test_a_suspect_does_not_wait_for_a_page_that_is_full(own_ground: Ground) -> None:
    lane = own_ground.lane(in_flight=1)
    lane.claimed()
    lane.add(queue=QUEUE)
    do(own_ground, "UPDATE jobs SET deaths = 1 WHERE channel_id = %(channel)s"
                   " AND state = 'scheduled'", lane)  # fmt: skip
    assert not ledger.suspects_wait(own_ground.conn, [QUEUE])


def test_what_its_gate_lets_through_too_late_is_not_waited_for(
    own_ground: Ground, since: datetime
) -> None:
    lane = own_ground.lane()
    later(lane, since, 100)
    do(own_ground, GATE.format("not_before = now() + interval '1 day'"), lane)
    assert seconds(lane, since) is None
