"""Starts a sandbox as a process of its own, for tests, rehearsals and benches."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Self

from publisher.sandbox.control import SandboxControl

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType


class SandboxNotStarted(Exception):
    """The process ended before it was ready; the text is what it said."""


class SandboxProcess:
    """A sandbox that runs. Leaving its ``with`` block stops it; it also ends with its starter."""

    def __init__(self, process: subprocess.Popen[str], url: str, log: Path) -> None:
        self.process = process
        self.url = url
        self.log = log
        """The directory to give to ``publisher.sandbox.log.read``."""
        self.control = SandboxControl(url)

    @classmethod
    def start(  # noqa: PLR0913  one for each option of the command
        cls,
        log: Path,
        *,
        port: int = 0,
        pages: int = 2,
        accounts: int = 1,
        chaos: str | None = None,
        triggers: bool = True,
        fsync: bool = True,
        delay_ms: float = 0,
    ) -> Self:
        """Start one and wait until it is ready. Raises ``SandboxNotStarted``.

        ``pages``: Facebook Pages, 101 and on; ``accounts``: so many of each other platform, see
        ``SandboxControl.accounts``.

        ``log``: its directory; the same one again goes on where the last ended. ``chaos``:
        ``SEED`` or ``SEED:RATE``. What it writes to standard error is in ``log/stderr.txt``.
        """
        command = [
            sys.executable, "-m", "publisher.sandbox", "--port", str(port), "--log", str(log),
            "--pages", str(pages), "--accounts", str(accounts), "--delay-ms", str(delay_ms),
            "--parent-pipe",
        ]  # fmt: skip
        command += [] if chaos is None else ["--chaos", chaos]
        command += [] if triggers else ["--no-triggers"]
        command += [] if fsync else ["--no-fsync"]
        log.mkdir(parents=True, exist_ok=True)
        with (log / "stderr.txt").open("wb") as stderr:
            process = subprocess.Popen(  # noqa: S603  our own module, our own arguments
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, text=True,
                start_new_session=True,
            )  # fmt: skip
        line = process.stdout.readline() if process.stdout else ""
        if "http://" not in line:
            process.wait()
            _close_pipes(process)
            raise SandboxNotStarted((log / "stderr.txt").read_text() or line)
        url = next(word for word in line.split() if word.startswith("http://"))
        return cls(process, url, log)

    @property
    def pid(self) -> int:
        """The process's id."""
        return self.process.pid

    def stop(self) -> int:
        """End it in order (SIGTERM) and return its exit code."""
        self.process.terminate()
        return self._end()

    def kill(self) -> None:
        """End it as a crash would (SIGKILL). What was answered is in the log."""
        self.process.kill()
        self._end()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            self.process.terminate()
        self._end()

    def _end(self) -> int:
        try:
            code = self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        _close_pipes(self.process)
        return code


def _close_pipes(process: subprocess.Popen[str]) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
