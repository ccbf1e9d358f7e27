"""Settle: each kind of end, whose answer it is, and rows that somebody else holds."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from uuid import uuid4

import psycopg
import pytest

from publisher.engine import ledger, retry
from publisher.engine.job import JobId, State, Token
from publisher.engine.outcome import (
    Answer,
    Deferred,
    Outcome,
    Reason,
    Rejected,
    Unauthorized,
    Unknown,
)
from publisher.engine.retry import Settlement
from publisher.engine.transitions import Event
from tests.engine.conftest import Connect
from tests.engine.ground import (
    REFUSED_ROW,
    Ground,
    Lane,
    decided,
    key,
    lost,
    not_sent,
    published,
    refused,
    refused_for_now,
)

S = State
ANSWER = Answer(status=200, headers={"x-id": "1"}, body='{"id":"1"}', sent=99)


def let_go(row: dict[str, object]) -> bool:
    held = ("token", "incarnation", "claimed_at", "hand_at", "lease_until")
    return all(row[name] is None for name in held)


# Every kind, of a begun send


def test_published(lane: Lane) -> None:
    job = lane.sending()
    remote_id = f"remote {job.id}"
    end = published(remote_id, "https://example.org/1")
    assert lane.end(job, end).done == {key(job)}
    row, attempt = lane.ground.row(job.id), lane.ground.attempt(job.id)
    assert (row["state"], row["remote_id"], row["reason"]) == ("published", remote_id, None)
    assert let_go(row)
    assert row["settled_at"] is not None
    assert (attempt["outcome"], attempt["remote_id"], attempt["proof"]) == (
        "published", remote_id, None,
    )  # fmt: skip
    (bound,) = lane.ground.sql("SELECT * FROM remote_posts WHERE job_id = %s", job.id)
    assert (bound["remote_id"], bound["permalink"]) == (remote_id, "https://example.org/1")


@pytest.mark.parametrize(
    ("outcome", "state", "proof", "failures"),
    [
        (Rejected(Reason.CONTENT_REFUSED, "no", row=REFUSED_ROW), S.FAILED, "refused", 0),
        (Deferred(Reason.BUSY, "later", row=REFUSED_ROW), S.SCHEDULED, "refused", 1),
        (Unauthorized(Reason.NEEDS_RECONNECTING, "x", row=REFUSED_ROW), S.SCHEDULED, "refused", 0),
        (Unknown(Reason.NO_ANSWER, "lost"), S.UNKNOWN, None, 0),
    ],
)
def test_other_ends_of_a_send(
    lane: Lane, outcome: Outcome, state: State, proof: str | None, failures: int
) -> None:
    job = lane.sending()
    end = decided(outcome)
    assert lane.end(job, end).done == {key(job)}
    row, attempt = lane.ground.row(job.id), lane.ground.attempt(job.id)
    assert (row["state"], row["failures"], row["remote_id"]) == (state, failures, None)
    assert row["reason"] == attempt["reason"] == end.reason
    assert let_go(row)
    assert (row["settled_at"] is None) is (state is S.SCHEDULED)
    assert (attempt["outcome"], attempt["detail"]) == (end.outcome, end.detail)
    assert attempt["proof"] == proof
    assert attempt["proof_detail"] == (REFUSED_ROW if proof else None)
    assert attempt["proved_by"] == (f"worker run {lane.incarnation}" if proof else None)
    assert (attempt["proved_at"] is None) is (proof is None)


def test_a_delay_is_counted_from_now_and_no_delay_leaves_the_time(lane: Lane) -> None:
    job, other = lane.claimed(), lane.claimed()
    before = lane.ground.row(other.id)["run_at"]
    assert lane.end(job, retry.wait("encoding", 100.0)).done
    assert lane.end(other, retry.release()).done
    left = (lane.ground.row(job.id)["run_at"] - datetime.now(UTC)).total_seconds()
    assert left == pytest.approx(100, abs=5)
    assert lane.ground.row(other.id)["run_at"] == before


# Every kind, of a claim


@pytest.mark.parametrize(
    ("end", "state", "event"),
    [
        (retry.release("no adapter", 5.0), S.SCHEDULED, None),
        (retry.wait("encoding", 5.0), S.SCHEDULED, None),
        (refused(begun=False), S.FAILED, "reject"),
        (decided(Deferred(Reason.STEP_FAILED, "x"), begun=False), S.SCHEDULED, "defer"),
        (decided(Unauthorized(Reason.NEEDS_RECONNECTING, "x"), begun=False), S.SCHEDULED,
         "unauthorized"),
        (retry.expire(), S.MISSED, "expire"),
        (retry.look_unclear("two alike"), S.UNKNOWN, "look_unclear"),
    ],
)  # fmt: skip
def test_ends_of_a_claim_leave_an_event_where_no_attempt_tells(
    lane: Lane, end: Settlement, state: State, event: str | None
) -> None:
    job = lane.claimed()
    assert lane.end(job, end).done == {key(job)}
    row = lane.ground.row(job.id)
    assert row["state"] == state
    assert let_go(row)
    told = lane.ground.events(job.id)
    assert [one["event"] for one in told] == ([event] if event else [])
    if told:
        assert told[0]["who"] == f"worker run {lane.incarnation}"
        assert told[0]["attempt"] is None
        assert told[0]["detail"].get("detail", "") == end.detail


def test_a_hold_may_come_with_an_end(lane: Lane) -> None:
    job = lane.claimed()
    end = Settlement(Event.RELEASE, S.SCHEDULED, hold_reason="parked")
    assert lane.end(job, end).done
    assert lane.ground.row(job.id)["hold_reason"] == "parked"


def test_what_a_look_found_binds_and_leaves_the_attempt_as_it_was(lane: Lane) -> None:
    job = lane.claimed(lane.put(S.SCHEDULED, begun=True).id)
    before = lane.ground.attempt(job.id)
    assert lane.end(
        job, retry.found("seen", "https://example.org/2", attempt=1, about=job.token)
    ).done
    assert lane.ground.state(job.id) is S.PUBLISHED
    assert lane.ground.attempt(job.id) == before
    (told,) = lane.ground.events(job.id)
    assert (told["event"], told["attempt"]) == ("confirm_published", 1)


# Whose remote post it is


def test_the_id_of_another_job_is_a_doubt(lane: Lane) -> None:
    other, job = lane.put(S.PUBLISHED), lane.sending()
    taken = f"id of {other.id}"
    settled = lane.end(job, published(taken))
    assert settled.done == settled.foreign == {key(job)}
    row, attempt = lane.ground.row(job.id), lane.ground.attempt(job.id)
    assert (row["state"], row["reason"], row["remote_id"]) == (
        "unknown", Reason.ID_OF_ANOTHER_JOB, None,
    )  # fmt: skip
    assert (attempt["outcome"], attempt["reason"], attempt["remote_id"]) == (
        "unknown", Reason.ID_OF_ANOTHER_JOB, None,
    )  # fmt: skip
    assert taken in attempt["detail"]
    assert row["settled_at"] is not None
    owner = lane.ground.one("SELECT job_id FROM remote_posts WHERE remote_id = %s", taken)
    assert owner == other.id


def test_the_same_id_on_another_channel_is_another_post(lane: Lane, ground: Ground) -> None:
    other, job = ground.lane().sending(), lane.sending()
    assert not lane.end(other, published("same")).foreign
    assert not lane.end(job, published("same")).foreign


def test_two_answers_of_one_set_with_one_id(lane: Lane) -> None:
    jobs = [lane.sending(), lane.sending()]
    settled = ledger.settle(lane.ground.conn, {job.key: published("one id") for job in jobs})
    assert settled.done == {key(job) for job in jobs}
    assert len(settled.foreign) == 1
    states = sorted(lane.ground.state(job.id) for job in jobs)
    assert states == [S.PUBLISHED, S.UNKNOWN]


def test_an_id_already_bound_to_this_very_job_is_its_own(lane: Lane) -> None:
    job = lane.sending()
    lane.ground.sql("INSERT INTO remote_posts VALUES (%s, 'mine', %s)", lane.channel_id, job.id)
    assert not lane.end(job, published("mine")).foreign
    assert lane.ground.state(job.id) is S.PUBLISHED


# Locked, stale, not ours


def test_a_locked_row_comes_again_and_a_lost_one_not(lane: Lane, connect: Connect) -> None:
    locked, lost_claim, good, other = lane.sending(), lane.claimed(), lane.sending(), connect()
    nobody = (JobId(locked.id + 100_000), Token(uuid4()))
    with lane.ground.app.engine.begin() as conn:
        ledger.cancel(conn, lost_claim.id, who="me")
    ends = {
        locked.key: published("a"),
        key(lost_claim): refused(begun=False),
        good.key: published("b"),
        nobody: lost(),
    }
    with other.transaction():
        other.execute("SELECT FROM jobs WHERE id = %s FOR UPDATE", [locked.id])
        settled = ledger.settle(lane.ground.conn, ends)
    assert settled.done == {key(good)}
    assert settled.locked == {key(locked)}
    assert settled.stale == {key(lost_claim), nobody}
    assert lane.end(locked, published("a")).done == {key(locked)}


def test_an_unfinished_begin_is_locked_and_not_stale(lane: Lane, connect: Connect) -> None:
    """The zombie of a cut connection may still commit its begin: the end must not be dropped."""
    job, zombie = lane.claimed(), connect()
    with zombie.transaction():
        with pytest.raises(ledger.BeginUnacknowledgedError):
            ledger.begin_send(zombie, [(job.id, job.token)], lease=60, window=50, budget=50)
        settled = lane.end(job, not_sent())
        assert settled.locked == {key(job)}
    assert lane.ground.state(job.id) is S.SENDING
    assert lane.end(job, not_sent()).done == {key(job)}
    assert lane.ground.attempt(job.id)["proof"] == "not_sent"


@pytest.mark.parametrize("state", [S.CLAIMED, S.SENDING])
def test_a_wrong_token_has_no_effect(lane: Lane, state: State) -> None:
    job = lane.put(state)
    before = lane.ground.everything(job.id)
    for end in (published("x"), refused(), lost(), retry.release(), not_sent()):
        wrong = (job.id, Token(uuid4()))
        assert ledger.settle(lane.ground.conn, {wrong: end}).stale == {wrong}
    assert lane.ground.everything(job.id) == before


@pytest.mark.parametrize("state", [s for s in State if s not in {S.CLAIMED, S.SENDING}])
def test_nothing_else_is_settled(lane: Lane, state: State) -> None:
    job = lane.put(state)
    before = lane.ground.everything(job.id)
    for end in (published("x"), refused(), lost(), retry.release()):
        assert lane.end(job, end).stale == {key(job)}
    assert lane.ground.everything(job.id) == before


def test_an_end_is_written_once(lane: Lane) -> None:
    job = lane.sending()
    assert lane.end(job, published("x")).done
    before = lane.ground.everything(job.id)
    assert lane.end(job, lost()).stale == {key(job)}
    assert lane.ground.everything(job.id) == before


def test_without_a_proof_a_send_is_not_freed(lane: Lane) -> None:
    job = lane.sending()
    with pytest.raises(psycopg.DatabaseError) as refusal:
        lane.end(job, retry.release())
    assert refusal.value.sqlstate == "PB016"


# What the platform wrote


def test_what_cannot_be_stored_is_stored_as_well_as_can_be(lane: Lane) -> None:
    job = lane.sending()
    answer = Answer(
        status=500, headers={"a\x00": "\ud800"}, body="x\x00\ud83dy", error="\udfff", sent=3
    )
    end = decided(Unknown(Reason.SERVER_ERROR, "nul \x00 half \ud800", answer=answer))
    assert lane.end(job, end).done
    attempt = lane.ground.attempt(job.id)
    assert attempt["detail"] == "nul � half ?"
    assert attempt["answer"] == {
        "status": 500, "headers": {"a�": "?"}, "body": "x�?y", "error": "?", "sent": 3,
    }  # fmt: skip


def test_the_answer_is_kept_with_its_attempt(lane: Lane) -> None:
    job = lane.sending()
    end = decided(Rejected(Reason.CONTENT_REFUSED, "no", row="1", answer=ANSWER))
    assert lane.end(job, end).done
    assert lane.ground.attempt(job.id)["answer"] == {
        "status": 200, "headers": {"x-id": "1"}, "body": '{"id":"1"}', "sent": 99, "error": None,
    }  # fmt: skip


@pytest.mark.parametrize("answer", [ANSWER, None])
def test_the_clue_of_a_lost_answer_is_kept(lane: Lane, answer: Answer | None) -> None:
    job = lane.sending()
    assert lane.end(job, decided(Unknown(Reason.NO_ID, "no id", "v7", answer=answer))).done
    kept = lane.ground.attempt(job.id)["answer"]
    assert (kept["remote_handle"], kept["status"]) == ("v7", 200 if answer else None)


def test_a_set_that_fails_writes_nothing(lane: Lane) -> None:
    good, bad = lane.sending(), lane.sending()
    before = lane.ground.everything(good.id)
    poison = replace(published("x"), remote_id="")
    with pytest.raises(psycopg.errors.CheckViolation):
        ledger.settle(lane.ground.conn, {good.key: published("y"), bad.key: poison})
    assert lane.ground.everything(good.id) == before


# A safe repeat must not hide a doubt


@pytest.mark.parametrize(
    "end", [refused(), refused(begun=False), retry.expire()], ids=["sent", "step", "late"]
)
def test_a_possibly_live_job_ends_as_unknown(lane: Lane, end: Settlement) -> None:
    job = lane.claimed(lane.put(S.SCHEDULED, begun=True).id)
    lane.ground.sql("SET session_replication_role = replica")
    lane.ground.sql("UPDATE attempts SET proof = 'repeat_safe' WHERE job_id = %s", job.id)
    lane.ground.sql("RESET session_replication_role")
    if end.proof is not None:
        lane.begin(job)
    assert lane.end(job, end).done == {key(job)}
    row = lane.ground.row(job.id)
    assert (row["state"], row["reason"]) == ("unknown", Reason.REPEAT_ENDED)
    assert row["settled_at"] is not None
    if end.proof is not None:
        second = lane.ground.attempt(job.id, 2)
        assert (second["outcome"], second["proof"]) == ("rejected", "refused")
    else:
        assert lane.ground.events(job.id)[-1]["event"] == "repeat_ended"


def test_a_possibly_live_job_still_goes_back_or_is_published(lane: Lane) -> None:
    job = lane.claimed(lane.put(S.SCHEDULED, begun=True).id)
    lane.ground.sql("SET session_replication_role = replica")
    lane.ground.sql("UPDATE attempts SET proof = 'repeat_safe' WHERE job_id = %s", job.id)
    lane.ground.sql("RESET session_replication_role")
    assert lane.end(job, retry.release()).done
    assert lane.ground.state(job.id) is S.SCHEDULED
    sending = lane.sending(job.id)
    assert lane.end(sending, published("again")).done
    assert lane.ground.state(job.id) is S.PUBLISHED


def test_a_refusal_for_now_may_be_followed_by_a_second_send(lane: Lane) -> None:
    job = lane.sending()
    assert lane.end(job, refused_for_now()).done
    again = lane.sending(job.id)
    assert lane.end(again, published("second")).done
    assert lane.ground.row(job.id)["attempts"] == 2
