"""``publisher channels allow-rehearsal`` and ``forbid-rehearsal``: consent, page by page."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from publisher import bootstrap
from publisher.cli import moments, screen, session
from publisher.editorial import channels, rehearsals
from publisher.editorial.unknowns import NotConfirmed
from publisher.engine.job import Channel
from publisher.words import _

Name = Annotated[str, typer.Argument(metavar="CHANNEL", help=_("Name or id."), show_default=False)]
Who = Annotated[
    str, typer.Option(metavar="NAME", help=_("Who allows it; you, unset."), show_default=False)
]
Yes = Annotated[bool, typer.Option("--yes", help=_("Do not ask."))]


def allow_rehearsal(channel: Name, *, who: Who = "", yes: Yes = False) -> None:
    """Exit 4 while the page has posts of its own to publish, 2 when it is not confirmed."""
    with session.transaction() as conn:
        found = channels.find(conn, channel)
        rehearsals.require_free(conn, found)
    if not yes:
        _confirm(found)
    registry = bootstrap.describing_registry(session.settings())
    with session.transaction() as conn:
        given = rehearsals.allow(conn, registry, found, who=who or session.who())
    words = _("Rehearsals may publish on {name}: allowed {when} by {who}.")
    when = moments.iso(given.at)
    screen.say(screen.visible(words.format(name=found.name, when=when, who=given.who)))
    screen.say_next(
        f"publisher rehearse smoke --channel {found.id}",
        f"publisher channels forbid-rehearsal {found.id}",
    )


def forbid_rehearsal(channel: Name, *, who: Who = "") -> None:
    """Exit 0, also where none was allowed. What a rehearsal left behind stays to be cleaned."""
    with session.transaction() as conn:
        found = channels.find(conn, channel)
        changed = rehearsals.forbid(conn, found, who=who or session.who())
    said = (
        _("No rehearsal may publish on {name} any more.")
        if changed
        else _("No rehearsal was allowed on {name}. Nothing was changed.")
    )
    screen.say(screen.visible(said.format(name=found.name)))
    screen.say_next(f"publisher rehearse clean {found.id}", "publisher channels list")


def _confirm(channel: Channel) -> None:
    """Say what a rehearsal does to the page, and have its name typed."""
    named = f"{channel.name} ({channel.platform} {channel.remote_id})"
    screen.say(
        screen.visible(_("{page} is a real page. A rehearsal there").format(page=named)),
        _("  publishes a few posts that whoever reads the page sees, for a minute or two each,"),
        _("  marks them: [rehearsal RUN-SEED] test, will be deleted"),
        _("  kills a worker in the middle of one, on purpose, and looks for that post,"),
        _("  and deletes them all again. What cannot be deleted is listed with links."),
        _("It never begins while a post of the page's own is due within an hour."),
    )
    typed = ""
    if sys.stdin.isatty():
        typed = typer.prompt(_("Type the channel's name"), default="", show_default=False)
    if typed.strip() != channel.name:
        message = _(
            "Not confirmed: the name {name} was not typed. Nothing was changed. To allow it"
            " without being asked, give --yes."
        )
        raise NotConfirmed(message.format(name=channel.name), code="not-confirmed")
