"""A process's probe: says where it is, and strikes where it was told to.

Beside the engine's own points there are places between them, reached by putting a step in the way
of what the engine calls there, in the forked process alone.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from threading import Lock, local
from types import SimpleNamespace
from typing import Any

from publisher.engine import spool as spool_module
from publisher.engine.outcome import Outcome
from publisher.engine.points import Point
from publisher.engine.spool import Spool
from publisher.engine.worker import Worker
from publisher.rehearsal.plan.places import Fault, Place, Strike
from publisher.transport import Transport


class Watch:
    """Where one process is. ``edit`` does what a person would."""

    def __init__(
        self, name: str, events: int, strikes: list[Strike], *, layer: str = "worker"
    ) -> None:
        self.worker: Worker | None = None
        self.edit: Callable[[], None] = lambda: None
        self._name = name
        self._events = events
        self._strikes = strikes
        self._layer = layer
        self._counts: Counter[str] = Counter()
        self._lock = Lock()

    def say(self, **facts: Any) -> None:
        """Write one line for whoever holds the strings; short enough never to be torn."""
        line = json.dumps({"worker": self._name, "pid": os.getpid(), **facts}).encode() + b"\n"
        os.write(self._events, line)

    def probe(self, point: Point) -> None:
        """The engine's own points."""
        self.at(point)

    def at(self, place: Point | Place) -> Fault | None:
        """Be at ``place``; what is to be done there is done, or returned."""
        with self._lock:
            self._counts[place] += 1
            count = self._counts[place]
            strike = next((s for s in self._strikes if (s.place, s.nth) == (place, count)), None)
            if strike is not None:
                self._strikes.remove(strike)
        if count == 1:
            self.say(seen=place)
        if strike is None:
            return None
        self.say(fired=strike.fault, place=place, nth=strike.nth, layer=self._layer)
        self._do(strike.fault)
        return strike.fault

    def _do(self, fault: Fault) -> None:
        match fault:
            case Fault.KILL:
                os.kill(os.getpid(), signal.SIGKILL)
            case Fault.FREEZE:
                os.kill(os.getpid(), signal.SIGSTOP)
            case Fault.TERM | Fault.TERM_TWICE:
                os.kill(os.getpid(), signal.SIGTERM)
            case Fault.TERMINATE:
                conn = None if self.worker is None else self.worker._conn
                if conn is not None and not conn.closed:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(conn.info.backend_pid, signal.SIGTERM)
            case Fault.EDIT:
                self.edit()
            case Fault.DISK_FULL:
                pass  # whoever writes does it


def install(watch: Watch) -> None:
    """Put steps between the points of this process."""
    _between_spool_and_disk(watch)
    _between_answer_and_verdict(watch)
    _around_spool(watch)


def _between_spool_and_disk(watch: Watch) -> None:
    real, opening, is_opening = os, Spool.open, Flag()
    putting: Callable[[int, bytes], int] = vars(spool_module)["put"]

    def fsync(descriptor: int) -> None:
        if is_opening.is_up and _name(descriptor).endswith(spool_module.SUFFIX):
            watch.at(Place.SPOOL_UNSYNCED)
        elif is_opening.is_up and _name(descriptor).endswith(".new"):
            watch.at(Place.SPOOL_COMPACTED)
        real.fsync(descriptor)

    def write(descriptor: int, data: bytes) -> int:
        if watch.at(Place.SPOOL_WRITE) is Fault.DISK_FULL:
            real.write(descriptor, bytes(data)[: len(data) // 2])
            raise OSError(28, "No space left on device")
        return real.write(descriptor, data)

    def put(descriptor: int, line: bytes) -> int:
        if watch.at(Place.SPOOL_WRITE) is Fault.DISK_FULL:
            putting(descriptor, line[: len(line) // 2])
            raise OSError(28, "No space left on device")
        return putting(descriptor, line)

    def opened(self: Spool, sends: Any) -> None:
        is_opening.is_up = True
        try:
            opening(self, sends)
        finally:
            is_opening.is_up = False

    shim = SimpleNamespace(**{**vars(real), "fsync": fsync, "write": write})
    vars(spool_module).update(os=shim, put=put)
    Spool.open = opened  # type: ignore[method-assign]


class Flag(local):
    """Whether this thread is in the middle of something."""

    is_up = False


def _name(descriptor: int) -> str:
    return str(Path(f"/proc/self/fd/{descriptor}").readlink())


def _between_answer_and_verdict(watch: Watch) -> None:
    real = Transport.publish

    def publish(self: Transport, *arguments: Any) -> Any:
        result = real(self, *arguments)
        watch.at(Place.UNCLASSIFIED)
        return result

    Transport.publish = publish  # type: ignore[method-assign, assignment]


def _around_spool(watch: Watch) -> None:
    """Tell of start and answer lines when they are written; they are held against the journal."""
    start, answer, close = Spool.start, Spool.answer, Spool.close

    def started(self: Spool, token: Any) -> None:
        # Said before: between the line and a word after it the process may be killed.
        watch.say(started=token.hex)
        start(self, token)

    def answered(self: Spool, token: Any, outcome: Outcome) -> None:
        answer(self, token, outcome)
        remote_id = getattr(outcome, "remote_id", None)
        watch.say(answered=token.hex, outcome=type(outcome).__name__, remote_id=remote_id)

    def closed(self: Spool, *, remove: bool) -> None:
        close(self, remove=remove)
        watch.at(Place.SPOOL_CLOSED)

    Spool.start, Spool.answer, Spool.close = started, answered, closed  # type: ignore[method-assign]
