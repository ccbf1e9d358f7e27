"""The engine's tables, as SQLAlchemy Core sees them.

The migrations make them; constraints, triggers and grants stand there alone. A test compares the
columns here with a migrated database, so the two cannot drift.

``channels`` is the engine's: it holds what a hand needs in order to send, and nothing else about
a page. ``gates`` is apart from it because workers lock it at every claim.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    DateTime,
    Integer,
    Interval,
    LargeBinary,
    MetaData,
    Table,
    Text,
    Uuid,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

SCHEMA = "publisher"
metadata = MetaData(schema=SCHEMA)


def _at(name: str, *, nullable: bool = True) -> Column[object]:
    return Column(name, DateTime(timezone=True), nullable=nullable)


deployment = Table(
    "deployment",
    metadata,
    Column("one", Boolean, primary_key=True),
    Column("id", Uuid, nullable=False),
    Column("generation", Integer, nullable=False),
    _at("created_at", nullable=False),
    Column("key_check", LargeBinary),
)

tick = Table(
    "tick",
    metadata,
    Column("one", Boolean, primary_key=True),
    Column("value", BigInteger, nullable=False),
    _at("raised_at", nullable=False),
    Column("marks", ARRAY(Text), nullable=False),
)

chores = Table(
    "chores",
    metadata,
    Column("name", Text, primary_key=True),
    _at("done_at", nullable=False),
)

pulse = Table(
    "pulse",
    metadata,
    Column("one", Boolean, primary_key=True),
    _at("beat_at", nullable=False),
    _at("rescue_not_before", nullable=False),
)

channels = Table(
    "channels",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("platform", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("remote_id", Text, nullable=False),
    Column("base_url", Text),
    Column("trusted", Boolean, nullable=False),
    Column("sealed", LargeBinary),
    Column("generation", Integer, nullable=False),
    _at("created_at", nullable=False),
    _at("rehearsal_allowed_at"),
    Column("rehearsal_allowed_by", Text),
    Column("workspace_id", Integer, nullable=False),
    _at("access_ends_at"),
    Column("alt_text_wanted", Boolean, nullable=False),
)

gates = Table(
    "gates",
    metadata,
    Column("channel_id", Integer, primary_key=True),
    _at("paused_at"),
    Column("paused_by", Text),
    Column("blocked_reason", Text),
    Column("blocked_detail", Text),
    _at("blocked_at"),
    _at("not_before"),
    Column("max_in_flight", Integer, nullable=False),
    Column("spacing", Interval, nullable=False),
    Column("useful_for", Interval),
    Column("backlog", Text, nullable=False),
    Column("overdue_after", Interval, nullable=False),
    Column("release_every", Interval, nullable=False),
    _at("backlog_before"),
    _at("backlog_turn_at"),
)

incarnations = Table(
    "incarnations",
    metadata,
    Column("id", BigInteger, primary_key=True),
    Column("host", Text, nullable=False),
    Column("boot_id", Text, nullable=False),
    Column("pid", Integer, nullable=False),
    Column("file", Text, nullable=False),
    _at("started_at", nullable=False),
    _at("seen_at", nullable=False),
    _at("ended_at"),
    Column("end_reason", Text),
    _at("declared_gone_at"),
)

jobs = Table(
    "jobs",
    metadata,
    Column("id", BigInteger, primary_key=True),
    Column("channel_id", Integer, nullable=False),
    Column("post_id", BigInteger),
    Column("kind", Text, nullable=False),
    Column("queue", Text, nullable=False),
    Column("state", Text, nullable=False),
    _at("due_at", nullable=False),
    _at("run_at", nullable=False),
    _at("useful_until"),
    Column("hold_reason", Text),
    Column("token", Uuid),
    Column("incarnation", BigInteger),
    _at("claimed_at"),
    _at("hand_at"),
    _at("lease_until"),
    Column("claims", Integer, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("failures", Integer, nullable=False),
    Column("deaths", Integer, nullable=False),
    Column("reason", Text),
    Column("remote_id", Text),
    _at("attested_at"),
    _at("repeat_until"),
    Column("replaces", BigInteger),
    Column("repeats", BigInteger),
    Column("removes", BigInteger),
    _at("unique_until"),
    _at("settled_at"),
)

job_contents = Table(
    "job_contents",
    metadata,
    Column("job_id", BigInteger, primary_key=True),
    Column("key", Text, nullable=False),
    Column("version_id", BigInteger),
    Column("version", Integer),
    Column("content", Text, nullable=False),
    Column("content_sha256", LargeBinary, nullable=False),
    Column("platform_key", Text),
    Column("progress", JSONB),
    Column("progress_sha256", LargeBinary),
)

job_keys = Table(
    "job_keys",
    metadata,
    Column("key", Text, primary_key=True),
    Column("job_id", BigInteger, nullable=False),
)

attempts = Table(
    "attempts",
    metadata,
    Column("job_id", BigInteger, primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("token", Uuid, nullable=False),
    Column("incarnation", BigInteger, nullable=False),
    Column("content_sha256", LargeBinary, nullable=False),
    Column("version", Integer),
    _at("claimed_at", nullable=False),
    _at("begun_at", nullable=False),
    _at("settled_at"),
    Column("outcome", Text),
    Column("reason", Text),
    Column("detail", Text),
    Column("remote_id", Text),
    Column("answer", JSONB),
    Column("proof", Text),
    Column("proof_detail", Text),
    Column("proved_by", Text),
    _at("proved_at"),
)

remote_posts = Table(
    "remote_posts",
    metadata,
    Column("channel_id", Integer, primary_key=True),
    Column("remote_id", Text, primary_key=True),
    Column("job_id", BigInteger, nullable=False),
    Column("permalink", Text),
    _at("bound_at", nullable=False),
)

looks = Table(
    "looks",
    metadata,
    Column("id", BigInteger, primary_key=True),
    Column("job_id", BigInteger, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("token", Uuid, nullable=False),
    Column("by", Text, nullable=False),
    _at("begun_at", nullable=False),
    _at("ended_at", nullable=False),
    Column("evidence", JSONB, nullable=False),
)

doubts = Table(
    "doubts",
    metadata,
    Column("job_id", BigInteger, primary_key=True),
    _at("since", nullable=False),
    Column("looks", Integer, nullable=False),
    _at("next_look_at"),
    Column("look_token", Uuid),
    _at("lease_until"),
    Column("last_look", Text),
    _at("asked_at"),
    Column("asked_reason", Text),
    Column("taken_by", Text),
    _at("taken_at"),
    _at("snoozed_until"),
)

verdicts = Table(
    "verdicts",
    metadata,
    Column("id", BigInteger, primary_key=True),
    Column("job_id", BigInteger, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("token", Uuid),
    _at("at", nullable=False),
    Column("who", Text, nullable=False),
    Column("decision", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("detail", JSONB, nullable=False),
)

unique_locks = Table(
    "unique_locks",
    metadata,
    Column("digest", LargeBinary, primary_key=True),
    Column("job_id", BigInteger, nullable=False),
    _at("lapses_at", nullable=False),
)

job_events = Table(
    "job_events",
    metadata,
    Column("id", BigInteger, primary_key=True),
    Column("job_id", BigInteger, nullable=False),
    _at("at", nullable=False),
    Column("event", Text, nullable=False),
    Column("who", Text, nullable=False),
    Column("attempt", Integer),
    Column("detail", JSONB, nullable=False),
)

orphans = Table(
    "orphans",
    metadata,
    Column("id", BigInteger, primary_key=True),
    _at("at", nullable=False),
    Column("incarnation", Text, nullable=False),
    Column("job_id", BigInteger, nullable=False),
    Column("token", Uuid, nullable=False),
    Column("line", JSONB, nullable=False),
    Column("adopted", Boolean, nullable=False),
)

quarantines = Table(
    "quarantines",
    metadata,
    Column("id", Integer, primary_key=True),
    _at("at", nullable=False),
    Column("cause", Text, nullable=False),
    Column("strict", Boolean, nullable=False),
    _at("since", nullable=False),
    _at("absent_after", nullable=False),
    Column("who", Text, nullable=False),
    Column("detail", JSONB, nullable=False),
)

quarantined = Table(
    "quarantined",
    metadata,
    Column("job_id", BigInteger, primary_key=True),
    Column("quarantine_id", Integer, nullable=False),
    Column("strict", Boolean, nullable=False),
    Column("held_before", Text),
    Column("looks", Integer, nullable=False),
    _at("next_look_at"),
    Column("look_token", Uuid),
    _at("lease_until"),
    Column("last_look", Text),
    _at("asked_at"),
    _at("released_at"),
    Column("released_by", Text),
    Column("release_reason", Text),
)
