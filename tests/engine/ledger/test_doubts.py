"""Doubts and suspects: whose look it is, when it is due, and what a run that is gone leaves."""

from __future__ import annotations

from datetime import datetime

import pytest

from publisher.engine import ledger
from publisher.engine.job import JobId, State
from publisher.engine.ledger import Doubt
from publisher.engine.witness import Cause
from tests.engine.ground import Ground, Lane, Row, not_sent

S = State


@pytest.fixture
def lane(own_ground: Ground) -> Lane:
    """A database of this test's own: looks are claimed from all of it."""
    return own_ground.lane()


def row(lane: Lane, job_id: int, table: str = "doubts") -> Row:
    (found,) = lane.ground.sql(f"SELECT * FROM {table} WHERE job_id = %s", job_id)
    return found


def claim(lane: Lane, limit: int = 8) -> dict[JobId, object]:
    held = ledger.claim_doubts(lane.ground.conn, limit=limit, lease=60.0)
    return {doubt.job_id: token for doubt, token in held}


def test_a_look_is_of_one_doubt_though_another_has_the_same_token(lane: Lane) -> None:
    conn = lane.ground.conn
    job, other = lane.put(S.UNKNOWN), lane.put(S.UNKNOWN)
    held = {doubt.job_id: token for doubt, token in ledger.claim_doubts(conn, limit=8, lease=60.0)}
    token = held[job.id]
    lane.ground.sql("UPDATE doubts SET look_token = %s WHERE job_id = %s", token, other.id)
    lane.ground.sql("UPDATE doubts SET look_token = look_token WHERE job_id = %s", job.id)
    before = row(lane, other.id)
    assert ledger.holds_look(conn, job.id, token)
    ledger.let_go(conn, {job.id: token})
    assert row(lane, other.id) == before
    assert not ledger.holds_look(conn, job.id, token)
    assert ledger.holds_look(conn, other.id, token)
    assert not ledger.look_again(conn, job.id, token, last_look="x", pause=1.0)
    assert row(lane, other.id) == before
    assert ledger.look_again(conn, other.id, token, last_look="x", pause=1.0)


def test_a_look_is_due_in_its_time_and_held_by_one(lane: Lane) -> None:
    job, later = lane.put(S.UNKNOWN), lane.put(S.UNKNOWN)
    lane.ground.sql(
        "UPDATE doubts SET next_look_at = now() + interval '1 hour' WHERE job_id = %s", later.id
    )
    assert set(claim(lane)) == {job.id}
    assert claim(lane) == {}
    lane.ground.sql(
        "UPDATE doubts SET lease_until = now() - interval '1 second' WHERE job_id = %s", job.id
    )
    assert set(claim(lane)) == {job.id}


# A run whose machine is declared gone


def ran_by(lane: Lane, run: int) -> dict[str, JobId]:
    lane.incarnation = run
    proved = lane.sending()
    assert lane.end(proved, not_sent()).done
    doubted = lane.put(S.SCHEDULED, begun=True)
    again = lane.sending(doubted.id)
    ledger.forsake(lane.ground.conn, run, deaths=3, who="me")
    return {
        "doubted": again.id,
        "sending": lane.sending().id,
        "claimed": lane.claimed().id,
        "proved": proved.id,
        "published": lane.put(S.PUBLISHED).id,
    }


def declare(lane: Lane, run: int) -> datetime | None:
    with lane.ground.app.engine.begin() as conn:
        return ledger.declare_gone(conn, run, who="me", reason="the host burnt down")


def test_one_run_is_declared_gone_and_told_of_in_what_it_leaves_in_doubt(lane: Lane) -> None:
    ground = lane.ground
    one, other = ground.incarnation("a"), ground.incarnation("b")
    own, others = ran_by(lane, one), ran_by(lane, other)
    at = declare(lane, one)
    assert at is not None
    gone = {
        found["id"]: found["declared_gone_at"] for found in ground.sql("SELECT * FROM incarnations")
    }
    assert gone == {one: at, other: None}
    told = ground.sql("SELECT * FROM job_events WHERE event = 'declare_gone' ORDER BY job_id")
    assert {(event["job_id"], event["attempt"]) for event in told} == {
        (own["doubted"], 1), (own["doubted"], 2), (own["sending"], 1),
    }  # fmt: skip
    assert not {event["job_id"] for event in told} & set(others.values())
    assert declare(lane, one) == at
    assert declare(lane, other + 1) is None


# Suspects


def quarantine(lane: Lane) -> None:
    assert ledger.open_quarantine(
        lane.ground.conn, Cause.RESTORED, strict=True, absent_after=60.0, who="test"
    )


def suspects(lane: Lane) -> set[JobId]:
    held = ledger.claim_suspects(lane.ground.conn, limit=8, lease=60.0)
    return {suspect.job_id for suspect, _ in held}


def test_a_suspect_is_looked_for_in_its_time_while_it_waits(lane: Lane) -> None:
    job, later, over = lane.add(), lane.add(), lane.add()
    quarantine(lane)
    lane.ground.sql(
        "UPDATE quarantined SET next_look_at = now() + interval '1 hour' WHERE job_id = %s", later
    )
    with lane.ground.app.engine.begin() as conn:
        ledger.cancel(conn, over, who="me")
    assert suspects(lane) == {job}
    assert row(lane, over, "quarantined")["look_token"] is None
    assert suspects(lane) == set()
    lane.ground.sql("UPDATE quarantined SET lease_until = now() - interval '1 s'"
                    " WHERE job_id = %s", job)  # fmt: skip
    assert suspects(lane) == {job}


def test_what_is_known_of_suspects_is_of_those_that_wait_in_quarantine(lane: Lane) -> None:
    job, other, over, released = lane.add(), lane.add(), lane.add(), lane.add()
    quarantine(lane)
    with lane.ground.app.engine.begin() as conn:
        ledger.cancel(conn, over, who="me")
    ledger.release_suspects(lane.ground.conn, [released], who="me", reason="x")
    found = ledger.suspects(lane.ground.conn, [job, over, released])
    assert [suspect.job_id for suspect in found] == [job]
    assert found[0].content == lane.ground.one(
        "SELECT content FROM job_contents WHERE job_id = %s", job
    )
    assert other not in {suspect.job_id for suspect in found}


def test_twins_are_of_the_same_content_on_the_same_page_and_open_or_in_doubt(lane: Lane) -> None:
    content, ground = lane.new().content, lane.ground
    job = lane.add(content=content)
    elsewhere = ground.lane()

    def twins() -> int:
        (found,) = ledger.suspects(ground.conn, [job])
        count: int = found.twins
        return count

    lane.put(S.PUBLISHED, content=content)
    lane.put(S.FAILED, content=content)
    lane.add()
    unknown = lane.put(S.UNKNOWN, content=content)
    elsewhere.add(content=content)
    quarantine(lane)
    assert twins() == 1
    (doubt,) = ledger.doubts(ground.conn, [unknown.id])
    ledger.drop(ground.conn, doubt, who="me", reason="x")
    assert twins() == 0


def test_a_twin_in_quarantine_counts_until_it_is_released(lane: Lane) -> None:
    content, ground = lane.new().content, lane.ground
    job, twin = lane.add(content=content), lane.add(content=content)
    quarantine(lane)

    def found(job_id: JobId) -> int:
        (suspect,) = ledger.suspects(ground.conn, [job_id])
        count: int = suspect.twins
        return count

    assert (found(job), found(twin)) == (1, 1)
    ledger.release_suspects(ground.conn, [twin], who="me", reason="x")
    assert found(job) == 0


def test_a_doubt_names_the_attempt_in_question(lane: Lane) -> None:
    first = lane.put(S.SCHEDULED, begun=True)
    second = lane.sending(first.id)
    ledger.forsake(lane.ground.conn, 7, deaths=3, who="me")
    other = lane.put(S.UNKNOWN)
    found: dict[JobId, Doubt] = {
        doubt.job_id: doubt for doubt in ledger.doubts(lane.ground.conn, [first.id, other.id])
    }
    assert (found[first.id].attempt, found[first.id].token) == (2, second.token)
    assert (found[other.id].attempt, found[other.id].token) == (1, other.token)
    assert ledger.doubts(lane.ground.conn, [lane.add()]) == []
