"""What follows a settle: channels that rest or are blocked, and looks before a second send."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from publisher.engine import ledger
from publisher.engine.job import JobId, State
from publisher.engine.outcome import (
    Answer,
    Reason,
)
from publisher.engine.retry import Rest
from tests.engine.ground import (
    Lane,
)

S = State
ANSWER = Answer(status=200, headers={"x-id": "1"}, body='{"id":"1"}', sent=99)


def rest(lane: Lane, how: Rest, generation: int = 1) -> dict[str, object]:
    ledger.rest_channels(lane.ground.conn, {(lane.channel_id, generation): how})
    return lane.ground.sql("SELECT * FROM gates WHERE channel_id = %s", lane.channel_id)[0]


def test_a_channel_rests_for_the_longest_that_was_asked(lane: Lane) -> None:
    longest = rest(lane, Rest(seconds=100.0))["not_before"]
    assert rest(lane, Rest(seconds=1.0))["not_before"] == longest
    gate = rest(lane, Rest(seconds=900.0))
    left = gate["not_before"] - datetime.now(UTC)  # type: ignore[operator]
    assert left > timedelta(seconds=800)
    assert gate["blocked_at"] is None


def test_a_channel_is_blocked_once_and_keeps_the_first_reason(lane: Lane) -> None:
    gate = rest(lane, Rest(blocked=Reason.NEEDS_RECONNECTING, detail="expired\x00"))
    assert (gate["blocked_reason"], gate["blocked_detail"]) == ("needs_reconnecting", "expired�")
    again = rest(lane, Rest(blocked=Reason.MISSING_PERMISSION, detail="other", seconds=5.0))
    assert again["blocked_at"] == gate["blocked_at"]
    assert again["blocked_reason"] == "needs_reconnecting"
    assert again["not_before"] is not None


def test_what_an_old_credential_was_refused_does_not_block_the_new_one(lane: Lane) -> None:
    lane.ground.sql("UPDATE channels SET generation = 2 WHERE id = %s", lane.channel_id)
    gate = rest(lane, Rest(blocked=Reason.NEEDS_RECONNECTING), generation=1)
    assert gate["blocked_at"] is None
    gate = rest(lane, Rest(blocked=Reason.NEEDS_RECONNECTING), generation=2)
    assert gate["blocked_at"] is not None


def test_earlier_attempts_and_foreign_posts_for_a_look(lane: Lane) -> None:
    job = lane.claimed(lane.put(S.SCHEDULED, begun=True).id)
    other, old = lane.put(S.PUBLISHED), lane.put(S.PUBLISHED)
    lane.ground.sql(
        "UPDATE remote_posts SET bound_at = bound_at - interval '3 days' WHERE job_id = %s", old.id
    )
    lane.ground.sql("INSERT INTO remote_posts VALUES (%s, 'own', %s)", lane.channel_id, job.id)
    found = ledger.earlier_attempts(lane.ground.conn, [job.id, JobId(2**39)])
    (attempt,) = found[job.id]
    assert (attempt.number, attempt.proof, attempt.remote_id) == (1, "refused", None)
    bound = ledger.bound_elsewhere(lane.ground.conn, lane.channel_id, job.id, attempt.begun_at)
    assert bound == {f"id of {other.id}"}


def test_a_look_is_kept_with_the_attempt_and_token_it_is_about(lane: Lane) -> None:
    job = lane.put(S.UNKNOWN)
    ledger.record_look(
        lane.ground.conn, job_id=job.id, attempt=1, token=job.token, by="me", took=2.5,
        evidence={"kind": "Inconclusive", "at": datetime(2026, 12, 7, tzinfo=UTC), "x": "\x00"},
    )  # fmt: skip
    (look,) = lane.ground.sql("SELECT * FROM looks WHERE job_id = %s", job.id)
    assert (look["attempt"], look["token"], look["by"]) == (1, job.token, "me")
    assert look["ended_at"] - look["begun_at"] == pytest.approx(
        timedelta(seconds=2.5), abs=timedelta(seconds=0.5)
    )
    assert look["evidence"] == {
        "kind": "Inconclusive", "at": "2026-12-07 00:00:00+00:00", "x": "�",
    }  # fmt: skip
