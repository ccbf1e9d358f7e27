"""The processes that one command starts, and their end in order.

All are in the command's own process group, so that whoever kills the group kills everything. A
terminal sends Ctrl-C to a whole group at once; the children are started with it blocked, and the
command stops them one after the other, the last started first. Each also holds the reading end of
a pipe and ends when the command does, whatever ended it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, Final, Self

from publisher.cli import screen
from publisher.engine.bell import Bell
from publisher.engine.errors import PublisherError
from publisher.words import _

if TYPE_CHECKING:
    from publisher.config import Settings

_KILL_AFTER: Final = 10.0
"""Seconds given to a process beyond what it may take by its own settings."""
_LOOK_SECONDS: Final = 60.0
"""How long a look under way may take."""
_POLL_SECONDS: Final = 0.1


class ChildFailed(PublisherError):
    """A process that this command needs did not start; it said why itself."""

    code = "child-failed"


@dataclass(frozen=True, slots=True)
class Child:
    """One process; ``patience`` is how many seconds it may take to stop."""

    name: str
    process: subprocess.Popen[str]
    patience: float


class Children:
    """The processes started so far; leaving the ``with`` block stops them all, in order."""

    def __init__(self, settings: Settings, *, quiet: bool = False) -> None:
        """``quiet``: their logs begin at warnings, unless a level is set."""
        self._settings = settings
        self._environment = dict(os.environ)
        if quiet:
            self._environment.setdefault("PUBLISHER_LOG_LEVEL", "warning")
        self._children: list[Child] = []
        self._measured = 0
        self._interrupted = Bell()
        self._interrupts = 0

    def start_sandbox(self, *, pages: int = 2) -> str:
        """Start the sandbox and return its address. Raises ``ChildFailed``, say for a busy port."""
        settings = self._settings
        log = settings.sandbox_log or settings.home / "sandbox"
        arguments = {"--pages": pages, "--port": settings.sandbox_port, "--log": log}
        options = [str(part) for option in arguments.items() for part in option]
        child = self._start(
            _("sandbox"),
            ["publisher.sandbox", "--parent-pipe", *options],
            patience=_KILL_AFTER,
            reads=True,
        )
        line = child.process.stdout.readline() if child.process.stdout else ""
        address = next((word for word in line.split() if word.startswith("http://")), None)
        if address is None:
            code = child.process.wait()
            raise ChildFailed(_("The sandbox did not start (exit code {n}).").format(n=code))
        return address

    def start_worker(self, *arguments: str) -> Child:
        """Start a worker with further ``arguments`` for ``publisher worker``."""
        return self._start(
            _("worker"),
            ["publisher", "worker", "--parent-pipe", *arguments],
            patience=self._settings.drain_seconds + _KILL_AFTER,
            environment=self._with_metrics(),
        )

    def start_reconciler(self) -> Child:
        """Start the process that looks for posts whose outcome is unknown."""
        return self._start(
            _("reconciler"),
            ["reconciler", "--parent-pipe"],
            patience=_LOOK_SECONDS,
            environment=self._with_metrics(),
        )

    def _with_metrics(self) -> dict[str, str]:
        """The environment for one more process that serves metrics: each has a port of its own."""
        first = self._settings.metrics_port
        if first is None:
            return self._environment
        port = first + self._measured
        self._measured += 1
        return self._environment | {"PUBLISHER_METRICS_PORT": str(port)}

    def stop_one(self, child: Child) -> None:
        """Stop one process before the others."""
        _end(child)
        self._children.remove(child)

    def is_over(self) -> bool:
        """Whether it is time to stop: Ctrl-C, SIGTERM, or a process that died."""
        return self._interrupted.is_rung() or self.died() is not None

    def died(self) -> Child | None:
        """A process that has ended although nobody told it, or us, to."""
        dead = next((one for one in self._children if one.process.poll() is not None), None)
        # Whoever signals the whole group ends them before our own handler may have run.
        return None if dead is None or self._interrupted.wait(_POLL_SECONDS) else dead

    def wait(self) -> Child | None:
        """Wait for Ctrl-C or SIGTERM (None), or for a process that dies (that one)."""
        while not self._interrupted.wait(_POLL_SECONDS):
            if (dead := self.died()) is not None:
                return dead
        return None

    @contextmanager
    def serving(self) -> Iterator[None]:
        """Within this block the first Ctrl-C or SIGTERM ends ``wait``; a second one kills."""
        before = {
            number: signal.signal(number, self._interrupt)
            for number in (signal.SIGINT, signal.SIGTERM)
        }
        try:
            yield
        finally:
            self.stop()
            for number, handler in before.items():
                signal.signal(number, handler)

    def stop(self) -> None:
        """Stop every process, the last started first; kill one that takes too long."""
        while self._children:
            self.stop_one(self._children[-1])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_args: object) -> None:
        self.stop()

    def _start(
        self,
        name: str,
        module: Sequence[str],
        *,
        patience: float,
        reads: bool = False,
        environment: dict[str, str] | None = None,
    ) -> Child:
        with _interrupts_blocked():
            process = subprocess.Popen(  # noqa: S603 - our own modules, our own arguments
                [sys.executable, "-m", *module],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE if reads else None,
                text=True,
                env=environment or self._environment,
            )
        child = Child(name, process, patience)
        self._children.append(child)
        return child

    def _interrupt(self, _number: int, _frame: FrameType | None) -> None:
        self._interrupts += 1
        self._interrupted.ring()
        if self._interrupts > 1:
            for child in self._children:
                child.process.kill()


def tell_death(child: Child) -> None:
    """Say that a process died and that everything else stops with it."""
    screen.note(
        _("The {name} (process {pid}) ended with exit code {code}; everything stops.").format(
            name=child.name, pid=child.process.pid, code=child.process.returncode
        )
    )


def when_parent_ends(act: Callable[[], None]) -> None:
    """Call ``act``, in a thread, when standard input ends: the pipe of who started us."""

    def read() -> None:
        # Not through sys.stdin: its lock would be held when the interpreter ends.
        with contextlib.suppress(OSError):
            while os.read(0, 64):
                pass
        act()

    threading.Thread(target=read, name="parent-pipe", daemon=True).start()


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """What is started in this block has SIGINT blocked for its life; a mask outlives exec."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end(child: Child) -> None:
    process = child.process
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(timeout=child.patience)
        except subprocess.TimeoutExpired:
            screen.note(_("The {name} does not stop; it is killed.").format(name=child.name))
            process.kill()
            process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
