"""Guards that no other test would miss: each was found by taking it out (docs/mutation.md)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from publisher.engine import ledger
from publisher.engine.job import State
from publisher.engine.ledger import Claimed
from publisher.engine.outcome import Reason
from publisher.engine.retry import Settlement
from publisher.engine.transitions import Event
from tests.engine.ground import Lane, Placed, key, lost, published, refused, refused_for_now

S = State


def late(lane: Lane, job: Placed, remote_id: str) -> None:
    """An answer of an earlier attempt that comes now."""
    end = published(remote_id)
    ledger.record_late(lane.ground.conn, job.id, job.token, end, who="worker run 9")


# Begin: what may run is begun.


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE jobs SET useful_until = now() + interval '1 hour' WHERE id = %(id)s",
        "UPDATE gates SET not_before = now() - interval '1 hour' WHERE channel_id = %(channel)s",
        "UPDATE jobs SET repeat_until = now() + interval '1 hour' WHERE id = %(id)s",
    ],
)
def test_a_time_that_leaves_room_does_not_keep_a_send_back(lane: Lane, sql: str) -> None:
    job = lane.claimed()
    given = {"id": job.id, "channel": lane.channel_id}
    lane.ground.root.execute(sql.encode(), given)
    lane.begin(job)
    assert lane.ground.state(job.id) is S.SENDING


# Settle: an attempt that is known to be live decides, whatever the newest came to.


@pytest.mark.parametrize("end", [refused_for_now(), refused(), lost()])
def test_a_job_with_a_live_attempt_ends_as_that(lane: Lane, end: Settlement) -> None:
    first = lane.put(S.SCHEDULED, begun=True)
    second = lane.sending(first.id)
    late(lane, first, f"late {first.id}")
    settled = lane.end(second, end)
    assert settled.live == {key(second)}
    row = lane.ground.row(first.id)
    assert (row["state"], row["remote_id"]) == ("published", f"late {first.id}")
    assert row["settled_at"] is not None
    assert row["hold_reason"] is None
    assert lane.ground.attempt(first.id, 2)["outcome"] == end.outcome


def test_the_live_attempt_is_found_among_several(lane: Lane) -> None:
    first = lane.put(S.SCHEDULED, begun=True)
    second = lane.sending(first.id)
    assert lane.end(second, refused_for_now()).done
    third = lane.sending(first.id)
    late(lane, second, f"late {first.id}")
    assert lane.end(third, refused()).live == {key(third)}
    row = lane.ground.row(first.id)
    assert (row["state"], row["remote_id"]) == ("published", f"late {first.id}")


def test_an_id_of_another_job_is_none_of_ours_though_we_have_one(lane: Lane) -> None:
    other = lane.put(S.PUBLISHED)
    first = lane.put(S.SCHEDULED, begun=True)
    second = lane.sending(first.id)
    late(lane, first, f"late {first.id}")
    assert lane.end(second, published(f"id of {other.id}")).foreign == {key(second)}
    attempt = lane.ground.attempt(first.id, 2)
    assert (attempt["outcome"], attempt["remote_id"]) == ("unknown", None)
    assert attempt["reason"] == Reason.ID_OF_ANOTHER_JOB


def test_only_what_goes_back_waits_or_is_held(lane: Lane) -> None:
    job = lane.claimed()
    before = lane.ground.row(job.id)["run_at"]
    end = Settlement(Event.REJECT, S.FAILED, reason="x", delay=100.0, hold_reason="parked")
    assert lane.end(job, end).done
    row = lane.ground.row(job.id)
    assert (row["state"], row["run_at"], row["hold_reason"]) == ("failed", before, None)


def test_a_live_job_neither_waits_nor_is_held(lane: Lane) -> None:
    first = lane.put(S.SCHEDULED, begun=True)
    second = lane.sending(first.id)
    before = lane.ground.row(first.id)["run_at"]
    late(lane, first, f"late {first.id}")
    end = replace(refused_for_now(), delay=1000.0, hold_reason="parked")
    assert lane.end(second, end).live
    row = lane.ground.row(first.id)
    assert (row["state"], row["hold_reason"], row["run_at"]) == ("published", None, before)


def test_an_id_with_an_end_that_is_no_yes_is_not_kept_as_ours(lane: Lane) -> None:
    job = lane.sending()
    assert lane.end(job, replace(refused(), remote_id="x")).done
    assert lane.ground.row(job.id)["remote_id"] is None


# The fence is a token *of a job*: another that has the same by some accident is not meant.


def sharing(lane: Lane, one: Placed | Claimed, other: Placed | Claimed) -> None:
    """Give the other job the token of the first, behind the triggers' back."""
    lane.ground.sql("SET session_replication_role = replica")
    for table, column in (("jobs", "id"), ("attempts", "job_id")):
        lane.ground.sql(f"UPDATE {table} SET token = %s WHERE {column} = %s", one.token, other.id)
    lane.ground.sql("SET session_replication_role = origin")


def progress(job: Claimed) -> ledger.Progressed:
    return ledger.Progressed(job.id, job.token, bytes(job.content_sha256), '{"a": 1}')


ACTS: dict[str, Callable[[Lane, Claimed], object]] = {
    "begin": lambda lane, job: lane.begin(job),
    "settle": lambda lane, job: lane.end(job, refused(begun=False)),
    "extend": lambda lane, job: ledger.extend_leases(lane.ground.conn, [key(job)], lease=900.0),
    "hand": lambda lane, job: ledger.start_hands(lane.ground.conn, [key(job)], lease=900.0),
    "progress": lambda lane, job: ledger.save_progress(
        lane.ground.conn, [progress(job)], lease=900.0
    ),
}


@pytest.mark.parametrize("act", ACTS)
def test_an_act_on_one_claim_leaves_another_of_the_same_token_alone(lane: Lane, act: str) -> None:
    job, other = lane.claimed(), lane.claimed()
    sharing(lane, job, other)
    before = lane.ground.everything(other.id)
    ACTS[act](lane, job)
    assert lane.ground.everything(other.id) == before


@pytest.mark.parametrize("end", [published("ours"), refused(), lost()])
def test_an_end_of_one_send_leaves_another_of_the_same_token_alone(
    lane: Lane, end: Settlement
) -> None:
    job, other = lane.sending(), lane.sending()
    sharing(lane, job, other)
    before = lane.ground.everything(other.id)
    assert lane.end(job, end).done == {key(job)}
    assert lane.ground.everything(other.id) == before


def test_whose_a_claim_still_is_is_asked_by_job_and_token(lane: Lane) -> None:
    job, other = lane.claimed(), lane.claimed()
    conn = lane.ground.conn
    assert ledger.still_ours(conn, [key(job), (other.id, job.token)]) == {job.id}
    sharing(lane, job, other)
    assert ledger.still_ours(conn, [key(job)]) == {job.id}
