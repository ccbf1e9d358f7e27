"""The product's own processes, started for a rehearsal and stopped with it.

They have the rehearsal's settings, whichever way it came by them, and serve its queue alone. Each
holds the reading end of a pipe and ends when the rehearsal does, whatever ended that.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Final

from pydantic import SecretStr

from publisher.config import Settings
from publisher.engine.job import REHEARSAL

_PATIENCE: Final = 15.0
"""Seconds beyond what a process may take by its own settings."""
_TAIL: Final = 2000


@dataclass(frozen=True, slots=True)
class Process:
    """One of them. ``log``: its standard error."""

    popen: subprocess.Popen[bytes]
    log: IO[bytes]

    def has_ended(self) -> int | None:
        """Its exit code, or minus the signal that ended it; None while it runs."""
        return self.popen.poll()

    def said(self) -> str:
        """The end of what it said, for whoever looks for a fault."""
        self.log.seek(0, os.SEEK_END)
        self.log.seek(max(0, self.log.tell() - _TAIL))
        return self.log.read().decode(errors="replace").strip()


@contextmanager
def worker(settings: Settings) -> Iterator[Process]:
    """A worker as the product runs it, which serves the rehearsal's jobs and nobody else's."""
    module = ["publisher", "worker", "--parent-pipe", "--queues", REHEARSAL]
    with _running(settings, module, settings.drain_seconds + _PATIENCE) as process:
        yield process


@contextmanager
def reconciler(settings: Settings) -> Iterator[Process]:
    """The process that looks at doubts and reads the files of dead workers; it never sends."""
    with _running(settings, ["reconciler", "--parent-pipe"], _PATIENCE * 4) as process:
        yield process


@contextmanager
def victim(settings: Settings) -> Iterator[Process]:
    """A worker that is killed once the platform has answered, before it can write that down."""
    module = ["publisher.rehearsal.real.victim"]
    with _running(settings, module, settings.drain_seconds + _PATIENCE) as process:
        yield process


def environment(settings: Settings) -> dict[str, str]:
    """The variables that give a process these settings."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PUBLISHER_")}
    # One port cannot be served twice.
    left_out = {"metrics_port", "log_level", "log_format"}
    for name in (settings.model_fields_set | {"home"}) - left_out:
        value = getattr(settings, name)
        if value is not None:
            kept[f"PUBLISHER_{name.upper()}"] = _written(value)
    return kept | {"PUBLISHER_LOG_LEVEL": "warning", "PUBLISHER_LOG_FORMAT": "json"}


def _written(value: object) -> str:
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    if isinstance(value, tuple):
        return ",".join(str(part) for part in value)
    return str(value)


@contextmanager
def _running(settings: Settings, module: Sequence[str], patience: float) -> Iterator[Process]:
    with tempfile.TemporaryFile("a+b") as log:
        popen = subprocess.Popen(
            [sys.executable, "-m", *module],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=log,
            env=environment(settings),
            # Ctrl-C is for the rehearsal, which stops them in its own order.
            start_new_session=True,
        )
        try:
            yield Process(popen, log)
        finally:
            _end(popen, patience)


def _end(popen: subprocess.Popen[bytes], patience: float) -> None:
    if popen.poll() is None:
        popen.terminate()
        try:
            popen.wait(patience)
        except subprocess.TimeoutExpired:
            popen.kill()
            popen.wait()
    if popen.stdin is not None:
        popen.stdin.close()
