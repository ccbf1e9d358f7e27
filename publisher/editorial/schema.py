"""The tables of what editors write, as SQLAlchemy Core sees them; the migrations make them."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, DateTime, Integer, LargeBinary, Table, Text
from sqlalchemy.dialects.postgresql import JSONB

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
)

post_channels = Table(
    "post_channels",
    metadata,
    Column("post_id", BigInteger, primary_key=True),
    Column("channel_id", Integer, primary_key=True),
    Column("publish_at", DateTime(timezone=True), nullable=False),
    Column("zone", Text, nullable=False),
)

approvals = Table(
    "approvals",
    metadata,
    Column("version_id", BigInteger, primary_key=True),
    Column("approved_at", DateTime(timezone=True), nullable=False),
    Column("approved_by", Text, nullable=False),
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
