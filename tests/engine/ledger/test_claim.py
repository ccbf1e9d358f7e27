"""Claims: what may be held, how much of a channel at once, and whose turn it is."""

from __future__ import annotations

import json
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from publisher.engine import ledger, retry
from publisher.engine.job import State, Token
from publisher.engine.ledger import Claimed, Progressed
from tests.engine.conftest import Connect
from tests.engine.ground import LEASE, Driver, Ground, Lane, key, refused

MINUTE = timedelta(minutes=1)


def now() -> datetime:
    return datetime.now(UTC)


# What may be held


def test_a_claim_gives_a_hand_all_it_needs(lane: Lane) -> None:
    new = lane.new(useful_until=now() + MINUTE, platform_key="pk")
    job_id = ledger.enqueue(lane.ground.conn, [new])[0].job_id
    (job,) = lane.claim()
    row = lane.ground.row(job_id)
    assert (row["state"], row["token"], row["incarnation"], row["claims"]) == (
        "claimed", job.token, lane.incarnation, 1,
    )  # fmt: skip
    left = (row["lease_until"] - now()).total_seconds()
    assert LEASE - 5 < left <= LEASE
    assert row["claimed_at"] is not None
    assert row["hand_at"] is None
    content = lane.ground.sql("SELECT * FROM job_contents WHERE job_id = %s", job_id)[0]
    assert job == Claimed(
        id=job_id, token=row["token"], channel_id=lane.channel_id, generation=1, kind="post",
        queue=lane.queue, key=new.key, content=new.content,
        content_sha256=content["content_sha256"], platform_key="pk", progress=None,
        progress_sha256=None, attempts=0, failures=0, deaths=0, due_at=new.run_at,
        useful_until=new.useful_until,
    )  # fmt: skip


def test_each_claim_has_a_token_of_its_own(lane: Lane) -> None:
    tokens = {lane.claimed(lane.add()).token for _ in range(3)}
    job = lane.claimed()
    assert lane.end(job, retry.release()).done
    tokens |= {job.token, lane.claimed(job.id).token}
    assert len(tokens) == 5
    assert lane.ground.row(job.id)["claims"] == 2


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE jobs SET run_at = now() + interval '1 minute' WHERE id = %(id)s",
        "UPDATE jobs SET hold_reason = 'x' WHERE id = %(id)s",
        "UPDATE jobs SET useful_until = now() WHERE id = %(id)s",
        "UPDATE jobs SET queue = 'not served' WHERE id = %(id)s",
        "UPDATE jobs SET deaths = 1 WHERE id = %(id)s",
        "UPDATE gates SET paused_at = now() WHERE channel_id = %(channel)s",
        "UPDATE gates SET blocked_at = now(), blocked_reason = 'x' WHERE channel_id = %(channel)s",
        "UPDATE gates SET not_before = now() + interval '1 minute' WHERE channel_id = %(channel)s",
    ],
)
def test_what_may_not_run_is_not_claimed(lane: Lane, sql: str) -> None:
    job_id = lane.add()
    lane.ground.root.execute(sql.encode(), {"id": job_id, "channel": lane.channel_id})
    assert lane.claim() == []
    assert lane.ground.state(job_id) is State.SCHEDULED


@pytest.mark.parametrize("state", [state for state in State if state is not State.SCHEDULED])
def test_only_scheduled_jobs_are_claimed(lane: Lane, state: State) -> None:
    job = lane.put(state)
    before = lane.ground.everything(job.id)
    assert lane.claim(queues=[lane.ground.row(job.id)["queue"]]) == []
    assert lane.ground.everything(job.id) == before


def test_a_rest_that_is_over_and_a_time_that_has_come_do_not_hinder(lane: Lane) -> None:
    lane.ground.sql(
        "UPDATE gates SET not_before = now() - interval '1 second' WHERE channel_id = %s",
        lane.channel_id,
    )
    job_id = lane.add(run_at=now(), useful_until=now() + MINUTE)
    assert [job.id for job in lane.claim()] == [job_id]


def test_several_queues_are_served_by_one_claim(lane: Lane) -> None:
    jobs = {lane.add(queue=f"{lane.queue}.{name}") for name in "abc"}
    found = lane.claim(9, queues=[f"{lane.queue}.{name}" for name in "abx"])
    assert len(found) == 2
    assert {job.id for job in found} < jobs


def test_a_claim_takes_no_more_than_its_limit_and_the_earliest_first(lane: Lane) -> None:
    late, early, middle = (lane.add(run_at=now() - minutes * MINUTE) for minutes in (1, 9, 5))
    assert {job.id for job in lane.claim(2)} == {early, middle}
    assert [job.id for job in lane.claim(2)] == [late]


def test_a_locked_job_is_passed_over(lane: Lane, connect: Connect) -> None:
    first, second = lane.add(), lane.add()
    other = connect()
    with other.transaction():
        other.execute("SELECT FROM jobs WHERE id = %s FOR UPDATE", [first])
        assert [job.id for job in lane.claim(9)] == [second]


def test_a_locked_gate_is_passed_over(lane: Lane, connect: Connect) -> None:
    job_id, other = lane.add(), connect()
    with other.transaction():
        other.execute("SELECT FROM gates WHERE channel_id = %s FOR UPDATE", [lane.channel_id])
        assert lane.claim() == []
    assert [job.id for job in lane.claim()] == [job_id]


# In flight


def test_a_channel_has_no_more_in_flight_than_its_gate_allows(ground: Ground) -> None:
    lane = ground.lane(in_flight=2)
    jobs = [lane.add(run_at=now() - (9 - n) * MINUTE) for n in range(4)]
    first, second = lane.claim(9)
    assert [first.id, second.id] == jobs[:2]
    assert lane.claim(9) == []
    lane.begin(first)
    assert lane.claim(9) == []
    assert lane.end(second, refused(begun=False)).done
    assert [job.id for job in lane.claim(9)] == [jobs[2]]


def test_posts_of_a_page_keep_their_order(ground: Ground) -> None:
    lane = ground.lane(in_flight=1)
    jobs = [lane.add(run_at=now() - n * MINUTE) for n in (3, 2, 2, 1)]
    order = []
    while claimed := lane.claim(9):
        assert len(claimed) == 1
        order.append(claimed[0].id)
        assert lane.end(claimed[0], refused(begun=False)).done
    assert order == jobs


def most_in_flight(conn: Driver) -> int:
    """How many the channel with the most of them has in flight just now."""
    row = conn.execute(
        "SELECT coalesce(max(n), 0) FROM (SELECT count(*) AS n FROM jobs"
        " WHERE incarnation IS NOT NULL GROUP BY channel_id) AS c"
    ).fetchone()
    assert row is not None
    return int(row[0])


def test_eight_racing_workers_never_have_more_than_one_in_flight(own_ground: Ground) -> None:
    ground = own_ground
    lanes = [ground.lane(in_flight=1) for _ in range(3)]
    for lane in lanes:
        ledger.enqueue(ground.conn, [lane.new(queue="race") for _ in range(20)])
    most, claimed = 0, Counter[int]()
    start = threading.Barrier(8)
    guard = threading.Lock()

    def work(conn: Driver) -> None:
        nonlocal most
        start.wait(20)
        while claimed.total() < 60:
            jobs = ledger.claim(conn, incarnation=1, queues=["race"], limit=8, lease=LEASE).jobs
            held = most_in_flight(conn)
            with guard:
                most = max(most, held)
                claimed.update(job.channel_id for job in jobs)
            for job in jobs:
                done = ledger.settle(conn, {key(job): refused(begun=False)})
                assert done.done == {key(job)}

    connections = [ground.engine.connect_driver() for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        for future in [pool.submit(work, conn) for conn in connections]:
            future.result(60)
    for conn in connections:
        conn.close()
    assert most == 1
    assert claimed == {lane.channel_id: 20 for lane in lanes}


# Fairness


@pytest.mark.parametrize("in_flight", [1, 8])
def test_a_channel_with_two_thousand_due_does_not_delay_another(
    own_ground: Ground, in_flight: int
) -> None:
    busy = own_ground.lane(in_flight=in_flight)
    quiet = own_ground.lane(in_flight=in_flight)
    old = now() - timedelta(days=1)
    ledger.enqueue(own_ground.conn, [busy.new(queue="q", run_at=old) for _ in range(2000)])
    wanted = quiet.add(queue="q")
    after, seen = 0, []
    for _ in range(2):
        claim = ledger.claim(
            own_ground.conn, incarnation=1, queues=["q"], limit=4, lease=LEASE, after=after
        )
        after = claim.after
        seen += [job.id for job in claim.jobs]
        for job in claim.jobs:
            assert busy.end(job, refused(begun=False)).done
    assert wanted in seen


def test_pages_go_round_so_that_every_channel_has_its_turn(own_ground: Ground) -> None:
    lanes = [own_ground.lane(in_flight=1) for _ in range(5)]
    for lane in lanes:
        ledger.enqueue(own_ground.conn, [lane.new(queue="q") for _ in range(3)])
    after, turns = 0, []
    for _ in range(6):
        claim = ledger.claim(
            own_ground.conn, incarnation=1, queues=["q"], limit=2, lease=LEASE, after=after
        )
        after = claim.after
        turns.append([job.channel_id for job in claim.jobs])
        for job in claim.jobs:
            assert lanes[0].end(job, refused(begun=False)).done
    numbers = [lane.channel_id for lane in lanes]
    lap = [numbers[:2], numbers[2:4], numbers[4:]]
    assert [sorted(turn) for turn in turns] == lap + lap
    assert after == 0


# Suspects


def test_a_job_somebody_died_over_is_claimed_apart(lane: Lane) -> None:
    suspect, sound = lane.add(), lane.add()
    lane.ground.sql("UPDATE jobs SET deaths = 1 WHERE id = %s", suspect)
    assert ledger.suspects_wait(lane.ground.conn, [lane.queue])
    assert not ledger.suspects_wait(lane.ground.conn, ["another queue"])
    assert [job.id for job in lane.claim(9)] == [sound]
    (job,) = lane.claim(9, suspect=True)
    assert (job.id, job.deaths) == (suspect, 1)
    assert not ledger.suspects_wait(lane.ground.conn, [lane.queue])


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE jobs SET hold_reason = 'x' WHERE id = %(id)s",
        "UPDATE jobs SET run_at = now() + interval '1 minute' WHERE id = %(id)s",
        "UPDATE gates SET paused_at = now() WHERE channel_id = %(channel)s",
        "UPDATE gates SET blocked_at = now(), blocked_reason = 'x' WHERE channel_id = %(channel)s",
        "UPDATE gates SET not_before = now() + interval '1 minute' WHERE channel_id = %(channel)s",
    ],
)
def test_a_suspect_that_may_not_run_does_not_stop_others(lane: Lane, sql: str) -> None:
    job_id = lane.add()
    lane.ground.sql("UPDATE jobs SET deaths = 1 WHERE id = %s", job_id)
    lane.ground.root.execute(sql.encode(), {"id": job_id, "channel": lane.channel_id})
    assert not ledger.suspects_wait(lane.ground.conn, [lane.queue])


# While it is held


def test_a_lease_is_extended_only_for_the_holder_of_a_claim(lane: Lane) -> None:
    mine, begun, stale = lane.claimed(), lane.claimed(), lane.claimed()
    lane.begin(begun)
    old = lane.ground.row(mine.id)["lease_until"]
    wrong = (stale.id, Token(uuid4()))
    ours = ledger.extend_leases(lane.ground.conn, [key(mine), key(begun), wrong], lease=600)
    assert ours == {mine.id}
    assert lane.ground.row(mine.id)["lease_until"] > old + 5 * MINUTE


def test_a_hand_is_recorded_only_for_the_holder(lane: Lane) -> None:
    mine, stale = lane.claimed(), lane.claimed()
    wrong = (stale.id, Token(uuid4()))
    assert ledger.start_hands(lane.ground.conn, [key(mine), wrong], lease=600) == {mine.id}
    assert lane.ground.row(mine.id)["hand_at"] is not None
    assert lane.ground.row(stale.id)["hand_at"] is None


def test_progress_is_kept_with_the_hash_of_its_content(lane: Lane) -> None:
    mine, stale = lane.claimed(), lane.claimed()
    steps = [
        Progressed(*key(mine), mine.content_sha256, json.dumps({"photo": 7})),
        Progressed(stale.id, Token(uuid4()), stale.content_sha256, "{}"),
    ]
    assert ledger.save_progress(lane.ground.conn, steps, lease=600) == {mine.id}
    content = lane.ground.sql("SELECT * FROM job_contents WHERE job_id = %s", mine.id)[0]
    assert content["progress"] == {"photo": 7}
    assert content["progress_sha256"] == mine.content_sha256
    assert lane.end(mine, retry.release()).done
    again = lane.claimed(mine.id)
    assert (again.progress, again.progress_sha256) == ({"photo": 7}, mine.content_sha256)
    other = lane.ground.sql("SELECT * FROM job_contents WHERE job_id = %s", stale.id)[0]
    assert other["progress"] is None


def test_channels_come_with_their_sealed_credential(lane: Lane) -> None:
    lane.ground.sql("UPDATE channels SET sealed = 'x' WHERE id = %s", lane.channel_id)
    found = ledger.channels(lane.ground.conn, [lane.channel_id, -1])
    assert list(found) == [lane.channel_id]
    channel = found[lane.channel_id]
    assert (channel.platform, channel.sealed, channel.generation) == ("fake", b"x", 1)
    assert "sealed" not in repr(channel)


@pytest.mark.both_servers
def test_only_the_claim_does_not_wait_for_the_disk(lane: Lane) -> None:
    """What is written after it on the same connection is on disk when it returns."""
    conn = lane.ground.conn
    for waiting in (0, 1):
        for _ in range(waiting):
            lane.add()
        assert len(lane.claim()) == waiting
        stands = "SELECT current_setting('synchronous_commit'), current_setting('publisher.gates')"
        assert conn.execute(stands).fetchone() == ("on", "")
