"""A parent with everything loaded, which forks workers in some 30 ms each.

Forking is for a process with one thread, so the forge is a process of its own: it reads one order
per line and forks a child for it. What children meet on their way they write to one pipe, a line
each. Whoever started the forge holds ``Forge``.

When the forge ends, its children are killed with it, by the kernel: none can be left behind.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import selectors
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable
from types import TracebackType
from typing import Self

from publisher.rehearsal.lines import Event, Lines, Order

_PR_SET_PDEATHSIG = 1
_EVENTS = "PUBLISHER_REHEARSAL_EVENTS"


class Forge:
    """The forge as its starter sees it. ``events``: what it and its children said, in order.

    For one thread at a time.
    """

    def __init__(self, process: subprocess.Popen[bytes], events: int) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        self._orders = process.stdin
        self.sources = (Lines(process.stdout.fileno()), Lines(events))
        self._events = events
        self._waiting: list[Event] = []

    @classmethod
    def start(cls, module: str = "publisher.rehearsal.stage.forge") -> Self:
        """Start one; it is ready when its first line has come. ``module``: with other children."""
        read, write = os.pipe()
        try:
            process = subprocess.Popen(
                [sys.executable, "-m", module],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=os.environ | {_EVENTS: str(write)},
                pass_fds=[write],
                bufsize=0,
                start_new_session=True,
            )
        finally:
            os.close(write)
        forge = cls(process, read)
        forge.expect(lambda event: event.get("forge") == "ready")
        return forge

    def fork(self, kind: str, name: str, order: Order) -> int:
        """Fork a child of this kind and return its process id."""
        line = json.dumps({"kind": kind, "name": name, "order": order})
        self._orders.write(line.encode() + b"\n")
        return int(self.expect(lambda event: event.get("forked") == name)["pid"])

    def poll(self, seconds: float) -> list[Event]:
        """Everything said by now; waits up to ``seconds`` for the first word."""
        waiting, self._waiting = self._waiting, []
        return waiting + self._read(0.0 if waiting else seconds)

    def expect(self, wanted: Callable[[Event], bool], *, within: float = 30.0) -> Event:
        """Wait for an event; what else comes meanwhile stays for ``poll``, or for the next one."""
        for event in self._waiting:
            if wanted(event):
                self._waiting.remove(event)
                return event
        while came := self._read(within):
            self._waiting += came
            for event in came:
                if wanted(event):
                    self._waiting.remove(event)
                    return event
        message = f"the forge stays silent; it said {self._waiting}"
        raise TimeoutError(message)

    def await_end(self, pid: int, *, within: float = 30.0) -> int:
        """Wait until a child has ended; its exit code, or minus the signal that ended it."""
        ended = self.expect(lambda event: event.get("ended") == pid, within=within)
        return int(ended["status"])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._orders.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
        os.close(self._events)

    def _read(self, seconds: float) -> list[Event]:
        with selectors.DefaultSelector() as ready:
            for source in self.sources:
                ready.register(source.descriptor, selectors.EVENT_READ, source)
            return [event for key, _ in ready.select(seconds) for event in key.data.read()]


# The forge itself.


def main() -> None:
    """Fork what is ordered until standard input ends."""
    from publisher.rehearsal.cast import children  # noqa: PLC0415 - the forge's alone: it loads everything

    events = int(os.environ[_EVENTS])
    read, write = os.pipe()
    for end in (read, write):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(write)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started us decides
    orders = Lines(0)
    alive: set[int] = set()
    gc.freeze()
    _say({"forge": "ready"})
    with selectors.DefaultSelector() as ready:
        ready.register(0, selectors.EVENT_READ)
        ready.register(read, selectors.EVENT_READ)
        while True:
            came = {key.fd for key, _ in ready.select()}
            if read in came:
                with contextlib.suppress(BlockingIOError):
                    os.read(read, 4096)
                _reap(alive)
            if 0 in came:
                try:
                    new = orders.read()
                except EOFError:
                    break
                for order in new:
                    pid = os.fork()
                    if pid == 0:
                        _become(children.KINDS[order["kind"]], order, events)
                    alive.add(pid)
                    _say({"forked": order["name"], "pid": pid})
    for pid in alive:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _reap(alive: set[int]) -> None:
    for pid in [*alive]:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            alive.discard(pid)
            _say({"ended": pid, "status": os.waitstatus_to_exitcode(status)})


def _say(event: Event) -> None:
    os.write(1, json.dumps(event).encode() + b"\n")


def _become(child: Callable[[str, Order, int], int], order: Order, events: int) -> None:
    """Be a child, and never come back from here."""
    code = 70
    try:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        null = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1):
            os.dup2(null, standard)
        code = child(order["name"], order["order"], events)
    except BaseException:  # noqa: BLE001 - it must be seen, and the process must end here
        with contextlib.suppress(Exception):
            text = traceback.format_exc()[-2000:]
            line = {"broke": order["name"], "pid": os.getpid(), "trace": text}
            os.write(events, json.dumps(line).encode() + b"\n")
    finally:
        os._exit(code)


if __name__ == "__main__":
    main()
