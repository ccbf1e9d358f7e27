"""Pickup: a job is added to an idle queue; how long from that commit to its handler."""

from __future__ import annotations

import time
from pathlib import Path

from bench.contestants import Contestant, Workers
from bench.machine import Meter
from bench.results import Row, quantile
from bench.server import Server

_EVERY_MILLISECONDS = 50


def pickup(contestant: Contestant, server: Server, *, samples: int) -> Row:
    """One job every 50 ms, so that the worker is idle each time."""
    contestant.fresh(server)
    with Workers(contestant, server, 1, BENCH_EACH="1") as workers:
        workers.go()
        time.sleep(1.5)
        meter = Meter.start(workers.pids, server.pid)
        added = workers.folder / "added"
        contestant.call(server, "trickle", samples, _EVERY_MILLISECONDS, added)
        until = time.monotonic() + 3
        while workers.handled() < samples and time.monotonic() < until:
            time.sleep(0.02)
        used = meter.read()
        took = _milliseconds(added, workers.each())
    return {
        "samples": len(took),
        "p50": quantile(took, 0.5),
        "p99": quantile(took, 0.99),
        "max": max(took),
        "worker_cpu": used.workers / samples * 1000,
        "server_cpu": used.server / samples * 1000,
        "foreign": used.foreign,
    }


def _milliseconds(added: Path, handled: dict[str, float]) -> list[float]:
    took = []
    for line in added.read_text().splitlines():
        job, _, committed = line.split()
        if job in handled:
            # Handled before the commit had returned to whoever added it: at once.
            took.append(max(0.0, handled[job] - float(committed)) * 1000)
    return took
