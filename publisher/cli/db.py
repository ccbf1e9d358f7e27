"""``publisher db``: bring the schema to this release's revision, dump the database, restore it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from publisher import witness
from publisher.cli import moments, screen, session
from publisher.cli.exits import Exit
from publisher.db import migrate, preflight
from publisher.db.connect import Database
from publisher.db.roles import Role
from publisher.editorial import backup
from publisher.words import _, many

app = typer.Typer(no_args_is_help=True)


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


@app.command(
    help=_(
        "Write the whole database into one file. What is put back from it later, by whatever"
        " means, is seen to be older than what went on."
    )
)
def dump(
    file: Annotated[Path, typer.Argument(help=_("A new file."), show_default=False)],
) -> None:
    """Exit 2 when it cannot; there is no file then."""
    settings = session.settings()
    store = witness.store(settings)
    with session.database(Role.OWNER) as database:
        dumped = backup.dump(database, file, store, step=settings.witness_step)
    screen.say(
        _("Dumped {size} into {file}. Generation {n} goes on.").format(
            size=_bytes(dumped.size), file=file, n=dumped.generation
        )
    )
    if not dumped.witness_told:
        screen.say(
            _("The witness {name} was not told; the next worker tells it.").format(name=store.name)
        )
    screen.say(_("Keep it apart from the sealing key, which is not in it."))
    screen.say_next(f"publisher db restore {file}")


@app.command(
    help=_(
        "Put a dump into an empty database, or in the place of everything in this one. What may"
        " have been sent since the dump is looked for on its page before it is sent."
    )
)
def restore(
    file: Annotated[Path, typer.Argument(help=_("What `db dump` wrote."), show_default=False)],
    *,
    replace: Annotated[
        bool, typer.Option("--replace", help=_("Everything in the database goes."))
    ] = False,
    confirm: Annotated[
        str,
        typer.Option(
            metavar="DATABASE_NAME",
            help=_("The name of the database that is replaced; else it is asked for."),
            show_default=False,
        ),
    ] = "",
    take_witness: Annotated[
        bool,
        typer.Option(
            "--take-witness",
            help=_("Write over a witness of another deployment; only when that one is over."),
        ),
    ] = False,
    by: Annotated[
        str, typer.Option(metavar="NAME", help=_("Who does it."), show_default=False)
    ] = "",
) -> None:
    """Exit 4 while workers run, 2 for anything else in the way; nothing is changed then."""
    settings = session.settings()
    store = witness.store(settings)
    with Database.open(settings, Role.OWNER, application_name="publisher db restore") as database:
        if replace and not confirm and sys.stdin.isatty() and not backup.is_empty(database):
            name = backup.database_name(database)
            screen.note(_("Everything in database {name} goes.").format(name=name))
            confirm = typer.prompt(_("Type its name"), default="", show_default=False)
        restored = backup.restore(
            database,
            file,
            store,
            replaces=replace,
            confirm=confirm,
            take_witness=take_witness,
            who=by or session.who(),
            step=settings.witness_step,
            absent_after=settings.publish_lease + settings.horizon,
        )
    screen.say(
        _("Restored deployment {id} from {file} ({size}), generation {n}.").format(
            id=restored.deployment,
            file=file,
            size=_bytes(restored.size),
            n=restored.generation,
        ),
        many(
            "{n} post is looked for on its page before it is sent: it may have been since {when}.",
            "{n} posts are looked for on their pages before they are sent: they may have been"
            " since {when}.",
            restored.quarantined,
            when=moments.iso(restored.beat_at),
        ),
    )
    screen.say_next("publisher worker", "publisher quarantine status")


def _bytes(size: int) -> str:
    return many("{n} byte", "{n} bytes", size)
