"""What a database that may lack sends holds back, and what alone lets it go again."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from publisher.engine import ledger
from publisher.engine.errors import Conflict
from publisher.engine.job import Hold, JobId, State
from publisher.engine.witness import Cause, Record
from tests.engine.ground import Ground, Lane, published, refused

S = State
HOUR = timedelta(hours=1)


@pytest.fixture
def lane(own_ground: Ground) -> Lane:
    """A database of this test's own: a quarantine is about all of one."""
    return own_ground.lane()


def quarantine(lane: Lane, *, strict: bool = True, **how: Any) -> ledger.Opened:  # noqa: ANN401 - of ``open_quarantine``
    given = {"absent_after": 60.0, "who": "test", **how}
    opened = ledger.open_quarantine(lane.ground.conn, Cause.RESTORED, strict=strict, **given)
    assert opened is not None
    return opened


def held(lane: Lane) -> dict[JobId, dict[str, Any]]:
    rows = lane.ground.sql("SELECT * FROM quarantined WHERE released_at IS NULL")
    return {JobId(row["job_id"]): dict(row) for row in rows}


def future() -> datetime:
    return datetime.now(UTC) + HOUR


def test_a_strict_one_holds_what_is_due_and_more_loosely_what_is_due_later(lane: Lane) -> None:
    due, later, claimed = lane.add(), lane.add(run_at=future()), lane.claimed()
    assert quarantine(lane).jobs == 3
    assert {job: row["strict"] for job, row in held(lane).items()} == {
        due: True, later: False, claimed.id: True,
    }  # fmt: skip
    found = ledger.suspects(lane.ground.conn, [due, later])
    assert [suspect.loss_shows for suspect in found] == [True, True]
    row = lane.ground.row(claimed.id)
    assert (row["state"], row["hold_reason"], row["token"]) == ("scheduled", "quarantine", None)
    assert lane.claim(limit=10) == []
    (event,) = lane.ground.events(due)
    assert (event["event"], event["who"], event["detail"]["cause"]) == (
        "quarantine", "test", "restored",
    )  # fmt: skip


def test_one_that_nothing_speaks_for_holds_what_is_due_alone(lane: Lane) -> None:
    due, later = lane.add(), lane.add(run_at=future())
    quarantine(lane, strict=False)
    assert {job: row["strict"] for job, row in held(lane).items()} == {due: False}
    assert not ledger.suspects(lane.ground.conn, [due])[0].loss_shows
    assert lane.ground.row(later)["hold_reason"] is None


def test_what_is_being_sent_or_over_is_left_alone(lane: Lane) -> None:
    sending, unknown = lane.sending(), lane.put(S.UNKNOWN)
    over = [lane.put(state) for state in (S.PUBLISHED, S.FAILED, S.CANCELLED)]
    assert quarantine(lane).jobs == 0
    assert lane.ground.state(sending.id) is S.SENDING
    assert lane.ground.state(unknown.id) is S.UNKNOWN
    assert [lane.ground.state(job.id) for job in over] == [S.PUBLISHED, S.FAILED, S.CANCELLED]


def test_the_same_record_opens_one_quarantine(lane: Lane) -> None:
    record = Record(ledger.deployment_id(lane.ground.conn), "7", 1, 4, 900, "aa", "")
    lane.add()
    assert quarantine(lane, witnessed=record).jobs == 1
    again = ledger.open_quarantine(
        lane.ground.conn, Cause.TICK, strict=True, absent_after=1, who="other", witnessed=record
    )
    assert again is None
    stands = ledger.stands(lane.ground.conn)
    assert (stands.tick, stands.generation) == (900, 4)
    assert "aa" in stands.marks


def test_a_strict_one_gives_out_no_number_twice(lane: Lane) -> None:
    before = lane.add()
    quarantine(lane)
    assert lane.add() > before + 999_999


# Only the end of the quarantine lets a job go


@pytest.mark.parametrize(
    "change",
    [
        "hold_reason = NULL",
        "hold_reason = 'held by a person'",
        "hold_reason = NULL, state = 'missed', settled_at = now()",
        (
            "hold_reason = NULL, state = 'claimed', token = gen_random_uuid(), incarnation = 1,"
            " claimed_at = now(), lease_until = now(), claims = claims + 1"
        ),
    ],
)
def test_the_database_refuses_to_let_it_go(lane: Lane, change: str) -> None:
    job = lane.add()
    quarantine(lane)
    with pytest.raises(psycopg.Error) as error:
        lane.ground.sql(f"UPDATE jobs SET {change} WHERE id = %s", job)
    assert error.value.sqlstate == "PB030"
    assert lane.ground.row(job)["hold_reason"] == "quarantine"


def test_its_useful_time_does_not_end_it(lane: Lane) -> None:
    job = lane.add(useful_until=datetime.now(UTC) + timedelta(milliseconds=50))
    quarantine(lane)
    lane.ground.sql("SELECT pg_sleep(0.1)")
    ledger.expire(lane.ground.conn, who="test")
    assert lane.ground.state(job) is S.SCHEDULED
    ledger.release_suspects(lane.ground.conn, [job], who="reconciler", reason="not there")
    ledger.expire(lane.ground.conn, who="test")
    assert lane.ground.state(job) is S.MISSED


@pytest.mark.parametrize(
    "verb",
    [
        lambda conn, job: ledger.hold(conn, job, who="me"),
        lambda conn, job: ledger.release_hold(conn, job, who="me"),
        lambda conn, job: ledger.replace(conn, job, content='{"text": "x"}', who="me"),
    ],
)
def test_people_are_told_where_to_look(lane: Lane, verb: Callable[..., object]) -> None:
    job = lane.add()
    quarantine(lane)
    with lane.ground.app.engine.begin() as conn, pytest.raises(Conflict) as error:
        verb(conn, job)
    assert error.value.code == "in-quarantine"
    assert "publisher quarantine status" in str(error.value)


def test_a_released_job_is_claimed_and_a_persons_hold_stays(lane: Lane) -> None:
    free, kept = lane.add(), lane.add()
    with lane.ground.app.engine.begin() as conn:
        ledger.hold(conn, kept, who="me")
    quarantine(lane)
    gone = ledger.release_suspects(
        lane.ground.conn, [free, kept], who="reconciler", reason="not there"
    )
    assert set(gone) == {free, kept}
    assert [job.id for job in lane.claim(limit=9)] == [free]
    assert lane.ground.row(kept)["hold_reason"] == Hold.PERSON
    assert ledger.release_suspects(lane.ground.conn, [free], who="x", reason="again") == []


# Live after all


def test_a_found_post_is_bound_and_never_sent(lane: Lane) -> None:
    job = lane.add()
    quarantine(lane)
    ledger.found_live(
        lane.ground.conn, job, remote_id="p9", permalink=None, who="reconciler", reason="found"
    )
    row = lane.ground.row(job)
    assert (row["state"], row["remote_id"], row["hold_reason"]) == ("published", "p9", None)
    assert held(lane) == {}
    (bound,) = lane.ground.sql("SELECT job_id FROM remote_posts WHERE remote_id = 'p9'")
    assert bound["job_id"] == job
    assert lane.ground.events(job)[-1]["event"] == "quarantine_found"


def test_an_id_of_another_job_is_refused_and_changes_nothing(lane: Lane) -> None:
    other = lane.sending()
    lane.end(other, published("theirs"))
    job = lane.add()
    quarantine(lane)
    with pytest.raises(Conflict) as error:
        ledger.found_live(
            lane.ground.conn, job, remote_id="theirs", permalink=None, who="me", reason="seen"
        )
    assert error.value.code == "not-this-post"
    assert set(held(lane)) == {job}


def test_a_job_that_was_released_is_not_bound_by_a_late_look(lane: Lane) -> None:
    job = lane.add()
    quarantine(lane)
    ledger.release_suspects(lane.ground.conn, [job], who="me", reason="not there")
    with pytest.raises(Conflict) as error:
        ledger.found_live(
            lane.ground.conn, job, remote_id="p1", permalink=None, who="late", reason="found"
        )
    assert error.value.code == "not-in-quarantine"
    assert lane.ground.sql("SELECT job_id FROM remote_posts WHERE remote_id = 'p1'") == []


# What comes back, and what is made again


def test_a_job_that_ended_before_is_looked_for_when_it_is_brought_back(lane: Lane) -> None:
    before = lane.claimed()
    lane.end(before, refused(begun=False))
    quarantine(lane)
    after = lane.claimed(run_at=datetime.now(UTC))
    lane.end(after, refused(begun=False))
    with lane.ground.app.engine.begin() as conn:
        for job in (before, after):
            ledger.requeue(conn, job.id, who="me", useful_until=future())
    assert set(held(lane)) == {before.id}
    assert lane.ground.row(after.id)["hold_reason"] is None


def test_a_job_cancelled_meanwhile_is_looked_for_when_it_is_restored(lane: Lane) -> None:
    job = lane.add()
    quarantine(lane)
    with lane.ground.app.engine.begin() as conn:
        ledger.cancel(conn, job, who="me")
    with lane.ground.app.engine.begin() as conn:
        ledger.restore(conn, job, who="me")
    assert lane.ground.row(job)["hold_reason"] == "quarantine"
    assert held(lane)[job]["strict"]


def test_what_is_scheduled_again_for_the_doubtful_time_is_looked_for(lane: Lane) -> None:
    """A post that the backup lacks, imported once more."""
    quarantine(lane, since=datetime.now(UTC) - HOUR)
    doubtful = lane.add(run_at=datetime.now(UTC) - timedelta(minutes=30))
    earlier = lane.add(run_at=datetime.now(UTC) - 3 * HOUR)
    assert set(held(lane)) == {doubtful}
    assert held(lane)[doubtful]["strict"]
    assert [job.id for job in lane.claim(limit=9)] == [earlier]


def test_a_job_that_its_workers_file_names_is_no_longer_for_the_quarantine(lane: Lane) -> None:
    job = lane.claimed()
    quarantine(lane)
    assert ledger.spool_found(
        lane.ground.conn, job_id=job.id, attempt=1, token=job.token, incarnation=1,
        line={"started": True}, who="test",
    )  # fmt: skip
    assert lane.ground.state(job.id) is S.UNKNOWN
    assert held(lane) == {}


# An answered send that the database lacks


def answered(lane: Lane, job: Any, content: bytes, remote_id: str = "p1") -> bool:  # noqa: ANN401 - a claimed job
    return ledger.publish_lost(
        lane.ground.conn, job.id, token=job.token, attempt=1, content=content,
        remote_id=remote_id, permalink=None, incarnation=1, who="test",
    )  # fmt: skip


def test_its_answer_makes_the_job_published(lane: Lane) -> None:
    job = lane.claimed()
    quarantine(lane)
    assert answered(lane, job, job.content_sha256[:8])
    row = lane.ground.row(job.id)
    assert (row["state"], row["remote_id"]) == ("published", "p1")
    assert held(lane) == {}
    assert answered(lane, job, job.content_sha256[:8]), "again is no news"


def test_a_number_that_is_another_jobs_by_now_is_told_by_its_content(lane: Lane) -> None:
    job = lane.claimed()
    assert not answered(lane, job, b"12345678")
    assert lane.ground.state(job.id) is S.CLAIMED


@pytest.mark.parametrize("state", [S.CANCELLED, S.SENDING])
def test_where_it_may_not_follow_it_does_not(lane: Lane, state: State) -> None:
    job = lane.put(state)
    (row,) = lane.ground.sql("SELECT content_sha256 FROM job_contents WHERE job_id = %s", job.id)
    assert not ledger.publish_lost(
        lane.ground.conn, job.id, token=job.token, attempt=1,
        content=bytes(row["content_sha256"][:8]), remote_id="p1", permalink=None, incarnation=1,
        who="test",
    )  # fmt: skip
    assert lane.ground.state(job.id) is state
    assert lane.ground.sql("SELECT job_id FROM remote_posts WHERE remote_id = 'p1'") == []
