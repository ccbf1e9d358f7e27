"""One channel on the screen: how it is, and what people did with it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from publisher import reasons
from publisher.cli import moments
from publisher.cli.job_page import field
from publisher.cli.screen import visible
from publisher.editorial.channel_events import ChannelEvent, Event
from publisher.editorial.channels import Standing
from publisher.words import _, many


def state(at: Standing, now: datetime) -> str:
    """Whether it takes posts, in a few words."""
    if at.blocked_at is not None:
        return _("needs reconnecting: {why}").format(why=reasons.sentence(at.blocked_reason))
    if at.paused_at is not None:
        return _("paused by {who}").format(who=at.paused_by)
    if at.is_limited and at.not_before is not None:
        return _("limited until {when}").format(when=moments.short(at.not_before, now))
    if at.may_be_live:
        return many("open; {n} needs a person", "open; {n} need a person", at.may_be_live)
    return _("open")


def lines(
    at: Standing, events: Sequence[ChannelEvent], now: datetime, *, rules: Iterable[str] = ()
) -> Iterator[str]:
    """The page, line by line; ``rules``: those of its times."""
    channel = at.channel
    yield visible(f"{channel.name}   {channel.platform} {channel.remote_id}   id {channel.id}")
    yield field(_("State"), visible(state(at, now)))
    if at.access_ends_at is not None:
        yield field(_("Access"), access(at.access_ends_at, now))
    if channel.base_url is not None:
        yield field(_("Server"), visible(channel.base_url))
    yield field(
        _("Posts"),
        _("{waiting} waiting, {doubts} may be live").format(
            waiting=at.waiting, doubts=at.may_be_live
        ),
    )
    yield from rules
    yield field(_("Rehearse"), visible(rehearsal(at, now)))
    for event in events:
        yield visible(f"  {moments.short(event.at, now)}  {_told(event)}")


def access(ends_at: datetime, now: datetime) -> str:
    """When our access ends, or that it has."""
    when = moments.short(ends_at, now)
    said = _("ends {when}") if ends_at > now else _("ended {when}: reconnect it")
    return said.format(when=when)


def rehearsal(at: Standing, now: datetime) -> str:
    """Whether rehearsals may publish there, since when and by whose word."""
    if at.rehearsal_allowed_at is None:
        return _("not allowed")
    when = moments.short(at.rehearsal_allowed_at, now)
    return _("allowed {when} by {who}").format(when=when, who=at.rehearsal_allowed_by)


def event_as_json(event: ChannelEvent) -> dict[str, object]:
    """One line of its journal, for machines."""
    return {
        "at": moments.iso(event.at),
        "who": event.who,
        "event": event.event,
        "detail": dict(event.detail),
    }


def _told(event: ChannelEvent) -> str:
    words = {
        Event.ADDED: _("connected by {who}"),
        Event.RECONNECTED: _("reconnected by {who}"),
        Event.PAUSED: _("paused by {who}"),
        Event.RESUMED: _("resumed by {who}"),
        Event.CREDENTIAL_DROPPED: _("access dropped by {who}: the deployment was moved"),
        Event.RULES_CHANGED: _("rules of its times changed by {who}"),
        Event.POSTING_TIMES_ADDED: _("posting times added by {who}"),
        Event.POSTING_TIMES_REMOVED: _("posting times removed by {who}"),
        Event.REHEARSAL_ALLOWED: _("rehearsals allowed by {who}"),
        Event.REHEARSAL_FORBIDDEN: _("rehearsals forbidden by {who}"),
        Event.REHEARSED: _("rehearsal {run} begun by {who}"),
    }
    known = {str(name): said for name, said in words.items()}
    said = known.get(event.event, "{event}: {who}")
    return said.format(event=event.event, who=event.who, run=event.detail.get("run"))
