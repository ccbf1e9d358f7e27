"""``publisher channels posting-times`` and ``set``: when a channel posts, and how far apart."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from enum import StrEnum
from typing import Annotated

import typer

from publisher.cli import moments, screen, session
from publisher.cli.exits import Exit
from publisher.cli.job_page import field
from publisher.editorial import channel_rules, channels, clock, posting_times
from publisher.editorial.channel_rules import Change, Rules, span
from publisher.engine import queries
from publisher.engine.job import Backlog
from publisher.words import _, many

Name = Annotated[str, typer.Argument(metavar="CHANNEL", help=_("Name or id."), show_default=False)]
Json = Annotated[bool, typer.Option("--json", help=_("As JSON."))]
_NEXT = 3


class Verb(StrEnum):
    """What is done with posting times."""

    LIST = "list"
    ADD = "add"
    REMOVE = "remove"


def show_posting_times(
    channel: Name,
    verb: Annotated[Verb, typer.Argument(help=_("What to do."))] = Verb.LIST,
    times: Annotated[
        list[str] | None,
        typer.Argument(metavar="TIME…", help=_('Such as "mon 09:00".'), show_default=False),
    ] = None,
    *,
    json: Json = False,
) -> None:
    """Exit 1 when there was nothing to add or remove."""
    written = [part.strip() for given in times or () for part in given.split(",")]
    wanted = [time for part in written for time in posting_times.read(part)]
    if (verb is Verb.LIST) is bool(wanted):
        message = _("Give times to add or remove: mon 09:00, weekdays 12:30, daily 18:00.")
        raise typer.BadParameter(message)
    changed: int | None = None
    with session.transaction() as conn:
        found = channels.find(conn, channel)
        who = session.who()
        if verb is Verb.ADD:
            changed = posting_times.add(conn, found.id, wanted, who=who)
        elif verb is Verb.REMOVE:
            changed = posting_times.remove(conn, found.id, wanted, who=who)
        listed = posting_times.of_channel(conn, found.id)
        zone = posting_times.zone_of(conn, found.id)
        free = posting_times.free(conn, found.id, at_most=_NEXT)
        now = queries.clock(conn)
    if json:
        told = {"zone": zone.key, "times": [{"weekday": at.weekday, "at": f"{at.at:%H:%M}"}
                                            for at in listed]}  # fmt: skip
        screen.emit([told | {"free": [moments.iso(at) for at in free]}])
    else:
        if changed is not None:
            said = many("Added {n} posting time.", "Added {n} posting times.", changed)
            if verb is Verb.REMOVE:
                said = many("Removed {n} posting time.", "Removed {n} posting times.", changed)
            screen.say(said)
        if listed:
            times_said = ", ".join(map(str, listed))
            screen.say(f"{found.name}, {clock.city(zone)}: {times_said}")
        else:
            screen.say(_("{name} has no posting times.").format(name=found.name))
        screen.say(*(_("Free: {when}").format(when=clock.told(at, zone, now)) for at in free))
        screen.say_next(
            "publisher posts schedule POST"
            if free
            else f'publisher channels posting-times {found.id} add "weekdays 09:00"'
        )
    if changed == 0:
        raise typer.Exit(Exit.NOT_AS_WISHED)


def set_rules(  # noqa: PLR0913 - each option is a rule
    channel: Name,
    *,
    spacing: Annotated[
        str, typer.Option(help=_("At least so long between posts, such as 30m; 0: none."))
    ] = "",
    useful_for: Annotated[
        str, typer.Option(help=_("A post is not sent later than so long after its time; 0: usual."))
    ] = "",
    backlog: Annotated[
        str, typer.Option(help=_("Posts late after a standstill: send, release or miss."))
    ] = "",
    late_after: Annotated[
        str, typer.Option(help=_("How late makes a post one of these, such as 30m."))
    ] = "",
    release_every: Annotated[
        str, typer.Option(help=_("With release: one late post every so long, such as 10m."))
    ] = "",
    alt_text: Annotated[
        bool | None,
        typer.Option(
            "--alt-text/--no-alt-text",
            help=_("Whether every picture and video needs one before a post is approved."),
            show_default=False,
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Exit 2 for a rule it cannot have; without options its rules are shown."""
    to = Change(
        spacing=_span(spacing, "spacing"),
        useful_for=_span(useful_for, "useful_for"),
        backlog=channel_rules.read_backlog(backlog) if backlog else None,
        overdue_after=_span(late_after, "overdue_after"),
        release_every=_span(release_every, "release_every"),
        alt_text=alt_text,
    )
    with session.transaction() as conn:
        found = channels.find(conn, channel)
        rules = channel_rules.change(conn, found, to, who=session.who())
    if json:
        screen.emit([rules_as_json(rules)])
        return
    screen.say(found.name, *rule_lines(rules))
    screen.say_next(f"publisher channels show {found.id}")


def rule_lines(rules: Rules) -> Iterator[str]:
    """The rules of a channel, a line each."""
    useful = _("as the settings have it")
    if rules.useful_for is not None:
        useful = span(rules.useful_for)
    backlog = {
        Backlog.SEND: _("sent by their times"),
        Backlog.RELEASE: _("after fresh ones, one every {span}").format(
            span=span(max(rules.release_every, rules.spacing))
        ),
        Backlog.MISS: _("missed"),
    }[rules.backlog]
    yield field(_("Spacing"), span(rules.spacing) if rules.spacing else _("none"))
    yield field(_("Useful"), useful)
    yield field(
        _("Backlog"),
        _("{what} (what a standstill made more than {span} late)").format(
            what=backlog, span=span(rules.overdue_after)
        ),
    )
    needed = _("needed before approval") if rules.alt_text else _("asked for, not needed")
    yield field(_("Alt texts"), needed)


def rules_as_json(rules: Rules) -> dict[str, object]:
    """The same for machines, in seconds."""
    useful = rules.useful_for
    return {
        "spacing_seconds": rules.spacing.total_seconds(),
        "useful_for_seconds": None if useful is None else useful.total_seconds(),
        "backlog": str(rules.backlog),
        "late_after_seconds": rules.overdue_after.total_seconds(),
        "release_every_seconds": rules.release_every.total_seconds(),
        "alt_text": rules.alt_text,
    }


def _span(written: str, name: str) -> timedelta | None:
    return channel_rules.read_span(written, name) if written else None
