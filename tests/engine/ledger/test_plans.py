"""The coordinator's statements find their rows by primary key, planned for any values."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import psycopg
import pytest

from publisher.engine import ledger
from tests.engine.ground import Driver, Ground, Lane, lost
from tests.postgres import Postgres

# By their full names: in the package, these names are the verbs.
BEGIN, CLAIM, SETTLE = (
    import_module(f"publisher.engine.ledger.{name}") for name in ("begin", "claim", "settle")
)
JOBS = 10_000
HELD = 300


@pytest.fixture(scope="module")
def busy(pg: Postgres) -> Iterator[Lane]:
    """Ten thousand jobs, most of them published, some due, three hundred held."""
    with Ground.open(pg) as ground:
        lane = ground.lane()
        for _ in range(JOBS // 1000):
            ledger.enqueue(ground.conn, [lane.new() for _ in range(1000)])
        ground.sql("SET session_replication_role = replica")
        ground.sql(
            "INSERT INTO attempts (job_id, number, token, incarnation, content_sha256, claimed_at,"
            " outcome, remote_id) SELECT id, 1, gen_random_uuid(), 1, 'x', now(), 'published', id"
            " FROM jobs WHERE id > 1000"
        )
        ground.sql(
            "INSERT INTO remote_posts SELECT channel_id, id::text, id FROM jobs WHERE id > 1000"
        )
        ground.sql(
            "UPDATE jobs SET state = 'published', remote_id = id::text, attempts = 1, claims = 1"
            " WHERE id > 1000"
        )
        ground.sql("RESET session_replication_role")
        lane.claim(HELD)
        ground.sql("VACUUM ANALYZE")
        yield lane


def plan(conn: Driver, statement: str, parameters: dict[str, Any]) -> list[dict[str, Any]]:
    """Every node of the generic plan, as the coordinator's connection makes it."""
    assert conn.execute("SHOW plan_cache_mode").fetchone() == ("force_generic_plan",)
    names = list(dict.fromkeys(re.findall(r"%\((\w+)\)s", statement)))
    for number, name in enumerate(names, 1):
        statement = statement.replace(f"%({name})s", f"${number}")
    conn.execute(f"PREPARE explained AS {statement}".encode(), prepare=False)
    try:
        with psycopg.ClientCursor(conn) as cursor:
            places = ", ".join(["%s"] * len(names))
            cursor.execute(
                f"EXPLAIN (VERBOSE, FORMAT JSON) EXECUTE explained ({places})".encode(),
                [parameters[name] for name in names],
            )
            row = cursor.fetchone()
    finally:
        conn.execute("DEALLOCATE explained")
    assert row is not None
    assert "$1" in json.dumps(row[0])  # planned for any values, not for these
    nodes = []
    waiting = [row[0][0]["Plan"]]
    while waiting:
        node = waiting.pop()
        nodes.append(node)
        waiting.extend(node.get("Plans", []))
    return nodes


def scans(nodes: list[dict[str, Any]], table: str) -> list[tuple[str, str | None]]:
    return [
        (node["Node Type"], node.get("Index Name"))
        for node in nodes
        if node.get("Relation Name") == table and "Scan" in node["Node Type"]
    ]


def held(lane: Lane) -> dict[Any, Any]:
    rows = lane.ground.sql("SELECT id, token FROM jobs WHERE token IS NOT NULL ORDER BY id")
    return {(row["id"], row["token"]): lost() for row in rows}


@pytest.mark.both_servers
def test_begin_finds_its_jobs_by_primary_key(busy: Lane) -> None:
    keys = list(held(busy))
    nodes = plan(
        busy.ground.conn,
        BEGIN._BEGIN,
        {
            "ids": [i for i, _ in keys],
            "tokens": [t for _, t in keys],
            "lease": 60.0,
            "window": 50.0,
            "never_late": ["mail", "delete"],
        },
    )
    assert set(scans(nodes, "jobs")) == {("Index Scan", "jobs_pkey")}
    assert set(scans(nodes, "job_contents")) <= {("Index Scan", "job_contents_pkey")}


@pytest.mark.both_servers
def test_settle_finds_its_jobs_and_attempts_by_primary_key(busy: Lane) -> None:
    nodes = plan(busy.ground.conn, SETTLE._SETTLE, SETTLE._parameters(held(busy)))
    assert set(scans(nodes, "jobs")) == {("Index Scan", "jobs_pkey")}
    assert {node for node, _ in scans(nodes, "attempts")} <= {
        "Index Scan", "Index Only Scan", "Bitmap Heap Scan",
    }  # fmt: skip
    assert ("Index Scan", "attempts_pkey") in scans(nodes, "attempts")


@pytest.mark.both_servers
@pytest.mark.parametrize("statement", [CLAIM._LEASES, CLAIM._HANDS])
def test_leases_are_extended_by_primary_key(busy: Lane, statement: str) -> None:
    keys = list(held(busy))
    nodes = plan(
        busy.ground.conn, statement,
        {
            "ids": [i for i, _ in keys],
            "tokens": [t for _, t in keys],
            "lease": 60.0,
            "window": 50.0,
        },
    )  # fmt: skip
    assert set(scans(nodes, "jobs")) == {("Index Scan", "jobs_pkey")}


@pytest.mark.both_servers
def test_a_claim_reads_what_is_due_and_never_the_finished(busy: Lane) -> None:
    nodes = plan(
        busy.ground.conn,
        CLAIM._CLAIM,
        {
            "limit": 64, "suspect": False, "queues": [busy.queue], "incarnation": 1,
            "lease": 60.0,
        },
    )  # fmt: skip
    assert ("Index Scan", "jobs_due") in scans(nodes, "jobs")
    assert "Seq Scan" not in {node for node, _ in scans(nodes, "jobs")}
