"""Which deployment a database is, and what is sealed for it."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlalchemy import Connection, select

from publisher.engine.schema import channels, deployment


@dataclass(frozen=True, slots=True)
class Identity:
    """A deployment: its id, how often it was renewed, and the check of the key it belongs to.

    ``key_check`` is None before a key was first used.
    """

    id: str
    generation: int
    key_check: bytes | None = field(repr=False)


def identity(conn: Connection) -> Identity:
    """Which deployment this is."""
    columns = deployment.c.id, deployment.c.generation, deployment.c.key_check
    row = conn.execute(select(*columns)).one()
    check = None if row.key_check is None else bytes(row.key_check)
    return Identity(str(row.id), row.generation, check)


def sealed_credentials(conn: Connection, *, limit: int | None = None) -> dict[int, bytes]:
    """Sealed credentials by the id of their channel."""
    query = (
        select(channels.c.id, channels.c.sealed)
        .where(channels.c.sealed.is_not(None))
        .order_by(channels.c.id)
        .limit(limit)
    )
    return {row.id: bytes(row.sealed) for row in conn.execute(query)}
