"""Serves the API over HTTP until told to stop."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from socket import AF_INET, AF_INET6, SO_REUSEADDR, SOCK_STREAM, SOL_SOCKET, socket
from typing import TYPE_CHECKING, Final

import uvicorn
from starlette.types import ASGIApp

from publisher.engine.errors import PublisherError
from publisher.words import _

if TYPE_CHECKING:
    from collections.abc import Iterator

DRAIN_SECONDS: Final = 35
"""A wait may last thirty; nothing else lasts so long."""
CONNECTIONS: Final = 40
"""Of the database: as many as there are threads that work (anyio's default), so none waits."""


class AddressTaken(PublisherError):
    """Nothing can listen there."""

    code = "address-taken"


@dataclass(frozen=True, slots=True)
class Listening:
    """A server on its socket; ``run`` serves until ``stop``."""

    url: str
    run: Callable[[], None]
    stop: Callable[[], None]


@contextmanager
def listening(app: ASGIApp, host: str, port: int) -> Iterator[Listening]:
    """Take the address; port 0: any that is free. Raises ``AddressTaken``."""
    taken = _socket(host, port)
    config = uvicorn.Config(
        app,
        access_log=False,
        log_config=None,
        lifespan="off",
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=DRAIN_SECONDS,
        h11_max_incomplete_event_size=32_768,
        ws="none",
    )
    server = uvicorn.Server(config)
    shown = f"[{host}]" if ":" in host else host
    url = f"http://{shown}:{taken.getsockname()[1]}"

    def stop() -> None:
        server.should_exit = True

    try:
        yield Listening(url, lambda: server.run(sockets=[taken]), stop)
    finally:
        taken.close()


def _socket(host: str, port: int) -> socket:
    try:
        taken = socket(AF_INET6 if ":" in host else AF_INET, SOCK_STREAM)
    except OSError as error:  # pragma: no cover - a machine without IPv6
        raise _refused(host, port, error) from error
    try:
        taken.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1)
        taken.bind((host, port))
        taken.listen(128)
    except (OSError, OverflowError) as error:
        taken.close()
        raise _refused(host, port, error) from error
    return taken


def _refused(host: str, port: int, error: Exception) -> AddressTaken:
    said = getattr(error, "strerror", None) or str(error)
    message = _("Cannot listen on {host}:{port}: {said}. Give another --port.")
    return AddressTaken(message.format(host=host, port=port, said=said))
