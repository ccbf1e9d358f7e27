"""The sandbox's own record: facts as JSON lines, on the disk before any answer goes out."""

from __future__ import annotations

import fcntl
import json
import os
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

FILE = "sandbox.jsonl"
_ENCODE = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode

Fact = dict[str, Any]


class JournalInUse(Exception):
    """Another sandbox holds this log."""


class _Batch:
    """Lines that reach the disk with one write and one fsync."""

    __slots__ = ("done", "lines")

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.done = threading.Event()


class Journal:
    """Appends facts to ``directory/sandbox.jsonl``; syncs them in groups.

    Raises ``JournalInUse`` when another process writes there. A half-written last line, left by
    a kill, was never answered for: it is cut off. With ``fsync=False`` lines are written but not
    synced, which survives the death of the process, not that of the machine.
    """

    def __init__(self, directory: Path, *, fsync: bool = True) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.path = directory / FILE
        self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._fd)
            raise JournalInUse(str(self.path)) from None
        _cut_torn_line(self._fd)
        if fsync:
            sync_folder(directory)
        self._fsync = fsync
        self._lock = threading.Lock()
        self._work = threading.Semaphore(0)
        self._batch = _Batch()
        self._closing = False
        self._writer = threading.Thread(target=self._write_batches, name="journal", daemon=True)
        self._writer.start()

    def append(self, *new: Fact) -> Callable[[], object]:
        """Queue facts; call what is returned to wait until they are on the disk.

        Facts keep the order in which they were appended, so waiting for the last is enough.
        """
        at = time.time()
        lines = [_ENCODE({"at": at, **fact}).encode() + b"\n" for fact in new]
        with self._lock:
            batch = self._batch
            first = not batch.lines
            batch.lines += lines
        if first:
            self._work.release()
        return batch.done.wait

    def close(self) -> None:
        """Write what is queued and let go of the file."""
        self._closing = True
        self._work.release()
        self._writer.join()
        os.close(self._fd)

    def _write_batches(self) -> None:
        while True:
            self._work.acquire()
            with self._lock:
                batch, self._batch = self._batch, _Batch()
            if batch.lines:
                self._write(b"".join(batch.lines))
                batch.done.set()
            elif self._closing:
                return

    def _write(self, data: bytes) -> None:
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(self._fd, view) :]
            if self._fsync:
                os.fdatasync(self._fd)
        except OSError as error:
            # A platform that cannot keep its record must not answer: nothing it said could be
            # checked afterwards. The threads that wait for this batch die with the process.
            sys.stderr.write(f"The sandbox cannot write {self.path}: {error}. It stops.\n")
            os._exit(1)


def facts(directory: Path) -> Iterator[Fact]:
    """Read the facts of a log, oldest first; a last line without its end is left out."""
    path = directory / FILE
    if not path.exists():
        return
    with path.open("rb") as file:
        for line in file:
            if line.endswith(b"\n"):
                yield json.loads(line)


def _cut_torn_line(fd: int) -> None:
    size = os.fstat(fd).st_size
    keep = size
    while keep:
        start = max(0, keep - 65536)
        newline = os.pread(fd, keep - start, start).rfind(b"\n")
        if newline >= 0:
            keep = start + newline + 1
            break
        keep = start
    if keep < size:
        os.ftruncate(fd, keep)


def sync_folder(directory: Path) -> None:
    """Make new names in ``directory`` last."""
    fd = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
