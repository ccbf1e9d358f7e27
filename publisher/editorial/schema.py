"""The tables of what editors write, as SQLAlchemy Core sees them; the migrations make them."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    DateTime,
    Integer,
    LargeBinary,
    SmallInteger,
    Table,
    Text,
    Time,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, TSTZRANGE

from publisher.engine.schema import metadata

channel_events = Table(
    "channel_events",
    metadata,
    Column("id", BigInteger, primary_key=True),
    Column("channel_id", Integer, nullable=False),
    Column("at", DateTime(timezone=True), nullable=False),
    Column("who", Text, nullable=False),
    Column("event", Text, nullable=False),
    Column("detail", JSONB, nullable=False),
)

posts = Table(
    "posts",
    metadata,
    Column("id", BigInteger, primary_key=True),
    Column("ref", Text),
    Column("created_at", DateTime(timezone=True), nullable=False),
    Column("created_by", Text, nullable=False),
    Column("workspace_id", Integer, nullable=False),
    Column("trashed_at", DateTime(timezone=True)),
    Column("trashed_by", Text),
)

post_versions = Table(
    "post_versions",
    metadata,
    Column("id", BigInteger, primary_key=True),
    Column("post_id", BigInteger, nullable=False),
    Column("number", Integer, nullable=False),
    Column("content", Text, nullable=False),
    Column("content_sha256", LargeBinary, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False),
    Column("created_by", Text, nullable=False),
    Column("author_id", Integer),
    Column("first_comment", Text),
    Column("whole_sha256", LargeBinary),
)

version_variants = Table(
    "version_variants",
    metadata,
    Column("version_id", BigInteger, primary_key=True),
    Column("channel_id", Integer, primary_key=True),
    Column("content", Text, nullable=False),
    Column("content_sha256", LargeBinary, nullable=False),
    Column("first_comment", Text),
    Column("own", ARRAY(Text), nullable=False),
)

post_channels = Table(
    "post_channels",
    metadata,
    Column("post_id", BigInteger, primary_key=True),
    Column("channel_id", Integer, primary_key=True),
    Column("publish_at", DateTime(timezone=True), nullable=False),
    Column("zone", Text, nullable=False),
    Column("useful_until", DateTime(timezone=True)),
)

approvals = Table(
    "approvals",
    metadata,
    Column("version_id", BigInteger, primary_key=True),
    Column("approved_at", DateTime(timezone=True), nullable=False),
    Column("approved_by", Text, nullable=False),
    Column("approver_id", Integer),
    Column("withdrawn_at", DateTime(timezone=True)),
    Column("withdrawn_by", Text),
)

post_targets = Table(
    "post_targets",
    metadata,
    Column("post_id", BigInteger, primary_key=True),
    Column("channel_id", Integer, primary_key=True),
)

post_drafts = Table(
    "post_drafts",
    metadata,
    Column("post_id", BigInteger, primary_key=True),
    Column("revision", BigInteger, nullable=False),
    Column("document", Text, nullable=False),
    Column("based_on", Integer),
    Column("saved_at", DateTime(timezone=True), nullable=False),
    Column("saved_by", Text, nullable=False),
)

reviews = Table(
    "reviews",
    metadata,
    Column("id", BigInteger, primary_key=True),
    Column("post_id", BigInteger, nullable=False),
    Column("version_id", BigInteger, nullable=False),
    Column("submitted_at", DateTime(timezone=True), nullable=False),
    Column("submitted_by", Text, nullable=False),
    Column("approver", Text),
    Column("decided_at", DateTime(timezone=True)),
    Column("decided_by", Text),
    Column("decision", Text),
    Column("comment", Text),
)

post_labels = Table(
    "post_labels",
    metadata,
    Column("post_id", BigInteger, primary_key=True),
    Column("label", Text, primary_key=True),
)

post_assignees = Table(
    "post_assignees",
    metadata,
    Column("post_id", BigInteger, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("user_id", Integer),
)

post_events = Table(
    "post_events",
    metadata,
    Column("id", BigInteger, primary_key=True),
    Column("post_id", BigInteger, nullable=False),
    Column("at", DateTime(timezone=True), nullable=False),
    Column("who", Text, nullable=False),
    Column("user_id", Integer),
    Column("event", Text, nullable=False),
    Column("version", Integer),
    Column("detail", JSONB, nullable=False),
)

media = Table(
    "media",
    metadata,
    Column("sha256", LargeBinary, primary_key=True),
    Column("type", Text, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False),
    Column("storage", Text, nullable=False),
    Column("width", Integer),
    Column("height", Integer),
    Column("frames", Integer),
)

media_uploads = Table(
    "media_uploads",
    metadata,
    Column("workspace_id", Integer, primary_key=True),
    Column("sha256", LargeBinary, primary_key=True),
    Column("original_sha256", LargeBinary, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False),
    Column("created_by", Text),
)

media_chunks = Table(
    "media_chunks",
    metadata,
    Column("sha256", LargeBinary, primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("bytes", LargeBinary, nullable=False),
)

posting_times = Table(
    "posting_times",
    metadata,
    Column("channel_id", Integer, primary_key=True),
    Column("weekday", SmallInteger, primary_key=True),
    Column("at", Time, primary_key=True),
    Column("added_at", DateTime(timezone=True), nullable=False),
    Column("added_by", Text, nullable=False),
)

taken_times = Table(
    "taken_times",
    metadata,
    Column("id", BigInteger, primary_key=True),
    Column("channel_id", Integer, nullable=False),
    Column("during", TSTZRANGE, nullable=False),
    Column("taken_at", DateTime(timezone=True), nullable=False),
    Column("taken_by", Text, nullable=False),
    Column("lapses_at", DateTime(timezone=True), nullable=False),
)
