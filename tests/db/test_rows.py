"""What a row of people, posts, media, times and answers may not say, whoever writes it.

The kernel's tables are tried in ``tests/engine/test_checks.py``; what there may be only once of
these is there, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import psycopg
import pytest

from tests.engine.ground import Driver, Ground
from tests.postgres import Postgres

CHECK = "23514"
Row = Mapping[str, str]

SHORT, HASH = "'\\x00'", "sha256('x')"
SOON = "'2026-01-01 00:00:01+00'"
NOW = "'2026-01-01 00:00:00+00'"

ROWS: dict[str, Row] = {
    "workspaces": {"slug": "'new'", "name": "'New'", "zone": "'UTC'"},
    "users": {"email": "'a@b'", "name": "'Ann'"},
    "memberships": {"workspace_id": "1", "user_id": "999", "role": "'editor'"},
    "user_links": {"token_sha256": HASH, "user_id": "999", "purpose": "'invite'",
                   "created_at": NOW, "expires_at": SOON},
    "recovery_codes": {"user_id": "999", "code_sha256": HASH},
    "sessions": {"token_sha256": HASH, "user_id": "999", "method": "'link'", "created_at": NOW,
                 "expires_at": SOON},
    "api_tokens": {"workspace_id": "1", "user_id": "999", "name": "'mine'", "token_sha256": HASH,
                   "hint": "'12345678'", "scopes": "'{jobs.read}'", "created_at": NOW,
                   "created_by": "'me'"},
    "identities": {"issuer": "'i'", "subject": "'s'", "user_id": "999"},
    "oidc_departures": {"token_sha256": HASH, "created_at": NOW, "expires_at": SOON},
    "login_failures": {"key": "'k'", "count": "0"},
    "people_events": {"who": "'me'", "event": "'told'"},
    "posts": {"created_by": "'me'", "workspace_id": "1"},
    "post_versions": {"post_id": "999", "number": "1", "content": "'x'", "content_sha256": HASH,
                      "created_by": "'me'"},
    "version_variants": {"version_id": "999", "channel_id": "999", "content": "'x'",
                         "content_sha256": HASH, "own": "'{text}'"},
    "approvals": {"version_id": "999", "approved_by": "'me'"},
    "post_drafts": {"post_id": "999", "document": "'x'", "saved_by": "'me'"},
    "reviews": {"post_id": "999", "version_id": "999", "submitted_by": "'me'"},
    "post_labels": {"post_id": "999", "label": "'l'"},
    "post_assignees": {"post_id": "999", "name": "'n'"},
    "post_events": {"post_id": "999", "who": "'me'", "event": "'told'"},
    "media": {"sha256": HASH, "type": "'image/png'", "size": "1"},
    "media_uploads": {"workspace_id": "1", "sha256": HASH, "original_sha256": HASH},
    "taken_times": {"channel_id": "999", "during": "'[2026-01-01,2026-01-02)'", "taken_by": "'me'",
                    "lapses_at": NOW},
    "idempotency_keys": {"workspace_id": "1", "user_id": "999", "key": "'k'", "request_hmac": HASH,
                         "operation": "'post'", "status": "200", "body": "''"},
}  # fmt: skip
"""A row that each table takes."""

BESIDE = """
INSERT INTO users (id, email, name) OVERRIDING SYSTEM VALUE VALUES (999, 'b@c', 'Bea');
INSERT INTO channels (id, platform, name, remote_id, workspace_id) OVERRIDING SYSTEM VALUE
    VALUES (999, 'noop', 'A page', 'r', 1);
INSERT INTO posts (id, created_by, workspace_id) OVERRIDING SYSTEM VALUE VALUES (999, 'me', 1);
INSERT INTO post_versions (id, post_id, number, content, content_sha256, created_by)
    OVERRIDING SYSTEM VALUE VALUES (999, 999, 9, 'x', sha256('x'), 'me');
"""
"""What those rows are about."""

DECIDED: Row = {"decided_at": NOW, "decided_by": "'me'", "decision": "'approved'"}
JOURNALS = ("people_events", "post_events")
MEASURED: Row = {"width": "1", "height": "1", "frames": "1"}
MAILBOX = "'a@' || repeat('b', {})"

# What may not be said, and beside it the nearest that may.
SAID: list[tuple[str, Row, Row]] = [
    *(("workspaces", {"slug": never}, {"slug": "'a-1'"})
      for never in ("''", "'-a'", "'a-'", "'A'", "'a b'", "'*'", "'#1'")),
    ("workspaces", {"slug": "repeat('a', 41)"}, {"slug": "repeat('a', 40)"}),
    ("workspaces", {"name": "''"}, {"name": "' '"}),
    ("workspaces", {"zone": "''"}, {"zone": "'x'"}),
    ("workspaces", {"edit_rule": "'maybe'"}, {"edit_rule": "'keep'"}),
    ("workspaces", {"edit_rule": "''"}, {"edit_rule": "'hold'"}),
    ("users", {"email": MAILBOX.format(253)}, {"email": MAILBOX.format(252)}),
    *(("users", {"email": never}, {"email": "'a.b@c'"})
      for never in ("''", "'a'", "'@b'", "'a@'", "'a@b@c'", "'a b@c'", "E'a@b\\n'")),
    ("users", {"name": "''"}, {"name": "'A'"}),
    ("users", {"zone": "''"}, {"zone": "'UTC'"}),
    ("users", {"calendar": "'julian'"}, {"calendar": "'persian'"}),
    ("users", {"calendar": "''"}, {"calendar": "'gregory'"}),
    ("users", {"locale": "''"}, {"locale": "'en'"}),
    ("users", {"password_hash": "'x'"}, {"password_hash": "'x'", "password_changed_at": NOW}),
    ("users", {"password_changed_at": NOW}, {}),
    ("users", {"totp_confirmed_at": NOW}, {"totp_confirmed_at": NOW, "totp_sealed": "'x'"}),
    ("users", {"totp_step": "1"}, {"totp_step": "1", "totp_sealed": "'x'"}),
    ("memberships", {"role": "'owner'"}, {"role": "'admin'"}),
    *(("memberships", {"role": "''"}, {"role": f"'{role}'"})
      for role in ("viewer", "editor", "approver", "operator")),
    *((table, {"token_sha256": SHORT}, {})
      for table in ("user_links", "sessions", "api_tokens", "oidc_departures")),
    *((table, {"expires_at": NOW}, {"expires_at": SOON})
      for table in ("user_links", "sessions", "api_tokens", "oidc_departures")),
    ("user_links", {"purpose": "'other'"}, {"purpose": "'reset'"}),
    ("recovery_codes", {"code_sha256": SHORT}, {}),
    ("sessions", {"method": "'other'"}, {"method": "'oidc'"}),
    ("sessions", {"method": "''"}, {"method": "'password'"}),
    ("sessions", {"ended_at": NOW}, {"ended_at": NOW, "end_reason": "'over'"}),
    ("sessions", {"end_reason": "'over'"}, {}),
    ("api_tokens", {"name": "''"}, {}),
    ("api_tokens", {"hint": "'123456789'"}, {}),
    ("api_tokens", {"scopes": "'{}'"}, {}),
    ("api_tokens", {"created_by": "''"}, {}),
    ("api_tokens", {"revoked_at": NOW}, {"revoked_at": NOW, "revoked_by": "'me'"}),
    ("api_tokens", {"revoked_by": "'me'"}, {}),
    ("identities", {"issuer": "''"}, {}),
    ("identities", {"subject": "''"}, {}),
    ("login_failures", {"key": "''"}, {}),
    ("login_failures", {"key": "repeat('k', 101)"}, {"key": "repeat('k', 100)"}),
    ("login_failures", {"count": "-1"}, {"count": "0"}),
    *((table, {"who": "''"}, {}) for table in JOURNALS),
    *((table, {"event": "''"}, {}) for table in JOURNALS),
    *((table, {"detail": "'[]'"}, {"detail": "'{}'"}) for table in JOURNALS),
    # Posts.
    ("posts", {"trashed_at": NOW}, {"trashed_at": NOW, "trashed_by": "'me'"}),
    ("posts", {"trashed_by": "'me'"}, {}),
    ("post_versions", {"first_comment": "''"}, {"first_comment": "'c'"}),
    ("post_versions", {"whole_sha256": SHORT}, {"whole_sha256": HASH}),
    ("version_variants", {"content": "'y'"}, {"content": "'y'", "content_sha256": "sha256('y')"}),
    ("version_variants", {"first_comment": "''"}, {"first_comment": "'c'"}),
    ("version_variants", {"own": "'{}'"}, {"own": "'{text,link,media,first_comment}'"}),
    ("version_variants", {"own": "'{text,zone}'"}, {"own": "'{link}'"}),
    ("approvals", {"withdrawn_at": NOW}, {"withdrawn_at": NOW, "withdrawn_by": "'me'"}),
    ("approvals", {"withdrawn_by": "'me'"}, {}),
    ("post_drafts", {"revision": "0"}, {"revision": "1"}),
    ("post_drafts", {"document": "repeat('x', 2000001)"}, {"document": "repeat('x', 2000000)"}),
    ("post_drafts", {"document": "repeat('é', 1000001)"}, {}),
    ("post_drafts", {"saved_by": "''"}, {}),
    ("reviews", {"submitted_by": "''"}, {}),
    ("reviews", {"approver": "''"}, {"approver": "'chief'"}),
    ("reviews", {**DECIDED, "decision": "'maybe'"}, DECIDED),
    ("reviews", {**DECIDED, "decision": "''"}, {**DECIDED, "decision": "'superseded'"}),
    ("reviews", {**DECIDED, "decided_by": "NULL"}, {**DECIDED, "decision": "'trashed'"}),
    ("reviews", {**DECIDED, "decision": "NULL"}, {}),
    ("reviews", {"decided_by": "'me'"}, {}),
    ("reviews", {"decision": "'approved'"}, {}),
    ("reviews", {**DECIDED, "decision": "'changes_requested'", "comment": "''"},
     {**DECIDED, "decision": "'changes_requested'", "comment": "'shorter'"}),
    ("reviews", {**DECIDED, "decision": "'changes_requested'", "comment": "''"},
     {**DECIDED, "comment": "''"}),
    ("post_labels", {"label": "''"}, {}),
    ("post_labels", {"label": "repeat('l', 51)"}, {"label": "repeat('l', 50)"}),
    ("post_assignees", {"name": "''"}, {}),
    ("post_assignees", {"name": "repeat('n', 201)"}, {"name": "repeat('n', 200)"}),
    # Media.
    ("media", {"storage": "'tape'"}, {"storage": "'folder'"}),
    ("media", {"storage": "''"}, {"storage": "'s3'"}),
    *(("media", {**MEASURED, name: "0"}, MEASURED) for name in MEASURED),
    *(("media", {name: "1"}, {}) for name in MEASURED),
    ("media", {"sha256": SHORT}, {}),
    ("media_uploads", {"original_sha256": SHORT}, {}),
    ("media_uploads", {"created_by": "''"}, {"created_by": "'me'"}),
    # Times that are taken.
    ("taken_times", {"during": "'empty'"}, {}),
    ("taken_times", {"during": "'(,2026-01-01)'"}, {}),
    ("taken_times", {"during": "'[2026-01-01,)'"}, {}),
    ("taken_times", {"taken_by": "''"}, {}),
    # Answers.
    *(("idempotency_keys", {"key": never}, {"key": "'!~'"})
      for never in ("''", "'a b'", "'é'", "E'a\\n'")),
    ("idempotency_keys", {"key": "repeat('k', 256)"}, {"key": "repeat('k', 255)"}),
    ("idempotency_keys", {"request_hmac": SHORT}, {}),
    ("idempotency_keys", {"operation": "''"}, {}),
    ("idempotency_keys", {"status": "199"}, {"status": "200"}),
    ("idempotency_keys", {"status": "300"}, {"status": "299"}),
    ("idempotency_keys", {"headers": "'[]'"}, {"headers": "'{}'"}),
]  # fmt: skip


def insert(table: str, changes: Row) -> bytes:
    """A row of the table, with these columns otherwise."""
    row = {**ROWS[table], **changes}
    return f"INSERT INTO {table} ({', '.join(row)}) VALUES ({', '.join(row.values())})".encode()


@pytest.fixture(scope="module")
def ground(pg: Postgres) -> Iterator[Ground]:
    with Ground.open(pg) as opened:
        yield opened


@pytest.fixture
def root(ground: Ground) -> Iterator[Driver]:
    """Somebody with every right, and the triggers off: what is left is what a row may say."""
    with ground.root.transaction(force_rollback=True):
        ground.root.execute("SET LOCAL session_replication_role = replica")
        ground.root.execute(BESIDE)
        yield ground.root


def name(said: tuple[str, Row, Row]) -> str:
    return f"{said[0]} {' '.join(f'{column}={value}' for column, value in said[1].items())}"


@pytest.mark.parametrize(("table", "never", "nearest"), SAID, ids=[name(said) for said in SAID])
def test_what_a_row_may_not_say(root: Driver, table: str, never: Row, nearest: Row) -> None:
    with pytest.raises(psycopg.DatabaseError) as refusal, root.transaction():
        root.execute(insert(table, never))
    assert refusal.value.sqlstate == CHECK
    assert root.execute(insert(table, nearest)).rowcount == 1


def placed(root: Driver, table: str, changes: Row) -> None:
    """Put a row there, then have the triggers on."""
    root.execute("SET LOCAL session_replication_role = replica")
    root.execute(insert(table, changes))
    root.execute("SET LOCAL session_replication_role = origin")


FROZEN = {
    "people_events": ("PB024", "who = 'you'"),
    "post_events": ("PB024", "who = 'you'"),
    "version_variants": ("PB022", "own = '{link}'"),
    "idempotency_keys": ("PB060", "status = 201"),
}


@pytest.mark.parametrize("table", FROZEN)
def test_what_is_written_once_is_neither_changed_nor_deleted(root: Driver, table: str) -> None:
    code, change = FROZEN[table]
    placed(root, table, {})
    for verb in (f"UPDATE {table} SET {change}", f"DELETE FROM {table}"):
        with pytest.raises(psycopg.DatabaseError) as refusal, root.transaction():
            root.execute(verb.encode())
        assert refusal.value.sqlstate == code


# What happens once to a row: the columns that tell of it, and one that may change all the same.
ONCE: dict[str, tuple[str, str, str]] = {
    "user_links": ("used_at", "", "purpose = 'reset'"),
    "recovery_codes": ("used_at", "", "created_at = now()"),
    "oidc_departures": ("used_at", "", "created_at = '2025-01-01'"),
    "sessions": ("ended_at", ", end_reason = 'over'", "seen_at = now()"),
    "api_tokens": ("revoked_at", ", revoked_by = 'me'", "last_used_at = now()"),
}


@pytest.mark.parametrize("table", ONCE)
def test_what_happened_once_neither_happens_again_nor_is_undone(root: Driver, table: str) -> None:
    column, more, other = ONCE[table]
    placed(root, table, {})
    assert root.execute(f"UPDATE {table} SET {other}".encode()).rowcount == 1
    first = f"UPDATE {table} SET {column} = {NOW}{more}"
    assert root.execute(first.encode()).rowcount == 1
    undone = f"UPDATE {table} SET {column} = NULL" + (
        f"{more.partition('=')[0]}= NULL" * bool(more)
    )
    for again in (f"UPDATE {table} SET {column} = {SOON}", undone):
        with pytest.raises(psycopg.DatabaseError) as refusal, root.transaction():
            root.execute(again.encode())
        assert refusal.value.sqlstate == "PB025"
    assert root.execute(f"{first}, {other}".encode()).rowcount == 1


KEYED: Row = {"totp_sealed": "'x'", "totp_confirmed_at": NOW}


@pytest.mark.parametrize(
    ("there", "change", "is_refused"),
    [
        ({**KEYED, "totp_step": "5"}, "totp_step = 4", True),
        ({**KEYED, "totp_step": "5"}, "totp_step = NULL", True),
        ({**KEYED, "totp_step": "5"}, "totp_step = 6", False),
        ({**KEYED, "totp_step": "5"}, "name = 'Bea'", False),
        (KEYED, "name = 'Bea'", False),
        (KEYED, "totp_step = 1", False),
        # Enrolled anew, or not at all any more.
        ({**KEYED, "totp_step": "5"}, f"totp_confirmed_at = {SOON}, totp_step = NULL", False),
        ({**KEYED, "totp_step": "5"}, "totp_confirmed_at = NULL, totp_step = NULL", False),
        ({"totp_sealed": "'x'", "totp_step": "5"}, "totp_step = 4", False),
    ],
)
def test_a_code_that_was_used_stays_used(
    root: Driver, there: Row, change: str, *, is_refused: bool
) -> None:
    placed(root, "users", there)
    update = f"UPDATE users SET {change} WHERE id <> 999".encode()
    if not is_refused:
        assert root.execute(update).rowcount == 1
        return
    with pytest.raises(psycopg.DatabaseError) as refusal, root.transaction():
        root.execute(update)
    assert refusal.value.sqlstate == "PB026"


def test_a_save_of_a_draft_raises_its_revision(root: Driver) -> None:
    placed(root, "post_drafts", {"revision": "2"})
    for never in ("revision = 2", "revision = 1", "document = 'other'"):
        with pytest.raises(psycopg.DatabaseError) as refusal, root.transaction():
            root.execute(f"UPDATE post_drafts SET {never}".encode())
        assert refusal.value.sqlstate == "PB055"
    assert root.execute("UPDATE post_drafts SET revision = 3").rowcount == 1


def test_a_review_is_decided_once(root: Driver) -> None:
    placed(root, "reviews", {})
    decide = "UPDATE reviews SET decided_at = now(), decided_by = 'me', decision = 'approved'"
    assert root.execute(decide).rowcount == 1
    with pytest.raises(psycopg.DatabaseError) as refusal, root.transaction():
        root.execute("UPDATE reviews SET comment = 'x'")
    assert refusal.value.sqlstate == "PB024"
