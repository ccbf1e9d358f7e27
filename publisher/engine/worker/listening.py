"""Hints that something is due. Only hints: polling goes on whatever happens here."""

from __future__ import annotations

from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread
from time import sleep
from typing import Any

import psycopg
import structlog

from publisher.engine.errors import PublisherError
from publisher.engine.worker.held import Report, Wake
from publisher.engine.worker.station import first_line

log = structlog.get_logger(__name__)


def start_listening(
    connect: Callable[[], psycopg.Connection[Any]],
    reports: SimpleQueue[Report],
    *,
    is_over: Callable[[], bool],
    poll: float,
) -> None:
    """Turn notifications into wake-ups, on a thread and a connection of their own."""

    def hear() -> None:
        while not is_over():
            try:
                with connect() as conn:
                    conn.execute("LISTEN publisher_due")
                    for _ in conn.notifies():
                        reports.put(Wake())
            except (psycopg.Error, PublisherError) as error:
                log.warning("listen.failed", error=first_line(error))
                sleep(poll)

    Thread(target=hear, name="listen", daemon=True).start()
