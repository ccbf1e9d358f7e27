"""The deployment's own row: which key it belongs to, its generation, and a new id for a copy."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import Connection, func, select, update

from publisher.engine.outcome import Reason
from publisher.engine.schema import channels, deployment, gates


def note_key(conn: Connection, check: bytes) -> bytes:
    """Note the check of the key that is used first; returns the one that was noted first."""
    noted: bytes = conn.execute(
        update(deployment)
        .values(key_check=func.coalesce(deployment.c.key_check, check))
        .returning(deployment.c.key_check)
    ).scalar_one()
    return bytes(noted)


def raise_generation(conn: Connection) -> int:
    """Count one generation on, so that what was saved before can be told from what goes on."""
    raised: int = conn.execute(
        update(deployment)
        .values(generation=deployment.c.generation + 1)
        .returning(deployment.c.generation)
    ).scalar_one()
    return raised


def hold_deployment(conn: Connection) -> str:
    """Let nobody else change the deployment's row until this transaction ends; returns its id."""
    return str(conn.execute(select(deployment.c.id).with_for_update()).scalar_one())


def become(conn: Connection, deployment_id: UUID, check: bytes) -> int:
    """Be another deployment from here on, which belongs to another key; returns its generation.

    Only the owner may.
    """
    conn.execute(update(deployment).values(id=deployment_id, key_check=check))
    return raise_generation(conn)


def reseal(conn: Connection, channel_id: int, sealed: bytes) -> None:
    """Keep a channel's credential sealed for what the deployment is now."""
    conn.execute(update(channels).where(channels.c.id == channel_id).values(sealed=sealed))


def drop_credential(conn: Connection, channel_id: int, detail: str) -> None:
    """Forget a channel's credential and close its gate until it is reconnected."""
    conn.execute(
        update(channels)
        .where(channels.c.id == channel_id)
        .values(sealed=None, generation=channels.c.generation + 1)
    )
    conn.execute(
        update(gates)
        .where(gates.c.channel_id == channel_id)
        .values(
            blocked_reason=Reason.NEEDS_RECONNECTING,
            blocked_detail=detail,
            blocked_at=func.clock_timestamp(),
        )
    )
