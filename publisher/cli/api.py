"""``publisher api``: serve the API until told to stop."""

from __future__ import annotations

import signal
from types import FrameType
from typing import Annotated

import typer

from publisher import api as room
from publisher import bootstrap
from publisher.api import serving
from publisher.cli import children, screen, session
from publisher.db.connect import Database
from publisher.db.roles import Role
from publisher.db.walls import EVERY
from publisher.words import _


def api(
    *,
    host: Annotated[
        str, typer.Option(help=_("Address to listen on; behind a proxy that speaks HTTPS."))
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help=_("0: any that is free."))] = 8802,
    parent_pipe: Annotated[bool, typer.Option("--parent-pipe", hidden=True)] = False,
) -> None:
    """Exit 0 after SIGTERM or Ctrl-C, 2 for an address that is taken."""
    settings = session.service_settings()
    with (
        session.database(),
        Database.open(
            settings,
            Role.APP,
            application_name="publisher api",
            pool_size=serving.CONNECTIONS // 2,
            workspace=EVERY,
        ) as database,
        bootstrap.open_app(settings, database) as parts,
        serving.listening(room.app(parts), host, port) as server,
    ):

        def stop(_number: int, _frame: FrameType | None) -> None:
            server.stop()

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, stop)
        if parent_pipe:
            children.when_parent_ends(server.stop)
        screen.say(_("API    {url}/api/v1").format(url=server.url))
        screen.say_next(
            "publisher tokens add NAME --user EMAIL --scope posts.read",
            f"curl {server.url}/api/v1/me",
        )
        server.run()
