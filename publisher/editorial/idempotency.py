"""One effect for one Idempotency-Key: the answer is kept in the transaction of what it tells of.

A program that lost an answer sends its request again with the same key, and is given that answer.
Keys are a person's own in one workspace, and never lapse.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    DateTime,
    Integer,
    LargeBinary,
    SmallInteger,
    Table,
    Text,
    func,
    insert,
    select,
)
from sqlalchemy.dialects.postgresql import JSONB

from publisher.editorial.people.person import Person
from publisher.engine.errors import Conflict, PublisherError
from publisher.engine.schema import metadata
from publisher.words import _

_SPACE: Final = "idempotency"

idempotency_keys = Table(
    "idempotency_keys",
    metadata,
    Column("workspace_id", Integer, primary_key=True),
    Column("user_id", Integer, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("request_hmac", LargeBinary, nullable=False),
    Column("operation", Text, nullable=False),
    Column("status", SmallInteger, nullable=False),
    Column("headers", JSONB, nullable=False),
    Column("body", Text, nullable=False),
    Column("used_at", DateTime(timezone=True), nullable=False),
)


class KeyReused(PublisherError):
    """The key was used for another request. 422."""

    code = "idempotency-key-reused"
    field = "Idempotency-Key"
    exit_code = 4

    def __init__(self, used_at: datetime, operation: str) -> None:
        message = _(
            "This Idempotency-Key was used on {when} with a different body or address. Nothing was"
            " done. Send the first request again for its answer, or a new key for new work."
        )
        super().__init__(message.format(when=f"{used_at:%Y-%m-%d at %H:%M:%S %Z}"))
        self.used_at = used_at
        self.operation = operation


class StillRunning(Conflict):
    """The first request with this key has not ended. 409."""

    def __init__(self) -> None:
        message = _(
            "The first request with this Idempotency-Key is still running. Nothing more was done."
            " Send the same request again in a moment for its answer."
        )
        super().__init__(message, code="idempotency-still-running")


@dataclass(frozen=True, slots=True)
class Use:
    """A person's key, and what it is used for: ``request`` is ``fingerprint``'s."""

    person: Person
    key: str
    request: bytes
    operation: str


@dataclass(frozen=True, slots=True)
class Kept:
    """The answer that was given: HTTP status, headers of our own, and the body's text."""

    status: int
    headers: Mapping[str, str]
    body: str


def fingerprint(secret: bytes, method: str, path: str, body: bytes) -> bytes:
    """Tells one request from another: HMAC-SHA-256 of method, path and canonical body.

    Keyed, for a body may hold a credential, and nobody should be able to try guesses against what
    a copy of the database has. ``path`` with its query.
    """
    parts = [method.encode(), path.encode(errors="surrogatepass"), hashlib.sha256(body).digest()]
    return hmac.digest(secret, b"\x00".join(parts), "sha256")


def hold(conn: Connection, use: Use) -> Kept | None:
    """Hold the key until the transaction ends; the answer it has, or None where it is new.

    Raises ``StillRunning`` while another transaction holds it, ``KeyReused`` where it was used for
    another request.
    """
    person = use.person
    name = f"{_SPACE}\n{person.workspace_id}\n{person.id}\n{use.key}"
    number = func.hashtextextended(name, 0, type_=BigInteger)
    if not conn.scalar(select(func.pg_try_advisory_xact_lock(number))):
        raise StillRunning
    row = conn.execute(
        select(idempotency_keys).where(
            idempotency_keys.c.workspace_id == person.workspace_id,
            idempotency_keys.c.user_id == person.id,
            idempotency_keys.c.key == use.key,
        )
    ).one_or_none()
    if row is None:
        return None
    if not hmac.compare_digest(bytes(row.request_hmac), use.request):
        raise KeyReused(row.used_at, row.operation)
    return Kept(row.status, row.headers, row.body)


def keep(conn: Connection, use: Use, answer: Kept) -> None:
    """Keep the answer, in the transaction that held the key and did the work."""
    conn.execute(
        insert(idempotency_keys).values(
            workspace_id=use.person.workspace_id,
            user_id=use.person.id,
            key=use.key,
            request_hmac=use.request,
            operation=use.operation,
            status=answer.status,
            headers=dict(answer.headers),
            body=answer.body,
        )
    )
