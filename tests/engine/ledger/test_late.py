"""Answers that come when the job has moved on: every row of the table about them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from publisher.engine import ledger, retry
from publisher.engine.job import State, Token
from publisher.engine.ledger import Late
from publisher.engine.outcome import Answer, Deferred, Outcome, Reason, Unauthorized, Unknown
from publisher.engine.retry import Settlement
from tests.engine.conftest import Connect
from tests.engine.ground import (
    Lane,
    Placed,
    decided,
    lost,
    published,
    refused,
    refused_for_now,
)

S = State
ENDS: dict[str, Settlement] = {
    "publish": published("set below"),
    "reject": refused(),
    "defer": refused_for_now(),
    "unauthorized": decided(Unauthorized(Reason.NEEDS_RECONNECTING, "x", row="190")),
}


def stand(lane: Lane, state: State) -> Placed:
    """A job in ``state`` with one attempt begun; the answer is about that one."""
    if state is S.CANCELLED:
        job = lane.put(S.SCHEDULED, begun=True)
        with lane.ground.app.engine.begin() as conn:
            ledger.cancel(conn, job.id, who="me")
        return job
    if state in {S.SCHEDULED, S.FAILED}:
        return lane.put(state, begun=True)
    if state in {S.CLAIMED, S.MISSED}:
        first = lane.put(S.SCHEDULED, begun=True)
        claimed = lane.claimed(first.id)
        if state is S.MISSED:
            assert lane.end(claimed, retry.expire()).done
        return first
    return lane.put(state)


def answer(lane: Lane, job: Placed, end: Settlement, *, token: Token | None = None) -> Late:
    return ledger.record_late(lane.ground.conn, job.id, token or job.token, end, who="worker run 9")


def end_for(job: Placed, name: str) -> Settlement:
    return published(f"late {job.id}") if name == "publish" else ENDS[name]


FOLLOWS = {
    (S.UNKNOWN, "publish"): S.PUBLISHED,
    (S.UNKNOWN, "reject"): S.FAILED,
    (S.UNKNOWN, "defer"): S.SCHEDULED,
    (S.UNKNOWN, "unauthorized"): S.SCHEDULED,
    (S.SENDING, "publish"): S.PUBLISHED,
    (S.SENDING, "reject"): S.FAILED,
    (S.SENDING, "defer"): S.SCHEDULED,
    (S.SENDING, "unauthorized"): S.SCHEDULED,
    **{(state, "publish"): S.PUBLISHED
       for state in (S.SCHEDULED, S.CLAIMED, S.FAILED, S.MISSED, S.DROPPED)},
}  # fmt: skip


@pytest.mark.parametrize("name", ENDS)
@pytest.mark.parametrize("state", State)
def test_a_late_answer_moves_the_job_where_the_table_says(
    lane: Lane, state: State, name: str
) -> None:
    job = stand(lane, state)
    before = lane.ground.row(job.id)
    end = end_for(job, name)
    became = answer(lane, job, end)
    row, attempt = lane.ground.row(job.id), lane.ground.attempt(job.id)
    to = FOLLOWS.get((state, name), state)
    assert row["state"] == to
    if to is not state:
        assert became is Late.MOVED
        assert row["token"] is None
        assert (row["settled_at"] is None) is (to is S.SCHEDULED)
        assert row["failures"] == before["failures"] + end.failed
        told = lane.ground.events(job.id)[-1]
        assert (told["event"], told["who"], told["attempt"]) == ("late_answer", "worker run 9", 1)
        assert (told["detail"]["from"], told["detail"]["to"]) == (state, to)
    else:
        assert row == before
    if name == "publish" and state is not S.PUBLISHED:
        assert (attempt["outcome"], attempt["remote_id"]) == ("published", end.remote_id)
        assert lane.ground.one("SELECT count(*) FROM remote_posts WHERE job_id = %s", job.id) == 1
    elif state in {S.UNKNOWN, S.SENDING, S.DROPPED}:
        assert (attempt["outcome"], attempt["proof"]) == (end.outcome, "refused")
        assert attempt["proved_by"] == "worker run 9"


@pytest.mark.parametrize("name", ENDS)
@pytest.mark.parametrize("state", State)
def test_a_second_time_it_changes_nothing(lane: Lane, state: State, name: str) -> None:
    job = stand(lane, state)
    end = end_for(job, name)
    answer(lane, job, end)
    before = lane.ground.everything(job.id)
    assert answer(lane, job, end) is Late.KNOWN
    assert lane.ground.everything(job.id) == before


def test_published_from_cancelled_is_kept_and_told(lane: Lane) -> None:
    job = stand(lane, S.CANCELLED)
    assert answer(lane, job, published("late")) is Late.KEPT_ALERT
    assert lane.ground.state(job.id) is S.CANCELLED
    assert lane.ground.attempt(job.id)["outcome"] == "published"
    assert "alert" in lane.ground.events(job.id)[-1]["detail"]


def test_published_while_a_newer_attempt_is_sending_is_kept_and_told(lane: Lane) -> None:
    first = lane.put(S.SCHEDULED, begun=True)
    second = lane.sending(first.id)
    assert answer(lane, first, published("late")) is Late.KEPT_ALERT
    assert lane.ground.state(first.id) is S.SENDING
    assert "alert" in lane.ground.events(first.id)[-1]["detail"]
    # Whatever the newer attempt comes to, the job is live.
    assert lane.end(second, refused_for_now()).done
    row = lane.ground.row(first.id)
    assert (row["state"], row["remote_id"]) == ("published", "late")


def test_both_attempts_published_is_told(lane: Lane) -> None:
    first = lane.put(S.SCHEDULED, begun=True)
    second = lane.sending(first.id)
    assert lane.end(second, published("second")).done
    assert answer(lane, first, published("first")) is Late.KEPT_ALERT
    row = lane.ground.row(first.id)
    assert (row["state"], row["remote_id"]) == ("published", "second")
    assert "alert" in lane.ground.events(first.id)[-1]["detail"]
    ids = lane.ground.sql("SELECT remote_id FROM remote_posts WHERE job_id = %s", first.id)
    assert {row["remote_id"] for row in ids} == {"first", "second"}


def test_a_failure_of_an_older_attempt_moves_nothing(lane: Lane) -> None:
    first = lane.put(S.SCHEDULED, begun=True)
    second = lane.sending(first.id)
    assert lane.end(second, lost()).done
    before = lane.ground.everything(first.id)
    assert answer(lane, first, refused()) is Late.KNOWN
    assert lane.ground.everything(first.id) == before


def test_the_id_of_another_job_is_evidence_only(lane: Lane) -> None:
    other, job = lane.put(S.PUBLISHED), lane.put(S.UNKNOWN)
    taken = f"id of {other.id}"
    assert answer(lane, job, published(taken)) is Late.KEPT
    assert lane.ground.state(job.id) is S.UNKNOWN
    attempt = lane.ground.attempt(job.id)
    assert (attempt["outcome"], attempt["remote_id"]) == ("unknown", None)
    assert attempt["reason"] == Reason.ID_OF_ANOTHER_JOB
    assert taken in attempt["detail"]
    assert lane.ground.one("SELECT job_id FROM remote_posts WHERE remote_id = %s", taken) == (
        other.id
    )


# Doubts


def doubt(answered: Answer | None) -> Settlement:
    return decided(Unknown(Reason.ANSWER_CUT, "half", answer=answered))


@pytest.mark.parametrize("answered", [Answer(status=200, body="{"), None])
def test_a_doubt_of_the_worker_itself_says_more_than_rescue_could(
    lane: Lane, answered: Answer | None
) -> None:
    job = lane.sending()
    lane.ground.sql("UPDATE jobs SET lease_until = now() - interval '1 day' WHERE id = %s", job.id)
    ledger.rescue(lane.ground.conn, grace=60, deaths=3, who="rescue")
    assert lane.ground.attempt(job.id)["reason"] == "worker_died"
    assert answer(lane, job, doubt(answered)) is Late.KEPT
    attempt = lane.ground.attempt(job.id)
    assert (attempt["outcome"], attempt["reason"]) == ("unknown", "answer_cut")
    assert (attempt["answer"] is None) is (answered is None)
    assert lane.ground.state(job.id) is S.UNKNOWN
    before = lane.ground.everything(job.id)
    assert answer(lane, job, doubt(answered)) is Late.KNOWN
    assert lane.ground.everything(job.id) == before


def test_a_doubt_takes_no_proof_back(lane: Lane) -> None:
    job = stand(lane, S.SCHEDULED)
    before = lane.ground.attempt(job.id)
    answer(lane, job, doubt(Answer(status=200)))
    after = lane.ground.attempt(job.id)
    assert (after["proof"], after["outcome"]) == (before["proof"], before["outcome"])
    assert lane.ground.state(job.id) is S.SCHEDULED


# Who and when


def test_an_answer_is_matched_by_the_token_of_its_attempt(lane: Lane) -> None:
    job = lane.put(S.UNKNOWN)
    before = lane.ground.everything(job.id)
    assert answer(lane, job, published("x"), token=Token(uuid4())) is Late.NO_ATTEMPT
    assert lane.ground.everything(job.id) == before
    nobody = Placed(type(job.id)(job.id + 100_000), job.token)
    assert answer(lane, nobody, published("x")) is Late.NO_ATTEMPT


def test_a_locked_job_is_asked_again(lane: Lane, connect: Connect) -> None:
    job, other = lane.put(S.UNKNOWN), connect()
    with other.transaction():
        other.execute("SELECT FROM jobs WHERE id = %s FOR UPDATE", [job.id])
        assert answer(lane, job, published("x")) is Late.LOCKED
    assert answer(lane, job, published("x")) is Late.MOVED


def test_a_held_job_that_turns_out_live_is_held_no_more(lane: Lane) -> None:
    job = stand(lane, S.SCHEDULED)
    with lane.ground.app.engine.begin() as conn:
        ledger.hold(conn, job.id, who="me")
    assert answer(lane, job, published("x")) is Late.MOVED
    assert lane.ground.row(job.id)["hold_reason"] is None


def test_a_deferral_that_comes_late_waits_its_time(lane: Lane) -> None:
    job = lane.put(S.UNKNOWN)
    outcome: Outcome = Deferred(Reason.RATE_LIMITED, "slow", row="4", retry_after=600)
    assert answer(lane, job, decided(outcome)) is Late.MOVED
    row = lane.ground.row(job.id)
    assert row["run_at"] - datetime.now(UTC) > timedelta(minutes=9)
    assert (row["failures"], row["reason"]) == (1, "rate_limited")


@pytest.mark.parametrize("end", [refused(), decided(Deferred(Reason.BUSY, "x", row="2"))])
def test_a_possibly_live_job_is_not_called_failed_by_a_late_answer(
    lane: Lane, end: Settlement
) -> None:
    first = lane.put(S.SCHEDULED, begun=True)
    lane.ground.sql("SET session_replication_role = replica")
    lane.ground.sql("UPDATE attempts SET proof = 'repeat_safe' WHERE job_id = %s", first.id)
    lane.ground.sql("RESET session_replication_role")
    second = lane.sending(first.id)
    assert lane.end(second, lost()).done
    became = answer(lane, second, end)
    assert lane.ground.attempt(first.id, 2)["proof"] == "refused"
    if end.state is S.FAILED:
        assert became is Late.KEPT
        assert lane.ground.state(first.id) is S.UNKNOWN
    else:
        assert became is Late.MOVED
        assert lane.ground.state(first.id) is S.SCHEDULED


# The spool knows of a send that the database does not


@pytest.mark.parametrize("state", State)
def test_a_started_send_that_the_database_lost(lane: Lane, state: State) -> None:
    job = lane.put(state)
    before = lane.ground.row(job.id)
    token = Token(uuid4())

    def find() -> bool:
        return ledger.spool_found(
            lane.ground.conn, job_id=job.id, attempt=1, token=token, incarnation=3,
            line={"started": True}, who="worker run 9",
        )  # fmt: skip

    doubted = state in {S.SCHEDULED, S.CLAIMED, S.FAILED, S.MISSED}
    assert find() is doubted
    row = lane.ground.row(job.id)
    if doubted:
        assert (row["state"], row["token"], row["reason"]) == ("unknown", None, "worker_died")
        assert lane.ground.events(job.id)[-1]["event"] == "spool_found"
    else:
        assert row == before
    (orphan,) = lane.ground.sql("SELECT * FROM orphans WHERE token = %s", token)
    assert (orphan["job_id"], orphan["adopted"], orphan["line"]) == (
        job.id, doubted, {"started": True},
    )  # fmt: skip
    before_again = lane.ground.everything(job.id)
    assert not find()
    assert lane.ground.everything(job.id) == before_again


def test_a_lost_send_of_a_job_that_has_a_successor_stays_an_orphan(lane: Lane) -> None:
    post = lane.ground.one("INSERT INTO posts (created_by) VALUES ('me') RETURNING id")
    job = lane.put(S.FAILED, post_id=post)
    lane.add(post_id=post)
    found = ledger.spool_found(
        lane.ground.conn, job_id=job.id, attempt=1, token=job.token, incarnation=3,
        line={}, who="worker run 9",
    )  # fmt: skip
    assert not found
    assert lane.ground.state(job.id) is S.FAILED
    assert lane.ground.one("SELECT adopted FROM orphans WHERE token = %s", job.token) is False
