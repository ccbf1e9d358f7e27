"""``publisher worker``: claim what is due and send it, until told to stop."""

from __future__ import annotations

import signal
from types import FrameType
from typing import Annotated

import typer

from publisher import bootstrap
from publisher.cli import children, session
from publisher.db.roles import Role
from publisher.words import _


def worker(
    *,
    concurrency: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=1000,
            help=_("Sends under way at once. Unset: PUBLISHER_CONCURRENCY."),
            show_default=False,
        ),
    ] = None,
    queues: Annotated[
        str,
        typer.Option(
            metavar="A,B", help=_("Queues to serve. Unset: PUBLISHER_QUEUES."), show_default=False
        ),
    ] = "",
    parent_pipe: Annotated[bool, typer.Option("--parent-pipe", hidden=True)] = False,
) -> None:
    """Exit 0 after SIGTERM or Ctrl-C with nothing in doubt, 1 with sends left unsettled.

    Exit 2, with every reason, on a database that could forget what was sent.
    """
    settings = session.service_settings()
    changes: dict[str, object] = {}
    if concurrency is not None:
        changes["concurrency"] = concurrency
    if queues:
        changes["queues"] = tuple(part.strip() for part in queues.split(",") if part.strip())
    settings = settings.model_copy(update=changes)
    with session.database(Role.ENGINE) as database, bootstrap.open_app(settings, database) as app:
        process = bootstrap.worker(app)

        def drain(_number: int, _frame: FrameType | None) -> None:
            process.drain()

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, drain)
        if parent_pipe:
            children.when_parent_ends(process.drain)
        with bootstrap.measured(app), bootstrap.audited(app):
            code = process.run()
    raise typer.Exit(code)
