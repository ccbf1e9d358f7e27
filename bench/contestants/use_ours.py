"""Our own engine, whole: gates, trigger, promise index, permits, the synced spool.

``BENCH_CHANNELS``: over how many channels the jobs are spread, each with one in flight.
``BENCH_PLATFORM=facebook_pages`` works as ``publisher worker`` does, real adapter and all.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from handling import AT_ONCE, URL, Contestant, Handled, main
from publisher import bootstrap, telemetry
from publisher.config import Settings
from publisher.db import migrate
from publisher.db.connect import Database
from publisher.db.roles import Role
from publisher.engine import ledger
from publisher.engine.adapter import (
    Capabilities,
    ChannelHealth,
    LookQuery,
    Problem,
    Promise,
    Ready,
    SendPermit,
    Step,
    Task,
)
from publisher.engine.content import Post
from publisher.engine.evidence import Evidence, Inconclusive
from publisher.engine.job import Channel, NewJob
from publisher.engine.outcome import Outcome, Published
from publisher.engine.registry import Registry
from publisher.engine.worker import Timing, Worker

_CHANNELS = int(os.environ.get("BENCH_CHANNELS", "500"))
_AT_ONCE = AT_ONCE or 256
_ADD_CHANNELS = """
WITH added AS (
    INSERT INTO channels (platform, name, remote_id)
    SELECT 'noop', 'Channel ' || n, n::text FROM generate_series(1, %s) AS n
    ON CONFLICT DO NOTHING RETURNING id)
INSERT INTO gates (channel_id) SELECT id FROM added
"""


class Noop:
    """An adapter whose publish uses its permit and answers, and does nothing between."""

    platform = "noop"

    def __init__(self, handled: Handled) -> None:
        self._handled = handled
        self._capabilities = Capabilities(
            format="text",
            noun="page",
            promise=Promise.AT_MOST_ONCE_WITH_EVIDENCE,
            can_look=True,
            listing_is_exhaustive=False,
            text_limit=1000,
        )

    def capabilities(self, content: str, progress: object = None) -> Capabilities:
        """See ``Adapter``."""
        del content, progress
        return self._capabilities

    def problems(self, content: str) -> tuple[Problem, ...]:
        """See ``Adapter``."""
        del content
        return ()

    def platform_key(self, key: str, at: datetime) -> str | None:
        """See ``Adapter``."""
        del key, at
        return None

    def prepared(self, task: Task) -> Ready | None:
        """See ``Adapter``."""
        return Ready(task.progress)

    def step(self, task: Task) -> Step:
        """See ``Adapter``."""
        return Ready(task.progress)

    def publish(self, task: Task, ready: Ready, permit: SendPermit) -> Outcome:
        """See ``Adapter``."""
        del ready
        permit.use()
        self._handled.hit(task.key)
        return Published(f"{task.channel.id}_{task.job_id}")

    def look(self, query: LookQuery) -> Evidence:
        """See ``Adapter``."""
        del query
        return Inconclusive("there is no page", clean=True)

    def check(self, channel: Channel) -> ChannelHealth:
        """See ``Adapter``."""
        del channel
        return ChannelHealth(usable=True, detail="")


class Ours(Contestant):
    """Records every attempt before it is made, and keeps everything."""

    def setup(self) -> None:
        """See ``Contestant``."""
        with self._open(Role.OWNER) as database:
            migrate.upgrade(database)

    def add(self, sets: Iterable[list[int]]) -> Iterator[None]:
        """See ``Contestant``."""
        with self._open(Role.APP) as database:
            with database.engine.begin() as conn:
                conn.exec_driver_sql(_ADD_CHANNELS, (_CHANNELS,))
                ids = list(conn.exec_driver_sql("SELECT id FROM channels ORDER BY id").scalars())
            for numbers in sets:
                now = datetime.now(UTC)
                jobs = [
                    NewJob(
                        key=str(number),
                        kind="publish",
                        queue="publish",
                        channel_id=ids[number % len(ids)],
                        content=Post(f"Post {number}").to_json(),
                        run_at=now,
                    )
                    for number in numbers
                ]
                with database.engine.begin() as conn:
                    ledger.enqueue(conn, jobs)
                yield

    def work(self, handled: Handled) -> None:
        """See ``Contestant``."""
        settings = self._settings()
        telemetry.configure(settings)
        with self._open(Role.ENGINE) as database:
            if os.environ.get("BENCH_PLATFORM") == "facebook_pages":
                with bootstrap.open_app(settings, database) as app:
                    _run(bootstrap.worker(app), handled)
            worker = Worker(
                connect=database.connect_driver,
                registry=Registry([Noop(handled)]),
                spool_folder=settings.home / "spool",
                timing=Timing(),
                concurrency=_AT_ONCE,
                listen=lambda: database.connect_driver(direct=True),
            )
            _run(worker, handled)

    def claims(self, times: int, limit: int) -> None:
        """Print how many milliseconds each of so many claims took."""
        took = []
        with self._open(Role.ENGINE) as database, database.connect_driver() as conn:
            incarnation, _ = ledger.register(conn, host="bench", boot_id="", pid=0, file="bench")
            after = 0
            for _ in range(times):
                began = time.perf_counter()
                claim = ledger.claim(
                    conn,
                    incarnation=incarnation,
                    queues=["publish"],
                    limit=limit,
                    lease=60,
                    after=after,
                )
                took.append((time.perf_counter() - began) * 1000)
                after = claim.after
        print(json.dumps({"milliseconds": took}))

    def _settings(self) -> Settings:
        home = Path(os.environ["BENCH_HOME"])
        return Settings(database_url=URL, home=home, concurrency=_AT_ONCE)

    def _open(self, role: Role) -> Database:
        return Database.open(self._settings(), role, application_name="bench")


def _run(worker: Worker, handled: Handled) -> None:
    signal.signal(signal.SIGTERM, lambda *_: worker.drain())
    handled.wait_for_go()
    sys.exit(worker.run())


if sys.argv[1:2] == ["claims"]:
    Ours().claims(int(sys.argv[2]), int(sys.argv[3]))
else:
    main(Ours())
