"""Walls between workspaces: what the pages' role sees, and what it cannot reach."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
import sqlalchemy
from sqlalchemy import Connection, Engine, text

from publisher.config import Settings
from publisher.db.connect import Database
from publisher.db.roles import Role
from publisher.db.walls import EVERY, within

OPEN = {
    "alembic_version": "the schema's revision",
    "chores": "the deployment's",
    "deployment": "the deployment's",
    "identities": "accounts are the deployment's: a person may be in several workspaces",
    "incarnations": "worker runs serve every workspace",
    "job_keys": "only numbers and keys; a row is written before its job is there",
    "login_failures": "accounts",
    "oidc_departures": "accounts",
    "recovery_codes": "accounts",
    "pulse": "the deployment's",
    "quarantines": "the deployment's",
    "sessions": "accounts",
    "tick": "the deployment's",
    "unique_locks": "only digests",
    "users": "accounts",
    "user_links": "accounts",
}
"""Tables without a wall, each with its reason."""

ONE_OF_EACH = """
INSERT INTO workspaces (slug, name, zone) VALUES ('other', 'Other', 'UTC');
INSERT INTO users (id, email, name) OVERRIDING SYSTEM VALUE
    VALUES (1, 'one@example.test', 'one'), (2, 'two@example.test', 'two');
INSERT INTO memberships (workspace_id, user_id, role)
    SELECT id, id, 'editor' FROM workspaces;
INSERT INTO api_tokens (workspace_id, user_id, name, token_sha256, hint, scopes, created_by)
    SELECT id, id, 'token', sha256(slug::bytea), 'x', '{jobs.read}', 'test' FROM workspaces;
INSERT INTO people_events (workspace_id, who, event, subject)
    SELECT id, 'test', 'told', 'x' FROM workspaces;
INSERT INTO idempotency_keys (workspace_id, user_id, key, request_hmac, operation, status, body)
    SELECT id, id, 'key', sha256('x'), 'post', 200, '' FROM workspaces;
INSERT INTO channels (id, platform, name, remote_id, workspace_id) OVERRIDING SYSTEM VALUE
    SELECT id, 'noop', 'A page', slug, id FROM workspaces;
INSERT INTO gates (channel_id) SELECT id FROM channels;
INSERT INTO channel_events (channel_id, who, event) SELECT id, 'test', 'told' FROM channels;
INSERT INTO posting_times (channel_id, weekday, at, added_by)
    SELECT id, 1, '09:00', 'test' FROM channels;
INSERT INTO taken_times (channel_id, during, taken_by, lapses_at)
    SELECT id, '[2026-12-07,2026-12-08)', 'test', now() FROM channels;
INSERT INTO posts (id, created_by, workspace_id) OVERRIDING SYSTEM VALUE
    SELECT id, 'test', id FROM workspaces;
INSERT INTO media (sha256, type, size)
    SELECT sha256(slug::bytea), 'image/png', id FROM workspaces;
INSERT INTO media_uploads (workspace_id, sha256, original_sha256)
    SELECT id, sha256(slug::bytea), sha256(slug::bytea) FROM workspaces;
INSERT INTO media_chunks (sha256, number, bytes)
    SELECT sha256(slug::bytea), id, 'x' FROM workspaces;
ALTER TABLE post_versions DISABLE TRIGGER USER;
ALTER TABLE version_variants DISABLE TRIGGER USER;
INSERT INTO post_versions (id, post_id, number, content, content_sha256, created_by)
    OVERRIDING SYSTEM VALUE SELECT id, id, 1, slug, sha256(slug::bytea), 'test' FROM workspaces;
INSERT INTO post_channels (post_id, channel_id, publish_at, zone)
    SELECT id, id, now(), 'UTC' FROM workspaces;
INSERT INTO version_variants (version_id, channel_id, content, content_sha256, own)
    SELECT id, id, slug, sha256(slug::bytea), '{text}' FROM workspaces;
ALTER TABLE post_versions ENABLE TRIGGER USER;
ALTER TABLE version_variants ENABLE TRIGGER USER;
INSERT INTO post_targets (post_id, channel_id) SELECT id, id FROM workspaces;
INSERT INTO post_drafts (post_id, document, saved_by) SELECT id, slug, 'test' FROM workspaces;
INSERT INTO reviews (post_id, version_id, submitted_by) SELECT id, id, 'test' FROM workspaces;
INSERT INTO post_labels (post_id, label) SELECT id, slug FROM workspaces;
INSERT INTO post_assignees (post_id, name) SELECT id, slug FROM workspaces;
INSERT INTO post_events (post_id, who, event) SELECT id, 'test', 'written' FROM workspaces;
INSERT INTO approvals (version_id, approved_by) SELECT id, 'test' FROM workspaces;
ALTER TABLE jobs DISABLE TRIGGER USER;
INSERT INTO jobs (id, channel_id, post_id, kind, queue, state, due_at, run_at, claims, attempts)
    SELECT id, id, id, 'publish', 'publish', 'unknown', now(), now(), 1, 1 FROM workspaces;
ALTER TABLE jobs ENABLE TRIGGER USER;
INSERT INTO job_contents (job_id, key, content, content_sha256)
    SELECT id, slug, slug, sha256(slug::bytea) FROM workspaces;
INSERT INTO attempts (job_id, number, token, incarnation, content_sha256, claimed_at)
    SELECT id, 1, gen_random_uuid(), 1, sha256(slug::bytea), now() FROM workspaces;
INSERT INTO remote_posts (channel_id, remote_id, job_id) SELECT id, slug, id FROM workspaces;
INSERT INTO looks (job_id, attempt, token, by, begun_at, evidence)
    SELECT job_id, 1, token, 'test', now(), '{}' FROM attempts;
INSERT INTO verdicts (job_id, attempt, who, decision, reason)
    SELECT id, 1, 'test', 'live', 'seen' FROM jobs;
INSERT INTO doubts (job_id) SELECT id FROM jobs ON CONFLICT DO NOTHING;
INSERT INTO job_events (job_id, event, who) SELECT id, 'hold', 'test' FROM jobs;
INSERT INTO quarantines (cause, strict, since, absent_after, who)
    VALUES ('declared', false, now(), now(), 'test');
INSERT INTO quarantined (job_id, quarantine_id, strict)
    SELECT j.id, q.id, false FROM jobs j, quarantines q;
INSERT INTO orphans (incarnation, job_id, token, line)
    SELECT 'x', id, gen_random_uuid(), '{}' FROM jobs;
"""
"""A row of every walled table in each of two workspaces, whose number it can be traced to."""

WHOSE = {
    "workspaces": "id",
    **dict.fromkeys(
        ("posts", "channels", "memberships", "api_tokens", "people_events", "media_uploads",
         "idempotency_keys"),
        "workspace_id",
    ),
    "media": "size",
    "media_chunks": "number",
    **dict.fromkeys(
        ("gates", "channel_events", "posting_times", "taken_times", "remote_posts", "jobs"),
        "channel_id",
    ),
    **dict.fromkeys(
        ("post_versions", "post_channels", "post_targets", "post_drafts", "reviews",
         "post_labels", "post_assignees", "post_events"),
        "post_id",
    ),
    **dict.fromkeys(("approvals", "version_variants"), "version_id"),
    **dict.fromkeys(
        ("job_contents", "attempts", "looks", "verdicts", "doubts", "job_events", "quarantined",
         "orphans", "timeline"),
        "job_id",
    ),
}  # fmt: skip
"""Every walled table and view: its column that holds the workspace's number, or here one equal."""


def walled(conn: Connection) -> dict[str, tuple[str, ...]]:
    """Every table of the schema, with the roles that a policy of it is for."""
    rows = conn.execute(
        text(
            "SELECT c.relname, c.relrowsecurity,"
            " coalesce(array_agg(r.rolname::text ORDER BY r.rolname) FILTER (WHERE p.oid IS NOT"
            " NULL), '{}') FROM pg_class c"
            " JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = 'publisher'"
            " LEFT JOIN pg_policy p ON p.polrelid = c.oid"
            " LEFT JOIN pg_roles r ON r.oid = ANY(p.polroles)"
            " WHERE c.relkind IN ('r', 'p') GROUP BY 1, 2"
        )
    )
    return {name: tuple(roles) if is_on else () for name, is_on, roles in rows}


BOTH = ("publisher_app", "publisher_engine")


def test_every_table_has_walls_or_a_reason_to_have_none(owner_database: Database) -> None:
    with owner_database.engine.connect() as conn:
        found = walled(conn)
    assert {name: roles for name, roles in found.items() if roles != BOTH} == dict.fromkeys(
        OPEN, ()
    )
    assert {*WHOSE} == {name for name, roles in found.items() if roles} | {
        "timeline",
        "idempotency_keys",
    }, "add a row to ONE_OF_EACH, so that its wall is tried"
    views = "SELECT viewname FROM pg_views WHERE schemaname = 'publisher'"
    blind = (
        "SELECT relname FROM pg_class WHERE relkind = 'v' AND relnamespace ="
        " 'publisher'::regnamespace AND NOT coalesce(reloptions, '{}') @>"
        " '{security_invoker=true}'"
    )
    with owner_database.engine.connect() as conn:
        assert conn.scalars(text(views)).all()
        assert not conn.scalars(text(blind)).all()


@pytest.fixture
def two(owner_database: Database) -> None:
    """Two workspaces, with a row of everything in each."""
    with owner_database.engine.begin() as conn:
        conn.exec_driver_sql(ONE_OF_EACH)


@pytest.fixture
def app(settings: Settings) -> Iterator[Engine]:
    """The pages' role, in no workspace by itself."""
    with Database.open(settings, Role.APP, application_name="test") as opened:
        yield opened.engine


NOT_THE_ENGINES = (
    "workspaces", "memberships", "api_tokens", "people_events", "idempotency_keys",
)  # fmt: skip


def seen(conn: Connection, *, besides: tuple[str, ...] = ()) -> dict[str, set[int]]:
    """Which workspaces' rows are seen, by table."""
    return {
        table: set(conn.scalars(text(f"SELECT {column} FROM publisher.{table}")))
        for table, column in WHOSE.items()
        if table not in besides
    }


def is_all(found: dict[str, set[int]], whose: set[int]) -> bool:
    return all(rows == whose for rows in found.values())


@pytest.mark.both_servers
def test_a_workspace_sees_its_own_and_nothing_set_sees_nothing(
    two: None, app: Engine, database: Database
) -> None:
    for workspace, whose in ((1, {1}), (2, {2}), ("main", {1}), ("other", {2}), (EVERY, {1, 2})):
        with within(app, workspace).begin() as conn:
            assert is_all(seen(conn), whose), workspace
    for nothing in (None, "", "nobody", 3, -1):
        with within(app, nothing).begin() as conn:
            assert is_all(seen(conn), set()), nothing
    with app.begin() as conn:
        assert is_all(seen(conn), set())
    with database.engine.begin() as conn:  # as the engine, as far as it may read
        assert is_all(seen(conn, besides=NOT_THE_ENGINES), {1, 2})


def test_it_ends_with_its_transaction(two: None, app: Engine) -> None:
    with within(app, 2).connect() as conn:
        raw = conn.connection.driver_connection
        assert conn.scalar(text("SELECT publisher.workspace()")) == 2
        conn.rollback()
        with raw.cursor() as cursor:  # type: ignore[union-attr]
            cursor.execute("SELECT current_setting('publisher.workspace', true)")
            assert cursor.fetchone() == ("",)


REACHES = (
    "INSERT INTO publisher.posts (created_by, workspace_id) VALUES ('x', 2)",
    (
        "INSERT INTO publisher.channels (platform, name, remote_id, workspace_id)"
        " VALUES ('noop', 'x', 'x', 2)"
    ),
    (
        "INSERT INTO publisher.jobs (id, channel_id, kind, queue, due_at, run_at)"
        " VALUES (99, 2, 'publish', 'publish', now(), now())"
    ),
    (
        "INSERT INTO publisher.post_channels (post_id, channel_id, publish_at, zone)"
        " VALUES (1, 2, now(), 'UTC')"
    ),
    (
        "INSERT INTO publisher.post_channels (post_id, channel_id, publish_at, zone)"
        " VALUES (2, 1, now(), 'UTC')"
    ),
    (
        "INSERT INTO publisher.post_versions (post_id, number, content, content_sha256, created_by)"
        " VALUES (2, 2, 'x', sha256('x'), 'x')"
    ),
    "INSERT INTO publisher.approvals (version_id, approved_by) VALUES (2, 'x')",
    "INSERT INTO publisher.job_events (job_id, event, who) VALUES (2, 'hold', 'x')",
    (
        "INSERT INTO publisher.verdicts (job_id, attempt, who, decision, reason)"
        " VALUES (2, 1, 'x', 'live', 'x')"
    ),
    "INSERT INTO publisher.memberships (workspace_id, user_id, role) VALUES (2, 1, 'admin')",
    (
        "INSERT INTO publisher.people_events (workspace_id, who, event, subject)"
        " VALUES (2, 'x', 'x', 'x')"
    ),
    (
        'SELECT * FROM publisher.enqueue(\'[{"key": "k", "channel_id": 2, "kind": "publish",'
        ' "queue": "publish", "content": "x", "run_at": "2026-01-01T00:00:00Z"}]\')'
    ),
)


@pytest.mark.parametrize("statement", REACHES)
def test_what_reaches_into_another_workspace_is_refused(
    two: None, app: Engine, statement: str
) -> None:
    with (
        pytest.raises(sqlalchemy.exc.ProgrammingError) as refused,
        within(app, 1).begin() as conn,
    ):
        conn.exec_driver_sql(statement)
    assert isinstance(refused.value.orig, psycopg.errors.InsufficientPrivilege)
    assert "row-level security" in str(refused.value.orig)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE publisher.jobs SET hold_reason = NULL, state = 'dropped' WHERE id = 2",
        "UPDATE publisher.gates SET paused_at = now() WHERE channel_id = 2",
        "UPDATE publisher.channels SET name = 'mine' WHERE id = 2",
        "UPDATE publisher.doubts SET taken_by = 'x', taken_at = now() WHERE job_id = 2",
        "UPDATE publisher.attempts SET detail = 'x' WHERE job_id = 2",
    ],
)
def test_what_another_workspace_has_cannot_be_changed(
    two: None, app: Engine, statement: str
) -> None:
    with within(app, 1).begin() as conn:
        assert conn.exec_driver_sql(statement).rowcount == 0


MIXED, MOVED = "PB040", "PB041"


@pytest.mark.parametrize(
    ("statement", "refusal"),
    [
        (
            (
                "INSERT INTO publisher.post_channels (post_id, channel_id, publish_at, zone)"
                " VALUES (1, 2, now(), 'UTC')"
            ),
            MIXED,
        ),
        ("UPDATE publisher.post_channels SET channel_id = 2 WHERE post_id = 1", MIXED),
        (
            (
                "INSERT INTO publisher.jobs (id, channel_id, post_id, kind, queue, due_at, run_at)"
                " VALUES (99, 2, 1, 'other', 'publish', now(), now())"
            ),
            MIXED,
        ),
        ("INSERT INTO publisher.post_targets (post_id, channel_id) VALUES (1, 2)", MIXED),
        ("UPDATE publisher.posts SET workspace_id = 2 WHERE id = 1", MOVED),
        ("UPDATE publisher.channels SET workspace_id = 2, name = 'B page' WHERE id = 1", MOVED),
    ],
)
def test_nobody_at_all_mixes_two_workspaces(
    two: None, owner_database: Database, statement: str, refusal: str
) -> None:
    with (
        pytest.raises(sqlalchemy.exc.DBAPIError) as refused,
        owner_database.engine.begin() as conn,
    ):
        conn.exec_driver_sql(statement)
    assert isinstance(refused.value.orig, psycopg.Error)
    assert refused.value.orig.sqlstate == refusal


def test_within_one_workspace_they_go_together(two: None, owner_database: Database) -> None:
    with owner_database.engine.begin() as conn:
        conn.exec_driver_sql("UPDATE post_channels SET zone = 'Asia/Tokyo' WHERE post_id = 2")
        conn.exec_driver_sql("UPDATE posts SET workspace_id = 2 WHERE id = 2")
        conn.exec_driver_sql("UPDATE channels SET workspace_id = 2 WHERE id = 2")


def test_whose_a_row_is_has_to_be_said_where_there_are_two(owner_database: Database) -> None:
    insert = "INSERT INTO posts (created_by) VALUES ('x') RETURNING workspace_id"
    with owner_database.engine.begin() as conn:
        assert conn.exec_driver_sql(insert).scalar_one() == 1
        conn.exec_driver_sql(
            "INSERT INTO workspaces (slug, name, zone) VALUES ('other', 'Other', 'UTC')"
        )
    with (
        pytest.raises(sqlalchemy.exc.IntegrityError, match="workspace_id"),
        owner_database.engine.begin() as conn,
    ):
        conn.exec_driver_sql(insert)
