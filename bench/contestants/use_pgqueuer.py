"""PgQueuer on an asyncpg pool and uvloop, durable, in batches."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterable, Iterator
from datetime import timedelta

import asyncpg
import uvloop
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.models import Job
from pgqueuer.queries import Queries

from handling import URL, Contestant, Handled, main

_BATCH = int(os.environ.get("BENCH_BATCH", "500"))


class Pgqueuer(Contestant):
    """Deletes a row when its job is done and logs each of its changes of state."""

    def setup(self) -> None:
        """See ``Contestant``."""

        async def make() -> None:
            conn = await asyncpg.connect(URL)
            await Queries(AsyncpgDriver(conn)).install()
            await conn.close()

        uvloop.run(make())

    def add(self, sets: Iterable[list[int]]) -> Iterator[None]:
        """See ``Contestant``."""
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            conn = runner.run(asyncpg.connect(URL))
            queries = Queries(AsyncpgDriver(conn))
            for jobs in sets:
                if len(jobs) == 1:
                    runner.run(queries.enqueue("noop", b"%d" % jobs[0]))
                else:
                    payloads = [b"%d" % job for job in jobs]
                    runner.run(queries.enqueue(["noop"] * len(jobs), payloads, [0] * len(jobs)))
                yield
            runner.run(conn.close())

    def work(self, handled: Handled) -> None:
        """See ``Contestant``."""
        uvloop.run(self._work(handled))

    async def _work(self, handled: Handled) -> None:
        pool = await asyncpg.create_pool(URL, min_size=4, max_size=10)
        queue = PgQueuer.from_asyncpg_pool(pool)

        @queue.entrypoint("noop")
        async def noop(job: Job) -> None:
            handled.hit((job.payload or b"").decode())

        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, queue.shutdown.set)
        handled.wait_for_go()
        # Its command also runs a scheduler of recurring jobs; the queue alone is what we measure.
        await queue.qm.run(batch_size=_BATCH, dequeue_timeout=timedelta(seconds=5))


main(Pgqueuer())
