"""Drain: so many jobs are ready; how long until the contestant's own tables show none left."""

from __future__ import annotations

import time

from bench.contestants import Contestant, Workers
from bench.machine import Meter, peak_megabytes
from bench.results import Row
from bench.server import DATABASE, Server

_POLL = 0.02
_LIMIT = 120.0


def drain(
    contestant: Contestant, server: Server, *, processes: int, jobs: int | None = None
) -> Row:
    """Enqueue into a new database, then drain it with so many processes."""
    count = jobs or contestant.jobs
    contestant.fresh(server)
    return drain_prepared(contestant, server, processes=processes, jobs=count)


def drain_prepared(contestant: Contestant, server: Server, *, processes: int, jobs: int) -> Row:
    """The same in the database as it is."""
    enqueued = contestant.call(server, "enqueue", jobs)
    with server.connect(DATABASE) as conn:
        conn.execute("ANALYZE")
    return work_off(contestant, server, processes=processes, jobs=jobs) | {
        "enqueued_per_second": jobs / enqueued["seconds"]
    }


def work_off(contestant: Contestant, server: Server, *, processes: int, jobs: int) -> Row:
    """Run workers until all is finished. The clock runs from the first handler's start."""
    with Workers(contestant, server, processes) as workers, server.connect(DATABASE) as conn:
        time.sleep(0.2)
        before = _counters(server)
        meter = Meter.start(workers.pids, server.pid)
        began = time.monotonic()
        workers.go()
        polls, pending = 0, jobs
        while pending and time.monotonic() - began < _LIMIT:
            time.sleep(_POLL)
            if workers.handled() >= jobs:
                polls += 1
                pending = _pending(contestant, conn)
        ended = time.time()
        used = meter.read()
        wal = _counters(server)[0] - before[0]
        memory = max(peak_megabytes(pid) for pid in workers.pids)
        counts = [each for each in workers.counts() if each[0]]
        if pending:
            left = _pending(contestant, conn)
            message = f"{contestant.name}: {left} of {jobs} left. {workers.said()}"
            raise RuntimeError(message)
    time.sleep(0.3)  # the counters of a session are flushed when it ends
    transactions = _counters(server)[1] - before[1] - polls
    seconds = ended - min(first for _, first, _ in counts)
    return {
        "jobs": jobs,
        "handled": sum(count for count, _, _ in counts),
        "processes": processes,
        "rate": jobs / seconds,
        "transactions": transactions / jobs,
        "wal": wal / jobs,
        "worker_cpu": used.workers / jobs * 1000,
        "server_cpu": used.server / jobs * 1000,
        "memory": memory,
        "foreign": used.foreign,
    }


def _pending(contestant: Contestant, conn: object) -> int:
    row = conn.execute(contestant.pending).fetchone()  # type: ignore[attr-defined]
    return int(row[0])


def _counters(server: Server) -> tuple[float, int]:
    with server.connect() as conn:
        row = conn.execute(
            "SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn, xact_commit + xact_rollback"
            "  FROM pg_stat_database WHERE datname = %s",
            [DATABASE],
        ).fetchone()
    return (0.0, 0) if row is None else (float(row[0]), int(row[1]))
