"""``publisher sandbox``: a platform of our own, for trying and testing."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from publisher.cli import screen, session
from publisher.sandbox import server
from publisher.sandbox.plan import Chaos
from publisher.words import _


def sandbox(
    *,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help=_("Unset: PUBLISHER_SANDBOX_PORT."))
    ] = None,
    pages: Annotated[int, typer.Option(min=0, help=_("How many Pages it has at least."))] = 2,
    log: Annotated[
        Path | None, typer.Option(help=_("Folder of its record. Unset: PUBLISHER_SANDBOX_LOG."))
    ] = None,
    chaos: Annotated[
        str,
        typer.Option(
            metavar="SEED[:RATE]", help=_("Misbehave at random, repeatably."), show_default=False
        ),
    ] = "",
) -> None:
    """Exit 0 after Ctrl-C, 2 when the port is taken."""
    settings = session.settings()
    try:
        plan = Chaos.parse(chaos) if chaos else None
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--chaos") from error
    code = server.serve(
        port=settings.sandbox_port if port is None else port,
        log=log or settings.sandbox_log or settings.home / "sandbox",
        pages=pages,
        chaos=plan,
        ready=_ready,
    )
    raise typer.Exit(code)


def _ready(url: str) -> None:
    said = _("Sandbox ready at {url}/ (nothing leaves this machine). Stop: Ctrl-C")
    screen.say(said.format(url=url))
    page = f"--name N --remote-id 101 --base-url {url}"
    screen.say_next(f"publisher channels add facebook_pages {page}")
