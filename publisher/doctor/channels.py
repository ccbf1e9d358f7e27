"""Whether what is due can be sent at all: gates, credentials, the key that opens them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime

from sqlalchemy.exc import OperationalError

from publisher import reasons
from publisher.doctor.finding import Finding, error, note, warning
from publisher.doctor.ward import Ward
from publisher.editorial import channel_access
from publisher.editorial.deployment import KeyStanding, Standing
from publisher.engine import queries
from publisher.engine.adapter import ChannelHealth as Health
from publisher.engine.errors import NotFound
from publisher.engine.queries import ChannelHealth
from publisher.vault import VaultError
from publisher.words import _, many

_DAY = 86_400


def gates(ward: Ward) -> Iterator[Finding]:
    """Channels that need a person: blocked, or never claimed from."""
    for at in _channels(ward):
        name = {"name": at.channel.name, "id": at.channel.id}
        if not at.has_gate:
            yield error(
                "gate_missing",
                _("Channel {name} has no gate: nothing of it is ever claimed.").format(**name),
                _("Remove the channel and connect it again: publisher channels add"),
            )
        elif at.blocked_reason is not None:
            why = reasons.sentence(at.blocked_reason)
            yield warning(
                "channel_blocked",
                _("Channel {name} takes nothing: {why}").format(why=why, **name),
                _("Run: publisher channels reconnect {id}").format(**name),
            )


def due(ward: Ward) -> Iterator[Finding]:
    """Jobs that are due on a channel that takes nothing."""
    for at in _channels(ward):
        if at.is_open or not at.due or at.oldest is None:
            continue
        what = many(
            "{n} post is due on {name}, which takes nothing; the oldest since {when}.",
            "{n} posts are due on {name}, which takes nothing; the oldest since {when}.",
            at.due,
            name=at.channel.name,
            when=f"{at.oldest:%Y-%m-%d %H:%M %Z}",
        )
        if at.blocked_reason is None and at.has_gate:
            resume = _("Run: publisher channels resume {id}").format(id=at.channel.id)
            yield note("due_on_paused", what, resume)
        else:
            again = _("Run: publisher channels reconnect {id}").format(id=at.channel.id)
            yield warning("due_on_blocked", what, again)


def key(ward: Ward) -> Iterator[Finding]:
    """Whether the key at hand is this deployment's; a copy without it sends nothing."""
    remedy = _("Bring the key back; after a deliberate move: publisher deployment rebind")
    try:
        standing = _standing(ward)
    except VaultError as problem:
        yield error("key_unusable", str(problem), remedy)
        return
    what = {"id": standing.identity.id, "where": standing.where}
    if standing.key is KeyStanding.MISSING:
        missing = _("There is no sealing key {where}; deployment {id} was set up with one.")
        yield error("key_missing", missing.format(**what), remedy)
    elif standing.key is KeyStanding.ANOTHER:
        another = _("The sealing key {where} is not the one of deployment {id}.")
        yield error("key_of_another", another.format(**what), remedy)


def credentials(ward: Ward) -> Iterator[Finding]:
    """Whether this deployment's key opens the credential of every channel."""
    every = _channels(ward)
    for at in every:
        if at.channel.sealed is None:
            yield warning(
                "credential_missing",
                _("Channel {name} has no credential.").format(name=at.channel.name),
                _("Run: publisher channels reconnect {id}").format(id=at.channel.id),
            )
    try:
        standing = _standing(ward)
    except VaultError:
        return
    if standing.vault is None or standing.key is not KeyStanding.MATCHES:
        return  # then none opens, and it is told of by itself
    closed = []
    for channel in (at.channel for at in every if at.channel.sealed is not None):
        try:
            standing.vault.open(channel.sealed or b"", channel_id=channel.id)
        except VaultError:
            closed.append(channel)
    if closed:
        yield error(
            "credential_closed",
            _("This key does not open the credential of {names}.").format(
                names=", ".join(channel.name for channel in closed)
            ),
            _("Bring the right key back, or reconnect: publisher channels reconnect {id}").format(
                id=closed[0].id
            ),
        )


def platforms(ward: Ward) -> Iterator[Finding]:
    """Channels of a platform that this release cannot speak to."""
    for at in _channels(ward):
        try:
            ward.registry.adapter(at.channel.platform)
        except NotFound:
            yield warning(
                "platform_unknown",
                _("Channel {name} is on {platform}, which this release does not know.").format(
                    name=at.channel.name, platform=at.channel.platform
                ),
                _("Run the release that connected it."),
            )


def access(ward: Ward) -> Iterator[Finding]:
    """What each platform says of our access: refused, or near its end. Only when asked for."""
    if not ward.ask_platforms:
        return
    now = datetime.now(UTC)
    for at in _channels(ward):
        if not at.is_open or at.channel.sealed is None:
            continue
        name = {"name": at.channel.name, "id": at.channel.id}
        reconnect = _("Run: publisher channels reconnect {id}").format(**name)
        try:
            health = ward.registry.adapter(at.channel.platform).check(at.channel)
        except Exception as problem:  # noqa: BLE001 - one platform must not hide the others
            what = _("{name} could not be asked: {kind}.").format(
                kind=type(problem).__name__, **name
            )
            yield warning("access_unasked", what, _("Ask again: publisher channels check …"))
            continue
        _keep(ward, at, health)
        if not health.usable:
            what = _("{name}: {detail}").format(detail=health.detail, **name)
            yield warning("access_refused", what, reconnect)
        elif health.expires_at is not None:
            left = (health.expires_at - now).total_seconds()
            if left < ward.limits.access_ends:
                what = _("Access to {name} ends in {n:.1f} days.")
                yield warning("access_ends", what.format(n=left / _DAY, **name), reconnect)


def _keep(ward: Ward, at: ChannelHealth, health: Health) -> None:
    """Keep when the access ends, which checks of posts go by; a database that is busy is left."""
    with suppress(OperationalError), ward.database.engine.begin() as conn:
        conn.exec_driver_sql("SET LOCAL lock_timeout = '1s'")
        channel_access.note(conn, at.channel, health)


def _standing(ward: Ward) -> Standing:
    with ward.reading() as conn:
        return Standing.read(conn, ward.settings)


def _channels(ward: Ward) -> list[ChannelHealth]:
    with ward.reading() as conn:
        return queries.channel_health(conn)
