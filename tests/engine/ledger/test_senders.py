"""Which attempt a doubt is about, who sent it and those that it repeats, and when they returned."""

from __future__ import annotations

from uuid import uuid4

import pytest

from publisher.engine import ledger, retry
from publisher.engine.job import JobId, State, Token
from publisher.engine.ledger import Doubt
from publisher.engine.witness import Cause
from tests.engine.ground import Ground, Lane, Placed, lost, not_sent, refused_for_now

S = State


@pytest.fixture
def lane(own_ground: Ground) -> Lane:
    """A database of this test's own: a quarantine is about all of one."""
    return own_ground.lane()


def doubt(lane: Lane, job_id: JobId) -> Doubt:
    (found,) = ledger.doubts(lane.ground.conn, [job_id])
    return found


def run(lane: Lane, host: str) -> int:
    """Let a worker run of its own, on that host, send what comes next."""
    lane.incarnation = lane.ground.incarnation(f"{host}.spool")
    lane.ground.sql("UPDATE incarnations SET host = %s WHERE id = %s", host, lane.incarnation)
    return lane.incarnation


def repeated(lane: Lane, job: Placed) -> None:
    ledger.repeat(
        lane.ground.conn, doubt(lane, job.id), until=None, after=0.0, who="me", reason="x"
    )


def test_beside_the_last_its_repeats_senders_are_known_and_no_refusals(lane: Lane) -> None:
    run(lane, "first")
    refused = lane.sending()
    assert lane.end(refused, refused_for_now()).done
    second = run(lane, "second")
    job = lane.sending(refused.id)
    assert lane.end(job, lost()).done
    repeated(lane, job)
    third = run(lane, "third")
    assert lane.end(lane.sending(job.id), lost()).done
    found = doubt(lane, job.id)
    assert (found.attempt, found.incarnation, found.host) == (3, third, "third")
    (other,) = found.others
    assert (other["run"], other["host"]) == (second, "second")


def test_what_was_to_be_repeated_is_no_other_than_itself(lane: Lane) -> None:
    number = run(lane, "only")
    job = lane.put(S.UNKNOWN)
    repeated(lane, job)
    with lane.ground.app.engine.begin() as conn:
        ledger.cancel(conn, job.id, who="me")
    found = doubt(lane, job.id)
    assert (found.attempt, found.incarnation, found.repeat_ended) == (1, number, True)
    assert list(found.others) == []


def test_what_never_left_is_in_no_question(lane: Lane) -> None:
    first = lane.sending()
    assert lane.end(first, not_sent()).done
    assert lane.end(lane.sending(first.id), refused_for_now()).done
    assert lane.end(lane.claimed(first.id), retry.look_unclear("two alike")).done
    assert doubt(lane, first.id).attempt == 2


def test_a_lost_send_is_nobodys_attempt_and_a_known_one_is_not_lost(lane: Lane) -> None:
    ground = lane.ground
    job, known = lane.put(S.SCHEDULED, begun=True), lane.put(S.UNKNOWN)
    ledger.spool_found(
        ground.conn, job_id=job.id, attempt=2, token=Token(uuid4()), incarnation=9,
        line={"started": True}, who="worker run 9",
    )  # fmt: skip
    orphan = "INSERT INTO orphans (incarnation, job_id, token, line) VALUES ('9', %s, %s, '{}')"
    ground.sql(orphan, known.id, known.token)
    assert (doubt(lane, job.id).attempt, doubt(lane, job.id).token) == (0, None)
    assert (doubt(lane, known.id).attempt, doubt(lane, known.id).token) == (1, known.token)


def test_what_a_database_lacked_may_arrive_for_doubts_before_it(lane: Lane) -> None:
    before = lane.put(S.UNKNOWN)
    opened = ledger.open_quarantine(
        lane.ground.conn, Cause.TICK, strict=True, absent_after=60.0, who="test"
    )
    assert opened is not None
    after = lane.sending(run_at=lane.ground.one("SELECT clock_timestamp()"))
    assert lane.end(after, lost()).done
    until = lane.ground.one("SELECT absent_after FROM quarantines")
    found = [doubt(lane, job.id).arrives_until for job in (before, after)]
    assert found == [until, None]


def test_a_hand_returned_when_it_last_said_so_of_that_attempt(lane: Lane) -> None:
    ground = lane.ground
    first = lane.put(S.SCHEDULED, begun=True)
    assert lane.end(lane.sending(first.id), lost()).done
    settled = ground.attempt(first.id, 2)["settled_at"]
    tell = (
        "INSERT INTO job_events (job_id, event, who, attempt, at)"
        " VALUES (%s, %s, 'me', %s, now() + %s::interval) RETURNING at"
    )
    for event, attempt in (("late_answer", 1), ("spool_read", 1), ("hold", 2)):
        ground.sql(tell, first.id, event, attempt, "1 h")
    assert doubt(lane, first.id).returned_at == settled
    for event, after in (("late_answer", "2 h"), ("spool_read", "3 h")):
        at = ground.one(tell, first.id, event, 2, after)
        assert doubt(lane, first.id).returned_at == at


def test_a_run_that_is_gone_is_not_told_of_in_what_it_never_sent(lane: Lane) -> None:
    gone = run(lane, "gone")
    job = lane.sending()
    assert lane.end(job, not_sent()).done
    run(lane, "other")
    assert lane.end(lane.sending(job.id), lost()).done
    for number, told in ((gone, False), (lane.incarnation, True)):
        with lane.ground.app.engine.begin() as conn:
            assert ledger.declare_gone(conn, number, who="me", reason="x") is not None
        events = {event["event"] for event in lane.ground.events(job.id)}
        assert ("declare_gone" in events) is told
