"""Procrastinate on psycopg's asynchronous pool, listening, finished jobs kept."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator

import procrastinate

from handling import AT_ONCE, URL, Contestant, Handled, main

_AT_ONCE = AT_ONCE or 20
_app = procrastinate.App(
    connector=procrastinate.PsycopgConnector(conninfo=URL, min_size=2, max_size=12)
)
_handled: list[Handled] = []


@_app.task(name="noop", queue="default")
async def _noop(job: int) -> None:
    _handled[0].hit(job)


class Procrastinate(Contestant):
    """Updates a row's status and writes an event row for each change of it."""

    def setup(self) -> None:
        """See ``Contestant``."""

        async def make() -> None:
            async with _app.open_async():
                await _app.schema_manager.apply_schema_async()

        asyncio.run(make())

    def add(self, sets: Iterable[list[int]]) -> Iterator[None]:
        """See ``Contestant``."""
        with asyncio.Runner() as runner:
            runner.run(_open())
            for jobs in sets:
                if len(jobs) == 1:
                    runner.run(_noop.defer_async(job=jobs[0]))
                else:
                    runner.run(_noop.batch_defer_async(*({"job": job} for job in jobs)))
                yield
            runner.run(_app.close_async())

    def work(self, handled: Handled) -> None:
        """See ``Contestant``."""
        _handled.append(handled)

        async def work() -> None:
            async with _app.open_async():
                handled.wait_for_go()
                await _app.run_worker_async(
                    queues=["default"],
                    concurrency=_AT_ONCE,
                    listen_notify=True,
                    shutdown_graceful_timeout=2,
                )

        asyncio.run(work())


async def _open() -> None:
    await _app.open_async()


main(Procrastinate())
