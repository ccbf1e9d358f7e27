"""Doubts: every way in makes a row, every way out removes it; one look at a time."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import psycopg
import pytest

from publisher.engine import ledger, retry
from publisher.engine.job import JobId, State, Token
from publisher.engine.outcome import Deferred, Proof, Published, Reason, Rejected, Unknown
from publisher.engine.retry import Settlement
from publisher.engine.transitions import TABLE, Event
from tests.engine.ground import Ground, Lane, Placed, decided, key, lost, refused_for_now
from tests.reconciler.conftest import Connect
from tests.reconciler.desk import claim_one, doubt_of, is_doubted, row

S = State


# Ways in


def _lose_answer(lane: Lane) -> JobId:
    job = lane.sending()
    lane.end(job, lost())
    return job.id


def _lease_expired(lane: Lane) -> JobId:
    job = lane.sending()
    lane.ground.sql("UPDATE jobs SET lease_until = now() - interval '1 h' WHERE id = %s", job.id)
    ledger.rescue(lane.ground.conn, grace=0, deaths=3, who="rescue")
    return job.id


def _forsaken(lane: Lane) -> JobId:
    lane.incarnation = lane.ground.incarnation()
    job = lane.sending()
    ledger.forsake(lane.ground.conn, lane.incarnation, deaths=3, who="rescue")
    return job.id


def _look_unclear(lane: Lane) -> JobId:
    first = lane.put(S.SCHEDULED, begun=True)
    job = lane.claimed(first.id)
    lane.end(job, retry.look_unclear("something like it"))
    return job.id


def _spool_found(lane: Lane, state: State) -> JobId:
    job = lane.put(state)
    assert ledger.spool_found(
        lane.ground.conn, job_id=job.id, attempt=1, token=Token(uuid4()), incarnation=3,
        line={"started": True}, who="rescue",
    )  # fmt: skip
    return job.id


def _repeated(lane: Lane) -> Placed:
    """Scheduled again under the same key: possibly live."""
    job = lane.put(S.UNKNOWN)
    ledger.repeat(
        lane.ground.conn, doubt_of(lane.ground, job), until=None, after=0.0, who="r", reason="safe"
    )
    return job


def _cancelled_repeat(lane: Lane) -> JobId:
    job = _repeated(lane)
    with lane.ground.app.engine.begin() as conn:
        assert ledger.cancel(conn, job.id, who="ed").state is S.UNKNOWN
    return job.id


def _expired_repeat(lane: Lane) -> JobId:
    job = _repeated(lane)
    lane.ground.sql("UPDATE jobs SET useful_until = now() WHERE id = %s", job.id)
    ledger.expire(lane.ground.conn, who="clock")
    return job.id


def _refused_repeat(lane: Lane) -> JobId:
    again = lane.sending(_repeated(lane).id)
    lane.end(again, decided(Rejected(Reason.CONTENT_REFUSED, "no", row="fake:400")))
    return again.id


def _key_lapsed(lane: Lane) -> JobId:
    again = lane.claimed(_repeated(lane).id)
    lane.end(again, retry.repeat_ended())
    return again.id


def _foreign_id(lane: Lane) -> JobId:
    lane.put(S.PUBLISHED)
    (owned,) = lane.ground.sql(
        "SELECT remote_id FROM remote_posts WHERE channel_id = %s", lane.channel_id
    )
    job = lane.sending()
    lane.end(job, decided(Published(owned["remote_id"])))
    return job.id


def _by_hand(lane: Lane) -> JobId:
    job = lane.sending()
    lane.ground.sql(
        "UPDATE jobs SET state = 'unknown', token = NULL, incarnation = NULL, claimed_at = NULL,"
        " lease_until = NULL, settled_at = now() WHERE id = %s",
        job.id,
    )
    return job.id


WAYS_IN = {
    "lose_answer": _lose_answer,
    "lease_expired": _lease_expired,
    "forsaken": _forsaken,
    "look_unclear": _look_unclear,
    "spool_found, scheduled": lambda lane: _spool_found(lane, S.SCHEDULED),
    "spool_found, claimed": lambda lane: _spool_found(lane, S.CLAIMED),
    "spool_found, failed": lambda lane: _spool_found(lane, S.FAILED),
    "spool_found, missed": lambda lane: _spool_found(lane, S.MISSED),
    "repeat_ended, cancel": _cancelled_repeat,
    "repeat_ended, expire": _expired_repeat,
    "repeat_ended, reject": _refused_repeat,
    "repeat_ended, key": _key_lapsed,
    "id of another job": _foreign_id,
    "SQL by hand": _by_hand,
}


@pytest.mark.parametrize("way", WAYS_IN)
def test_every_way_into_unknown_makes_a_doubt_that_is_due(lane: Lane, way: str) -> None:
    job_id = WAYS_IN[way](lane)
    assert lane.ground.state(job_id) is S.UNKNOWN
    (doubt,) = lane.ground.sql(
        "SELECT *, next_look_at <= clock_timestamp() AS due FROM doubts WHERE job_id = %s", job_id
    )
    assert (doubt["due"], doubt["looks"], doubt["asked_at"], doubt["look_token"]) == (
        True, 0, None, None,
    )  # fmt: skip
    assert job_id in {
        held.job_id for held, _ in ledger.claim_doubts(lane.ground.conn, limit=99, lease=9)
    }


def test_the_ways_in_are_all_there_are() -> None:
    events = {event for (_, event), to in TABLE.items() if S.UNKNOWN in to} - {Event.LOOK_AGAIN}
    assert events == {way.partition(",")[0] for way in WAYS_IN} & set(Event)


# Ways out


def _late(lane: Lane, job: Placed, end: Settlement) -> None:
    assert (
        ledger.record_late(lane.ground.conn, job.id, job.token, end, who="w") is ledger.Late.MOVED
    )


def _judge(verdict: str, **how: object) -> object:
    def act(lane: Lane, job: Placed) -> None:
        verb = getattr(ledger, verdict)
        verb(lane.ground.conn, doubt_of(lane.ground, job), who="ed", reason="seen", **how)

    return act


WAYS_OUT = {
    "late_publish": lambda lane, job: _late(lane, job, decided(Published("late"))),
    "reject": lambda lane, job: _late(
        lane, job, decided(Rejected(Reason.CONTENT_REFUSED, "no", row="fake:400"))
    ),
    "defer": lambda lane, job: _late(lane, job, refused_for_now()),
    "repeat": _judge("repeat", until=None, after=1.0),
    "confirm_published": _judge("confirm_published", remote_id="7", permalink=None),
    "attest": _judge("confirm_published", remote_id=None, permalink=None),
    "confirm_absent, send": _judge("confirm_absent", send=True, send_at=None, horizon=timedelta(0)),
    "confirm_absent, give up": _judge(
        "confirm_absent", send=False, send_at=None, horizon=timedelta(0)
    ),
    "drop": _judge("drop"),
    "SQL by hand": lambda lane, job: lane.ground.sql(
        "UPDATE jobs SET state = 'dropped' WHERE id = %s", job.id
    ),
}


@pytest.mark.parametrize("way", WAYS_OUT)
def test_every_way_out_of_unknown_removes_it(lane: Lane, way: str) -> None:
    job = lane.put(S.UNKNOWN)
    WAYS_OUT[way](lane, job)  # type: ignore[operator]
    assert lane.ground.state(job.id) is not S.UNKNOWN
    assert not is_doubted(lane.ground, job.id)


def test_other_moves_make_no_doubt(lane: Lane) -> None:
    states = [S.SCHEDULED, S.CLAIMED, S.SENDING, S.PUBLISHED, S.FAILED, S.MISSED, S.CANCELLED]
    for job in [lane.put(state) for state in states]:
        assert not is_doubted(lane.ground, job.id)


def test_a_doubt_that_comes_back_is_a_new_one(lane: Lane) -> None:
    job = lane.put(S.UNKNOWN)
    ground = lane.ground
    ground.sql(
        "UPDATE doubts SET looks = 5, taken_by = 'ed', taken_at = now() WHERE job_id = %s", job.id
    )
    first = doubt_of(ground, job).since
    ledger.confirm_absent(
        ground.conn, doubt_of(ground, job), send=True, send_at=None, who="ed", reason="not there",
        horizon=timedelta(0),
    )  # fmt: skip
    lane.end(lane.sending(job.id), lost())
    again = row(ground, job)
    assert (again["looks"], again["taken_by"]) == (0, None)
    assert again["since"] > first
    assert doubt_of(ground, job).attempt == 2


# Looks


def _all_due(lane: Lane, number: int) -> set[JobId]:
    return {lane.put(S.UNKNOWN).id for _ in range(number)}


def test_eight_at_once_look_at_each_doubt_once(lane: Lane, connect: Connect) -> None:
    due = _all_due(lane, 24)
    connections = [connect() for _ in range(8)]
    barrier = threading.Barrier(8)

    def claim(conn: psycopg.Connection[object]) -> list[tuple[JobId, UUID]]:
        barrier.wait()
        found: list[tuple[JobId, UUID]] = []
        for _ in range(len(due) + 1):
            held = ledger.claim_doubts(conn, limit=2, lease=300.0)
            found += [(doubt.job_id, token) for doubt, token in held]
        return found

    with ThreadPoolExecutor(8) as pool:
        found = [one for many in pool.map(claim, connections) for one in many]
    assert sorted(job for job, _ in found) == sorted(due)
    assert len({token for _, token in found}) == len(due)


def test_what_is_not_due_or_held_is_left_alone(lane: Lane) -> None:
    waits, held = lane.put(S.UNKNOWN), lane.put(S.UNKNOWN)
    lane.ground.sql(
        "UPDATE doubts SET next_look_at = now() + interval '1 s' WHERE job_id = %s", waits.id
    )
    assert [
        doubt.job_id for doubt, _ in ledger.claim_doubts(lane.ground.conn, limit=9, lease=60)
    ] == [held.id]
    assert ledger.claim_doubts(lane.ground.conn, limit=9, lease=60) == []


def test_the_one_that_waits_longest_is_looked_at_first(lane: Lane) -> None:
    jobs = [lane.put(S.UNKNOWN) for _ in range(3)]
    for minutes, job in enumerate(jobs):
        lane.ground.sql(
            "UPDATE doubts SET next_look_at = now() - %s WHERE job_id = %s",
            timedelta(minutes=minutes),
            job.id,
        )
    order = [
        ledger.claim_doubts(lane.ground.conn, limit=1, lease=60)[0][0].job_id for _ in range(3)
    ]
    assert order == [job.id for job in reversed(jobs)]


def test_a_lapsed_look_is_taken_over_and_records_nothing(lane: Lane) -> None:
    ground, job = lane.ground, lane.put(S.UNKNOWN)
    _, old = claim_one(ground.conn, job)
    ground.sql("UPDATE doubts SET lease_until = now() - interval '1 s' WHERE job_id = %s", job.id)
    _, new = claim_one(ground.conn, job)
    before = row(ground, job)
    assert not ledger.holds_look(ground.conn, job.id, old)
    assert not ledger.look_again(ground.conn, job.id, old, last_look="old", pause=None, asked="old")
    ledger.let_go(ground.conn, {job.id: old})
    assert row(ground, job) == before
    assert ledger.holds_look(ground.conn, job.id, new)
    assert ledger.look_again(ground.conn, job.id, new, last_look="new", pause=30.0)
    after = row(ground, job)
    assert (after["looks"], after["last_look"], after["look_token"]) == (1, "new", None)
    assert after["next_look_at"] > datetime.now(UTC) + timedelta(seconds=25)


def test_a_token_nobody_gave_out_records_nothing(lane: Lane) -> None:
    ground, job = lane.ground, lane.put(S.UNKNOWN)
    before = row(ground, job)
    assert not ledger.look_again(ground.conn, job.id, uuid4(), last_look="x", pause=1.0)
    assert row(ground, job) == before


def test_the_first_question_stays(lane: Lane) -> None:
    ground, job = lane.ground, lane.put(S.UNKNOWN)
    for why in ("the first", "the second\0 with a NUL"):
        _, token = claim_one(ground.conn, job)
        assert ledger.look_again(ground.conn, job.id, token, last_look=why, pause=0.0, asked=why)
    kept = row(ground, job)
    assert kept["asked_reason"] == "the first"
    assert kept["last_look"] == "the second\ufffd with a NUL"


def test_a_look_that_is_given_back_is_due_at_once_and_counts_for_nothing(lane: Lane) -> None:
    ground, job = lane.ground, lane.put(S.UNKNOWN)
    _, token = claim_one(ground.conn, job)
    ledger.let_go(ground.conn, {job.id: token})
    doubt, _ = claim_one(ground.conn, job)
    assert doubt.looks == 0


def test_look_now_goes_before_a_look_under_way(lane: Lane) -> None:
    ground, job = lane.ground, lane.put(S.UNKNOWN)
    _, token = claim_one(ground.conn, job)
    assert ledger.look_now(ground.conn, job.id)
    assert not ledger.holds_look(ground.conn, job.id, token)
    claim_one(ground.conn, job)


def test_take_hand_over_and_snooze(lane: Lane) -> None:
    ground, job = lane.ground, lane.put(S.UNKNOWN)
    assert ledger.take(ground.conn, job.id, who="ed")
    assert not ledger.take(ground.conn, job.id, who="op", from_anyone=False)
    assert row(ground, job)["taken_by"] == "ed"
    assert ledger.take(ground.conn, job.id, who="op")
    until = datetime.now(UTC) + timedelta(hours=1)
    assert ledger.snooze(ground.conn, job.id, until=until)
    kept = row(ground, job)
    assert (kept["taken_by"], kept["snoozed_until"]) == ("op", until)
    ledger.drop(ground.conn, doubt_of(ground, job), who="op", reason="x")
    assert not ledger.take(ground.conn, job.id, who="ed")
    assert not ledger.snooze(ground.conn, job.id, until=until)
    assert not ledger.look_now(ground.conn, job.id)


def test_doubts_of_others_cannot_be_read(lane: Lane) -> None:
    job = lane.put(S.PUBLISHED)
    assert ledger.doubts(lane.ground.conn, [job.id]) == []


# Which attempt is in question


def _again(lane: Lane, job: Placed) -> Placed:
    return lane.sending(job.id)


def _prove(ground: Ground, job: Placed, number: int, proof: Proof) -> None:
    ground.sql(
        "UPDATE attempts SET proof = %s, proved_by = 'test', proved_at = now()"
        " WHERE job_id = %s AND number = %s",
        proof,
        job.id,
        number,
    )


def test_the_attempt_without_a_proof_is_in_question(lane: Lane) -> None:
    first = lane.put(S.SCHEDULED, begun=True)
    second = _again(lane, first)
    lane.end(second, lost())
    doubt = doubt_of(lane.ground, second)
    assert (doubt.attempt, doubt.latest, doubt.token) == (2, 2, second.token)
    assert doubt.live_since == doubt.begun_at


def test_after_an_unclear_look_it_is_the_refusal_that_may_have_been_a_lie(lane: Lane) -> None:
    first = lane.put(S.SCHEDULED, begun=True)
    second = _again(lane, first)
    lane.end(second, decided(Deferred(Reason.CONNECT_FAILED, "nobody"), sent=False))
    third = lane.claimed(first.id)
    lane.end(third, retry.look_unclear("something"))
    doubt = doubt_of(lane.ground, first)
    assert (doubt.attempt, doubt.latest, doubt.token) == (1, 2, first.token)
    assert not doubt.repeat_ended


def test_a_repeat_is_looked_for_from_the_first_send_on(lane: Lane) -> None:
    """A key that is honoured shows the first post, with the first post's time."""
    first = _repeated(lane)
    second = _again(lane, first)
    lane.end(second, lost())
    doubt = doubt_of(lane.ground, first)
    began = [lane.ground.attempt(first.id, number)["begun_at"] for number in (1, 2)]
    assert (doubt.attempt, doubt.begun_at, doubt.live_since) == (2, began[1], began[0])


def test_a_repeat_that_ended_is_about_the_send_it_was_to_repeat(lane: Lane) -> None:
    first = _repeated(lane)
    with lane.ground.app.engine.begin() as conn:
        ledger.cancel(conn, first.id, who="ed")
    doubt = doubt_of(lane.ground, first)
    assert (doubt.attempt, doubt.token, doubt.repeat_ended) == (1, first.token, True)
    assert doubt.returned_at is not None


def test_lost_by_the_database_has_no_attempt(lane: Lane) -> None:
    bare = _spool_found(lane, S.SCHEDULED)
    (doubt,) = ledger.doubts(lane.ground.conn, [bare])
    assert (doubt.attempt, doubt.token, doubt.live_since) == (0, None, None)


def test_a_clue_of_the_lost_answer_is_handed_on(lane: Lane) -> None:
    job = lane.sending()
    lane.end(job, decided(Unknown(Reason.NO_ID, "no id", remote_handle="video 7")))
    assert doubt_of(lane.ground, job).remote_handle == "video 7"
    assert key(job) == (job.id, job.token)
