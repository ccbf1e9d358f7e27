"""What people may do to a job in each state, and what they are told when they may not."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Connection

from publisher.engine import ledger
from publisher.engine.content import digest
from publisher.engine.errors import Conflict, NotFound
from publisher.engine.job import Hold, JobId, State, public_id
from publisher.engine.ledger import Moved, Progressed
from publisher.engine.transitions import Event, allowed
from tests.engine.ground import Ground, Lane, key, published

S = State
LATER = datetime(2031, 1, 2, tzinfo=UTC)

Verb = Callable[[Connection, JobId], Moved]
VERBS: dict[Event, Verb] = {
    Event.CANCEL: lambda conn, job: ledger.cancel(conn, job, who="me", reason="typo"),
    Event.RESCHEDULE: lambda conn, job: ledger.reschedule(conn, job, at=LATER, who="me"),
    Event.HOLD: lambda conn, job: ledger.hold(conn, job, who="me", reason="wait"),
    Event.RELEASE_HOLD: lambda conn, job: ledger.release_hold(conn, job, who="me"),
    Event.REPLACE: lambda conn, job: ledger.replace(conn, job, content='"new"', who="me"),
    Event.REQUEUE: lambda conn, job: ledger.requeue(conn, job, who="me"),
    Event.RESTORE: lambda conn, job: ledger.restore(conn, job, who="me"),
}
ENDS = {Event.CANCEL: S.CANCELLED}
CODES = {
    S.SENDING: "sending-now",
    S.UNKNOWN: "unknown-not-retryable",
    S.PUBLISHED: "already-live",
}


def do(lane: Lane, event: Event, job_id: JobId) -> Moved:
    with lane.ground.app.engine.begin() as conn:
        return VERBS[event](conn, job_id)


@pytest.mark.parametrize("event", VERBS)
@pytest.mark.parametrize("state", State)
def test_a_verb_moves_a_job_exactly_from_where_the_table_allows(
    lane: Lane, state: State, event: Event
) -> None:
    job = lane.put(state)
    if event is Event.RELEASE_HOLD and state is S.SCHEDULED:
        do(lane, Event.HOLD, job.id)
    before = lane.ground.everything(job.id)
    if not allowed(state, event):
        with pytest.raises(Conflict) as refusal:
            do(lane, event, job.id)
        assert refusal.value.code == CODES.get(state, "conflict")
        assert refusal.value.state == state
        assert public_id(job.id) in str(refusal.value)
        assert lane.ground.everything(job.id) == before
        return
    moved = do(lane, event, job.id)
    to = ENDS.get(event, S.SCHEDULED)
    assert moved == Moved(job.id, state, to)
    row = lane.ground.row(job.id)
    assert (row["state"], row["token"], row["incarnation"], row["lease_until"]) == (
        to, None, None, None,
    )  # fmt: skip
    told = lane.ground.events(job.id)[-1]
    assert (told["event"], told["who"]) == (event, "me")


@pytest.mark.parametrize("event", VERBS)
def test_there_must_be_such_a_job(lane: Lane, event: Event) -> None:
    with pytest.raises(NotFound, match="no job"):
        do(lane, event, JobId(2**39))


def test_nothing_is_written_unless_the_caller_commits(lane: Lane) -> None:
    job = lane.put(S.SCHEDULED)
    before = lane.ground.everything(job.id)
    with lane.ground.app.engine.connect() as conn:
        ledger.cancel(conn, job.id, who="me")
    assert lane.ground.everything(job.id) == before


# Cancel


def test_cancelled_says_why_and_when(lane: Lane) -> None:
    job = lane.put(S.CLAIMED)
    do(lane, Event.HOLD, job.id)
    do(lane, Event.CANCEL, job.id)
    row = lane.ground.row(job.id)
    assert row["settled_at"] is not None
    assert row["hold_reason"] is None
    assert lane.ground.events(job.id)[-1]["detail"] == {"reason": "typo"}


@pytest.mark.parametrize("state", [S.SCHEDULED, S.CLAIMED])
def test_what_may_be_live_is_not_cancelled_but_doubted(lane: Lane, state: State) -> None:
    job = lane.put(state, begun=True)
    possibly_live(lane, job.id)
    assert do(lane, Event.CANCEL, job.id).state is S.UNKNOWN
    assert lane.ground.state(job.id) is S.UNKNOWN
    assert lane.ground.events(job.id)[-1]["event"] == "repeat_ended"


def possibly_live(lane: Lane, job_id: JobId) -> None:
    lane.ground.sql("SET session_replication_role = replica")
    lane.ground.sql("UPDATE attempts SET proof = 'repeat_safe' WHERE job_id = %s", job_id)
    lane.ground.sql("RESET session_replication_role")


# Reschedule


def test_a_moved_job_keeps_its_key_and_its_useful_time_moves_along(lane: Lane) -> None:
    now = datetime.now(UTC)
    new = lane.new(run_at=now, useful_until=now + timedelta(hours=2))
    (added,) = ledger.enqueue(lane.ground.conn, [new])
    do(lane, Event.RESCHEDULE, added.job_id)
    row = lane.ground.row(added.job_id)
    assert row["due_at"] == row["run_at"] == LATER
    assert row["useful_until"] == LATER + timedelta(hours=2)
    assert lane.ground.one("SELECT job_id FROM job_keys WHERE key = %s", new.key) == added.job_id
    detail = lane.ground.events(added.job_id)[-1]["detail"]
    assert detail["to"] == LATER.isoformat()


def test_a_time_without_zone_is_refused(lane: Lane) -> None:
    job = lane.put(S.SCHEDULED)
    naive = datetime(2031, 1, 2)  # noqa: DTZ001 - that is the point
    with lane.ground.app.engine.begin() as conn, pytest.raises(Conflict) as refusal:
        ledger.reschedule(conn, job.id, at=naive, who="me")
    assert refusal.value.code == "time-without-zone"


# Hold


@pytest.mark.parametrize("state", [S.SCHEDULED, S.CLAIMED])
def test_a_held_job_is_not_claimed_and_not_begun(lane: Lane, state: State) -> None:
    job = lane.put(state)
    with lane.ground.app.engine.begin() as conn:
        ledger.hold(conn, job.id, who="me", kind=Hold.APPROVAL)
    assert lane.ground.row(job.id)["hold_reason"] == Hold.APPROVAL
    assert lane.claim(queues=[lane.ground.row(job.id)["queue"]]) == []
    assert ledger.begin_send(lane.ground.conn, [job.key], lease=9, window=9, budget=9) == {}
    do(lane, Event.RELEASE_HOLD, job.id)
    assert lane.claimed(job.id).id == job.id


def test_what_is_not_held_cannot_be_released(lane: Lane) -> None:
    job = lane.put(S.SCHEDULED)
    with pytest.raises(Conflict) as refusal:
        do(lane, Event.RELEASE_HOLD, job.id)
    assert refusal.value.code == "not-held"


def test_what_holds_others_holds_not_this_one(own_ground: Ground) -> None:
    lane = own_ground.lane()
    first, second, third = jobs = [lane.put(S.SCHEDULED).id for _ in range(3)]
    for job in jobs:
        do(lane, Event.HOLD, job)
    do(lane, Event.RELEASE_HOLD, second)
    held = [lane.ground.row(job)["hold_reason"] for job in (first, second, third)]
    assert held == [Hold.PERSON, None, Hold.PERSON]


# Replace


def test_new_content_clears_the_progress_of_the_old(lane: Lane) -> None:
    job = lane.claimed()
    step = Progressed(*key(job), job.content_sha256, '{"photo": 7}')
    assert ledger.save_progress(lane.ground.conn, [step], lease=60)
    do(lane, Event.HOLD, job.id)
    do(lane, Event.REPLACE, job.id)
    content = lane.ground.sql("SELECT * FROM job_contents WHERE job_id = %s", job.id)[0]
    assert (content["content"], content["content_sha256"]) == ('"new"', digest('"new"'))
    assert lane.ground.one("SELECT progress IS NULL FROM job_contents WHERE job_id = %s", job.id)
    assert content["progress_sha256"] is None
    do(lane, Event.RELEASE_HOLD, job.id)
    again = lane.claimed(job.id)
    assert (again.content, again.progress) == ('"new"', None)


def test_a_begun_job_never_changes_content(lane: Lane) -> None:
    job = lane.put(S.SCHEDULED, begun=True)
    before = lane.ground.everything(job.id)
    with pytest.raises(Conflict) as refusal:
        do(lane, Event.REPLACE, job.id)
    assert refusal.value.code == "begun"
    assert lane.ground.everything(job.id) == before


# Requeue and restore


def test_a_requeued_job_has_all_its_tries_anew(lane: Lane) -> None:
    job = lane.put(S.FAILED, begun=True)
    lane.ground.sql("UPDATE jobs SET failures = 5, deaths = 3 WHERE id = %s", job.id)
    do(lane, Event.REQUEUE, job.id)
    row = lane.ground.row(job.id)
    assert (row["failures"], row["deaths"], row["reason"], row["settled_at"]) == (0, 0, None, None)
    assert row["run_at"] <= datetime.now(UTC)
    assert row["attempts"] == 1
    sending = lane.sending(job.id)
    assert lane.end(sending, published(f"again {job.id}")).done


@pytest.mark.parametrize("state", [S.FAILED, S.MISSED])
def test_a_job_whose_time_is_over_needs_a_new_one(lane: Lane, state: State) -> None:
    job = lane.put(state)
    lane.ground.sql("UPDATE jobs SET useful_until = now() WHERE id = %s", job.id)
    with pytest.raises(Conflict) as refusal:
        do(lane, Event.REQUEUE, job.id)
    assert refusal.value.code == "too-late"
    past = datetime.now(UTC) - timedelta(hours=1)
    with lane.ground.app.engine.begin() as conn, pytest.raises(Conflict):
        ledger.requeue(conn, job.id, who="me", useful_until=past)
    with lane.ground.app.engine.begin() as conn:
        ledger.requeue(conn, job.id, who="me", useful_until=LATER)
    assert lane.ground.row(job.id)["useful_until"] == LATER


@pytest.mark.parametrize("state", [S.FAILED, S.MISSED])
def test_what_may_be_live_is_not_requeued(lane: Lane, state: State) -> None:
    job = lane.put(state, begun=True)
    possibly_live(lane, job.id)
    with pytest.raises(Conflict) as refusal:
        do(lane, Event.REQUEUE, job.id)
    assert refusal.value.code == "unknown-not-retryable"
    assert lane.ground.state(job.id) is state


def test_a_cancelled_job_that_was_begun_is_not_restored(lane: Lane) -> None:
    job = lane.put(S.SCHEDULED, begun=True)
    do(lane, Event.CANCEL, job.id)
    with pytest.raises(Conflict) as refusal:
        do(lane, Event.RESTORE, job.id)
    assert refusal.value.code == "begun"


@pytest.mark.parametrize(
    ("state", "event"), [(S.FAILED, Event.REQUEUE), (S.CANCELLED, Event.RESTORE)]
)
def test_a_job_does_not_come_back_beside_its_successor(
    lane: Lane, state: State, event: Event
) -> None:
    post = lane.ground.one("INSERT INTO posts (created_by) VALUES ('me') RETURNING id")
    job = lane.put(state, post_id=post)
    successor = lane.add(post_id=post)
    with lane.ground.app.engine.begin() as conn:
        with pytest.raises(Conflict) as refusal:
            VERBS[event](conn, job.id)
        assert refusal.value.code == "open-job-exists"
        assert public_id(successor) in str(refusal.value)
        # The caller's transaction is still good.
        ledger.cancel(conn, successor, who="me")
        assert VERBS[event](conn, job.id).state is S.SCHEDULED


@pytest.mark.parametrize(
    ("state", "event"), [(S.FAILED, Event.REQUEUE), (S.CANCELLED, Event.RESTORE)]
)
def test_a_job_comes_back_beside_what_took_another_s_place(
    lane: Lane, state: State, event: Event
) -> None:
    post, other = (
        lane.ground.one("INSERT INTO posts (created_by) VALUES ('me') RETURNING id")
        for _ in range(2)
    )
    job = lane.put(state, post_id=post)
    lane.put(S.PUBLISHED, post_id=other)
    lane.put(S.PUBLISHED, post_id=post, kind="other")
    lane.ground.lane().put(S.PUBLISHED, post_id=post)
    assert do(lane, event, job.id).state is S.SCHEDULED
    do(lane, Event.CANCEL, job.id)
    newer = lane.put(S.PUBLISHED, post_id=post)
    with pytest.raises(Conflict) as refusal:
        do(lane, Event.RESTORE, job.id)
    assert refusal.value.code == "replaced"
    assert public_id(newer.id) in str(refusal.value)


def test_a_job_comes_back_beside_one_that_is_held_for_what_is_live(own_ground: Ground) -> None:
    lane = own_ground.lane()
    held = lane.add()
    own_ground.sql("UPDATE jobs SET hold_reason = %s WHERE id = %s", str(Hold.LIVE), held)
    job = lane.put(S.CANCELLED)
    assert do(lane, Event.RESTORE, job.id).state is S.SCHEDULED
    assert own_ground.row(job.id)["hold_reason"] is None


# Gates


def gate(lane: Lane) -> dict[str, Any]:
    return lane.ground.sql("SELECT * FROM gates WHERE channel_id = %s", lane.channel_id)[0]


def test_a_paused_channel_goes_on_when_it_is_resumed(lane: Lane) -> None:
    lane.add()
    with lane.ground.app.engine.begin() as conn:
        ledger.pause(conn, lane.channel_id, who="me")
    assert gate(lane)["paused_by"] == "me"
    assert lane.claim() == []
    with lane.ground.app.engine.begin() as conn:
        ledger.resume(conn, lane.channel_id)
    assert (gate(lane)["paused_at"], gate(lane)["paused_by"]) == (None, None)
    assert len(lane.claim()) == 1


def test_a_reconnected_channel_is_open_but_a_pause_stays(lane: Lane) -> None:
    lane.ground.sql(
        "UPDATE gates SET blocked_reason = 'x', blocked_detail = 'y', blocked_at = now(),"
        " not_before = now() + interval '1 hour', paused_at = now() WHERE channel_id = %s",
        lane.channel_id,
    )
    with lane.ground.app.engine.begin() as conn:
        ledger.unblock(conn, lane.channel_id)
    now = gate(lane)
    assert (now["blocked_reason"], now["blocked_detail"], now["blocked_at"]) == (None, None, None)
    assert now["not_before"] is None
    assert now["paused_at"] is not None


def test_there_must_be_such_a_channel(lane: Lane) -> None:
    with lane.ground.app.engine.begin() as conn:
        for verb in (ledger.resume, ledger.unblock):
            with pytest.raises(NotFound, match="no channel"):
                verb(conn, -1)
        with pytest.raises(NotFound, match="no channel"):
            ledger.pause(conn, -1, who="me")
