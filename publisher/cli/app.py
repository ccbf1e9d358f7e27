"""The command ``publisher``: one module per noun, put together here."""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated, Final

import typer

from publisher.cli import screen
from publisher.cli.lazily import Lazily, Listed
from publisher.words import N_, _

_COMMANDS: Final = (
    Listed(
        "worker",
        N_("Claim what is due and send it, until told to stop."),
        "worker:worker",
    ),
    Listed("up", N_("Run everything on this machine until Ctrl-C."), "up:up"),
    Listed("api", N_("Serve the API, under /api/v1, until told to stop."), "api:api"),
    Listed(
        "sandbox",
        N_("Run a platform of our own, for trying and testing."),
        "sandbox:sandbox",
    ),
    Listed(
        "restore-guard",
        N_("Say that this database was restored: what was due since is looked for first."),
        "quarantine:restore_guard",
    ),
    Listed(
        "doctor",
        N_("Say what is wrong with this deployment, and what to do about it."),
        "doctor:doctor",
    ),
    Listed(
        "audit",
        N_("Ask the journal whether it keeps its promises; change nothing."),
        "audit:audit",
    ),
    Listed(
        "channels",
        N_("Connect Pages and accounts; pause, reconnect."),
        "channels:app",
    ),
    Listed(
        "posts",
        N_("Write, import, approve and schedule posts, and list them."),
        "posts:app",
    ),
    Listed("media", N_("Add pictures and videos, and see what is kept."), "media:app"),
    Listed("jobs", N_("See jobs, wait for them, move them."), "jobs:app"),
    Listed(
        "unknowns",
        N_("Posts that may be live: look again, decide, take, hand over."),
        "unknowns:app",
    ),
    Listed("workers", N_("See worker runs; state that one is gone."), "workers:app"),
    Listed("workspaces", N_("Teams that see nothing of each other."), "workspaces:app"),
    Listed("users", N_("Invite people, give roles, sign them out."), "users:app"),
    Listed("tokens", N_("API tokens: make, list and revoke them."), "tokens:app"),
    Listed("db", N_("Upgrade, check, dump or restore the database."), "db:app"),
    Listed(
        "deployment",
        N_("See which deployment this is; make a copy one of its own."),
        "deployment:app",
    ),
    Listed(
        "quarantine",
        N_("Posts that are looked for first: the database may lack the record of their sends."),
        "quarantine:app",
    ),
    Listed(
        "rehearse",
        N_("Acceptance run with injected crashes: then compare the page with the journal."),
        "rehearse:app",
    ),
    Listed("demo", N_("See it work, on a platform of our own."), "demo:app"),
)


class _Commands(Lazily):
    listed = _COMMANDS


app = typer.Typer(
    name="publisher",
    cls=_Commands,
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
