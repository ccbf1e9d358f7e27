"""What a row alone may not say: every CHECK, every key, and what is only ever added to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from publisher.engine.job import State
from tests.engine.by_hand import LET_GO
from tests.engine.ground import Driver, Ground, Lane

S = State
CHECK = "23514"

# What makes each row of a table one: its key, and whatever else may be there only once.
KEYS: dict[str, list[str]] = {
    "api_tokens": ["id", "token_sha256"],
    "approvals": ["version_id"],
    "attempts": ["job_id, number", "job_id WHERE (proof IS NULL)"],
    "channel_events": ["id"],
    "channels": [
        "id", "platform, remote_id, COALESCE(base_url, ''::text)",
        "workspace_id, lower(name)",
    ],
    "chores": ["name"],
    "deployment": ["one"],
    "doubts": ["job_id"],
    "gates": ["channel_id"],
    "idempotency_keys": ["workspace_id, user_id, key"],
    "identities": ["issuer, subject"],
    "incarnations": ["id"],
    "job_contents": ["job_id"],
    "job_events": ["id"],
    "job_keys": ["job_id", "key"],
    "jobs": [
        "id",
        (
            "post_id, channel_id, kind WHERE ((post_id IS NOT NULL) AND (state = ANY"
            " (ARRAY['scheduled'::text, 'claimed'::text, 'sending'::text, 'unknown'::text])))"
        ),
        (
            "removes WHERE ((removes IS NOT NULL) AND (state = ANY"
            " (ARRAY['scheduled'::text, 'claimed'::text, 'sending'::text, 'unknown'::text])))"
        ),
    ],
    "login_failures": ["key"],
    "looks": ["id"],
    "media": ["sha256"],
    "media_chunks": ["sha256, number"],
    "media_uploads": ["workspace_id, sha256"],
    "memberships": ["workspace_id, user_id"],
    "oidc_departures": ["token_sha256"],
    "orphans": ["id", "token"],
    "people_events": ["id"],
    "post_assignees": ["post_id, name"],
    "post_channels": ["post_id, channel_id"],
    "post_drafts": ["post_id"],
    "post_events": ["id"],
    "post_labels": ["post_id, label"],
    "post_targets": ["post_id, channel_id"],
    "post_versions": ["id", "post_id, number"],
    "posting_times": ["channel_id, weekday, at"],
    "posts": ["id", "workspace_id, ref WHERE (ref IS NOT NULL)"],
    "pulse": ["one"],
    "quarantined": ["job_id"],
    "quarantines": ["id"],
    "recovery_codes": ["user_id, code_sha256"],
    "remote_posts": ["channel_id, remote_id"],
    "reviews": ["id", "post_id WHERE (decided_at IS NULL)"],
    "sessions": ["id", "token_sha256"],
    "taken_times": ["id"],
    "tick": ["one"],
    "unique_locks": ["digest"],
    "user_links": ["token_sha256"],
    "users": ["id", "lower(email)"],
    "verdicts": ["id"],
    "version_variants": ["version_id, channel_id"],
    "workspaces": ["id", "slug"],
}  # fmt: skip


def test_what_there_is_of_each_only_once(ground: Ground) -> None:
    rows = ground.sql(
        "SELECT c.relname AS name, pg_get_indexdef(i.indexrelid) AS definition"
        " FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid"
        " WHERE c.relnamespace = 'publisher'::regnamespace AND i.indisunique AND i.indisvalid"
    )
    found: dict[str, list[str]] = {}
    for row in rows:
        keys, _, rest = row["definition"].partition(" USING btree (")[2].partition(") WHERE ")
        if not rest:
            keys = keys.removesuffix(")")
        found.setdefault(row["name"], []).append(f"{keys} WHERE {rest}" if rest else keys)
    assert {name: sorted(found.get(name, [])) for name in KEYS} == {
        name: sorted(keys) for name, keys in KEYS.items()
    }


@pytest.fixture
def at(lane: Lane) -> dict[str, Any]:
    """Rows that the statements below are about."""
    post = lane.ground.one("INSERT INTO posts (created_by) VALUES ('me') RETURNING id")
    jobs = {state.value: lane.put(state).id for state in (S.SCHEDULED, S.CLAIMED, S.UNKNOWN)}
    return {**jobs, "channel": lane.channel_id, "post": post, "token": uuid4()}


@pytest.fixture
def root(ground: Ground, at: dict[str, Any]) -> Iterator[Driver]:
    """Somebody with every right, and the triggers off: what is left is what a row may say."""
    with ground.root.transaction(force_rollback=True):
        ground.root.execute("SET LOCAL session_replication_role = replica")
        yield ground.root


VERSION = """
INSERT INTO post_versions (post_id, number, content, content_sha256, created_by)
VALUES (%(post)s, {number}, 'a', sha256('{of}'), 'me')
"""
ATTEMPT = """
INSERT INTO attempts (job_id, number, token, incarnation, content_sha256, claimed_at, outcome,
                      remote_id, proof, proved_by, proved_at)
VALUES (%(scheduled)s, {number}, %(token)s, 1, 'sha', now(), {rest})
"""
QUARANTINE = """
INSERT INTO quarantines (cause, strict, since, at, absent_after, who)
VALUES ('{cause}', true, now() - interval '{since}', now(), now(), 'me')
"""
QUARANTINED = """
WITH q AS (INSERT INTO quarantines (cause, strict, since, absent_after, who)
           VALUES ('x', true, now() - interval '1 h', now(), 'me') RETURNING id)
INSERT INTO quarantined (job_id, quarantine_id, strict, next_look_at, asked_at, look_token,
                         lease_until, released_at, released_by, release_reason)
SELECT %(scheduled)s, q.id, true, {rest} FROM q
"""
VERDICT = """
INSERT INTO verdicts (job_id, attempt, who, decision, reason)
VALUES (%(unknown)s, 1, 'me', '{decision}', '{reason}')
"""
CHANNEL_EVENT = """
INSERT INTO channel_events (channel_id, who, event, detail)
VALUES (%(channel)s, '{who}', '{event}', '{detail}')
"""
GATE = "UPDATE gates SET {} WHERE channel_id = %(channel)s"
CHANNEL = "UPDATE channels SET {} WHERE id = %(channel)s"
CONTENT = "UPDATE job_contents SET {} WHERE job_id = %(scheduled)s"
DOUBT = "UPDATE doubts SET {} WHERE job_id = %(unknown)s"
WAITS = "UPDATE jobs SET {} WHERE id = %(scheduled)s"
HELD = "UPDATE jobs SET {} WHERE id = %(claimed)s"
TAKEN = "token = %(token)s, incarnation = 1, claimed_at = now(), lease_until = now()"
KEY = "INSERT INTO job_keys (key, job_id) VALUES ({}, 999999)"

# What may not be said, and beside it the nearest that may.
SAID: list[tuple[str, str | None]] = [
    *(
        (f"INSERT INTO {table} (one) VALUES (false)", f"UPDATE {table} SET one = true")
        for table in ("deployment", "pulse", "tick")
    ),
    (GATE.format("max_in_flight = 0"), GATE.format("max_in_flight = 1")),
    (GATE.format("spacing = '-1 s'"), GATE.format("spacing = '0'")),
    (GATE.format("blocked_at = now()"), GATE.format("blocked_at = now(), blocked_reason = 'x'")),
    (GATE.format("blocked_reason = 'x'"), None),
    (CHANNEL.format("rehearsal_allowed_at = now()"),
     CHANNEL.format("rehearsal_allowed_at = now(), rehearsal_allowed_by = 'me'")),
    (CHANNEL.format("rehearsal_allowed_by = 'me'"), None),
    (VERSION.format(number=0, of="a"), VERSION.format(number=1, of="a")),
    (VERSION.format(number=1, of="b"), None),
    ("INSERT INTO media (sha256, type, size) VALUES (sha256('x'), 'image/png', 0)",
     "INSERT INTO media (sha256, type, size) VALUES (sha256('x'), 'image/png', 1)"),
    # A job.
    (WAITS.format("state = 'retrying'"), None),
    (WAITS.format(TAKEN), HELD.format(TAKEN)),
    (HELD.format(LET_GO), None),
    (WAITS.format("hand_at = now()"), HELD.format("hand_at = now()")),
    (WAITS.format("incarnation = 1"), None),
    (WAITS.format("claimed_at = now()"), None),
    (WAITS.format("lease_until = now()"), None),
    (HELD.format("claimed_at = NULL"), None),
    (HELD.format("hold_reason = 'x'"), WAITS.format("hold_reason = 'x'")),
    (WAITS.format("remote_id = 'x'"), None),
    (WAITS.format("attested_at = now()"), WAITS.format("state = 'published', attested_at = now()")),
    (WAITS.format("state = 'published'"), WAITS.format("state = 'published', remote_id = 'x'")),
    (WAITS.format("attempts = 1"), WAITS.format("attempts = 1, claims = 1")),
    (WAITS.format("attempts = -1"), None),
    (WAITS.format("failures = -1"), WAITS.format("failures = 1")),
    (WAITS.format("deaths = -1"), WAITS.format("deaths = 1")),
    (CONTENT.format("content = 'other'"),
     CONTENT.format("content = 'other', content_sha256 = sha256('other')")),
    (CONTENT.format("progress = '1'"),
     CONTENT.format("progress = '1', progress_sha256 = 'x'")),
    (CONTENT.format("progress_sha256 = 'x'"), None),
    (KEY.format("''"), KEY.format("'x'")),
    (KEY.format("repeat('x', 501)"), KEY.format("repeat('x', 500)")),
    # An attempt, and what it is bound to.
    (ATTEMPT.format(number=0, rest="NULL, NULL, NULL, NULL, NULL"),
     ATTEMPT.format(number=1, rest="NULL, NULL, NULL, NULL, NULL")),
    (ATTEMPT.format(number=1, rest="'maybe', NULL, NULL, NULL, NULL"),
     ATTEMPT.format(number=1, rest="'unknown', NULL, NULL, NULL, NULL")),
    (ATTEMPT.format(number=1, rest="'published', NULL, NULL, NULL, NULL"),
     ATTEMPT.format(number=1, rest="'published', 'x', NULL, NULL, NULL")),
    (ATTEMPT.format(number=1, rest="NULL, NULL, 'maybe', 'me', now()"),
     ATTEMPT.format(number=1, rest="NULL, NULL, 'absent', 'me', now()")),
    (ATTEMPT.format(number=1, rest="NULL, NULL, 'absent', NULL, now()"), None),
    (ATTEMPT.format(number=1, rest="NULL, NULL, 'absent', 'me', NULL"), None),
    ("INSERT INTO remote_posts (channel_id, remote_id, job_id) VALUES (%(channel)s, '', 1)",
     "INSERT INTO remote_posts (channel_id, remote_id, job_id) VALUES (%(channel)s, 'x', 1)"),
    # A doubt.
    (DOUBT.format("look_token = %(token)s"),
     DOUBT.format("look_token = %(token)s, lease_until = now()")),
    (DOUBT.format("lease_until = now()"), None),
    (DOUBT.format("asked_at = now()"), DOUBT.format("asked_at = now(), asked_reason = 'x'")),
    (DOUBT.format("taken_by = 'me'"), DOUBT.format("taken_by = 'me', taken_at = now()")),
    (DOUBT.format("next_look_at = NULL"),
     DOUBT.format("next_look_at = NULL, asked_at = now(), asked_reason = 'x'")),
    (VERDICT.format(decision="maybe", reason="x"), VERDICT.format(decision="live", reason="x")),
    (VERDICT.format(decision="live", reason=""), None),
    # A quarantine: next look, asked, look and lease, let go, by whom, why.
    (QUARANTINE.format(cause="", since="0"), QUARANTINE.format(cause="x", since="0")),
    (QUARANTINE.format(cause="x", since="-1 s"), None),
    (QUARANTINED.format(rest="now(), NULL, %(token)s, NULL, NULL, NULL, NULL"),
     QUARANTINED.format(rest="now(), NULL, %(token)s, now(), NULL, NULL, NULL")),
    (QUARANTINED.format(rest="NULL, now(), NULL, NULL, now(), NULL, 'x'"),
     QUARANTINED.format(rest="NULL, now(), NULL, NULL, NULL, NULL, NULL")),
    (QUARANTINED.format(rest="NULL, now(), NULL, NULL, now(), 'me', NULL"),
     QUARANTINED.format(rest="NULL, NULL, NULL, NULL, now(), 'me', 'x'")),
    (QUARANTINED.format(rest="now(), NULL, NULL, NULL, now(), 'me', 'x'"), None),
    (QUARANTINED.format(rest="NULL, NULL, NULL, NULL, NULL, NULL, NULL"),
     QUARANTINED.format(rest="now(), NULL, NULL, NULL, NULL, NULL, NULL")),
    # What people did with a channel.
    (CHANNEL_EVENT.format(who="", event="x", detail="{}"),
     CHANNEL_EVENT.format(who="me", event="x", detail="{}")),
    (CHANNEL_EVENT.format(who="me", event="", detail="{}"), None),
    (CHANNEL_EVENT.format(who="me", event="x", detail="[]"), None),
]  # fmt: skip


@pytest.mark.parametrize(("never", "nearest"), SAID, ids=[" ".join(s[0].split()) for s in SAID])
def test_what_a_row_may_not_say(
    root: Driver, at: dict[str, Any], never: str, nearest: str | None
) -> None:
    with pytest.raises(psycopg.DatabaseError) as refusal, root.transaction():
        root.execute(never.encode(), at)
    assert refusal.value.sqlstate == CHECK
    if nearest is not None:
        assert root.execute(nearest.encode(), at).rowcount == 1


# What is only ever added to


FROZEN = {
    "post_versions": ("PB022", "created_by = 'you'"),
    "job_keys": ("PB023", "job_id = -1"),
    "job_events": ("PB024", "who = 'you'"),
    "verdicts": ("PB024", "who = 'you'"),
    "quarantines": ("PB024", "who = 'you'"),
    "channel_events": ("PB024", "who = 'you'"),
}


@pytest.mark.parametrize("table", FROZEN)
def test_what_is_written_once_is_neither_changed_nor_deleted(
    ground: Ground, lane: Lane, at: dict[str, Any], table: str
) -> None:
    code, change = FROZEN[table]
    rows = {
        "post_versions": VERSION.format(number=1, of="a"),
        "job_events": "INSERT INTO job_events (job_id, event, who) VALUES (1, 'x', 'me')",
        "verdicts": VERDICT.format(decision="live", reason="x"),
        "quarantines": QUARANTINE.format(cause="x", since="0"),
        "channel_events": CHANNEL_EVENT.format(who="me", event="x", detail="{}"),
    }
    with ground.root.transaction(force_rollback=True):
        lane.add()
        if table in rows:
            ground.root.execute(rows[table].encode(), at)
        for verb in (f"UPDATE {table} SET {change}", f"DELETE FROM {table}"):
            with pytest.raises(psycopg.DatabaseError) as refusal, ground.root.transaction():
                ground.root.execute(verb.encode())
            assert refusal.value.sqlstate == code
