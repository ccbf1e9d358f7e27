"""A channel's gate, as people move it: pause, resume, unblock after reconnecting, and its rules."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import ColumnElement, Connection, DateTime, case, func, null, update

from publisher.engine.errors import NotFound
from publisher.engine.job import Backlog
from publisher.engine.schema import gates

_NOW = func.clock_timestamp(type_=DateTime(timezone=True))


def pause(conn: Connection, channel_id: int, *, who: str) -> None:
    """Claim and begin nothing on this channel until it is resumed. Raises ``NotFound``."""
    _write(conn, channel_id, paused_at=func.clock_timestamp(), paused_by=who)


def resume(conn: Connection, channel_id: int) -> None:
    """Let a paused channel go on; one that needs reconnecting still waits for that.

    What became overdue meanwhile is a backlog.
    """
    backlog = _backlog_since(gates.c.paused_at)
    _write(conn, channel_id, paused_at=None, paused_by=None, backlog_before=backlog)


def unblock(conn: Connection, channel_id: int) -> None:
    """The channel has a new credential: open what the old one's refusal had closed.

    What became overdue meanwhile is a backlog. The spacing after its last post is kept.
    """
    rests = (gates.c.spacing > timedelta(0)) & gates.c.not_before.is_not(None)
    spaced = func.least(gates.c.not_before, _NOW + gates.c.spacing)
    _write(
        conn,
        channel_id,
        blocked_reason=None,
        blocked_detail=None,
        blocked_at=None,
        not_before=case((rests, spaced), else_=null()),
        backlog_before=_backlog_since(gates.c.blocked_at),
    )


def set_rules(
    conn: Connection,
    channel_id: int,
    *,
    spacing: timedelta | None = None,
    useful_for: timedelta | None = None,
    backlog: Backlog | None = None,
    overdue_after: timedelta | None = None,
    release_every: timedelta | None = None,
) -> None:
    """Change the rules of a channel's times that are given; the rest stays. Raises ``NotFound``.

    The database refuses what is out of bounds. A ``useful_for`` of zero takes the channel's own
    default away.
    """
    given: dict[str, object] = {
        "spacing": spacing,
        "useful_for": useful_for,
        "backlog": None if backlog is None else str(backlog),
        "overdue_after": overdue_after,
        "release_every": release_every,
    }
    values = {name: value for name, value in given.items() if value is not None}
    if useful_for == timedelta(0):
        values["useful_for"] = None
    if values:
        _write(conn, channel_id, **values)


def _backlog_since(since: ColumnElement[object]) -> ColumnElement[object]:
    """The mark of a channel that stood still ``since`` then; null there: as it was."""
    late = _NOW - gates.c.overdue_after
    return case(
        ((gates.c.backlog != Backlog.SEND.value) & (since <= late), late),
        else_=gates.c.backlog_before,
    )


def _write(conn: Connection, channel_id: int, **values: object) -> None:
    changed = conn.execute(
        update(gates).where(gates.c.channel_id == channel_id).values(**values)
    ).rowcount
    if changed == 0:
        message = f"There is no channel {channel_id}."
        raise NotFound(message)
