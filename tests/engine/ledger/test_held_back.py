"""What was being sent when commits were lost, and is freed afterwards, waits to be looked for."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from publisher.engine import ledger
from publisher.engine.errors import Conflict
from publisher.engine.job import Hold, JobId, State
from publisher.engine.ledger.quarantine import hold_back
from publisher.engine.witness import Cause
from tests.engine.ground import (
    Ground,
    Lane,
    Placed,
    Row,
    key,
    lost,
    not_sent,
    published,
    refused_for_now,
)

S = State


@pytest.fixture
def lane(own_ground: Ground) -> Lane:
    """A database of this test's own: a quarantine is about all of one."""
    return own_ground.lane()


def quarantine(lane: Lane, *, strict: bool = True) -> int:
    opened = ledger.open_quarantine(
        lane.ground.conn, Cause.TICK, strict=strict, absent_after=60.0, who="test"
    )
    assert opened is not None
    return opened.id


def now(lane: Lane) -> Any:  # noqa: ANN401 - a time
    """What is due then is none of an earlier quarantine's."""
    return lane.ground.one("SELECT clock_timestamp()")


def in_quarantine(lane: Lane) -> dict[JobId, Row]:
    rows = lane.ground.sql("SELECT * FROM quarantined WHERE released_at IS NULL")
    return {JobId(row["job_id"]): row for row in rows}


def holds(lane: Lane, *jobs: Placed) -> list[Any]:
    return [lane.ground.row(job.id)["hold_reason"] for job in jobs]


def person(lane: Lane, verb: Any, job_id: JobId, **how: Any) -> None:  # noqa: ANN401 - of the verb
    with lane.ground.app.engine.begin() as conn:
        verb(conn, job_id, who="me", **how)


def test_of_a_set_only_what_was_begun_before_and_is_freed_is_held(lane: Lane) -> None:
    before, sending, live = lane.sending(), lane.sending(), lane.sending()
    number = quarantine(lane)
    later, beside = lane.sending(run_at=now(lane)), lane.put(S.SCHEDULED, run_at=now(lane))
    ends = {key(before): not_sent(), key(later): refused_for_now(), key(live): published("a")}
    assert ledger.settle(lane.ground.conn, ends).as_asked
    assert holds(lane, before, later, beside, sending, live) == ["quarantine", *[None] * 4]
    held = in_quarantine(lane)
    assert list(held) == [before.id]
    assert (held[before.id]["quarantine_id"], held[before.id]["strict"]) == (number, True)
    assert [lane.ground.state(job.id) for job in (before, later, sending, live)] == [
        S.SCHEDULED, S.SCHEDULED, S.SENDING, S.PUBLISHED,
    ]  # fmt: skip


def test_one_with_several_attempts_is_held_for_that_which_was_under_way(lane: Lane) -> None:
    first = lane.put(S.SCHEDULED, begun=True)
    second = lane.sending(first.id)
    quarantine(lane)
    assert lane.end(second, refused_for_now()).done
    assert list(in_quarantine(lane)) == [first.id]


def test_a_late_answer_that_frees_holds_its_job_alone(lane: Lane) -> None:
    unknown, sending = lane.put(S.UNKNOWN), lane.sending()
    quarantine(lane)
    beside = lane.put(S.SCHEDULED, run_at=now(lane))
    conn = lane.ground.conn
    ledger.record_late(conn, unknown.id, unknown.token, refused_for_now(), who="worker run 9")
    assert list(in_quarantine(lane)) == [unknown.id]
    assert holds(lane, unknown, sending, beside) == ["quarantine", None, None]


def test_what_turns_out_live_is_not_looked_for(lane: Lane) -> None:
    """Its end was to free it, but an answer to its earlier attempt had said that it is live."""
    first = lane.put(S.SCHEDULED, begun=True)
    second = lane.sending(first.id)
    ledger.record_late(
        lane.ground.conn, first.id, first.token, published("late"), who="worker run 9"
    )
    quarantine(lane)
    assert lane.end(second, refused_for_now()).live
    assert lane.ground.state(first.id) is S.PUBLISHED
    assert in_quarantine(lane) == {}


def test_another_jobs_token_holds_nobody(lane: Lane) -> None:
    """A loss that nothing speaks for leaves alone what is due later, attempt or none."""
    jobs = [lane.put(S.SCHEDULED, begun=True) for _ in range(2)]
    for job in jobs:
        lane.ground.sql(
            "UPDATE jobs SET run_at = now() + interval '1 hour',"
            " due_at = now() + interval '1 hour' WHERE id = %s",
            job.id,
        )
    quarantine(lane, strict=False)
    hold_back(lane.ground.conn, [(jobs[0].id, jobs[1].token)])
    assert in_quarantine(lane) == {}
    assert holds(lane, *jobs) == [None, None]


def let_go(lane: Lane, job_id: JobId) -> None:
    assert ledger.release_suspects(lane.ground.conn, [job_id], who="me", reason="x") == [job_id]


def test_one_that_an_older_quarantine_let_go_is_held_for_the_newer(lane: Lane) -> None:
    job = lane.add()
    person(lane, ledger.hold, job)
    quarantine(lane)
    lane.ground.sql("UPDATE quarantined SET looks = 3, last_look = 'nothing'")
    let_go(lane, job)
    person(lane, ledger.release_hold, job)
    sending = lane.sending(job)
    newer = quarantine(lane, strict=False)
    newest = quarantine(lane)
    assert newer < newest
    assert lane.end(sending, refused_for_now()).done
    held = in_quarantine(lane)[job]
    assert (held["quarantine_id"], held["strict"], held["held_before"]) == (newest, True, None)
    assert (held["looks"], held["asked_at"], held["release_reason"]) == (0, None, None)
    assert held["next_look_at"] is not None


def test_what_a_person_let_go_is_not_held_again_for_the_same_loss(lane: Lane) -> None:
    sending = lane.sending()
    quarantine(lane)
    assert lane.end(sending, refused_for_now()).done
    let_go(lane, sending.id)
    before = lane.ground.sql("SELECT * FROM quarantined")
    hold_back(lane.ground.conn, [sending.key])
    assert lane.ground.sql("SELECT * FROM quarantined") == before
    assert holds(lane, sending) == [None]


def test_what_was_held_for_another_reason_is_held_for_it_when_it_is_let_go(lane: Lane) -> None:
    sending = lane.sending()
    quarantine(lane)
    assert lane.end(sending, replace(refused_for_now(), hold_reason=Hold.PARKED)).done
    assert holds(lane, sending) == ["quarantine"]
    let_go(lane, sending.id)
    assert holds(lane, sending) == [Hold.PARKED]


# What else is asked of a quarantine


def test_only_one_that_shows_a_loss_is_one_and_the_newest_counts(lane: Lane) -> None:
    assert ledger.newest_loss(lane.ground.conn) is None
    quarantine(lane, strict=False)
    assert ledger.newest_loss(lane.ground.conn) is None
    quarantine(lane)
    newest = quarantine(lane)
    quarantine(lane, strict=False)
    at = lane.ground.one("SELECT at FROM quarantines WHERE id = %s", newest)
    assert ledger.newest_loss(lane.ground.conn) == at


def absent(lane: Lane, job: Placed) -> State:
    """Its hand has been back for long; only what a database lacked may still arrive."""
    ground = lane.ground
    ground.sql("ALTER TABLE attempts DISABLE TRIGGER attempts_frozen")
    ground.sql(
        "UPDATE attempts SET begun_at = begun_at - interval '10 minutes',"
        " settled_at = settled_at - interval '9 minutes' WHERE job_id = %s",
        job.id,
    )
    ground.sql("ALTER TABLE attempts ENABLE TRIGGER attempts_frozen")
    (doubt,) = ledger.doubts(ground.conn, [job.id])
    return ledger.confirm_absent(
        ground.conn, doubt, send_at=None, send=True, who="me", reason="x",
        horizon=timedelta(seconds=60),
    ).state  # fmt: skip


def test_what_a_database_lacked_arrives_for_what_was_doubted_before(lane: Lane) -> None:
    quarantine(lane)
    after = lane.sending(run_at=now(lane))
    assert lane.end(after, lost()).done
    assert absent(lane, after) is S.SCHEDULED
    before = lane.sending(run_at=now(lane))
    assert lane.end(before, lost()).done
    quarantine(lane)
    with pytest.raises(Conflict) as refusal:
        absent(lane, before)
    assert refusal.value.code == "sender-may-be-alive"
