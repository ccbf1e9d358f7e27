"""The command ``publisher``: one module per noun, put together here."""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated

import typer

from publisher.cli import (
    channels,
    db,
    demo,
    deployment,
    jobs,
    media,
    posts,
    quarantine,
    rehearse,
    screen,
    tokens,
    unknowns,
    users,
    workers,
    workspaces,
)
from publisher.cli.api import api
from publisher.cli.audit import audit
from publisher.cli.doctor import doctor
from publisher.cli.sandbox import sandbox
from publisher.cli.up import up
from publisher.cli.worker import worker
from publisher.words import _

app = typer.Typer(
    name="publisher",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help=_("A publishing queue for social posts that never posts twice."),
    epilog=_(
        "Exit codes: 0 done, 1 not as wished, 2 usage or set-up, 3 needs a person, 4 conflict."
    ),
)
app.add_typer(channels.app, name="channels")
app.add_typer(posts.app, name="posts")
app.add_typer(media.app, name="media")
app.add_typer(jobs.app, name="jobs")
app.add_typer(unknowns.app, name="unknowns")
app.add_typer(workers.app, name="workers")
app.add_typer(workspaces.app, name="workspaces")
app.add_typer(users.app, name="users")
app.add_typer(tokens.app, name="tokens")
app.command(help=_("Claim what is due and send it, until told to stop."))(worker)
app.command(help=_("Run everything on this machine until Ctrl-C."))(up)
app.command(help=_("Serve the API, under /api/v1, until told to stop."))(api)
app.command(help=_("Run a platform of our own, for trying and testing."))(sandbox)
app.add_typer(db.app, name="db")
app.add_typer(deployment.app, name="deployment")
app.add_typer(quarantine.app, name="quarantine")
app.command(
    name="restore-guard",
    help=_("Say that this database was restored: what was due since is looked for first."),
)(quarantine.restore_guard)
app.command(help=_("Say what is wrong with this deployment, and what to do about it."))(doctor)
app.command(help=_("Ask the journal whether it keeps its promises; change nothing."))(audit)
app.add_typer(rehearse.app, name="rehearse")
app.add_typer(demo.app, name="demo")


def _show_version(wanted: bool) -> None:
    if wanted:
        screen.say(f"publisher {version('publisher')}")
        raise typer.Exit


@app.callback()
def options(
    *,
    _version: Annotated[
        bool,
        typer.Option(
            "--version", is_eager=True, callback=_show_version, help=_("Say which release this is.")
        ),
    ] = False,
    _debug: Annotated[
        bool, typer.Option("--debug", help=_("Show where a fault of ours comes from."))
    ] = False,
) -> None:
    """Options of every command; ``main`` looks for ``--debug`` itself."""
