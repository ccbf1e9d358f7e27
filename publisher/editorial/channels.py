"""Channels: connect a page, find it by name, reconnect, pause and resume it.

Only the sealed credential is kept. The gate beside each channel is the engine's; people close and
open it here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Protocol, Self

import structlog
from sqlalchemy import Connection, Row, Select, case, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from publisher.editorial import channel_events, channel_inputs, walls
from publisher.editorial.channel_events import Event
from publisher.editorial.channel_inputs import ChannelRefused
from publisher.editorial.spelling import near, quoted
from publisher.engine import ledger
from publisher.engine.adapter import ChannelHealth
from publisher.engine.errors import NotFound
from publisher.engine.job import Backlog, Channel, State
from publisher.engine.registry import Registry
from publisher.engine.schema import channels, gates, jobs

_NAMES_SHOWN: Final = 5
_log = structlog.get_logger(__name__)


class Sealer(Protocol):
    """What seals a credential for one channel: the vault."""

    def seal(self, secret: str, *, channel_id: int) -> bytes:
        """Encrypt ``secret`` so that it opens for this channel only."""
        ...


@dataclass(frozen=True, slots=True)
class Standing:
    """A channel with its gate, how many jobs wait for it, and how many may be live."""

    channel: Channel
    paused_at: datetime | None
    paused_by: str | None
    blocked_at: datetime | None
    blocked_reason: str | None
    blocked_detail: str | None
    not_before: datetime | None
    """Set while the platform limits us; in the past it limits nothing."""
    is_limited: bool
    waiting: int
    may_be_live: int
    rehearsal_allowed_at: datetime | None = None
    """Since when a rehearsal may publish there; None: it may not."""
    rehearsal_allowed_by: str | None = None
    access_ends_at: datetime | None = None
    """None: it was not said, or at no time."""

    @property
    def is_open(self) -> bool:
        """Whether jobs of this channel are claimed."""
        return self.paused_at is None and self.blocked_at is None and not self.is_limited


@dataclass(frozen=True, slots=True)
class Directory:
    """Every channel there is, to be found by id or name."""

    channels: tuple[Channel, ...] = field(repr=False)

    @classmethod
    def read(cls, conn: Connection) -> Self:
        """Read them all."""
        rows = conn.execute(_channels().order_by(channels.c.id))
        return cls(tuple(_channel(row) for row in rows))

    def find(self, name_or_id: str) -> Channel:
        """The channel with that id or that name, whatever its case. ``NotFound`` lists others."""
        wanted = name_or_id.strip()
        if wanted.isascii() and wanted.isdigit():
            for channel in self.channels:
                if str(channel.id) == wanted:
                    return channel
        exact = [channel for channel in self.channels if channel.name == wanted]
        alike = exact or [
            channel for channel in self.channels if channel.name.lower() == wanted.lower()
        ]
        if len(alike) == 1:
            return alike[0]
        if alike:
            ids = ", ".join(str(channel.id) for channel in alike)
            message = f'"{wanted}" could be more than one channel. Give an id: {ids}.'
            raise NotFound(message)
        message = f"There is no channel {quoted(wanted)}. {self._others(wanted)}"
        raise NotFound(message)

    def _others(self, wanted: str) -> str:
        names = [channel.name for channel in self.channels]
        if not names:
            return "None is connected yet; add one with: publisher channels add."
        close = near(wanted, names)
        if close:
            return f"Did you mean {_either(close)}?"
        more = len(names) - _NAMES_SHOWN
        return f"There is {_quoted(names[:_NAMES_SHOWN])}{f' and {more} more' * (more > 0)}."


def add(  # noqa: PLR0913 - a channel is all of these; each is named at the one call
    conn: Connection,
    vault: Sealer,
    registry: Registry,
    *,
    platform: str,
    name: str,
    remote_id: str,
    base_url: str | None,
    token: str,
    trusted: bool = False,
    access_ends_at: datetime | None = None,
    who: str = "publisher",
) -> Channel:
    """Connect one page within the transaction of ``conn``, its credential sealed for it alone.

    ``remote_id`` is the platform's own id for the page; ``base_url`` the server's address where
    that is not the platform's usual one, ``trusted`` when whoever runs this machine gave it, here
    or in the credential; any other is checked each time before it is connected to. Nothing is
    asked of the platform; see ``check``. ``access_ends_at``: of the credential, where that is
    known. ``who``: for the journal, where a person does it.

    Raises ``NotFound`` for a platform without an adapter, ``WorkspaceUnnamed``, ``ChannelRefused``
    for the rest.
    """
    walls.own(conn)
    can = registry.adapter(platform).capabilities("")
    name, remote_id = channel_inputs.named(name), remote_id.strip()
    if not remote_id or not remote_id.isprintable() or " " in remote_id:
        message = f"The remote id {remote_id!r} is not one. Give the platform's id of the page."
        raise ChannelRefused(message, code="remote-id-unusable", field="remote_id")
    address = channel_inputs.address(base_url)
    secret = channel_inputs.token_of(token)
    values = {"platform": platform, "name": name, "remote_id": remote_id, "base_url": address}
    try:
        with conn.begin_nested():
            added = conn.execute(
                insert(channels).values(**values, trusted=trusted).returning(channels.c.id)
            ).one()
    except IntegrityError as error:
        raise _taken(conn, error, values) from error
    sealed = vault.seal(secret, channel_id=added.id)
    # Pages keep their order and must not be flooded; a letter or webhook is late enough as it is.
    backlog = Backlog.RELEASE if can.in_flight == 1 else Backlog.SEND
    gate = {"channel_id": added.id, "max_in_flight": can.in_flight, "backlog": str(backlog)}
    conn.execute(insert(gates).values(gate))
    row = conn.execute(
        update(channels)
        .where(channels.c.id == added.id)
        .values(sealed=sealed, access_ends_at=access_ends_at)
        .returning(*channels.c)
    ).one()
    channel_events.tell(conn, row.id, Event.ADDED, who=who, platform=platform, name=name)
    _log.info("channel.added", channel_id=row.id, platform=platform)
    return _channel(row)


def find(conn: Connection, name_or_id: str) -> Channel:
    """The channel with that id, or that name whatever its case.

    Raises ``NotFound``, which lists names that are near.
    """
    return Directory.read(conn).find(name_or_id)


def listing(conn: Connection) -> tuple[Standing, ...]:
    """Every channel by name, with its gate and what waits for it."""
    counts = (
        select(
            jobs.c.channel_id,
            func.count(case((jobs.c.state == State.SCHEDULED, 1))).label("waiting"),
            func.count(case((jobs.c.state == State.UNKNOWN, 1))).label("may_be_live"),
        )
        .where(jobs.c.state.in_([State.SCHEDULED, State.UNKNOWN]))
        .group_by(jobs.c.channel_id)
        .subquery()
    )
    rows = conn.execute(
        select(
            *channels.c,
            gates.c.paused_at,
            gates.c.paused_by,
            gates.c.blocked_at,
            gates.c.blocked_reason,
            gates.c.blocked_detail,
            gates.c.not_before,
            func.coalesce(gates.c.not_before > func.clock_timestamp(), False).label("is_limited"),
            func.coalesce(counts.c.waiting, 0).label("waiting"),
            func.coalesce(counts.c.may_be_live, 0).label("may_be_live"),
        )
        .join(gates, gates.c.channel_id == channels.c.id)
        .outerjoin(counts, counts.c.channel_id == channels.c.id)
        .order_by(func.lower(channels.c.name))
    )
    return tuple(
        Standing(
            channel=_channel(row),
            paused_at=row.paused_at,
            paused_by=row.paused_by,
            blocked_at=row.blocked_at,
            blocked_reason=row.blocked_reason,
            blocked_detail=row.blocked_detail,
            not_before=row.not_before,
            is_limited=row.is_limited,
            waiting=row.waiting,
            may_be_live=row.may_be_live,
            rehearsal_allowed_at=row.rehearsal_allowed_at,
            rehearsal_allowed_by=row.rehearsal_allowed_by,
            access_ends_at=row.access_ends_at,
        )
        for row in rows
    )


def standing(conn: Connection, channel: Channel) -> Standing:
    """One channel as a list has it."""
    return next(one for one in listing(conn) if one.channel.id == channel.id)


def reconnect(
    conn: Connection,
    vault: Sealer,
    channel: Channel,
    token: str,
    who: str,
    *,
    access_ends_at: datetime | None = None,
) -> Channel:
    """Give the channel a new credential and open the gate that the old one closed.

    ``access_ends_at``: of the new one, where that is known. A pause by a person stays. The
    generation rises, so that whoever holds the old credential knows. Raises ``ChannelRefused`` for
    a token that is none.
    """
    sealed = vault.seal(channel_inputs.token_of(token), channel_id=channel.id)
    row = conn.execute(
        update(channels)
        .where(channels.c.id == channel.id)
        .values(
            sealed=sealed,
            generation=channels.c.generation + 1,
            access_ends_at=access_ends_at,
        )
        .returning(*channels.c)
    ).one()
    ledger.unblock(conn, channel.id)
    channel_events.tell(conn, channel.id, Event.RECONNECTED, who=who, generation=row.generation)
    _log.info("channel.reconnected", channel_id=row.id, generation=row.generation, who=who)
    return _channel(row)


def pause(conn: Connection, channel: Channel, who: str) -> None:
    """Hold everything for this channel back until ``resume``.

    What is being sent goes on; its first byte may have left.
    """
    ledger.pause(conn, channel.id, who=who)
    channel_events.tell(conn, channel.id, Event.PAUSED, who=who)
    _log.info("channel.paused", channel_id=channel.id, who=who)


def resume(conn: Connection, channel: Channel, who: str) -> None:
    """Open what ``pause`` closed; a channel that needs reconnecting still waits for that."""
    ledger.resume(conn, channel.id)
    channel_events.tell(conn, channel.id, Event.RESUMED, who=who)
    _log.info("channel.resumed", channel_id=channel.id, who=who)


def check(registry: Registry, channel: Channel) -> ChannelHealth:
    """Ask the platform whether the credential still opens the page. No transaction is open."""
    return registry.adapter(channel.platform).check(channel)


def _channels() -> Select[Any]:
    return select(*channels.c)


def _channel(row: Row[*tuple[Any, ...]]) -> Channel:
    return Channel(
        id=row.id,
        platform=row.platform,
        name=row.name,
        remote_id=row.remote_id,
        base_url=row.base_url,
        sealed=row.sealed,
        generation=row.generation,
        trusted=row.trusted,
    )


def _taken(
    conn: Connection, error: IntegrityError, values: dict[str, str | None]
) -> ChannelRefused | IntegrityError:
    diag = getattr(error.orig, "diag", None)
    constraint = getattr(diag, "constraint_name", None)
    if constraint == "channels_name":
        message = (
            f'The name "{values["name"]}" is taken by another channel. Nothing was added. '
            "Choose another name."
        )
        return ChannelRefused(message, code="name-taken", field="name")
    if constraint != "channels_place":
        return error
    holder = conn.execute(
        _channels().where(
            channels.c.platform == values["platform"],
            channels.c.remote_id == values["remote_id"],
            channels.c.base_url.is_not_distinct_from(values["base_url"]),
        )
    ).one_or_none()
    if holder is None:
        message = (
            f"{values['remote_id']} on {values['platform']} is already connected in another "
            "workspace. Nothing was added. Disconnect it there, or post from there."
        )
        return ChannelRefused(message, code="place-taken", field="remote_id")
    message = (
        f'{values["remote_id"]} on {values["platform"]} is already connected as "{holder.name}" '
        f"(id {holder.id}). Nothing was added. For a new credential: "
        f"publisher channels reconnect {holder.id}."
    )
    return ChannelRefused(message, code="place-taken", field="remote_id")


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _either(names: tuple[str, ...]) -> str:
    return " or ".join(f'"{name}"' for name in names)
