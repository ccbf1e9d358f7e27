"""``publisher channels``: connect pages, see how they are, pause and reconnect them."""

from __future__ import annotations

import getpass
import os
import sys
from datetime import UTC, datetime
from typing import Annotated

import typer

from publisher import bootstrap
from publisher.cli import channel_page, moments, screen, session
from publisher.cli.channel_rehearsal import allow_rehearsal, forbid_rehearsal
from publisher.cli.channel_times import rule_lines, rules_as_json, set_rules, show_posting_times
from publisher.cli.exits import Exit
from publisher.cli.screen import Column
from publisher.editorial import channel_access, channel_events, channel_rules, channels
from publisher.editorial.channels import Standing
from publisher.engine.errors import PublisherError
from publisher.words import _

app = typer.Typer(no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="CHANNEL", help=_("Name or id."), show_default=False)]
TokenEnv = Annotated[
    str,
    typer.Option(
        metavar="VAR",
        help=_("Environment variable that holds the token; else it is asked for, unseen."),
        show_default=False,
    ),
]


def _moment(written: str) -> datetime:
    try:
        at = datetime.fromisoformat(written)
    except ValueError:
        at = datetime.min  # noqa: DTZ901 - without a zone, as what was written
    if at.tzinfo is None:
        message = _("Give it with its offset: 2027-01-31T09:00+07:00.")
        raise typer.BadParameter(message)
    return at


AccessEnds = Annotated[
    datetime | None,
    typer.Option(
        parser=_moment,
        metavar="TIME",
        help=_("When the token ends, with an offset; check asks those platforms that tell."),
        show_default=False,
    ),
]
Json = Annotated[bool, typer.Option("--json", help=_("One JSON object per line."))]


class TokenMissing(PublisherError):
    """No token was given and there is nobody to ask."""

    code = "token-missing"


@app.command(help=_("Connect a Page or account. The token is read and sealed now."))
def add(
    platform: Annotated[str, typer.Argument(help=_("Such as facebook_pages."), show_default=False)],
    *,
    name: Annotated[str, typer.Option(help=_("What to call it here."), show_default=False)],
    remote_id: Annotated[
        str, typer.Option(help=_("The platform's own id of it."), show_default=False)
    ],
    base_url: Annotated[
        str, typer.Option(help=_("Its server, where it is not the usual one."), show_default=False)
    ] = "",
    token_env: TokenEnv = "",
    access_ends: AccessEnds = None,
) -> None:
    """Exit 2 when it cannot be added; nothing is asked of the platform yet."""
    token = _token(token_env)
    with (
        session.database() as database,
        bootstrap.open_app(session.settings(), database) as parts,
        database.engine.begin() as conn,
    ):
        channel = channels.add(
            conn,
            parts.vault,
            parts.registry,
            platform=platform,
            name=name,
            remote_id=remote_id,
            base_url=base_url or None,
            # Whoever types an address here runs this machine; what comes by page, API or file
            # is checked before it is called.
            trusted=True,
            token=token,
            access_ends_at=access_ends,
            who=session.who(),
        )
    screen.say(
        _("Added channel {id}: {name} ({remote_id}).").format(
            id=channel.id, name=channel.name, remote_id=channel.remote_id
        )
    )
    screen.say_next(f"publisher channels check {channel.id}", "publisher posts import FILE")


@app.command(name="list", help=_("List channels, whether they take posts, and what waits."))
def list_channels(*, json: Json = False) -> None:
    """Exit 0 whatever is listed."""
    with session.transaction() as conn:
        listed = channels.listing(conn)
    if json:
        screen.emit(map(_as_json, listed))
        return
    if not listed:
        screen.say(_("There are no channels."))
        screen.say_next("publisher channels add PLATFORM --name N --remote-id R")
        return
    now = datetime.now(UTC)
    some_end = any(at.access_ends_at is not None for at in listed)
    screen.show_table(
        [
            Column(_("ID"), whole=True),
            Column(_("NAME")),
            Column(_("PLATFORM")),
            Column(_("REMOTE ID"), whole=True),
            Column(_("STATE")),
            *([Column(_("ACCESS ENDS"), whole=True)] if some_end else []),
            Column(_("WAITING"), right=True),
            Column(_("MAY BE LIVE"), right=True),
        ],
        (
            [
                str(at.channel.id),
                at.channel.name,
                at.channel.platform,
                at.channel.remote_id,
                _state(at),
                *([_ends(at, now)] if some_end else []),
                str(at.waiting),
                str(at.may_be_live),
            ]
            for at in listed
        ),
    )
    closed = next((at for at in listed if not at.is_open), None)
    if closed is not None and closed.blocked_at is not None:
        screen.say_next(f"publisher channels reconnect {closed.channel.id}")
    elif closed is not None and closed.paused_at is not None:
        screen.say_next(f"publisher channels resume {closed.channel.id}")
    else:
        screen.say_next("publisher posts import FILE", "publisher jobs list")


@app.command(help=_("Show one channel: how it is, and what people did with it."))
def show(
    channel: Name, *, json: Annotated[bool, typer.Option("--json", help=_("As JSON."))] = False
) -> None:
    """Exit 0 whatever is shown."""
    with session.transaction() as conn:
        found = channels.find(conn, channel)
        at = channels.standing(conn, found)
        events = channel_events.of_channel(conn, found.id)
        rules = channel_rules.of_channel(conn, found.id)
    if json:
        told = [channel_page.event_as_json(event) for event in events]
        screen.emit([{**_as_json(at), "rules": rules_as_json(rules), "events": told}])
        return
    screen.say(*channel_page.lines(at, events, datetime.now(UTC), rules=rule_lines(rules)))
    screen.say_next(f"publisher channels check {found.id}", "publisher jobs list")


@app.command(help=_("Ask the platform whether our access still opens the channel."))
def check(channel: Name) -> None:
    """Exit 3 when a person must reconnect it. Nothing is sent; when the access ends is kept."""
    with (
        session.database() as database,
        bootstrap.open_app(session.settings(), database) as parts,
    ):
        with database.engine.begin() as conn:
            found = channels.find(conn, channel)
        health = channels.check(parts.registry, found)
        with database.engine.begin() as conn:
            channel_access.note(conn, found, health)
    screen.say(screen.visible(f"{found.name} ({found.remote_id}): {health.detail}"))
    if health.expires_at is not None:
        now = datetime.now(UTC)
        screen.say(_("Access ends {when}.").format(when=moments.short(health.expires_at, now)))
    if not health.usable:
        screen.say_next(f"publisher channels reconnect {found.id}")
        raise typer.Exit(Exit.NEEDS_A_PERSON)
    screen.say_next("publisher posts import FILE")


@app.command(help=_("Give a channel a new token; what waited for it goes on."))
def reconnect(channel: Name, *, token_env: TokenEnv = "", access_ends: AccessEnds = None) -> None:
    """Exit 2 for a token that is none."""
    token = _token(token_env)
    with (
        session.database() as database,
        bootstrap.open_app(session.settings(), database) as parts,
        database.engine.begin() as conn,
    ):
        found = channels.find(conn, channel)
        channels.reconnect(
            conn, parts.vault, found, token, session.who(), access_ends_at=access_ends
        )
        at = channels.standing(conn, found)
    if at.paused_at is None:
        screen.say(_("{name} has a new token; what waited for it goes on.").format(name=found.name))
        screen.say_next(f"publisher channels check {found.id}")
        return
    screen.say(
        _("{name} has a new token. It is paused, and nothing is sent before it is resumed.").format(
            name=found.name
        )
    )
    screen.say_next(f"publisher channels resume {found.id}")


@app.command(help=_("Send nothing to a channel until it is resumed."))
def pause(channel: Name) -> None:
    """Exit 0, also when it was paused already. What is being sent goes on."""
    with session.transaction() as conn:
        found = channels.find(conn, channel)
        channels.pause(conn, found, session.who())
    screen.say(_("{name} is paused: nothing is sent to it.").format(name=found.name))
    screen.say_next(f"publisher channels resume {found.id}")


@app.command(help=_("Let a paused channel go on."))
def resume(channel: Name) -> None:
    """Exit 0, also when it was not paused."""
    with session.transaction() as conn:
        found = channels.find(conn, channel)
        channels.resume(conn, found, session.who())
        at = channels.standing(conn, found)
    if at.blocked_at is None:
        screen.say(_("{name} is not paused.").format(name=found.name))
        screen.say_next("publisher jobs list")
        return
    screen.say(
        _("{name} is not paused, but nothing is sent before it has a new token.").format(
            name=found.name
        )
    )
    screen.say_next(f"publisher channels reconnect {found.id}")


app.command(name="posting-times", help=_("List, add or remove a channel's weekly posting times."))(
    show_posting_times
)
app.command(
    name="set", help=_("Set how far apart a channel posts, and what becomes of late posts.")
)(set_rules)
app.command(
    name="allow-rehearsal",
    help=_("Let rehearsals publish on a real page: marked posts that are deleted again."),
)(allow_rehearsal)
app.command(name="forbid-rehearsal", help=_("Let no rehearsal publish on a page any more."))(
    forbid_rehearsal
)


def _token(variable: str) -> str:
    """The token from the named variable, or typed unseen; never from the command line."""
    if variable:
        token = os.environ.get(variable)
        if token is None:
            message = _("There is no environment variable {name}. Set it to the token.")
            raise TokenMissing(message.format(name=variable))
        return token
    if not sys.stdin.isatty():
        message = _(
            "No token was given. Name the environment variable that holds it: --token-env VAR"
        )
        raise TokenMissing(message)
    return getpass.getpass(_("Token (not shown): "))


def _state(at: Standing) -> str:
    said = channel_page.state(at, datetime.now(UTC))
    if at.rehearsal_allowed_at is None:
        return said
    return _("{state} · rehearsals allowed").format(state=said)


def _ends(at: Standing, now: datetime) -> str:
    return "" if at.access_ends_at is None else moments.short(at.access_ends_at, now)


def _as_json(at: Standing) -> dict[str, object]:
    return {
        "id": at.channel.id,
        "platform": at.channel.platform,
        "name": at.channel.name,
        "remote_id": at.channel.remote_id,
        "base_url": at.channel.base_url,
        "open": at.is_open,
        "paused_at": moments.iso(at.paused_at),
        "paused_by": at.paused_by,
        "blocked_at": moments.iso(at.blocked_at),
        "blocked_reason": at.blocked_reason,
        "blocked_detail": at.blocked_detail,
        "not_before": moments.iso(at.not_before),
        "waiting": at.waiting,
        "may_be_live": at.may_be_live,
        "access_ends_at": moments.iso(at.access_ends_at),
        "rehearsal_allowed_at": moments.iso(at.rehearsal_allowed_at),
        "rehearsal_allowed_by": at.rehearsal_allowed_by,
    }
