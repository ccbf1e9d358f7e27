"""Guards that no other test would miss: each was found by taking it out (docs/mutation.md)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from publisher.engine import ledger
from publisher.engine.errors import Conflict, OpenJobExists
from publisher.engine.job import State, Token, public_id
from publisher.engine.ledger import Claimed
from publisher.engine.outcome import Answer, Reason
from publisher.engine.retry import Rest, Settlement, release
from publisher.engine.transitions import Event
from tests.engine.ground import Lane, Placed, key, lost, published, refused, refused_for_now

S = State


def sender_is_gone(lane: Lane, job: Placed) -> None:
    """Backdate the send: it began long ago, and its hand has been back for long."""
    lane.ground.sql("ALTER TABLE attempts DISABLE TRIGGER attempts_frozen")
    lane.ground.sql(
        "UPDATE attempts SET begun_at = begun_at - interval '10 minutes',"
        " settled_at = settled_at - interval '9 minutes' WHERE job_id = %s",
        job.id,
    )
    lane.ground.sql("ALTER TABLE attempts ENABLE TRIGGER attempts_frozen")


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
    lane.ground.sql(
        "UPDATE jobs SET token = %s WHERE id = %s AND token IS NOT NULL", one.token, other.id
    )
    lane.ground.sql("UPDATE attempts SET token = %s WHERE job_id = %s", one.token, other.id)
    # The one that is meant is not the first to be found by chance.
    lane.ground.sql("UPDATE attempts SET token = token WHERE job_id = %s", one.id)
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


# Rescue: only a death on its own hand counts, and only its own attempts.


def fallen(lane: Lane, *, deaths: int, hand: bool, begun: bool = False) -> Claimed:
    """A claim whose lease is over, of a job that workers died over before."""
    first = lane.put(S.SCHEDULED, begun=begun)
    lane.ground.sql("UPDATE jobs SET deaths = %s WHERE id = %s", deaths, first.id)
    job = lane.claimed(first.id)
    if hand:
        assert ledger.start_hands(lane.ground.conn, [key(job)], lease=60.0)
    lane.ground.sql("UPDATE jobs SET lease_until = now() - interval '1 hour' WHERE id = %s", job.id)
    return job


def rescue(lane: Lane, job: Claimed) -> dict[str, object]:
    taken = ledger.rescue(lane.ground.conn, grace=15.0, deaths=3, who="me")
    assert job.id in {each.id for each in taken}
    return lane.ground.row(job.id)


def test_a_death_before_its_hand_began_is_none_of_the_jobs(lane: Lane) -> None:
    row = rescue(lane, fallen(lane, deaths=2, hand=False))
    assert (row["state"], row["deaths"], row["reason"]) == ("scheduled", 2, None)
    assert row["settled_at"] is None


def test_poison_fails_whatever_may_be_live_of_others(lane: Lane) -> None:
    other = lane.put(S.UNKNOWN)
    (doubt,) = ledger.doubts(lane.ground.conn, [other.id])
    ledger.repeat(lane.ground.conn, doubt, until=None, after=0.0, who="me", reason="x")
    row = rescue(lane, fallen(lane, deaths=2, hand=True, begun=True))
    assert (row["state"], row["deaths"], row["reason"]) == ("failed", 3, Reason.POISON)
    assert row["settled_at"] is not None


# Late answers.


def test_a_doubt_that_comes_after_a_proof_adds_its_answer_and_no_more(lane: Lane) -> None:
    job = lane.put(S.FAILED, begun=True)
    before = lane.ground.attempt(job.id)
    assert before["proof"] == "refused"
    answer = Answer(status=502, body="gateway")
    end = replace(lost("what came late"), answer=answer)
    ledger.record_late(lane.ground.conn, job.id, job.token, end, who="worker run 9")
    after = lane.ground.attempt(job.id)
    assert after["answer"]["status"] == 502
    kept = ("outcome", "reason", "detail", "proof", "proof_detail", "proved_by", "proved_at")
    assert [after[name] for name in kept] == [before[name] for name in kept]
    assert lane.ground.state(job.id) is S.FAILED


@pytest.mark.parametrize("of_another", [True, False])
def test_a_lost_send_of_other_content_is_none_of_this_job(lane: Lane, *, of_another: bool) -> None:
    job, other = lane.put(S.SCHEDULED), lane.put(S.SCHEDULED)
    asked = other.id if of_another else job.id
    found = lane.ground.one("SELECT content_sha256 FROM job_contents WHERE job_id = %s", asked)
    given = bytes(found) if of_another else bytes(byte ^ 0xFF for byte in bytes(found))
    before = lane.ground.everything(job.id), lane.ground.everything(other.id)
    assert not ledger.publish_lost(
        lane.ground.conn, job.id, token=Token(uuid4()), attempt=1, content=given,
        remote_id=f"lost {job.id}", permalink=None, incarnation=9, who="worker run 9",
    )  # fmt: skip
    assert (lane.ground.everything(job.id), lane.ground.everything(other.id)) == before


# Verdicts.


def absent(lane: Lane, job: Placed, *, send: bool, until: datetime | None = None) -> None:
    sender_is_gone(lane, job)
    (doubt,) = ledger.doubts(lane.ground.conn, [job.id])
    ledger.confirm_absent(
        lane.ground.conn, doubt, send_at=None, send=send, who="me", reason="x",
        horizon=timedelta(seconds=60), useful_until=until,
    )  # fmt: skip


def test_what_is_sent_again_keeps_the_time_until_which_it_is_useful(lane: Lane) -> None:
    until = datetime.now(UTC) + timedelta(hours=1)
    job, moved = lane.put(S.UNKNOWN, useful_until=until), lane.put(S.UNKNOWN, useful_until=until)
    absent(lane, job, send=True)
    absent(lane, moved, send=True, until=until + timedelta(hours=1))
    assert lane.ground.row(job.id)["useful_until"] == until
    assert lane.ground.row(moved.id)["useful_until"] == until + timedelta(hours=1)
    assert lane.ground.row(job.id)["settled_at"] is None


def test_what_is_given_up_has_ended_now(lane: Lane) -> None:
    job, dropped = lane.put(S.UNKNOWN), lane.put(S.UNKNOWN)
    lane.ground.sql("UPDATE jobs SET settled_at = '2020-01-01' WHERE id IN (%s, %s)",
                    job.id, dropped.id)  # fmt: skip
    absent(lane, job, send=False)
    (doubt,) = ledger.doubts(lane.ground.conn, [dropped.id])
    ledger.drop(lane.ground.conn, doubt, who="me", reason="x")
    for each in (job, dropped):
        assert lane.ground.row(each.id)["settled_at"].year > 2020


def test_a_first_death_is_counted_and_no_more(lane: Lane) -> None:
    row = rescue(lane, fallen(lane, deaths=0, hand=True))
    assert (row["state"], row["deaths"], row["reason"]) == ("scheduled", 1, None)
    assert row["settled_at"] is None


def test_those_that_are_rescued_together_are_told_of_once_each(lane: Lane) -> None:
    claims = [fallen(lane, deaths=0, hand=True) for _ in range(3)]
    sent = [lane.sending() for _ in range(2)]
    for job in sent:
        lane.ground.sql(
            "UPDATE jobs SET lease_until = now() - interval '1 hour' WHERE id = %s", job.id
        )
    taken = ledger.rescue(lane.ground.conn, grace=15.0, deaths=3, who="me")
    assert sorted(each.id for each in taken) == sorted(job.id for job in (*claims, *sent))
    for claim in claims:
        assert [event["event"] for event in lane.ground.events(claim.id)] == ["lease_expired"]
        assert lane.ground.state(claim.id) is S.SCHEDULED
    for job in sent:
        assert [event["event"] for event in lane.ground.events(job.id)] == ["lease_expired"]
        assert lane.ground.attempt(job.id)["reason"] == Reason.WORKER_DIED


def judged(lane: Lane, job: Placed, **how: Any) -> None:  # noqa: ANN401 - of ``confirm_published``
    (doubt,) = ledger.doubts(lane.ground.conn, [job.id])
    ledger.confirm_published(lane.ground.conn, doubt, permalink=None, who="me", reason="x", **how)


DOUBTED: dict[str, Callable[[Lane, Placed], object]] = {
    "yes": lambda lane, job: late(lane, job, f"late {job.id}"),
    "no": lambda lane, job: ledger.record_late(
        lane.ground.conn, job.id, job.token, refused(), who="worker run 9"
    ),
    "live": lambda lane, job: judged(lane, job, remote_id=f"live {job.id}"),
    "seen": lambda lane, job: judged(lane, job, remote_id=None),
    "absent": lambda lane, job: absent(lane, job, send=True),
}


@pytest.mark.parametrize("act", DOUBTED)
def test_what_is_known_of_one_doubt_says_nothing_of_another_of_the_same_token(
    lane: Lane, act: str
) -> None:
    other = lane.put(S.UNKNOWN)
    job = lane.put(S.UNKNOWN)
    sharing(lane, job, other)
    before = lane.ground.everything(other.id)
    DOUBTED[act](lane, job)
    assert lane.ground.everything(other.id) == before
    assert lane.ground.state(job.id) is not S.UNKNOWN


def test_a_verdict_is_about_one_attempt_and_leaves_the_others_proofs(lane: Lane) -> None:
    first = lane.put(S.SCHEDULED, begun=True)
    second = lane.sending(first.id)
    assert lane.end(second, lost()).done
    before = lane.ground.attempt(first.id, 1)
    absent(lane, second, send=False)
    after = lane.ground.attempt(first.id, 1)
    kept = ("outcome", "reason", "proof", "proof_detail", "proved_by", "proved_at")
    assert [after[name] for name in kept] == [before[name] for name in kept]
    assert lane.ground.attempt(first.id, 2)["proof"] == "absent"


# Progress: of a claim, of its own content, of its own job.


def test_a_send_that_has_begun_makes_no_progress(lane: Lane) -> None:
    job = lane.claimed()
    lane.begin(job)
    before = lane.ground.everything(job.id)
    assert ledger.save_progress(lane.ground.conn, [progress(job)], lease=900.0) == frozenset()
    assert lane.ground.everything(job.id) == before


def test_progress_is_of_one_job_though_others_hold_the_same(lane: Lane) -> None:
    content = lane.new().content
    job, other = lane.claimed(content=content), lane.claimed(content=content)
    before = lane.ground.everything(other.id)
    assert ledger.save_progress(lane.ground.conn, [progress(job)], lease=900.0) == {job.id}
    assert lane.ground.everything(other.id) == before


def test_progress_with_content_that_was_replaced_is_let_go(lane: Lane) -> None:
    job = lane.claimed()
    lane.ground.sql(
        "UPDATE job_contents SET content = '{}', content_sha256 = sha256('{}') WHERE job_id = %s",
        job.id,
    )
    assert ledger.save_progress(lane.ground.conn, [progress(job)], lease=900.0) == {job.id}
    (kept,) = lane.ground.sql("SELECT * FROM job_contents WHERE job_id = %s", job.id)
    assert (kept["progress"], kept["progress_sha256"]) == (None, None)


def test_rescue_leaves_what_the_worker_itself_said_of_its_send(lane: Lane) -> None:
    job = lane.sending()
    end = replace(lost("it stopped half-way"), answer=Answer(status=502))
    ledger.record_late(lane.ground.conn, job.id, job.token, end, who="worker run 9")
    before = lane.ground.attempt(job.id)
    assert lane.ground.state(job.id) is S.SENDING
    lane.ground.sql("UPDATE jobs SET lease_until = now() - interval '1 hour' WHERE id = %s", job.id)
    ledger.rescue(lane.ground.conn, grace=15.0, deaths=3, who="me")
    assert lane.ground.state(job.id) is S.UNKNOWN
    assert lane.ground.attempt(job.id) == before


def test_what_comes_back_names_the_job_that_is_in_its_way(lane: Lane) -> None:
    ground, elsewhere = lane.ground, lane
    lane = ground.lane()
    posts = [ground.one("INSERT INTO posts (created_by) VALUES ('me') RETURNING id")
             for _ in range(2)]  # fmt: skip
    # Each is like the one in the way but for one thing, and is found first.
    ended = lane.put(S.FAILED, post_id=posts[0])
    lane.put(S.CANCELLED, post_id=posts[0])
    lane.put(S.SCHEDULED, post_id=posts[1])
    elsewhere.put(S.SCHEDULED, post_id=posts[0])
    lane.put(S.SCHEDULED, post_id=posts[0], kind="comment")
    successor = lane.put(S.SCHEDULED, post_id=posts[0])
    ground.sql("UPDATE jobs SET due_at = due_at WHERE id = %s", successor.id)
    with pytest.raises(Conflict) as refusal, ground.app.engine.begin() as conn:
        ledger.requeue(conn, ended.id, who="me")
    assert refusal.value.code == "open-job-exists"
    assert f"{public_id(successor.id)}, which is scheduled" in str(refusal.value)
    assert ground.state(ended.id) is S.FAILED


# Rests, and what is read before a second send.


def gates(lane: Lane) -> dict[int, dict[str, object]]:
    return {row["channel_id"]: row for row in lane.ground.sql("SELECT * FROM gates")}


def test_a_rest_is_of_one_channel_whatever_its_credential(lane: Lane) -> None:
    other = lane.ground.lane()
    lane.ground.sql("UPDATE channels SET generation = 3 WHERE id = %s", lane.channel_id)
    before = gates(lane)
    rest = {(lane.channel_id, 2): Rest(seconds=600.0)}
    assert ledger.rest_channels(lane.ground.conn, rest) == {lane.channel_id}
    after = gates(lane)
    assert after.pop(lane.channel_id)["not_before"] is not None
    assert after[other.channel_id] == before[other.channel_id]
    del before[lane.channel_id]
    assert after == before


def test_only_the_credential_that_was_refused_is_blocked(lane: Lane) -> None:
    other = lane.ground.lane()
    lane.ground.sql("UPDATE channels SET generation = 3 WHERE id = %s", lane.channel_id)
    lane.ground.sql("UPDATE channels SET generation = 2 WHERE id = %s", other.channel_id)
    before = gates(lane)
    blocked = Rest(blocked=Reason.NEEDS_RECONNECTING, detail="x")
    conn = lane.ground.conn
    assert ledger.rest_channels(conn, {(lane.channel_id, 2): blocked}) == frozenset()
    assert gates(lane) == before
    assert ledger.rest_channels(conn, {(lane.channel_id, 3): blocked}) == {lane.channel_id}
    assert gates(lane)[other.channel_id] == before[other.channel_id]


def test_what_was_begun_and_bound_before_is_of_these_jobs_and_this_page(lane: Lane) -> None:
    elsewhere = lane.ground.lane()
    job, other = lane.put(S.UNKNOWN), lane.put(S.PUBLISHED)
    there = elsewhere.put(S.PUBLISHED)
    conn = lane.ground.conn
    assert set(ledger.earlier_attempts(conn, [job.id])) == {job.id}
    since = datetime.now(UTC)
    bound = ledger.bound_elsewhere(conn, lane.channel_id, job.id, since)
    assert f"id of {other.id}" in bound
    assert f"id of {there.id}" not in bound
    assert f"id of {other.id}" not in ledger.bound_elsewhere(conn, lane.channel_id, other.id, since)
    later = since + timedelta(days=2)
    assert f"id of {other.id}" not in ledger.bound_elsewhere(conn, lane.channel_id, job.id, later)


def test_a_job_that_is_not_added_names_the_open_one(lane: Lane) -> None:
    post = lane.ground.one("INSERT INTO posts (created_by) VALUES ('me') RETURNING id")
    lane.put(S.FAILED, post_id=post)
    lane.put(S.CLAIMED, post_id=post, kind="comment")
    holder = lane.put(S.CLAIMED, post_id=post)
    with pytest.raises(OpenJobExists) as refusal:
        ledger.enqueue(lane.ground.conn, [lane.new(post_id=post)])
    assert (refusal.value.holder, refusal.value.state) == (holder.id, S.CLAIMED)


def test_a_server_without_a_standby_has_no_quorum(lane: Lane) -> None:
    assert ledger.stands(lane.ground.conn).quorum is False


def test_an_answer_is_not_known_because_anothers_is(lane: Lane) -> None:
    other = lane.put(S.PUBLISHED)
    job = lane.put(S.UNKNOWN)
    sharing(lane, job, other)
    late(lane, job, f"late {job.id}")
    assert lane.ground.state(job.id) is S.PUBLISHED


def test_a_job_is_missed_whatever_may_be_live_of_others(lane: Lane) -> None:
    other = lane.put(S.UNKNOWN)
    (doubt,) = ledger.doubts(lane.ground.conn, [other.id])
    ledger.repeat(lane.ground.conn, doubt, until=None, after=0.0, who="me", reason="x")
    job = lane.put(S.SCHEDULED, begun=True)
    lane.ground.sql("UPDATE jobs SET useful_until = now() WHERE id IN (%s, %s)", job.id, other.id)
    assert {job.id, other.id} <= ledger.expire(lane.ground.conn, who="me")
    assert lane.ground.state(job.id) is S.MISSED
    assert lane.ground.state(other.id) is S.UNKNOWN


def jump(lane: Lane, job: Claimed) -> None:
    """Begin a first send by hand, and call it the second."""
    conn = lane.ground.conn
    with conn.transaction():
        conn.execute(
            "INSERT INTO attempts (job_id, number, token, incarnation, content_sha256, claimed_at)"
            " VALUES (%s, 1, %s, 7, 'x', now())",
            [job.id, job.token],
        )
        conn.execute("UPDATE jobs SET state = 'sending', attempts = 2 WHERE id = %s", [job.id])


def test_a_begin_counts_one_attempt_and_no_more(lane: Lane) -> None:
    job = lane.claimed()
    assert lane.end(job, release()).done
    job = lane.claimed(job.id)
    with pytest.raises(psycopg.Error) as refusal:
        jump(lane, job)
    assert refusal.value.sqlstate == "PB014"
