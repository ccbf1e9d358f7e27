"""Verdicts: the first wins, whoever comes second is told what was decided, and by whom."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from threading import Barrier

import psycopg
import pytest

from publisher.engine import ledger, retry
from publisher.engine.errors import Conflict, NotFound
from publisher.engine.job import JobId, State, public_id
from publisher.engine.ledger import AlreadyDecided, Doubt, Judged
from publisher.engine.ledger.driver import AnyConnection
from publisher.engine.outcome import Proof, Published
from tests.engine.ground import Driver, Ground, Lane, Placed, decided, lost
from tests.reconciler.conftest import Connect
from tests.reconciler.desk import (
    HORIZON,
    bound,
    doubt_of,
    due,
    is_doubted,
    sender_is_gone,
    verdicts,
)

S = State
NO_HORIZON = timedelta(0)


def live(
    conn: AnyConnection, doubt: Doubt, remote_id: str | None = "77", who: str = "ed"
) -> Judged:
    return ledger.confirm_published(
        conn, doubt, remote_id=remote_id, permalink=None, who=who, reason="I saw it"
    )


def absent(conn: AnyConnection, doubt: Doubt, **how: object) -> Judged:
    how = {"send": True, "send_at": None, "who": "ed", "horizon": HORIZON} | how
    return ledger.confirm_absent(conn, doubt, reason="not on the page", **how)  # type: ignore[arg-type]


def repeat(conn: AnyConnection, doubt: Doubt, who: str = "reconciler") -> Judged:
    return ledger.repeat(conn, doubt, until=None, after=5.0, who=who, reason="safe")


def drop(conn: AnyConnection, doubt: Doubt) -> Judged:
    return ledger.drop(conn, doubt, who="ed", reason="never mind")


VERDICTS: dict[str, Callable[[AnyConnection, Doubt], Judged]] = {
    "live": live,
    "attested": lambda conn, doubt: live(conn, doubt, None),
    "absent": lambda conn, doubt: absent(conn, doubt, horizon=NO_HORIZON),
    "repeat": repeat,
    "dropped": drop,
}
ENDS = {
    "live": S.PUBLISHED, "attested": S.PUBLISHED, "absent": S.SCHEDULED, "repeat": S.SCHEDULED,
    "dropped": S.DROPPED,
}  # fmt: skip


@pytest.fixture
def job(lane: Lane) -> Placed:
    return lane.put(S.UNKNOWN)


@pytest.fixture
def doubt(lane: Lane, job: Placed) -> Doubt:
    return doubt_of(lane.ground, job)


# What each records


@pytest.mark.parametrize("decision", VERDICTS)
def test_a_verdict_names_who_what_why_and_which_attempt(
    ground: Ground, job: Placed, doubt: Doubt, decision: str
) -> None:
    assert VERDICTS[decision](ground.conn, doubt) == Judged(job.id, ENDS[decision])
    (told,) = verdicts(ground, job)
    assert told["decision"] == decision
    assert told["who"] == ("reconciler" if decision == "repeat" else "ed")
    assert (told["attempt"], told["token"]) == (1, job.token)
    assert told["reason"]
    assert ground.state(job.id) is ENDS[decision]


@pytest.mark.parametrize("decision", VERDICTS)
def test_a_persons_verdict_comes_in_the_pages_role(
    ground: Ground, job: Placed, doubt: Doubt, decision: str
) -> None:
    with ground.app.engine.begin() as conn:
        VERDICTS[decision](conn, doubt)
        assert ground.state(job.id) is S.UNKNOWN  # not yet: it is the caller's transaction
    assert ground.state(job.id) is ENDS[decision]


def test_live_binds_the_post(ground: Ground, job: Placed, doubt: Doubt) -> None:
    ledger.confirm_published(
        ground.conn, doubt, remote_id="9001", permalink="https://e.org/9001", who="ed", reason="x"
    )
    assert bound(ground, job) == ["9001"]
    attempt = ground.attempt(job.id)
    assert (attempt["outcome"], attempt["remote_id"]) == ("published", "9001")
    assert ground.row(job.id)["remote_id"] == "9001"
    assert verdicts(ground, job)[0]["detail"] == {"remote_id": "9001"}


def test_attested_has_no_link_and_says_when(ground: Ground, job: Placed, doubt: Doubt) -> None:
    live(ground.conn, doubt, None)
    kept = ground.row(job.id)
    assert (kept["remote_id"], bound(ground, job)) == (None, [])
    assert kept["attested_at"] is not None
    assert ground.attempt(job.id)["proof"] is None  # so that nothing can ever begin it again


def test_another_jobs_post_is_not_this_one(
    lane: Lane, ground: Ground, job: Placed, doubt: Doubt
) -> None:
    other = lane.put(S.PUBLISHED)
    (theirs,) = bound(ground, other)
    before = ground.everything(job.id)
    with pytest.raises(Conflict) as refused:
        live(ground.conn, doubt, theirs)
    assert refused.value.code == "not-this-post"
    assert str(refused.value) == (
        f"That link is not this post: it is already bound to {public_id(other.id)}. "
        "Nothing was recorded."
    )
    assert ground.everything(job.id) == before
    assert bound(ground, other) == [theirs]
    assert verdicts(ground, job) == []


def test_the_same_post_may_be_named_twice(ground: Ground, job: Placed, doubt: Doubt) -> None:
    """Bound by an answer that came late, while nobody knew yet."""
    ground.sql(
        "INSERT INTO remote_posts (channel_id, remote_id, job_id) VALUES (%s, '55', %s)",
        doubt.channel_id,
        job.id,
    )
    assert live(ground.conn, doubt, "55").state is S.PUBLISHED


def test_dropped_is_followed_no_longer(ground: Ground, job: Placed, doubt: Doubt) -> None:
    drop(ground.conn, doubt)
    assert ground.attempt(job.id)["proof"] is None
    assert ledger.record_late(
        ground.conn, job.id, job.token, decided(Published("late")), who="w"
    ) is ledger.Late.MOVED  # fmt: skip
    assert ground.state(job.id) is S.PUBLISHED


# Absent: now, at a time, not at all


def test_send_now(lane: Lane, ground: Ground, job: Placed) -> None:
    sender_is_gone(lane, job)
    assert absent(ground.conn, doubt_of(ground, job)).state is S.SCHEDULED
    assert ground.row(job.id)["run_at"] <= datetime.now(UTC)
    attempt = ground.attempt(job.id)
    assert (attempt["proof"], attempt["proved_by"]) == (Proof.ABSENT, "ed")
    assert lane.claimed(job.id).attempts == 1


def test_send_at(lane: Lane, ground: Ground, job: Placed) -> None:
    sender_is_gone(lane, job)
    at = datetime.now(UTC) + timedelta(hours=3)
    absent(ground.conn, doubt_of(ground, job), send_at=at)
    kept = ground.row(job.id)
    assert (kept["run_at"], kept["due_at"]) == (at, at)
    assert verdicts(ground, job)[0]["detail"]["at"] == at.isoformat()


def test_do_not_send(lane: Lane, ground: Ground, job: Placed) -> None:
    sender_is_gone(lane, job)
    assert absent(ground.conn, doubt_of(ground, job), send=False).state is S.FAILED
    assert verdicts(ground, job)[0]["detail"]["send"] is False
    with ground.app.engine.begin() as conn:
        assert ledger.requeue(conn, job.id, who="op").state is S.SCHEDULED


def test_forced_takes_the_place_of_another_proof(lane: Lane, ground: Ground) -> None:
    first = lane.put(S.SCHEDULED, begun=True)
    lane.end(lane.claimed(first.id), retry.look_unclear("something like it"))
    sender_is_gone(lane, first)
    assert ground.attempt(first.id)["proof"] == Proof.REFUSED
    absent(ground.conn, doubt_of(ground, first), forced=True)
    assert ground.attempt(first.id)["proof"] == Proof.FORCED


def test_without_force_a_refusal_stays_the_proof(lane: Lane, ground: Ground) -> None:
    first = lane.put(S.SCHEDULED, begun=True)
    lane.end(lane.claimed(first.id), retry.look_unclear("something like it"))
    sender_is_gone(lane, first)
    absent(ground.conn, doubt_of(ground, first))
    assert ground.attempt(first.id)["proof"] == Proof.REFUSED


def test_too_late_to_be_of_use(lane: Lane, ground: Ground, job: Placed) -> None:
    sender_is_gone(lane, job)
    ground.sql("UPDATE jobs SET useful_until = now() - interval '1 s' WHERE id = %s", job.id)
    until = ground.row(job.id)["useful_until"]
    with pytest.raises(Conflict) as refused:
        absent(ground.conn, doubt_of(ground, job))
    assert refused.value.code == "too-late"
    assert str(refused.value) == (
        f"Job {public_id(job.id)} stops being useful at {until:%Y-%m-%d %H:%M %Z}, so it is not "
        "sent again after that. Nothing was changed. Give a new time until which it is useful, or "
        "record that it is not to be sent."
    )
    assert ground.state(job.id) is S.UNKNOWN
    assert ground.attempt(job.id)["proof"] is None


def test_a_time_after_its_use_is_too_late_and_a_new_end_helps(
    lane: Lane, ground: Ground, job: Placed
) -> None:
    sender_is_gone(lane, job)
    now = datetime.now(UTC)
    ground.sql("UPDATE jobs SET useful_until = %s WHERE id = %s", now + timedelta(hours=1), job.id)
    at = now + timedelta(hours=2)
    with pytest.raises(Conflict, match="stops being useful"):
        absent(ground.conn, doubt_of(ground, job), send_at=at)
    until = at + timedelta(hours=1)
    absent(ground.conn, doubt_of(ground, job), send_at=at, useful_until=until)
    assert ground.row(job.id)["useful_until"] == until


def test_to_give_up_it_need_not_be_of_use(lane: Lane, ground: Ground, job: Placed) -> None:
    sender_is_gone(lane, job)
    ground.sql("UPDATE jobs SET useful_until = now() - interval '1 s' WHERE id = %s", job.id)
    assert absent(ground.conn, doubt_of(ground, job), send=False).state is S.FAILED


# The second is told


@pytest.mark.parametrize("decision", VERDICTS)
@pytest.mark.parametrize("second", VERDICTS)
def test_the_second_is_told_who_decided_what(
    ground: Ground, job: Placed, doubt: Doubt, decision: str, second: str
) -> None:
    VERDICTS[decision](ground.conn, doubt)
    before = ground.everything(job.id)
    with pytest.raises(AlreadyDecided) as told:
        VERDICTS[second](ground.conn, doubt)
    (kept,) = verdicts(ground, job)
    what = {
        "live": "it is live", "attested": "it was seen on the page",
        "absent": "it is not on the page", "repeat": "a repeat is safe",
        "dropped": "it is no longer followed",
    }[decision]  # fmt: skip
    assert str(told.value) == (
        f"Job {public_id(job.id)} is decided already: {kept['who']} recorded at "
        f"{kept['at']:%H:%M:%S %Z} that {what} ({kept['reason']}); it is {ENDS[decision]}. "
        "Nothing was changed."
    )
    assert (told.value.code, told.value.state) == ("already-decided", ENDS[decision])
    assert ground.everything(job.id) == before


def test_a_late_answer_decided_it(ground: Ground, job: Placed, doubt: Doubt) -> None:
    ledger.record_late(ground.conn, job.id, job.token, decided(Published("late")), who="w")
    with pytest.raises(AlreadyDecided) as told:
        absent(ground.conn, doubt, horizon=NO_HORIZON)
    assert str(told.value) == (
        f"Job {public_id(job.id)} is decided already: it is published, by an answer that came "
        "late. Nothing was changed."
    )
    assert verdicts(ground, job) == []


def test_no_such_job(ground: Ground, doubt: Doubt) -> None:
    with pytest.raises(NotFound, match="There is no job"):
        drop(ground.conn, _with(doubt, job_id=JobId(2**39)))


def _with(doubt: Doubt, **changes: object) -> Doubt:
    values = {name: getattr(doubt, name) for name in Doubt.__slots__}
    return Doubt(**(values | changes))


@pytest.mark.parametrize("role", ["engine", "app"])
def test_twenty_at_once_one_effect(
    lane: Lane, ground: Ground, connect: Connect, connect_app: Connect, role: str
) -> None:
    job = lane.put(S.UNKNOWN)
    sender_is_gone(lane, job)
    doubt = doubt_of(ground, job)
    verbs = [*VERDICTS.values()] * 4
    connections = [(connect if role == "engine" else connect_app)() for _ in verbs]
    barrier = Barrier(len(verbs))

    def decide(number: int) -> Judged | AlreadyDecided:
        barrier.wait()
        try:
            return verbs[number](connections[number], doubt)
        except AlreadyDecided as told:
            return told

    with ThreadPoolExecutor(len(verbs)) as pool:
        came = list(pool.map(decide, range(len(verbs))))
    (won,) = [one for one in came if isinstance(one, Judged)]
    (kept,) = verdicts(ground, job)
    assert ground.state(job.id) is won.state is ENDS[kept["decision"]]
    told = Counter(str(one) for one in came if isinstance(one, AlreadyDecided))
    assert list(told.values()) == [len(verbs) - 1]  # all are told the same
    assert kept["who"] in next(iter(told))
    assert len(bound(ground, job)) == (kept["decision"] == "live")


# An old look and a new attempt


@pytest.mark.parametrize("decision", VERDICTS)
def test_an_old_look_never_judges_a_new_attempt(
    lane: Lane, ground: Ground, job: Placed, decision: str
) -> None:
    sender_is_gone(lane, job)
    old = doubt_of(ground, job)
    absent(ground.conn, old)
    second = lane.sending(job.id)
    lane.end(second, lost())
    before = ground.everything(job.id)
    with pytest.raises(AlreadyDecided) as told:
        VERDICTS[decision](ground.conn, old)
    assert str(told.value) == (
        f"Job {public_id(job.id)} was sent again since you looked. Look again, then decide."
    )
    assert told.value.code == "look-is-old"
    assert ground.everything(job.id) == before
    assert is_doubted(ground, job.id)


@pytest.mark.parametrize("decision", VERDICTS)
def test_nor_a_doubt_that_came_back_without_a_new_attempt(
    lane: Lane, ground: Ground, job: Placed, decision: str
) -> None:
    """Sent again, and the worker's own look before it showed something."""
    sender_is_gone(lane, job)
    old = doubt_of(ground, job)
    absent(ground.conn, old)
    lane.end(lane.claimed(job.id), retry.look_unclear("something like it"))
    before = ground.everything(job.id)
    with pytest.raises(AlreadyDecided) as told:
        VERDICTS[decision](ground.conn, old)
    assert str(told.value) == (
        f"Job {public_id(job.id)} was decided, and is in doubt again, since you looked. "
        "Look again, then decide."
    )
    assert ground.everything(job.id) == before
    absent(ground.conn, doubt_of(ground, job))


@pytest.mark.parametrize("state", [S.SCHEDULED, S.CLAIMED])
def test_a_late_published_stops_the_second_send(
    lane: Lane, ground: Ground, job: Placed, state: State
) -> None:
    sender_is_gone(lane, job)
    absent(ground.conn, doubt_of(ground, job))
    claimed = lane.claimed(job.id) if state is S.CLAIMED else None
    late = ledger.record_late(
        ground.conn, job.id, job.token, decided(Published("first", "https://e.org/1")), who="w"
    )
    assert late is ledger.Late.MOVED
    assert ground.state(job.id) is S.PUBLISHED
    assert ground.row(job.id)["remote_id"] == "first"
    if claimed is not None:
        held = [(claimed.id, claimed.token)]
        assert ledger.begin_send(ground.conn, held, lease=60, window=50, budget=50) == {}
        assert lane.end(claimed, retry.release()).stale
    assert lane.claim(queues=[ground.row(job.id)["queue"]]) == []
    assert len(ground.sql("SELECT number FROM attempts WHERE job_id = %s", job.id)) == 1


def test_a_late_published_while_the_second_is_under_way_is_kept_and_ends_it(
    lane: Lane, ground: Ground, job: Placed
) -> None:
    sender_is_gone(lane, job)
    absent(ground.conn, doubt_of(ground, job))
    second = lane.sending(job.id)
    late = ledger.record_late(ground.conn, job.id, job.token, decided(Published("first")), who="w")
    assert late is ledger.Late.KEPT_ALERT
    lane.end(second, lost())
    assert ground.row(job.id)["remote_id"] == "first"
    assert ground.state(job.id) is S.PUBLISHED


# The database would refuse, whoever asked


def test_a_verdict_is_never_taken_back(ground: Ground, job: Placed, doubt: Doubt) -> None:
    drop(ground.conn, doubt)
    for role in (ground.owner(), ground.server.superuser(ground.name)):
        with role as conn, pytest.raises(psycopg.errors.DatabaseError, match="only added to"):
            conn.execute("UPDATE publisher.verdicts SET who = 'me'")


def test_a_reason_is_owed(ground: Ground, doubt: Doubt) -> None:
    with pytest.raises(psycopg.errors.CheckViolation):
        ledger.drop(ground.conn, doubt, who="ed", reason="")


def test_a_lock_that_is_held_too_long_records_nothing(
    ground: Ground, connect: Connect, job: Placed, doubt: Doubt
) -> None:
    holder: Driver = connect()
    with holder.transaction():
        holder.execute("SELECT FROM jobs WHERE id = %s FOR UPDATE", [job.id])
        with pytest.raises(psycopg.errors.LockNotAvailable):
            drop(ground.conn, doubt)
    assert verdicts(ground, job) == []
    due(ground, job.id)
    drop(ground.conn, doubt)
