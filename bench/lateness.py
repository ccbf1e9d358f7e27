"""Real sends: the facebook adapter over HTTP to the sandbox page on this machine."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from bench.contestants import Contestant, Workers
from bench.machine import Meter, peak_megabytes
from bench.results import Row, quantile
from bench.server import DATABASE, Server
from publisher import bootstrap
from publisher.config import Settings
from publisher.db.connect import Database
from publisher.db.roles import Role
from publisher.editorial import channels
from publisher.engine import ledger
from publisher.engine.content import Post
from publisher.engine.job import NewJob
from publisher.sandbox.process import SandboxProcess

_LIMIT = 180.0
_LATE = """
SELECT extract(epoch FROM settled_at - due_at)::float8 FROM publisher.jobs
 WHERE state = 'published' ORDER BY 1
"""
_ENDS = """
SELECT (SELECT min(begun_at) FROM publisher.attempts), max(settled_at), min(due_at)
  FROM publisher.jobs
"""
_STATES = "SELECT state, reason, count(*) FROM publisher.jobs GROUP BY 1, 2"
_OPEN = """
SELECT EXISTS (SELECT FROM publisher.jobs WHERE state = 'scheduled')
    OR EXISTS (SELECT FROM publisher.jobs WHERE incarnation IS NOT NULL)
"""


def lateness(
    contestant: Contestant,
    server: Server,
    *,
    processes: int,
    posts: int,
    pages: int,
    delay_ms: float,
) -> Row:
    """So many posts due at one instant over so many pages that answer after ``delay_ms``."""
    contestant.fresh(server)
    home = server.folder / f"sends-{time.monotonic_ns()}"
    started = SandboxProcess.start(
        home / "sandbox", pages=pages, fsync=False, triggers=False, delay_ms=delay_ms
    )
    with started as sandbox:
        settings = Settings(database_url=server.url(), home=home)
        _connect_pages(settings, sandbox.url, pages)
        with (
            Workers(
                contestant,
                server,
                processes,
                BENCH_PLATFORM="facebook_pages",
                BENCH_HOME=str(home),
                PUBLISHER_SETTLING_SECONDS="30",
            ) as workers,
            server.connect(DATABASE) as conn,
        ):
            due = datetime.now(UTC) + timedelta(seconds=2 + posts / 1500)
            _enqueue(settings, posts, due)
            conn.execute("ANALYZE")
            workers.go()
            time.sleep(max(0.0, (due - datetime.now(UTC)).total_seconds()))
            meter = Meter.start(workers.pids, server.pid, [sandbox.pid])
            until = time.monotonic() + _LIMIT
            while time.monotonic() < until:
                time.sleep(0.25)
                row = conn.execute(_OPEN).fetchone()
                if row is not None and not row[0]:
                    break
            used = meter.read()
            late = [float(row[0]) for row in conn.execute(_LATE).fetchall()]
            ends = conn.execute(_ENDS).fetchone()
            memory = max(peak_megabytes(pid) for pid in workers.pids)
            if len(late) < posts or ends is None:
                message = f"{conn.execute(_STATES).fetchall()} {workers.said()}"
                raise RuntimeError(message)
        live = len(sandbox.control.posts())
    total = (ends[1] - ends[2]).total_seconds()
    return {
        "posts": posts,
        "live": live,
        "processes": processes,
        "p50": quantile(late, 0.5),
        "p99": quantile(late, 0.99),
        "max": late[-1],
        "total": total,
        "rate": posts / (ends[1] - ends[0]).total_seconds(),
        "worker_cpu": used.workers / posts * 1000,
        "server_cpu": used.server / posts * 1000,
        "memory": memory,
        "foreign": used.foreign,
    }


@contextmanager
def _opened(settings: Settings) -> Iterator[Database]:
    with Database.open(settings, Role.APP, application_name="bench") as database:
        yield database


def _connect_pages(settings: Settings, url: str, pages: int) -> None:
    with (
        _opened(settings) as database,
        bootstrap.open_app(settings, database) as app,
        database.engine.begin() as conn,
    ):
        for page in range(101, 101 + pages):
            channels.add(
                conn,
                app.vault,
                app.registry,
                platform="facebook_pages",
                name=f"Page {page}",
                remote_id=str(page),
                base_url=url,
                token=f"sandbox-token-{page}",
                trusted=True,
            )


def _enqueue(settings: Settings, posts: int, due: datetime) -> None:
    with _opened(settings) as database:
        with database.engine.begin() as conn:
            ids = list(conn.exec_driver_sql("SELECT id FROM channels ORDER BY id").scalars())
        for at in range(0, posts, 1000):
            jobs = [
                NewJob(
                    key=str(n),
                    kind="publish",
                    queue="publish",
                    channel_id=ids[n % len(ids)],
                    content=Post(f"Post {n} of many that are due in the same minute").to_json(),
                    run_at=due,
                )
                for n in range(at, min(posts, at + 1000))
            ]
            with database.engine.begin() as conn:
                ledger.enqueue(conn, jobs)
