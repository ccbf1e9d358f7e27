"""``/channels``: connect pages, see how they are, pause and reconnect them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import APIRouter, Request, Response
from pydantic import Field

from publisher import reasons
from publisher.api.calls import Answer, Caller, Here, OptionalKey, RequiredKey, answered, once
from publisher.api.operations import operation
from publisher.api.strict import At, Body, Instant, Number, Told
from publisher.editorial import channel_access, channel_events, channels
from publisher.editorial.channel_events import ChannelEvent
from publisher.editorial.channels import Standing
from publisher.editorial.people.roles import Permission
from publisher.engine.errors import NotFound
from publisher.words import _

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from publisher.engine.job import Channel

router = APIRouter(tags=["channels"])
Secret = Annotated[
    str,
    Field(
        min_length=1,
        max_length=10_000,
        description="The platform's credential. It is sealed, and never shown again.",
        json_schema_extra={"writeOnly": True},
    ),
]
Ends = Annotated[
    At | None,
    Field(description="When the credential ends, where that is known; check asks the platform."),
]
StateWord = Literal["open", "paused", "needs-reconnecting", "limited"]


class NewChannel(Body):
    """A page or account to connect."""

    platform: Annotated[str, Field(max_length=100, examples=["mastodon"])]
    name: Annotated[str, Field(max_length=1_000, description="What to call it here.")]
    remote_id: Annotated[str, Field(max_length=1_000, description="The platform's own id of it.")]
    base_url: Annotated[str, Field(max_length=2_000)] | None = Field(
        default=None,
        description="Its server, where it is not the platform's usual one. It is checked before it"
        " is called: no address inside a private network, unless those who run this allow it.",
    )
    token: Secret
    access_ends_at: Ends = None


class Credential(Body):
    """A new credential."""

    token: Secret
    access_ends_at: Ends = None


class ChannelTold(Told):
    """A channel, whether it takes posts, and what waits for it."""

    id: int
    platform: str
    name: str
    remote_id: str
    base_url: str | None
    state: StateWord
    open: bool = Field(description="Whether posts are sent to it now.")
    paused_at: Instant | None
    paused_by: str | None
    blocked_at: Instant | None
    blocked_reason: str | None
    blocked_detail: str | None
    why: str = Field(description="Why it takes nothing, as a sentence; empty where it does.")
    not_before: Instant | None = Field(description="Until when the platform limits us.")
    waiting: int
    may_be_live: int
    access_ends_at: Instant | None = Field(
        description="When our access ends; null: at no time, or the platform never said."
    )
    rehearsal_allowed_at: Instant | None
    rehearsal_allowed_by: str | None
    url: str


class ChannelEventTold(Told):
    """One line of a channel's journal."""

    at: Instant
    who: str
    event: str
    detail: dict[str, Any]


class ChannelWhole(ChannelTold):
    """A channel with its journal."""

    promise: str | None = Field(description="How often a post is sent there; null: no adapter.")
    events: list[ChannelEventTold]


class ChannelPage(Told):
    """Every channel, by name."""

    channels: list[ChannelTold]


class Health(Told):
    """What a read of the page with our credential showed."""

    usable: bool
    detail: str
    name: str | None
    expires_at: Instant | None


@operation(router, "GET", "/channels", Permission.CHANNELS_READ, ChannelPage)
def list_channels(here: Here) -> Response:
    """List channels, whether they take posts, and what waits."""
    with here.transaction() as conn:
        listed = channels.listing(conn)
    return answered(ChannelPage(channels=[ChannelTold(**_parts(at)) for at in listed]))


@operation(
    router,
    "POST",
    "/channels",
    Permission.CHANNELS_CONNECT,
    ChannelWhole,
    status=201,
    headers={"Location": "The channel's address."},
    example={
        "platform": "mastodon",
        "name": "Town news",
        "remote_id": "109302",
        "base_url": "https://social.example",
        "token": "the-access-token",
    },
)
def add_channel(here: Here, request: Request, body: NewChannel, key: RequiredKey) -> Response:
    """Connect a page or account. Nothing is asked of the platform yet: see check."""

    def add(conn: Connection) -> Answer:
        channel = channels.add(
            conn,
            here.desk.vault,
            here.desk.registry,
            platform=body.platform,
            name=body.name,
            remote_id=body.remote_id,
            base_url=body.base_url,
            token=body.token,
            access_ends_at=body.access_ends_at,
            who=here.who,
        )
        told = _whole(conn, here, channel.id)
        return Answer(told, status=201, headers={"Location": told.url})

    return once(here, request, key, add)


@operation(router, "GET", "/channels/{channel}", Permission.CHANNELS_READ, ChannelWhole)
def show_channel(channel: Number, here: Here) -> Response:
    """Show one channel: how it is, and what people did with it."""
    with here.transaction() as conn:
        return answered(_whole(conn, here, channel))


@operation(router, "POST", "/channels/{channel}/check", Permission.CHANNELS_READ, Health)
def check_channel(channel: Number, here: Here) -> Response:
    """Ask the platform whether our access still opens the channel, and until when.

    Nothing is sent. When the access ends is kept, for checks of posts that are due after that.
    """
    with here.transaction() as conn:
        found = find(conn, channel)
    health = channels.check(here.desk.registry, found)
    with here.transaction() as conn:
        channel_access.note(conn, found, health)
    return answered(
        Health(
            usable=health.usable,
            detail=health.detail,
            name=health.name,
            expires_at=health.expires_at,
        )
    )


@operation(router, "POST", "/channels/{channel}/pause", Permission.CHANNELS_PAUSE, ChannelWhole)
def pause_channel(
    channel: Number, here: Here, request: Request, key: OptionalKey = None
) -> Response:
    """Send nothing to a channel until it is resumed. What is being sent goes on."""
    return _change(here, request, channel, key, lambda conn, at: channels.pause(conn, at, here.who))


@operation(router, "POST", "/channels/{channel}/resume", Permission.CHANNELS_PAUSE, ChannelWhole)
def resume_channel(
    channel: Number, here: Here, request: Request, key: OptionalKey = None
) -> Response:
    """Let a paused channel go on."""
    return _change(
        here, request, channel, key, lambda conn, at: channels.resume(conn, at, here.who)
    )


@operation(
    router,
    "POST",
    "/channels/{channel}/reconnect",
    Permission.CHANNELS_CONNECT,
    ChannelWhole,
    example={"token": "the-new-access-token"},
)
def reconnect_channel(
    channel: Number, here: Here, request: Request, body: Credential, key: RequiredKey
) -> Response:
    """Give a channel a new credential; what waited for it goes on."""

    def reconnect(conn: Connection, at: Channel) -> None:
        channels.reconnect(
            conn,
            here.desk.vault,
            at,
            body.token,
            here.who,
            access_ends_at=body.access_ends_at,
        )

    return _change(here, request, channel, key, reconnect)


def find(conn: Connection, number: int) -> Channel:
    """The channel with that number. Raises ``NotFound``, also for another workspace's."""
    listed = channels.Directory.read(conn).channels
    found = next((channel for channel in listed if channel.id == number), None)
    if found is None:
        raise _no_channel(number)
    return found


def _change(
    here: Caller,
    request: Request,
    number: int,
    key: str | None,
    act: Callable[[Connection, Channel], object],
) -> Response:
    def change(conn: Connection) -> Answer:
        act(conn, find(conn, number))
        return Answer(_whole(conn, here, number))

    return once(here, request, key, change)


def _whole(conn: Connection, here: Caller, number: int) -> ChannelWhole:
    listed = channels.listing(conn)
    at = next((one for one in listed if one.channel.id == number), None)
    if at is None:
        raise _no_channel(number)
    events = channel_events.of_channel(conn, number)
    return ChannelWhole(
        **_parts(at), promise=_promise(here, at.channel), events=[_event(one) for one in events]
    )


def _promise(here: Caller, channel: Channel) -> str | None:
    try:
        can = here.desk.registry.adapter(channel.platform).capabilities("")
    except NotFound:
        return None
    return can.promise.value


def _parts(at: Standing) -> dict[str, Any]:
    channel = at.channel
    blocked = reasons.sentence(at.blocked_reason)
    return {
        "id": channel.id,
        "platform": channel.platform,
        "name": channel.name,
        "remote_id": channel.remote_id,
        "base_url": channel.base_url,
        "state": _state(at),
        "open": at.is_open,
        "paused_at": at.paused_at,
        "paused_by": at.paused_by,
        "blocked_at": at.blocked_at,
        "blocked_reason": at.blocked_reason,
        "blocked_detail": at.blocked_detail,
        "why": blocked or (_("A person paused the channel.") if at.paused_at is not None else ""),
        "not_before": at.not_before,
        "waiting": at.waiting,
        "may_be_live": at.may_be_live,
        "access_ends_at": at.access_ends_at,
        "rehearsal_allowed_at": at.rehearsal_allowed_at,
        "rehearsal_allowed_by": at.rehearsal_allowed_by,
        "url": f"/api/v1/channels/{channel.id}",
    }


def _state(at: Standing) -> StateWord:
    if at.blocked_at is not None:
        return "needs-reconnecting"
    if at.paused_at is not None:
        return "paused"
    return "limited" if at.is_limited else "open"


def _event(event: ChannelEvent) -> ChannelEventTold:
    return ChannelEventTold(
        at=event.at, who=event.who, event=event.event, detail=dict(event.detail)
    )


def _no_channel(number: int) -> NotFound:
    return NotFound(_("There is no channel {id} here.").format(id=number))
