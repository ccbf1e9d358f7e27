"""The tables of people, as SQLAlchemy Core sees them; migration 0005 makes them."""

from __future__ import annotations

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Boolean,
    Column,
    DateTime,
    Identity,
    Integer,
    LargeBinary,
    Table,
    Text,
)
from sqlalchemy.dialects.postgresql import JSONB

from publisher.engine.schema import metadata

workspaces = Table(
    "workspaces",
    metadata,
    Column("id", Integer, Identity(always=True), primary_key=True),
    Column("slug", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("zone", Text, nullable=False),
    Column("approval_by_other", Boolean, nullable=False),
    Column("edit_rule", Text, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False),
)

users = Table(
    "users",
    metadata,
    Column("id", Integer, Identity(always=True), primary_key=True),
    Column("email", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("password_hash", Text),
    Column("password_changed_at", DateTime(timezone=True)),
    Column("totp_sealed", LargeBinary),
    Column("totp_confirmed_at", DateTime(timezone=True)),
    Column("totp_step", BigInteger),
    Column("zone", Text),
    Column("calendar", Text),
    Column("locale", Text),
    Column("disabled_at", DateTime(timezone=True)),
    Column("created_at", DateTime(timezone=True), nullable=False),
)

memberships = Table(
    "memberships",
    metadata,
    Column("workspace_id", Integer, primary_key=True),
    Column("user_id", Integer, primary_key=True),
    Column("role", Text, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False),
)

user_links = Table(
    "user_links",
    metadata,
    Column("token_sha256", LargeBinary, primary_key=True),
    Column("user_id", Integer, nullable=False),
    Column("purpose", Text, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False),
    Column("expires_at", DateTime(timezone=True), nullable=False),
    Column("used_at", DateTime(timezone=True)),
)

recovery_codes = Table(
    "recovery_codes",
    metadata,
    Column("user_id", Integer, primary_key=True),
    Column("code_sha256", LargeBinary, primary_key=True),
    Column("created_at", DateTime(timezone=True), nullable=False),
    Column("used_at", DateTime(timezone=True)),
)

sessions = Table(
    "sessions",
    metadata,
    Column("token_sha256", LargeBinary, primary_key=True),
    Column("id", BigInteger, Identity(always=True), nullable=False),
    Column("user_id", Integer, nullable=False),
    Column("method", Text, nullable=False),
    Column("awaits_code", Boolean, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False),
    Column("seen_at", DateTime(timezone=True), nullable=False),
    Column("expires_at", DateTime(timezone=True), nullable=False),
    Column("ended_at", DateTime(timezone=True)),
    Column("end_reason", Text),
    Column("reauthenticated_at", DateTime(timezone=True)),
    Column("address", Text),
    Column("agent", Text),
)

api_tokens = Table(
    "api_tokens",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("workspace_id", Integer, nullable=False),
    Column("user_id", Integer, nullable=False),
    Column("name", Text, nullable=False),
    Column("token_sha256", LargeBinary, nullable=False),
    Column("hint", Text, nullable=False),
    Column("scopes", ARRAY(Text), nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False),
    Column("created_by", Text, nullable=False),
    Column("expires_at", DateTime(timezone=True)),
    Column("last_used_at", DateTime(timezone=True)),
    Column("revoked_at", DateTime(timezone=True)),
    Column("revoked_by", Text),
)

identities = Table(
    "identities",
    metadata,
    Column("issuer", Text, primary_key=True),
    Column("subject", Text, primary_key=True),
    Column("user_id", Integer, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False),
)

oidc_departures = Table(
    "oidc_departures",
    metadata,
    Column("token_sha256", LargeBinary, primary_key=True),
    Column("created_at", DateTime(timezone=True), nullable=False),
    Column("expires_at", DateTime(timezone=True), nullable=False),
    Column("used_at", DateTime(timezone=True)),
)

login_failures = Table(
    "login_failures",
    metadata,
    Column("key", Text, primary_key=True),
    Column("count", Integer, nullable=False),
    Column("last_at", DateTime(timezone=True), nullable=False),
    Column("locked_until", DateTime(timezone=True)),
)

people_events = Table(
    "people_events",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("workspace_id", Integer),
    Column("user_id", Integer),
    Column("at", DateTime(timezone=True), nullable=False),
    Column("who", Text, nullable=False),
    Column("event", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("detail", JSONB, nullable=False),
)
