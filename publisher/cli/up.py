"""``publisher up``: everything on one machine, in one process group, stopped in order."""

from __future__ import annotations

from typing import Annotated

import typer

from publisher.cli import screen, session
from publisher.cli.children import Children, tell_death
from publisher.cli.exits import Exit
from publisher.db import migrate
from publisher.db.connect import Database
from publisher.db.roles import Role
from publisher.words import _


def up(
    *,
    sandbox: Annotated[
        bool, typer.Option("--sandbox", help=_("Start the sandbox platform as well."))
    ] = False,
    workers: Annotated[int, typer.Option(min=1, help=_("How many worker processes."))] = 1,
    concurrency: Annotated[
        int | None,
        typer.Option(min=1, max=1000, help=_("Sends under way at once, per worker.")),
    ] = None,
) -> None:
    """Exit 0 after Ctrl-C, 1 when a part died.

    The database is opened first and given up last: the embedded server outlives whatever uses it.
    """
    settings = session.settings()
    with Database.open(settings, Role.OWNER, application_name="publisher up") as database:
        migrate.upgrade(database)
        with Children(settings) as children, children.serving():
            if sandbox:
                address = children.start_sandbox()
                screen.say(
                    _("See    {url}/   the sandbox's pages; nothing leaves this machine").format(
                        url=address
                    )
                )
            for _number in range(workers):
                arguments = [] if concurrency is None else ["--concurrency", str(concurrency)]
                children.start_worker(*arguments)
            children.start_reconciler()
            screen.say(_("Data   {home}").format(home=_where(settings.home.as_posix())))
            screen.say(_("Stop   Ctrl-C"))
            screen.say_next("publisher channels list", "publisher jobs list")
            dead = children.wait()
            if dead is not None:
                tell_death(dead)
    if dead is not None:
        raise typer.Exit(Exit.NOT_AS_WISHED)


def _where(home: str) -> str:
    if session.settings().database_url is None:
        return f"{home}/"
    return _("{home}/ and the database of PUBLISHER_DATABASE_URL").format(home=home)
