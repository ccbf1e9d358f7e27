"""What every Python contestant shares: its commands, and the record its no-op handler keeps.

A contestant is a script that hands ``main`` a ``Contestant``. Where the database is, it learns
from ``BENCH_URL``, how it is set from other ``BENCH_…`` variables. Its commands:

    setup                  make its schema in an empty database
    enqueue N              add N jobs, a thousand a call
    trickle N MS FILE      add one job every MS milliseconds; FILE gets "id before after" lines
    work FOLDER INDEX      work until SIGTERM

``work`` touches ``INDEX.ready`` in FOLDER, waits for ``go`` there, and keeps count, first and last
instant in ``INDEX.count``. With ``BENCH_EACH=1``, ``INDEX.each`` gets an "id instant" line a job.
Instants are ``time.time()``. Nothing but the standard library is imported here.
"""

from __future__ import annotations

import json
import mmap
import os
import struct
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from pathlib import Path
from threading import Lock

URL = os.environ.get("BENCH_URL", "")
AT_ONCE = int(os.environ.get("BENCH_AT_ONCE", "0"))
SET = 1000
_COUNTS = struct.Struct("<ddd")


class Handled:
    """The record of a no-op handler: a few stores in shared memory, no system call."""

    def __init__(self, folder: Path, index: str) -> None:
        self._folder, self._index = folder, index
        path = folder / f"{index}.count"
        path.write_bytes(bytes(_COUNTS.size))
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), _COUNTS.size)
        self._each = None
        if os.environ.get("BENCH_EACH") == "1":
            self._each = (folder / f"{index}.each").open("a", buffering=1)
        self._count, self._first = 0, 0.0
        self._lock = Lock()

    def wait_for_go(self) -> None:
        """Say that everything is loaded, and wait until all others are, too."""
        (self._folder / f"{self._index}.ready").touch()
        go = self._folder / "go"
        while not go.exists():
            time.sleep(0.005)

    def hit(self, job: object) -> None:
        """One job was handled."""
        at = time.time()
        with self._lock:
            if self._count == 0:
                self._first = at
            self._count += 1
            _COUNTS.pack_into(self._memory, 0, self._count, self._first, at)
        if self._each is not None:
            self._each.write(f"{job} {at:.6f}\n")


class Contestant(ABC):
    """One queue, as the bench drives it. ``add`` commits before it returns."""

    @abstractmethod
    def setup(self) -> None:
        """Make the schema."""

    @abstractmethod
    def add(self, sets: Iterable[list[int]]) -> Iterator[None]:
        """Add each set of jobs in one call, and yield after each."""

    @abstractmethod
    def work(self, handled: Handled) -> None:
        """Wait for go, then work until SIGTERM."""


def main(contestant: Contestant) -> None:
    """Do what the command line says."""
    match sys.argv[1:]:
        case ["setup"]:
            contestant.setup()
        case ["enqueue", count]:
            _enqueue(contestant, int(count))
        case ["trickle", count, milliseconds, path]:
            _trickle(contestant, int(count), float(milliseconds) / 1000, Path(path))
        case ["work", folder, index]:
            contestant.work(Handled(Path(folder), index))
        case _:
            sys.exit(__doc__)


def _enqueue(contestant: Contestant, count: int) -> None:
    began = time.perf_counter()
    sets = (list(range(at, min(count, at + SET))) for at in range(0, count, SET))
    for _ in contestant.add(sets):
        pass
    print(json.dumps({"seconds": time.perf_counter() - began}))


def _trickle(contestant: Contestant, count: int, every: float, path: Path) -> None:
    befores: list[float] = []

    def one_by_one() -> Iterator[list[int]]:
        due = time.perf_counter()
        for job in range(count):
            time.sleep(max(0.0, due - time.perf_counter()))
            due += every
            befores.append(time.time())
            yield [job]

    with path.open("w") as file:
        for job, _ in enumerate(contestant.add(one_by_one())):
            file.write(f"{job} {befores[job]:.6f} {time.time():.6f}\n")
