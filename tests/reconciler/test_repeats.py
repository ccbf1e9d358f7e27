"""A safe repeat must not hide a doubt: every end of it but published is unknown."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from publisher.engine import ledger, retry
from publisher.engine.errors import Conflict
from publisher.engine.job import State
from publisher.engine.outcome import Deferred, Proof, Published, Reason, Rejected, Unauthorized
from publisher.engine.retry import Settlement
from tests.engine.ground import Ground, Lane, Placed, decided, lost, refused_for_now
from tests.reconciler.desk import bound, doubt_of, sender_is_gone, verdicts

S = State
NO = Rejected(Reason.CONTENT_REFUSED, "no", row="fake:400")


@pytest.fixture
def first(lane: Lane) -> Placed:
    """A lost answer."""
    return lane.put(S.UNKNOWN)


def repeat(ground: Ground, job: Placed, *, until: datetime | None = None, after: float = 0) -> None:
    ledger.repeat(
        ground.conn,
        doubt_of(ground, job),
        until=until,
        after=after,
        who="reconciler",
        reason="safe",
    )


def soon(**how: float) -> datetime:
    return datetime.now(UTC) + timedelta(**how)


# The repeat


def test_a_repeat_waits_its_time_and_carries_the_keys_end(ground: Ground, first: Placed) -> None:
    until = soon(minutes=30)
    repeat(ground, first, until=until, after=40.0)
    kept = ground.row(first.id)
    assert (kept["state"], kept["repeat_until"]) == (S.SCHEDULED, until)
    assert timedelta(seconds=35) < kept["run_at"] - datetime.now(UTC) < timedelta(seconds=41)
    assert ground.attempt(first.id)["proof"] == Proof.REPEAT_SAFE
    assert verdicts(ground, first)[0]["detail"] == {"until": until.isoformat()}


def test_it_is_sent_with_the_first_ones_content_and_key(lane: Lane, ground: Ground) -> None:
    job = lane.sending(platform_key="key 1")
    lane.end(job, lost())
    repeat(ground, job)
    again = lane.claimed(job.id)
    assert again.platform_key == "key 1"
    lane.begin(again)
    sent = ground.sql("SELECT content_sha256 FROM attempts WHERE job_id = %s", job.id)
    assert sent[0] == sent[1]


def test_published_ends_it(lane: Lane, ground: Ground, first: Placed) -> None:
    repeat(ground, first)
    lane.end(lane.sending(first.id), decided(Published("one")))
    assert (ground.state(first.id), bound(ground, first)) == (S.PUBLISHED, ["one"])


@pytest.mark.parametrize("second", [None, S.CLAIMED, S.SENDING])
def test_a_late_published_of_the_first_still_wins(
    lane: Lane, ground: Ground, first: Placed, second: State | None
) -> None:
    repeat(ground, first)
    held = lane.claimed(first.id) if second is not None else None
    again = None if second is not S.SENDING or held is None else Placed(held.id, held.token)
    if held is not None and again is not None:
        lane.begin(held)
    end = decided(Published("one"))
    ledger.record_late(ground.conn, first.id, first.token, end, who="w")
    if again is not None:
        lane.end(again, lost())
    assert (ground.state(first.id), bound(ground, first)) == (S.PUBLISHED, ["one"])


# Its other ends


def _settle(end: Settlement, *, claimed: bool = False) -> Callable[[Lane, Placed], object]:
    def act(lane: Lane, job: Placed) -> None:
        held = lane.claimed(job.id) if claimed else lane.sending(job.id)
        assert lane.end(held, end).done

    return act


def _cancel(lane: Lane, job: Placed) -> None:
    with lane.ground.app.engine.begin() as conn:
        ledger.cancel(conn, job.id, who="ed")


def _cancel_claimed(lane: Lane, job: Placed) -> None:
    lane.claimed(job.id)
    _cancel(lane, job)


def _expire(lane: Lane, job: Placed) -> None:
    lane.ground.sql("UPDATE jobs SET useful_until = now() WHERE id = %s", job.id)
    ledger.expire(lane.ground.conn, who="clock")


def _die_on_it(lane: Lane, job: Placed) -> None:
    lane.incarnation = lane.ground.incarnation()
    held = lane.claimed(job.id)
    ledger.start_hands(lane.ground.conn, [(held.id, held.token)], lease=60)
    ledger.forsake(lane.ground.conn, lane.incarnation, deaths=1, who="rescue")


_USED_UP = retry.settle(
    Deferred(Reason.BUSY, "later", row="fake:400"),
    retry.Standing(failures=99, ends_at=datetime.max.replace(tzinfo=UTC), begun=True, sent=True),
    retry.Policy(),
    datetime.now(UTC),
)
ENDS: dict[str, Callable[[Lane, Placed], object]] = {
    "cancelled while it waits": _cancel,
    "cancelled while it is claimed": _cancel_claimed,
    "expired while it waits": _expire,
    "expired while it is claimed": _settle(retry.expire(), claimed=True),
    "refused": _settle(decided(NO)),
    "refused before it was begun": _settle(decided(NO, begun=False, sent=False), claimed=True),
    "its tries are used up": _settle(_USED_UP),
    "its worker died on it too often": _die_on_it,
}


@pytest.mark.parametrize("way", ENDS)
def test_every_end_but_published_is_unknown(
    lane: Lane, ground: Ground, first: Placed, way: str
) -> None:
    repeat(ground, first)
    ENDS[way](lane, first)
    assert ground.state(first.id) is S.UNKNOWN
    doubt = doubt_of(ground, first)
    assert (doubt.attempt, doubt.token, doubt.repeat_ended) == (1, first.token, True)


@pytest.mark.parametrize(
    "outcome", [refused_for_now(), decided(Unauthorized(Reason.NEEDS_RECONNECTING, "x", row="y"))]
)
def test_a_refusal_for_now_is_tried_again_within_the_key(
    lane: Lane, ground: Ground, first: Placed, outcome: Settlement
) -> None:
    until = soon(minutes=30)
    repeat(ground, first, until=until)
    lane.end(lane.sending(first.id), outcome)
    assert ground.state(first.id) is S.SCHEDULED
    assert ground.row(first.id)["repeat_until"] == until


@pytest.mark.parametrize("state", [S.FAILED, S.MISSED])
def test_requeue_refuses_it(lane: Lane, ground: Ground, first: Placed, state: State) -> None:
    """The database keeps it from ever getting there; requeue would refuse it all the same."""
    repeat(ground, first)
    ground.sql("ALTER TABLE jobs DISABLE TRIGGER jobs_moved")
    ground.sql("UPDATE jobs SET state = %s, settled_at = now() WHERE id = %s", state, first.id)
    ground.sql("ALTER TABLE jobs ENABLE TRIGGER jobs_moved")
    with ground.app.engine.begin() as conn, pytest.raises(Conflict) as refused:
        ledger.requeue(conn, first.id, who="op")
    assert refused.value.code == "unknown-not-retryable"


@pytest.mark.parametrize("verb", [ledger.requeue, ledger.restore])
def test_an_ended_repeat_is_neither_requeued_nor_restored(
    lane: Lane, ground: Ground, first: Placed, verb: Callable[..., object]
) -> None:
    repeat(ground, first)
    _cancel(lane, first)
    with ground.app.engine.begin() as conn, pytest.raises(Conflict) as refused:
        verb(conn, first.id, who="op")
    assert refused.value.code == "unknown-not-retryable"
    assert ground.state(first.id) is S.UNKNOWN


def test_reject_by_a_late_answer_of_the_repeat_leaves_the_doubt(
    lane: Lane, ground: Ground, first: Placed
) -> None:
    repeat(ground, first)
    again = lane.sending(first.id)
    lane.end(again, lost())
    ledger.record_late(ground.conn, again.id, again.token, decided(NO), who="w")
    assert ground.state(first.id) is S.UNKNOWN


# The key's end


def test_begin_refuses_after_the_keys_end(lane: Lane, ground: Ground, first: Placed) -> None:
    repeat(ground, first, until=soon(seconds=-1))
    held = lane.claimed(first.id)
    keys = [(held.id, held.token)]
    assert ledger.begin_send(ground.conn, keys, lease=60, window=50, budget=50) == {}
    (stands,) = ledger.unbegun(ground.conn, [held.id], window=50.0)
    assert stands.repeat_over
    assert not any([stands.lease_over, stands.too_late, stands.gate_closed])
    lane.end(held, retry.repeat_ended())
    assert ground.state(first.id) is S.UNKNOWN
    kept = ground.row(first.id)
    assert kept["reason"] == Reason.REPEAT_ENDED
    assert [event["event"] for event in ground.events(first.id)] == ["repeat_ended"]


def test_begin_allows_it_before(lane: Lane, ground: Ground, first: Placed) -> None:
    repeat(ground, first, until=soon(minutes=5))
    assert lane.begin(lane.claimed(first.id)).attempt == 2


# What a person may say of it afterwards


def _ended(lane: Lane, ground: Ground, job: Placed) -> None:
    repeat(ground, job)
    _cancel(lane, job)
    sender_is_gone(lane, job)


@pytest.mark.parametrize(("send", "state"), [(True, S.SCHEDULED), (False, S.FAILED)])
def test_not_on_the_page_is_said_of_every_send(
    lane: Lane,
    ground: Ground,
    first: Placed,
    send: bool,  # noqa: FBT001
    state: State,
) -> None:
    _ended(lane, ground, first)
    ledger.confirm_absent(
        ground.conn, doubt_of(ground, first), send=send, send_at=None, who="ed", reason="gone",
        horizon=timedelta(seconds=60),
    )  # fmt: skip
    assert ground.state(first.id) is state
    assert ground.attempt(first.id)["proof"] == Proof.ABSENT
    assert ground.row(first.id)["repeat_until"] is None


def test_not_on_the_page_after_the_repeat_was_lost_too(
    lane: Lane, ground: Ground, first: Placed
) -> None:
    """Or the first send would stay possibly live, and what fails could never end."""
    repeat(ground, first)
    lane.end(lane.sending(first.id), lost())
    sender_is_gone(lane, first)
    ledger.confirm_absent(
        ground.conn, doubt_of(ground, first), send=False, send_at=None, who="ed", reason="gone",
        horizon=timedelta(seconds=60),
    )  # fmt: skip
    assert ground.state(first.id) is S.FAILED
    proofs = ground.sql("SELECT proof FROM attempts WHERE job_id = %s", first.id)
    assert proofs == [{"proof": Proof.ABSENT}] * 2


def test_a_second_repeat_leaves_the_first_ones_proof(
    lane: Lane, ground: Ground, first: Placed
) -> None:
    repeat(ground, first)
    lane.end(lane.sending(first.id), lost())
    by = ground.attempt(first.id)["proved_at"]
    repeat(ground, first)
    assert ground.attempt(first.id)["proved_at"] == by
    assert ground.attempt(first.id, 2)["proof"] == Proof.REPEAT_SAFE


def test_it_is_live(lane: Lane, ground: Ground, first: Placed) -> None:
    _ended(lane, ground, first)
    ledger.confirm_published(
        ground.conn, doubt_of(ground, first), remote_id="one", permalink=None, who="ed", reason="x"
    )
    assert (ground.state(first.id), bound(ground, first)) == (S.PUBLISHED, ["one"])
    assert ground.attempt(first.id)["outcome"] == "published"
