"""What processes and the machine used, read from /proc."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    """User and system time of a process, its threads, and children it has waited for."""
    return sum(_stat(pid)[11:15]) / _TICKS


def server_cpu_seconds(postmaster: int) -> float:
    """The same for a PostgreSQL server: its first process and the living children."""
    total = cpu_seconds(postmaster)
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = _stat(int(entry.name))
            except OSError:
                continue
            if stat[1] == postmaster:
                total += (stat[11] + stat[12]) / _TICKS
    return total


def machine_cpu_seconds() -> float:
    """What all processors have worked since boot."""
    first = Path("/proc/stat").read_text(encoding="ascii").partition("\n")[0]
    times = [int(word) for word in first.split()[1:]]
    return (sum(times[:8]) - times[3] - times[4]) / _TICKS


def peak_megabytes(pid: int) -> float:
    """The most resident memory a process has had."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


@dataclass(slots=True)
class Meter:
    """CPU used since ``start`` by workers, server, us, and everybody else on the machine."""

    workers: tuple[int, ...]
    postmaster: int
    others: tuple[int, ...]
    _began: tuple[float, float, float, float, float]

    @classmethod
    def start(cls, workers: Iterable[int], postmaster: int, others: Iterable[int] = ()) -> Meter:
        """Begin to measure; ``others`` are ours, too, but no workers."""
        meter = cls(tuple(workers), postmaster, tuple(others), (0, 0, 0, 0, 0))
        meter._began = meter._now()
        return meter

    def _now(self) -> tuple[float, float, float, float, float]:
        return (
            time.monotonic(),
            sum(cpu_seconds(pid) for pid in self.workers),
            server_cpu_seconds(self.postmaster),
            time.process_time() + sum(cpu_seconds(pid) for pid in self.others),
            machine_cpu_seconds(),
        )

    def read(self) -> Used:
        """What was used so far."""
        passed, workers, server, ours, machine = (
            now - began for now, began in zip(self._now(), self._began, strict=True)
        )
        foreign = max(0.0, machine - workers - server - ours) / passed
        return Used(workers=workers, server=server, foreign=foreign)


@dataclass(frozen=True, slots=True)
class Used:
    """CPU seconds of workers and server, and how many cores others kept busy meanwhile."""

    workers: float
    server: float
    foreign: float


def _stat(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    words = text.rsplit(")", 1)[1].split()
    return [0, *(int(word) for word in words[1:22])]
