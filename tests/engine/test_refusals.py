"""What hand-written SQL cannot do to the promise, as workers and as pages, and why not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from publisher.engine.job import State
from tests.engine.conftest import Connect
from tests.engine.ground import Driver, Ground, Lane

S = State
NO_GRANT = "42501"
CHECK = "23514"
UNIQUE = "23505"
BEGIN = """
WITH begun AS (
    INSERT INTO attempts (job_id, number, token, incarnation, content_sha256, claimed_at)
    SELECT id, attempts + 1, coalesce(%(under)s, token), 7, 'sha', clock_timestamp()
      FROM jobs WHERE id = %(id)s)
UPDATE jobs SET state = 'sending', attempts = attempts + 1 WHERE id = %(id)s
"""
AGAIN = """
INSERT INTO attempts (job_id, number, token, incarnation, content_sha256, claimed_at)
VALUES (%(id)s, 2, gen_random_uuid(), 7, 'sha', now())
"""
CLAIM = """
UPDATE jobs SET state = 'claimed', token = %(token)s, incarnation = 7, claims = claims + 1,
       claimed_at = clock_timestamp(), lease_until = clock_timestamp() WHERE id = %(id)s
"""
LET_GO = "token = NULL, incarnation = NULL, claimed_at = NULL, hand_at = NULL, lease_until = NULL"
PROVE = "proof = 'refused', proved_by = 'me', proved_at = now()"


@dataclass
class Session:
    """A session in one role, whose every statement is taken back."""

    conn: Driver
    role: str

    def refuses(self, query: str, *, sqlstate: str, name: str | None = None, **at: Any) -> str:  # noqa: ANN401
        """Assert that the database refuses, with this SQLSTATE and constraint."""
        with pytest.raises(psycopg.DatabaseError) as refusal, self.conn.transaction():
            self.conn.execute(query.encode(), at)
        assert refusal.value.sqlstate == sqlstate, refusal.value
        assert refusal.value.diag.constraint_name == name
        return str(refusal.value)

    def allows(self, query: str, **at: object) -> None:
        assert self.conn.execute(query.encode(), at).rowcount == 1


@pytest.fixture(params=["engine", "app"])
def session(request: pytest.FixtureRequest, ground: Ground) -> Iterator[Session]:
    """Each of the two roles that processes act in."""
    database = ground.engine if request.param == "engine" else ground.app
    with database.connect_driver() as conn, conn.transaction(force_rollback=True):
        yield Session(conn, request.param)


@pytest.fixture
def engine(ground: Ground) -> Iterator[Session]:
    """What pages may not even ask for."""
    with ground.engine.connect_driver() as conn, conn.transaction(force_rollback=True):
        yield Session(conn, "engine")


# The promise


def test_no_second_send_begins_while_one_has_no_proof(engine: Session, lane: Lane) -> None:
    job = lane.put(S.SENDING)
    engine.refuses(AGAIN, id=job.id, sqlstate=UNIQUE, name="attempts_promise")


def test_the_promise_is_kept_even_where_no_trigger_looks(ground: Ground, lane: Lane) -> None:
    """Somebody with every right and the triggers off still meets the index."""
    job = lane.put(S.SENDING)
    with ground.root.transaction(force_rollback=True):
        ground.sql("SET LOCAL session_replication_role = replica")
        ground.sql(f"UPDATE jobs SET state = 'scheduled', {LET_GO} WHERE id = %s", job.id)
        ground.root.execute(CLAIM, {"id": job.id, "token": uuid4()})
        with pytest.raises(psycopg.errors.UniqueViolation) as refusal:
            ground.root.execute(BEGIN, {"id": job.id, "under": None})
    assert refusal.value.diag.constraint_name == "attempts_promise"


@pytest.mark.parametrize("state", [S.PUBLISHED, S.UNKNOWN, S.DROPPED])
def test_nor_while_one_is_or_may_be_live(engine: Session, lane: Lane, state: State) -> None:
    job = lane.put(state)
    engine.refuses(AGAIN, id=job.id, sqlstate=UNIQUE, name="attempts_promise")


def test_pages_begin_nothing_at_all(lane: Lane, connect_app: Connect) -> None:
    session = Session(connect_app(), "app")
    session.refuses(BEGIN, id=lane.put(S.CLAIMED).id, under=None, sqlstate=NO_GRANT)


def test_sending_is_not_taken_back_without_proof(session: Session, lane: Lane) -> None:
    job = lane.put(S.SENDING)
    for state in ("scheduled", "failed"):
        back = f"UPDATE jobs SET state = '{state}', {LET_GO} WHERE id = %(id)s"
        session.refuses(back, id=job.id, sqlstate="PB016")


def test_unknown_is_not_taken_back_without_proof(session: Session, lane: Lane) -> None:
    job = lane.put(S.UNKNOWN)
    for state in ("scheduled", "failed"):
        back = f"UPDATE jobs SET state = '{state}' WHERE id = %(id)s"
        session.refuses(back, id=job.id, sqlstate="PB016")


def test_with_proof_it_is(engine: Session, lane: Lane) -> None:
    job = lane.put(S.SENDING)
    engine.allows(f"UPDATE attempts SET {PROVE} WHERE job_id = %(id)s", id=job.id)
    engine.allows(f"UPDATE jobs SET state = 'scheduled', {LET_GO} WHERE id = %(id)s", id=job.id)


@pytest.mark.parametrize("was", [S.FAILED, S.MISSED])
def test_what_may_be_live_is_not_requeued(engine: Session, lane: Lane, was: State) -> None:
    job = lane.put(was, begun=True)
    lane.ground.sql("SET session_replication_role = replica")
    lane.ground.sql("UPDATE attempts SET proof = 'repeat_safe' WHERE job_id = %s", job.id)
    lane.ground.sql("RESET session_replication_role")
    back = "UPDATE jobs SET state = 'scheduled' WHERE id = %(id)s"
    assert "may be live" in engine.refuses(back, id=job.id, sqlstate="PB016")


@pytest.mark.parametrize("to", [S.FAILED, S.MISSED, S.CANCELLED])
def test_what_may_be_live_has_no_such_end(session: Session, lane: Lane, to: State) -> None:
    job = lane.put(S.CLAIMED, begun=True)
    lane.ground.sql("SET session_replication_role = replica")
    lane.ground.sql("UPDATE attempts SET proof = 'repeat_safe' WHERE job_id = %s", job.id)
    lane.ground.sql("RESET session_replication_role")
    end = f"UPDATE jobs SET state = '{to}', {LET_GO} WHERE id = %(id)s"
    session.refuses(end, id=job.id, sqlstate="PB017")


def test_a_cancelled_job_that_was_begun_is_not_restored(session: Session, lane: Lane) -> None:
    job = lane.put(S.SCHEDULED, begun=True)
    session.allows("UPDATE jobs SET state = 'cancelled' WHERE id = %(id)s", id=job.id)
    session.refuses(
        "UPDATE jobs SET state = 'scheduled' WHERE id = %(id)s", id=job.id, sqlstate="PB018"
    )


# Begin


def test_a_send_begins_with_the_attempt_beside_it(session: Session, lane: Lane) -> None:
    job = lane.put(S.CLAIMED)
    alone = "UPDATE jobs SET state = 'sending', attempts = attempts + 1 WHERE id = %(id)s"
    session.refuses(alone, id=job.id, sqlstate="PB015")


def test_a_send_begins_under_its_own_token(engine: Session, lane: Lane) -> None:
    job = lane.put(S.CLAIMED)
    engine.refuses(BEGIN, id=job.id, under=uuid4(), sqlstate="PB015")
    engine.allows(BEGIN, id=job.id, under=None)


@pytest.mark.parametrize("column", ["proof, proved_by, proved_at", "settled_at"])
def test_a_send_does_not_begin_as_one_that_has_ended(
    engine: Session, lane: Lane, column: str
) -> None:
    job = lane.put(S.CLAIMED)
    values = "'forced', 'me', now()" if "proof" in column else "now()"
    ended = BEGIN.replace("claimed_at)", f"claimed_at, {column})")
    ended = ended.replace("clock_timestamp()\n", f"clock_timestamp(), {values}\n")
    engine.refuses(ended, id=job.id, under=None, sqlstate="PB015")


# Tokens and numbers


def test_a_token_changes_only_at_a_claim(session: Session, lane: Lane) -> None:
    for state in (S.CLAIMED, S.SENDING):
        other = "UPDATE jobs SET token = gen_random_uuid() WHERE id = %(id)s"
        session.refuses(other, id=lane.put(state).id, sqlstate="PB013")


def test_a_token_is_not_used_again(session: Session, lane: Lane) -> None:
    job = lane.put(S.SCHEDULED, begun=True)
    session.refuses(CLAIM, id=job.id, token=job.token, sqlstate="PB013")
    session.allows(CLAIM, id=job.id, token=uuid4())


def test_numbers_only_go_up_and_one_at_a_time(session: Session, lane: Lane) -> None:
    job = lane.put(S.CLAIMED, begun=True)
    session.allows("UPDATE jobs SET failures = 3, deaths = 2 WHERE id = %(id)s", id=job.id)
    for change in (
        "attempts = attempts - 1", "attempts = attempts + 1", "claims = claims - 1",
        "claims = claims + 1", "deaths = deaths - 1", "failures = failures - 1",
    ):  # fmt: skip
        session.refuses(f"UPDATE jobs SET {change} WHERE id = %(id)s", id=job.id, sqlstate="PB014")
    skipped = CLAIM.replace("claims + 1", "claims + 2")
    other = lane.put(S.SCHEDULED)
    session.refuses(skipped, id=other.id, token=uuid4(), sqlstate="PB014")


def test_only_a_job_that_ended_badly_counts_anew(session: Session, lane: Lane) -> None:
    for state in (S.FAILED, S.MISSED):
        job = lane.put(state)
        lane.ground.sql("UPDATE jobs SET failures = 2, deaths = 1 WHERE id = %s", job.id)
        session.allows(
            "UPDATE jobs SET state = 'scheduled', failures = 0, deaths = 0 WHERE id = %(id)s",
            id=job.id,
        )


@pytest.mark.parametrize(
    "change",
    ["kind = 'mail'", "channel_id = %(channel)s", "post_id = %(post)s"],
)
def test_a_job_keeps_what_it_is(session: Session, lane: Lane, change: str) -> None:
    other = lane.ground.lane().channel_id
    post = lane.ground.one("INSERT INTO posts (created_by) VALUES ('me') RETURNING id")
    job = lane.put(S.SCHEDULED)
    session.refuses(
        f"UPDATE jobs SET {change} WHERE id = %(id)s",
        id=job.id, channel=other, post=post, sqlstate="PB010",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("state", "change", "name"),
    [
        (S.SCHEDULED, "token = gen_random_uuid()", "jobs_held_exactly_in_claimed_and_sending"),
        (S.CLAIMED, "token = NULL", "jobs_held_exactly_in_claimed_and_sending"),
        (S.CLAIMED, "lease_until = NULL", "jobs_held_exactly_in_claimed_and_sending"),
        (S.CLAIMED, "incarnation = NULL", "jobs_held_exactly_in_claimed_and_sending"),
        (S.SCHEDULED, "hand_at = now()", "jobs_held_exactly_in_claimed_and_sending"),
        (S.CLAIMED, "hold_reason = 'x'", "jobs_held_back_only_while_scheduled"),
        (S.FAILED, "remote_id = 'x'", "jobs_identified_exactly_in_published"),
        (S.UNKNOWN, "attested_at = now()", "jobs_identified_exactly_in_published"),
        (S.UNKNOWN, "state = 'published'", "jobs_identified_exactly_in_published"),
        (S.CLAIMED, "attempts = 9", "jobs_numbers"),
        (S.FAILED, "failures = -1", "jobs_numbers"),
        (S.SCHEDULED, "state = 'retrying'", "jobs_state_check"),
    ],
)
def test_columns_agree_with_the_state(
    session: Session, lane: Lane, state: State, change: str, name: str
) -> None:
    job = lane.put(state)
    session.refuses(
        f"UPDATE jobs SET {change} WHERE id = %(id)s", id=job.id, sqlstate=CHECK, name=name
    )


# Published


def test_published_needs_a_remote_id_that_is_bound_to_the_job(session: Session, lane: Lane) -> None:
    job, other = lane.put(S.UNKNOWN), lane.put(S.PUBLISHED)
    live = "UPDATE jobs SET state = 'published', remote_id = %(remote)s WHERE id = %(id)s"
    session.refuses(live, id=job.id, remote=None, sqlstate=CHECK,
                    name="jobs_identified_exactly_in_published")  # fmt: skip
    session.refuses(live, id=job.id, remote="nobody's", sqlstate="PB019")
    session.refuses(live, id=job.id, remote=f"id of {other.id}", sqlstate="PB019")


def test_a_person_may_attest_without_a_remote_id(session: Session, lane: Lane) -> None:
    job = lane.put(S.UNKNOWN)
    session.allows(
        "UPDATE jobs SET state = 'published', attested_at = now() WHERE id = %(id)s", id=job.id
    )


@pytest.mark.parametrize("change", ["remote_id = 'another'", "attested_at = now()"])
def test_published_keeps_its_remote_id(session: Session, lane: Lane, change: str) -> None:
    job = lane.put(S.PUBLISHED)
    session.refuses(f"UPDATE jobs SET {change} WHERE id = %(id)s", id=job.id, sqlstate="PB012")


def test_one_open_job_for_a_post_on_a_channel(session: Session, lane: Lane) -> None:
    post = lane.ground.one("INSERT INTO posts (created_by) VALUES ('me') RETURNING id")
    first = lane.put(S.FAILED, post_id=post)
    lane.put(S.SENDING, post_id=post)
    session.refuses(
        "UPDATE jobs SET state = 'scheduled' WHERE id = %(id)s",
        id=first.id, sqlstate=UNIQUE, name="jobs_one_open",
    )  # fmt: skip


def test_nothing_of_a_job_is_deleted(session: Session, lane: Lane) -> None:
    job = lane.put(S.PUBLISHED)
    for table, column in (
        ("attempts", "job_id"), ("job_contents", "job_id"), ("jobs", "id"), ("looks", "job_id"),
        ("unique_locks", "job_id"),
    ):  # fmt: skip
        session.refuses(
            f"DELETE FROM {table} WHERE {column} = %(id)s", id=job.id, sqlstate=NO_GRANT
        )
        session.refuses(f"TRUNCATE {table}", sqlstate=NO_GRANT)


def test_the_triggers_cannot_be_switched_off(session: Session, ground: Ground) -> None:
    session.refuses("ALTER TABLE jobs DISABLE TRIGGER ALL", sqlstate=NO_GRANT)
    session.refuses("SET LOCAL session_replication_role = replica", sqlstate=NO_GRANT)
    session.refuses("DROP INDEX attempts_promise", sqlstate=NO_GRANT)


def test_a_proof_given_in_the_same_statement_counts(engine: Session, lane: Lane) -> None:
    job = lane.put(S.SENDING)
    both = (
        f"WITH proved AS (UPDATE attempts SET {PROVE} WHERE job_id = %(id)s)"
        f" UPDATE jobs SET state = 'failed', {LET_GO} WHERE id = %(id)s"
    )
    engine.allows(both, id=job.id)
