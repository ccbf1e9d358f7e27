"""Every ordered pair of states, tried with hand-written SQL on a real database."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

from publisher.engine.job import State
from publisher.engine.transitions import trigger_pairs
from tests.engine.ground import Driver, Ground, Lane, Placed

S = State
PROVE = """
UPDATE attempts SET proof = 'not_sent', proved_by = 'test', proved_at = clock_timestamp()
 WHERE job_id = %s AND proof IS NULL
"""
PAIRS = frozenset(trigger_pairs())
EVERY_PAIR = list(product(State, State))
HELD = {S.CLAIMED, S.SENDING}

# Everything a legal move between these two states needs besides being in the table.
MOVE = """
WITH go AS (SELECT %(id)s::bigint AS id, %(to)s::text AS state, %(token)s::uuid AS token,
                   %(remote_id)s::text AS remote_id, %(held)s AS held),
begun AS (
    INSERT INTO attempts (job_id, number, token, incarnation, content_sha256, claimed_at)
    SELECT j.id, j.attempts + 1, coalesce(j.token, go.token), 7, 'sha', clock_timestamp()
      FROM jobs j JOIN go USING (id) WHERE go.state = 'sending' AND j.state <> 'sending'),
proved AS (
    UPDATE attempts a SET proof = 'not_sent', proved_by = 'test', proved_at = clock_timestamp()
      FROM go
     WHERE a.job_id = go.id AND a.proof IS NULL AND go.state IN ('scheduled', 'failed'))
UPDATE jobs j
   SET state = go.state,
       token = CASE WHEN go.held THEN coalesce(j.token, go.token) END,
       incarnation = CASE WHEN go.held THEN 7 END,
       claimed_at = CASE WHEN go.held THEN clock_timestamp() END,
       lease_until = CASE WHEN go.held THEN clock_timestamp() END,
       hand_at = NULL,
       claims = j.claims + (go.state = 'claimed' AND j.state <> 'claimed')::integer,
       attempts = j.attempts + (go.state = 'sending' AND j.state <> 'sending')::integer,
       remote_id = CASE WHEN go.state = 'published' THEN go.remote_id END
  FROM go WHERE j.id = go.id
"""


@pytest.fixture(scope="module")
def placed(ground: Ground) -> dict[State, Placed]:
    """One job in each state, which every test leaves where it was."""
    lane = ground.lane()
    jobs = {state: lane.put(state) for state in State}
    # Claims enough, so that the numbers never stand in the way of a move.
    ground.sql("SET session_replication_role = replica")
    ground.sql("UPDATE jobs SET claims = claims + 9 WHERE channel_id = %s", lane.channel_id)
    ground.sql("RESET session_replication_role")
    return jobs


@pytest.fixture
def engine(ground: Ground) -> Iterator[Driver]:
    """A transaction of the engine's that is always taken back."""
    with ground.engine.connect_driver() as conn, conn.transaction(force_rollback=True):
        yield conn


def move(conn: Driver, ground: Ground, job: Placed, to: State) -> int:
    """Try the move with everything it needs; the number of rows that moved."""
    row = ground.row(job.id)
    remote_id = row["remote_id"] or f"bound to {job.id}"
    if to is S.PUBLISHED and row["remote_id"] is None:
        conn.execute(
            "INSERT INTO remote_posts (channel_id, remote_id, job_id) VALUES (%s, %s, %s)",
            [row["channel_id"], remote_id, job.id],
        )
    if to is S.SENDING and row["state"] != to:
        conn.execute(PROVE, [job.id])  # or the promise index would refuse it first
    values = {
        "id": job.id, "to": to, "token": uuid4(), "remote_id": remote_id, "held": to in HELD,
    }  # fmt: skip
    return conn.execute(MOVE, values).rowcount


@pytest.mark.both_servers
@pytest.mark.parametrize(("was", "to"), EVERY_PAIR, ids=[f"{was}-{to}" for was, to in EVERY_PAIR])
def test_a_pair_is_let_through_exactly_when_it_is_in_the_table(
    ground: Ground, placed: dict[State, Placed], engine: Driver, was: State, to: State
) -> None:
    job = placed[was]
    if was is to or (was, to) in PAIRS:
        assert move(engine, ground, job, to) == 1
        return
    before = ground.everything(job.id)
    with pytest.raises(psycopg.DatabaseError) as refusal:
        move(engine, ground, job, to)
    assert refusal.value.sqlstate == "PB011"
    assert f"may not go from {was} to {to}" in str(refusal.value)
    assert ground.everything(job.id) == before


def test_there_are_81_pairs_and_28_of_them_pass() -> None:
    assert len(EVERY_PAIR) == 81
    assert len(PAIRS) == 28


def pairs_of(text: str) -> frozenset[tuple[str, str]]:
    found = re.findall(r"'?(\w+)>(\w+)", text)
    return frozenset((was, to) for was, to in found)


def test_the_migration_and_the_installed_function_name_the_same_pairs(ground: Ground) -> None:
    migration = Path(__file__).parents[2] / "migrations/versions/0001_kernel.py"
    written = re.search(r'PAIRS = """(.*?)"""', migration.read_text(), re.DOTALL)
    assert written is not None
    assert pairs_of(written[1]) == PAIRS
    source = ground.one("SELECT prosrc FROM pg_proc WHERE proname = 'job_moved'")
    array = re.search(r"ARRAY\[(.*?)\]", source, re.DOTALL)
    assert array is not None
    assert pairs_of(array[1]) == PAIRS


def test_a_job_starts_as_scheduled(ground: Ground, lane: Lane, engine: Driver) -> None:
    columns = "id, channel_id, kind, queue, due_at, run_at, state, claims, attempts"
    for state, claims, attempts in [
        ("failed", 0, 0), ("cancelled", 0, 0), ("scheduled", 1, 0), ("scheduled", 1, 1),
    ]:  # fmt: skip
        with pytest.raises(psycopg.DatabaseError) as refusal, engine.transaction():
            engine.execute(
                f"INSERT INTO jobs ({columns}) VALUES (nextval('jobs_id_seq'), %s, 'post', 'q',"
                " now(), now(), %s, %s, %s)".encode(),
                [lane.channel_id, state, claims, attempts],
            )
        assert refusal.value.sqlstate == "PB011"
    inserted = engine.execute(
        f"INSERT INTO jobs ({columns}) VALUES (nextval('jobs_id_seq'), %s, 'post', 'q', now(),"
        " now(), 'scheduled', 0, 0)".encode(),
        [lane.channel_id],
    )
    assert inserted.rowcount == 1
