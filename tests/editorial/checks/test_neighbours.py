"""The read behind *alike*: which jobs it brings, and by which indexes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import text

from publisher.editorial import checks
from publisher.engine import queries
from publisher.engine.content import Post
from publisher.engine.job import REHEARSAL, State
from publisher.engine.queries import Neighbour
from publisher.engine.queries.neighbours import AROUND, MOST, NEIGHBOURS
from tests.engine.ground import Ground, Lane
from tests.postgres import Postgres

NOW = datetime.now(UTC)


@pytest.fixture(scope="module")
def ground(pg: Postgres) -> Iterator[Ground]:
    with Ground.open(pg) as opened:
        yield opened


@pytest.fixture
def lane(ground: Ground) -> Lane:
    return ground.lane()


def near(lane: Lane, at: datetime = NOW, **how: Any) -> tuple[Neighbour, ...]:  # noqa: ANN401
    with lane.ground.app.engine.connect() as conn:
        return queries.neighbours(conn, lane.channel_id, at, **how)


def test_what_is_live_may_be_or_waits_and_nothing_that_ended_otherwise(lane: Lane) -> None:
    placed = {state: lane.put(state).id for state in State}
    found = {one.job_id: one.state for one in near(lane)}
    told = (State.PUBLISHED, State.SCHEDULED, State.CLAIMED, State.SENDING, State.UNKNOWN)
    assert found == {placed[state]: state for state in told}


def test_only_of_this_channel_and_not_of_the_post_itself(lane: Lane, ground: Ground) -> None:
    other = ground.lane()
    other.put(State.SCHEDULED)
    job = lane.put(State.SCHEDULED).id
    ground.sql("INSERT INTO posts (id, created_by) OVERRIDING SYSTEM VALUE VALUES (77, 't')")
    ground.sql("SET session_replication_role = replica")
    ground.sql("UPDATE jobs SET post_id = 77 WHERE id = %s", job)
    ground.sql("RESET session_replication_role")
    assert [one.post_id for one in near(lane)] == [77]
    assert [one.post_id for one in near(lane, but=78)] == [77]
    assert near(lane, but=77) == ()


def test_another_workspace_sees_nothing(lane: Lane) -> None:
    lane.put(State.PUBLISHED)
    lane.put(State.SCHEDULED)
    with lane.ground.app.engine.begin() as conn:
        conn.execute(text("SELECT set_config('publisher.workspace', '#12345', true)"))
        assert queries.neighbours(conn, lane.channel_id, NOW) == ()
    assert len(near(lane)) == 2


def test_a_rehearsal_is_none(lane: Lane) -> None:
    lane.add(queue=REHEARSAL)
    assert near(lane) == ()


@pytest.mark.parametrize("state", [State.PUBLISHED, State.SCHEDULED, State.UNKNOWN, State.SENDING])
def test_within_the_window(lane: Lane, ground: Ground, state: State) -> None:
    job = lane.put(state).id
    for apart, is_near in ((AROUND - timedelta(1), True), (AROUND + timedelta(1), False)):
        for at in (NOW - apart, NOW + apart):
            assert bool(near(lane, at)) is is_near, (state, at)
    assert near(lane, datetime.max.replace(tzinfo=UTC)) == ()
    assert near(lane, datetime.min.replace(tzinfo=UTC)) == ()
    assert [one.job_id for one in near(lane)] == [job]


def test_a_second_copy_on_the_page_is_one_job(lane: Lane, ground: Ground) -> None:
    job = lane.put(State.PUBLISHED).id
    ground.sql(
        "INSERT INTO remote_posts (channel_id, remote_id, job_id, bound_at)"
        " VALUES (%s, 'copy', %s, clock_timestamp() - interval '1 day')",
        lane.channel_id,
        job,
    )
    (only,) = near(lane)
    assert NOW - only.at < timedelta(hours=1)
    (only,) = near(lane, NOW - timedelta(days=1))
    assert timedelta(hours=23) < NOW - only.at


def test_the_nearest_of_many(lane: Lane) -> None:
    for days in (3, 1, 2):
        lane.add(run_at=NOW + timedelta(days=days))
    days = [round((one.at - NOW) / timedelta(days=1)) for one in near(lane)]
    assert days == [1, 2, 3]


def test_from_the_table_to_the_words(lane: Lane) -> None:
    lane.put(State.PUBLISHED, content=Post("Good morning, everybody, from all of us").to_json())
    post = Post("Good  morning, Everybody, from all of us")
    with lane.ground.app.engine.connect() as conn:
        around = checks.near(conn, lane.channel_id, NOW)
    (found,) = checks.resembling(post, around, NOW)
    assert found.is_twin
    assert found.words.startswith("The same text as a post live here on ")


@pytest.mark.both_servers
def test_each_part_has_its_index_and_its_bound(ground: Ground) -> None:
    """Of 30,000 jobs on three channels, nothing is read that the answer does not need."""
    lanes = [ground.lane() for _ in range(3)]
    ids = [lane.channel_id for lane in lanes]
    ground.sql("SET session_replication_role = replica")
    ground.sql(FILL_JOBS, ids, Post("Hello").to_json())
    ground.sql(FILL_PAGE, ids)
    ground.sql("RESET session_replication_role")
    for table in ("jobs", "job_contents", "remote_posts"):
        ground.sql(f"ANALYZE {table}")
    lane = lanes[0]
    given = {
        "channel": lane.channel_id, "at": NOW, "first": NOW - AROUND, "last": NOW + AROUND,
        "most": MOST, "but": None, "rehearsal": REHEARSAL,
    }  # fmt: skip
    with ground.app.engine.connect() as conn:
        rows = conn.execute(text(f"EXPLAIN (ANALYZE, FORMAT JSON) {NEIGHBOURS}"), given)
        plan = rows.scalar_one()
    plan = json.loads(plan) if isinstance(plan, str) else plan
    nodes = [*_nodes(plan[0]["Plan"])]
    read = [node for node in nodes if "Relation Name" in node]
    large = {"jobs", "job_contents", "remote_posts"}
    scans = {n["Node Type"] for n in read if n["Relation Name"] in large}
    assert not {kind for kind in scans if kind.startswith("Seq")}, scans
    # Content is the heavy part: as many rows as are compared, and no more.
    contents = [n for n in read if n["Relation Name"] == "job_contents"]
    assert sum(n["Actual Rows"] * n["Actual Loops"] for n in contents) <= 4 * MOST
    states = Counter(one.state for one in near(lane))
    assert states[State.PUBLISHED] == MOST
    assert 0 < states[State.SCHEDULED] < MOST


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from _nodes(child)


# Ten thousand to a channel: one in ten waits, the others are live, over two years.
FILL_JOBS = """
WITH new AS (
    INSERT INTO jobs (id, channel_id, kind, queue, state, due_at, run_at, remote_id, claims,
                      attempts)
    SELECT nextval('jobs_id_seq'), (%s::int[])[1 + n %% 3], 'post', 'publish',
           CASE WHEN n %% 10 = 0 THEN 'scheduled' ELSE 'published' END,
           at, at, CASE WHEN n %% 10 <> 0 THEN 'r' || n END, 1, 1
      FROM generate_series(1, 30000) AS n,
           LATERAL (SELECT now() + (n - 15000) * interval '35 minutes' AS at) AS due
    RETURNING id
)
INSERT INTO job_contents (job_id, key, content, content_sha256)
SELECT id, 'alike/' || id, given, sha256(convert_to(given, 'UTF8'))
  FROM new, (SELECT %s::text AS given) AS content
"""
FILL_PAGE = """
INSERT INTO remote_posts (channel_id, remote_id, job_id, bound_at)
SELECT channel_id, remote_id, id, run_at FROM jobs
 WHERE state = 'published' AND channel_id = any(%s::int[]) AND remote_id LIKE 'r%%'
"""
