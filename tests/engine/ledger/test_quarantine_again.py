"""Quarantine after quarantine, and what is decided in one: which counts, and of which job."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest

from publisher.engine import ledger
from publisher.engine.errors import Conflict
from publisher.engine.job import Hold, JobId, State
from publisher.engine.witness import Cause, Record
from tests.engine.ground import Ground, Lane, Row, published, refused

S = State


@pytest.fixture
def lane(own_ground: Ground) -> Lane:
    """A database of this test's own: a quarantine is about all of one."""
    return own_ground.lane()


def quarantine(lane: Lane, *, strict: bool = True, **how: Any) -> ledger.Opened | None:  # noqa: ANN401 - of ``open_quarantine``
    given = {"absent_after": 60.0, "who": "test", **how}
    return ledger.open_quarantine(lane.ground.conn, Cause.RESTORED, strict=strict, **given)


def row(lane: Lane, job_id: JobId) -> Row:
    (found,) = lane.ground.sql("SELECT * FROM quarantined WHERE job_id = %s", job_id)
    return found


def person(lane: Lane, verb: Any, job_id: JobId, **how: Any) -> None:  # noqa: ANN401 - of the verb
    with lane.ground.app.engine.begin() as conn:
        verb(conn, job_id, who="me", **how)


def release(lane: Lane, job_id: JobId) -> list[JobId]:
    return ledger.release_suspects(lane.ground.conn, [job_id], who="me", reason="x")


# A second one over a job that is in the first


@pytest.mark.parametrize("strict", [True, False])
def test_a_second_one_takes_the_job_over_and_forgets_no_strictness(
    lane: Lane, *, strict: bool
) -> None:
    job = lane.add()
    person(lane, ledger.hold, job)
    first = quarantine(lane, strict=strict)
    ledger.ask_about_suspect(lane.ground.conn, job, seen="two alike")
    lane.ground.sql("UPDATE quarantined SET looks = 3")
    second = quarantine(lane, strict=not strict)
    assert first is not None
    assert second is not None
    held = row(lane, job)
    assert (held["quarantine_id"], held["strict"], held["held_before"]) == (
        second.id,
        True,
        str(Hold.PERSON),
    )
    assert (held["looks"], held["asked_at"], held["released_at"]) == (0, None, None)
    assert held["next_look_at"] is not None
    (suspect,) = ledger.suspects(lane.ground.conn, [job])
    assert (suspect.quarantine_id, suspect.loss_shows) == (second.id, not strict)


def test_one_that_was_let_go_before_is_as_new_to_a_second(lane: Lane) -> None:
    job = lane.add()
    person(lane, ledger.hold, job)
    assert quarantine(lane)
    assert release(lane, job) == [job]
    assert lane.ground.row(job)["hold_reason"] == Hold.PERSON
    person(lane, ledger.release_hold, job)
    assert quarantine(lane, strict=False)
    held = row(lane, job)
    assert (held["strict"], held["held_before"], held["released_at"]) == (False, None, None)
    assert release(lane, job) == [job]
    assert lane.ground.row(job)["hold_reason"] is None


def test_another_record_and_another_file_are_another_matter(lane: Lane) -> None:
    def record(mark: str) -> Record:
        return Record(ledger.deployment_id(lane.ground.conn), "7", 1, 4, 900, mark, "")

    assert quarantine(lane, witnessed=record("aa"))
    assert quarantine(lane, witnessed=record("aa")) is None
    assert quarantine(lane, witnessed=record("bb"))
    assert quarantine(lane, detail={"file": "a.spool"})
    assert ledger.is_quarantined_for(lane.ground.conn, "a.spool")
    assert not ledger.is_quarantined_for(lane.ground.conn, "b.spool")


# What ended, and is brought back


def failed(lane: Lane, job_id: JobId) -> None:
    assert lane.end(lane.claimed(job_id), refused(begun=False)).done
    assert lane.ground.state(job_id) is S.FAILED


def test_what_was_let_go_and_failed_since_is_brought_back_freely(lane: Lane) -> None:
    job = lane.add()
    assert quarantine(lane)
    release(lane, job)
    failed(lane, job)
    person(lane, ledger.requeue, job)
    assert lane.ground.row(job)["hold_reason"] is None
    assert row(lane, job)["released_at"] is not None


def test_what_was_let_go_before_a_second_one_is_brought_back_into_that(lane: Lane) -> None:
    job = lane.add()
    assert quarantine(lane)
    release(lane, job)
    failed(lane, job)
    second = quarantine(lane)
    assert second is not None
    person(lane, ledger.requeue, job)
    assert lane.ground.row(job)["hold_reason"] == "quarantine"
    held = row(lane, job)
    assert (held["quarantine_id"], held["released_at"]) == (second.id, None)


# Decisions


def refuses(lane: Lane, job_id: JobId, state: str) -> None:
    before = lane.ground.everything(job_id), row_or_none(lane, job_id)
    with pytest.raises(Conflict) as refusal:
        ledger.found_live(
            lane.ground.conn, job_id, remote_id=None, permalink=None, who="me", reason="x"
        )
    assert refusal.value.code == "not-in-quarantine"
    assert f"it is {state}." in str(refusal.value)
    assert (lane.ground.everything(job_id), row_or_none(lane, job_id)) == before


def row_or_none(lane: Lane, job_id: JobId) -> list[Row]:
    return lane.ground.sql("SELECT * FROM quarantined WHERE job_id = %s", job_id)


def test_only_what_waits_in_quarantine_is_found_live(lane: Lane) -> None:
    live = lane.put(S.PUBLISHED)
    waits, cancelled, released = lane.add(), lane.add(), lane.add()
    assert quarantine(lane)
    person(lane, ledger.cancel, cancelled)
    release(lane, released)
    refuses(lane, live.id, "published")
    refuses(lane, cancelled, "cancelled")
    refuses(lane, released, "scheduled")
    ledger.found_live(lane.ground.conn, waits, remote_id=None, permalink=None, who="me", reason="x")
    assert lane.ground.state(waits) is S.PUBLISHED


def test_an_id_is_anothers_only_on_the_same_page(lane: Lane) -> None:
    page, later = lane.ground.lane(), lane.ground.lane()
    for elsewhere in (lane, later):
        assert elsewhere.end(elsewhere.sending(), published("same")).done
    assert page.end(page.sending(), published("another")).done
    job, other = page.add(), page.add()
    assert quarantine(page)
    given = {"permalink": None, "who": "me", "reason": "x"}
    ledger.found_live(lane.ground.conn, job, remote_id="same", **given)
    assert lane.ground.row(job)["remote_id"] == "same"
    for taken in ("same", "another"):
        with pytest.raises(Conflict) as refusal:
            ledger.found_live(lane.ground.conn, other, remote_id=taken, **given)
        assert refusal.value.code == "not-this-post"


def test_what_was_called_off_meanwhile_stays_so_when_it_is_let_go(lane: Lane) -> None:
    job = lane.add()
    person(lane, ledger.hold, job)
    assert quarantine(lane)
    person(lane, ledger.cancel, job)
    release(lane, job)
    row_of = lane.ground.row(job)
    assert (row_of["state"], row_of["hold_reason"]) == ("cancelled", None)


def test_a_look_without_another_asks_a_person_and_is_of_one_job(lane: Lane) -> None:
    conn, ground = lane.ground.conn, lane.ground
    job, other = lane.add(), lane.add()
    assert quarantine(lane)
    held: dict[JobId, UUID] = {
        suspect.job_id: token for suspect, token in ledger.claim_suspects(conn, limit=8, lease=60.0)
    }
    ground.sql("UPDATE quarantined SET look_token = %s WHERE job_id = %s", held[job], other)
    before = row(lane, other)
    assert ledger.look_for_again(conn, job, held[job], seen="nothing", pause=None)
    assert row(lane, other) == before
    asked = row(lane, job)
    assert asked["next_look_at"] is None
    assert asked["asked_at"] is not None
    assert ledger.look_for_again(conn, other, held[job], seen="nothing", pause=30.0)
    assert row(lane, other)["asked_at"] is None
    assert row(lane, other)["next_look_at"] > datetime.now(UTC)


def test_a_person_is_not_asked_about_what_was_let_go(lane: Lane) -> None:
    job = lane.add()
    assert quarantine(lane)
    release(lane, job)
    before = row(lane, job)
    ledger.ask_about_suspect(lane.ground.conn, job, seen="two alike")
    assert row(lane, job) == before


def test_two_that_nothing_speaks_for_make_no_strict_one(lane: Lane) -> None:
    job = lane.add()
    assert quarantine(lane, strict=False)
    assert quarantine(lane, strict=False)
    assert row(lane, job)["strict"] is False


def test_a_suspect_is_not_missed_along_with_another(lane: Lane) -> None:
    suspect = lane.add()
    assert quarantine(lane)
    other = lane.add(run_at=datetime.now(UTC) + timedelta(hours=1))
    assert lane.ground.row(other)["hold_reason"] is None
    lane.ground.sql("UPDATE jobs SET useful_until = now()")
    assert ledger.expire(lane.ground.conn, who="me") == {other}
    assert lane.ground.state(suspect) is S.SCHEDULED


# What is scheduled for a time in which sends may be missing


def test_a_doubtful_time_is_its_own_quarantines_and_mail_has_none(lane: Lane) -> None:
    first, second = quarantine(lane), quarantine(lane)
    assert first is not None
    assert second is not None
    ground = lane.ground
    ground.sql("ALTER TABLE quarantines DISABLE TRIGGER quarantines_append_only")
    ground.sql(
        "UPDATE quarantines SET since = since - interval '2 h', at = at - interval '2 h'"
        " WHERE id = %s",
        first.id,
    )
    ground.sql("ALTER TABLE quarantines ENABLE TRIGGER quarantines_append_only")
    then = ground.one("SELECT since + interval '1 s' FROM quarantines WHERE id = %s", first.id)
    job = lane.add(run_at=then)
    assert row(lane, job)["quarantine_id"] == first.id
    assert ground.row(job)["hold_reason"] == Hold.QUARANTINE
    for queue in ("mail", "webhook"):
        letter = lane.add(run_at=then, queue=queue)
        assert ground.row(letter)["hold_reason"] is None
        assert row_or_none(lane, letter) == []


def test_what_turns_out_live_leaves_the_others_in_quarantine(lane: Lane) -> None:
    job, other = lane.add(), lane.add()
    assert quarantine(lane)
    before = row(lane, other)
    ledger.found_live(lane.ground.conn, job, remote_id=None, permalink=None, who="me", reason="x")
    left = row(lane, job)
    assert (left["released_by"], left["release_reason"]) == ("engine", "the job is published")
    assert (left["next_look_at"], left["look_token"]) == (None, None)
    assert row(lane, other) == before


def test_a_quarantine_holds_somebody_until_the_last_is_let_go(lane: Lane) -> None:
    conn, jobs = lane.ground.conn, [lane.add(), lane.add()]
    assert not ledger.holds_suspects(conn)
    assert quarantine(lane)
    for job in jobs:
        assert ledger.holds_suspects(conn)
        release(lane, job)
    assert not ledger.holds_suspects(conn)


def test_what_was_called_off_in_quarantine_is_not_freed_by_hand(lane: Lane) -> None:
    """Its row there is open still; only ``restore`` brings it back, into it."""
    ground, job = lane.ground, lane.add()
    ledger.open_quarantine(ground.conn, Cause.TICK, strict=True, absent_after=60.0, who="t")
    with ground.app.engine.begin() as conn:
        ledger.cancel(conn, job, who="me")
    with pytest.raises(psycopg.DatabaseError, match="in quarantine"):
        ground.sql("UPDATE jobs SET state = 'scheduled', settled_at = NULL WHERE id = %s", job)
    with ground.app.engine.begin() as conn:
        ledger.restore(conn, job, who="me")
    assert ground.row(job)["hold_reason"] == "quarantine"
