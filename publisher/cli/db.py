"""``publisher db``: bring the schema to this release's revision, or see where it stands."""

from __future__ import annotations

from typing import Annotated

import typer

from publisher.cli import screen, session
from publisher.cli.exits import Exit
from publisher.db import migrate, preflight
from publisher.db.connect import Database
from publisher.db.roles import Role
from publisher.words import _, many

app = typer.Typer(no_args_is_help=True, help=_("Upgrade or check the database."))


@app.command(help=_("Make the tables, or bring them to this release's revision."))
def upgrade() -> None:
    """Exit 2 when it cannot; any number may run at once."""
    settings = session.settings()
    with Database.open(settings, Role.OWNER, application_name="publisher db upgrade") as database:
        status = migrate.upgrade(database)
    screen.say(_("The database is at revision {head}.").format(head=status.head))
    screen.say_next("publisher channels add PLATFORM --name N --remote-id R", "publisher worker")


@app.command(help=_("Tell whether a worker would start on this database."))
def check(
    *, json: Annotated[bool, typer.Option("--json", help=_("One JSON object per line."))] = False
) -> None:
    """Exit 0 when it would, 2 with every reason when it would not."""
    settings = session.settings()
    with Database.open(settings, Role.ENGINE, application_name="publisher db check") as database:
        status = migrate.check(database)
        with database.engine.connect() as conn:
            problems = preflight.check(conn)
    if json:
        screen.emit({"code": str(one.code), "sentence": one.sentence} for one in problems)
    elif problems:
        screen.say(*(one.sentence for one in problems))
        screen.say(
            many(
                "{n} thing to put right before a worker starts.",
                "{n} things to put right before a worker starts.",
                len(problems),
            )
        )
        screen.say_next("publisher db upgrade" if status.pending else "publisher db check")
    else:
        screen.say(_("The database is at revision {head} and fit.").format(head=status.head))
        screen.say_next("publisher worker")
    if problems:
        raise typer.Exit(Exit.USAGE)
