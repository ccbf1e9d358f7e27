"""Statements that no code of ours makes, by somebody with every right, and what stops them."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import psycopg
import pytest

from publisher.engine.job import JobId
from tests.engine.ground import Driver, Lane

LET_GO = "token = NULL, incarnation = NULL, claimed_at = NULL, hand_at = NULL, lease_until = NULL"
PROVE = "proof = 'refused', proved_by = 'me', proved_at = now()"
BEGUN = """
WITH begun AS (
    INSERT INTO attempts (job_id, number, token, incarnation, content_sha256, claimed_at)
    VALUES (%(of)s, %(number)s, %(under)s, 7, 'sha', clock_timestamp()))
"""
BEGIN = f"{BEGUN} UPDATE jobs SET state = 'sending', attempts = 1{{}} WHERE id = %(id)s"
LIVE = (
    f"UPDATE jobs SET state = 'published', remote_id = %(remote)s, {LET_GO}{{}} WHERE id = %(id)s"
)
CLAIM = """
UPDATE jobs SET state = 'claimed', token = %(token)s, incarnation = 7, claims = claims + 1,
       claimed_at = clock_timestamp(), lease_until = clock_timestamp(){} WHERE id = %(id)s
"""


def refuses(conn: Driver, code: str, query: str, at: Any = None) -> None:  # noqa: ANN401 - its values
    with pytest.raises(psycopg.DatabaseError) as refusal, conn.transaction():
        conn.execute(query.encode(), at)
    assert refusal.value.sqlstate == code, refusal.value


def allows(conn: Driver, query: str, at: Any = None) -> None:  # noqa: ANN401 - its values
    with conn.transaction(force_rollback=True):
        assert conn.execute(query.encode(), at).rowcount == 1


def unguarded(conn: Driver, query: str, *at: Any) -> None:  # noqa: ANN401 - its values
    """What no code does: a row as it could only be behind the triggers' backs."""
    conn.execute("SET LOCAL session_replication_role = replica")
    conn.execute(query.encode(), at)
    conn.execute("SET LOCAL session_replication_role = origin")


def values(lane: Lane, job_id: JobId) -> dict[str, Any]:
    """What the statements above are given; where it is, it failed and died once before."""
    ground = lane.ground
    post = ground.one("INSERT INTO posts (created_by) VALUES ('me') RETURNING id")
    ground.sql("UPDATE jobs SET failures = 1, deaths = 1 WHERE id = %s", job_id)
    at = {"id": job_id, "of": job_id, "number": 1, "under": ground.row(job_id)["token"]}
    return at | {"channel": ground.lane().channel_id, "post": post, "token": uuid4()}


def bound(conn: Driver, channel_id: int, remote_id: str, job_id: int) -> None:
    query = "INSERT INTO remote_posts (channel_id, remote_id, job_id) VALUES (%s, %s, %s)"
    conn.execute(query, [channel_id, remote_id, job_id])
