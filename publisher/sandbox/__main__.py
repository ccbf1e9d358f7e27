"""``python -m publisher.sandbox``: run the sandbox platform by itself."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from publisher.sandbox.plan import Chaos
from publisher.sandbox.server import serve


def main(arguments: list[str] | None = None) -> int:
    """Read the command line and serve; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m publisher.sandbox",
        description="A platform of our own on this machine, for trying Publisher and for tests.",
    )
    add = parser.add_argument
    add("--port", type=int, help="port on 127.0.0.1; 0 picks one (PUBLISHER_SANDBOX_PORT)")
    add("--log", type=Path, help="directory of its record (PUBLISHER_SANDBOX_LOG)")
    add("--pages", type=int, default=2, help="pages to have: 101, 102, …")
    add("--accounts", type=int, default=1, help="accounts of each other platform to have")
    add("--chaos", type=Chaos.parse, metavar="SEED[:RATE]", help="misbehave at random")
    add("--delay-ms", type=float, default=0.0, help="wait before every answer")
    add("--no-triggers", action="store_true", help="ignore #sandbox:… in the text of posts")
    add("--no-fsync", action="store_true", help="do not sync the record; for benches only")
    add("--parent-pipe", action="store_true", help="end when standard input ends")
    given = parser.parse_args(arguments)
    port, log = _defaults(given.port, given.log)
    return serve(
        port=port,
        log=log,
        pages=given.pages,
        accounts=given.accounts,
        chaos=given.chaos,
        triggers=not given.no_triggers,
        fsync=not given.no_fsync,
        delay_ms=given.delay_ms,
        parent_pipe=given.parent_pipe,
    )


def _defaults(port: int | None, log: Path | None) -> tuple[int, Path]:
    """Fill in from the settings what was not given; they are only loaded when needed."""
    if port is not None and log is not None:
        return port, log
    from publisher import config  # noqa: PLC0415  slow to load, and mostly not needed

    settings = config.load()
    chosen = settings.sandbox_port if port is None else port
    return chosen, log or settings.sandbox_log or settings.home / "sandbox"


if __name__ == "__main__":
    sys.exit(main())
