"""Posts, versions, approvals and jobs as rows, put beside each other with the triggers off."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import psycopg
import pytest

from tests.engine.ground import Driver

HELD = ("claimed", "sending")


@dataclass
class Shelf:
    """A transaction that is taken back: ``put`` what a test wants, then ``do`` what it asks."""

    root: Driver

    def one(self, query: str, *values: object) -> Any:  # noqa: ANN401 - whatever is asked for
        row = self.root.execute(query.encode(), values).fetchone()
        assert row is not None
        return row[0]

    def put(self, query: str, *values: object) -> int:
        """Add a row past every trigger and key to another; its id."""
        self.root.execute("SET LOCAL session_replication_role = replica")
        found: int = self.one(f"{query} RETURNING *", *values)
        self.root.execute("SET LOCAL session_replication_role = origin")
        return found

    def do(self, query: str, *values: object) -> int:
        """Change something as anybody might; how many rows."""
        self.root.execute("SET LOCAL session_replication_role = origin")
        with self.root.transaction():
            count = self.root.execute(query.encode(), values).rowcount
            self.root.execute("SET CONSTRAINTS ALL IMMEDIATE")
            self.root.execute("SET CONSTRAINTS ALL DEFERRED")
        return count

    def refusal(self, query: str, *values: object) -> str | None:
        """The SQLSTATE that it is refused with."""
        with pytest.raises(psycopg.DatabaseError) as caught:
            self.do(query, *values)
        return caught.value.sqlstate

    # Rows

    def workspace(self, slug: str, *, rule: str = "hold", by_other: bool = False) -> int:
        return self.put(
            "INSERT INTO workspaces (slug, name, zone, edit_rule, approval_by_other)"
            " VALUES (%s, 'W', 'UTC', %s, %s)", slug, rule, by_other,
        )  # fmt: skip

    def user(self, name: str) -> int:
        return self.put("INSERT INTO users (email, name) VALUES (%s, %s)", f"{name}@x", name)

    def channel(self, workspace: int) -> int:
        number = self.one("SELECT count(*) FROM channels")
        return self.put(
            "INSERT INTO channels (platform, name, remote_id, workspace_id)"
            " VALUES ('stub', %s, %s, %s)", f"shelf {number}", f"shelf {number}", workspace,
        )  # fmt: skip

    def post(self, workspace: int, *versions: str, trashed: bool = False) -> int:
        """A post; each of its versions is ``written``, ``approved`` or ``withdrawn``."""
        at = "clock_timestamp(), 'me'" if trashed else "NULL, NULL"
        post = self.put(
            "INSERT INTO posts (created_by, workspace_id, trashed_at, trashed_by)"
            f" VALUES ('me', %s, {at})", workspace,
        )  # fmt: skip
        for number, approval in enumerate(versions, 1):
            version = self.put(
                "INSERT INTO post_versions (post_id, number, content, content_sha256, created_by)"
                " VALUES (%s, %s, 'x', sha256('x'), 'writer')", post, number,
            )  # fmt: skip
            if approval != "written":
                gone = "clock_timestamp(), 'me'" if approval == "withdrawn" else "NULL, NULL"
                self.put(
                    "INSERT INTO approvals (version_id, approved_by, withdrawn_at, withdrawn_by)"
                    f" VALUES (%s, 'chief', {gone})", version,
                )  # fmt: skip
        return post

    def version(self, post: int, number: int = 1) -> int:
        query = "SELECT id FROM post_versions WHERE post_id = %s AND number = %s"
        found: int = self.one(query, post, number)
        return found

    def job(
        self,
        post: int | None,
        channel: int,
        state: str = "scheduled",
        *,
        hold: str | None = None,
        kind: str = "publish",
    ) -> int:
        """A job without content. It is the newest."""
        token = "gen_random_uuid(), 1, now(), now()" if state in HELD else "NULL, NULL, NULL, NULL"
        remote = "'r'" if state == "published" else "NULL"
        return self.put(
            "INSERT INTO jobs (id, channel_id, post_id, kind, queue, state, due_at, run_at,"
            " hold_reason, remote_id, token, incarnation, claimed_at, lease_until)"
            " SELECT coalesce(max(id), 0) + 1, %s, %s, %s, 'publish', %s, now(), now(), %s,"
            f" {remote}, {token} FROM jobs", channel, post, kind, state, hold,
        )  # fmt: skip

    def content(self, job: int, version: int | None, number: int | None, text: str = "x") -> None:
        self.put(CONTENT, *content_of(job, version, number, text))

    def goes(
        self,
        post: int,
        channel: int,
        state: str = "scheduled",
        *,
        number: int = 1,
        hold: str | None = None,
    ) -> int:
        """A job that goes by this version of the post."""
        job = self.job(post, channel, state, hold=hold)
        self.content(job, self.version(post, number), number)
        return job

    def attempt(self, job: int, proof: str | None, number: int = 1) -> None:
        proved = "NULL, NULL" if proof is None else "'me', now()"
        self.put(
            "INSERT INTO attempts (job_id, number, token, incarnation, content_sha256, claimed_at,"
            f" proof, proved_by, proved_at) VALUES (%s, %s, gen_random_uuid(), 1, 'x', now(), %s,"
            f" {proved})", job, number, proof,
        )  # fmt: skip

    def variant(self, version: int, channel: int, text: str) -> None:
        self.put(VARIANT, version, channel, text, text)


CONTENT = (
    "INSERT INTO job_contents (job_id, key, version_id, version, content, content_sha256)"
    " VALUES (%s, %s, %s, %s, %s, sha256(%s::bytea))"
)
VARIANT = (
    "INSERT INTO version_variants (version_id, channel_id, content, content_sha256, own)"
    " VALUES (%s, %s, %s, sha256(%s::bytea), '{text}')"
)


def content_of(
    job: int, version: int | None, number: int | None, text: str = "x"
) -> tuple[object, ...]:
    """The values of ``CONTENT``."""
    return job, f"shelf {job}", version, number, text, text
