"""A channel's gate, as people move it: pause, resume, unblock after reconnecting."""

from __future__ import annotations

from sqlalchemy import Connection, func, update

from publisher.engine.errors import NotFound
from publisher.engine.schema import gates


def pause(conn: Connection, channel_id: int, *, who: str) -> None:
    """Claim and begin nothing on this channel until it is resumed. Raises ``NotFound``."""
    _write(conn, channel_id, paused_at=func.clock_timestamp(), paused_by=who)


def resume(conn: Connection, channel_id: int) -> None:
    """Let a paused channel go on; one that needs reconnecting still waits for that."""
    _write(conn, channel_id, paused_at=None, paused_by=None)


def unblock(conn: Connection, channel_id: int) -> None:
    """The channel has a new credential: open what the old one's refusal had closed."""
    _write(
        conn,
        channel_id,
        blocked_reason=None,
        blocked_detail=None,
        blocked_at=None,
        not_before=None,
    )


def _write(conn: Connection, channel_id: int, **values: object) -> None:
    changed = conn.execute(
        update(gates).where(gates.c.channel_id == channel_id).values(**values)
    ).rowcount
    if changed == 0:
        message = f"There is no channel {channel_id}."
        raise NotFound(message)
