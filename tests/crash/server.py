"""A PostgreSQL of one's own that can be stopped at once and started again."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from publisher.db.binaries import find_binaries
from tests.postgres import (
    FOLDER_OF_15,
    Postgres,
    ServerName,
    _await_answer,
    _identity,
    initialise,
    new_folder,
)

_LEASH = """
"$@" </dev/null &
server=$!
cat >/dev/null
kill -INT $server 2>/dev/null
wait $server
"""
"""Runs a command that is stopped when standard input ends: whoever started it may be killed."""


class Server:
    """A server that runs. ``restart`` is a crash and its recovery."""

    def __init__(self, name: ServerName, folder: Path) -> None:
        self.folder = folder
        self.postgres = Postgres(name, folder)
        self._binaries = find_binaries() if name == "embedded" else FOLDER_OF_15
        self._process: subprocess.Popen[bytes] | None = None

    @classmethod
    @contextmanager
    def running(cls, name: ServerName = "embedded") -> Iterator[Self]:
        """Run one in a temporary folder."""
        folder = new_folder()
        server = cls(name, folder)
        try:
            initialise(server._binaries, folder)
            server.start()
            yield server
        finally:
            server.stop(signal.SIGINT)
            shutil.rmtree(folder, ignore_errors=True)

    def start(self) -> None:
        """Start it, and wait until it answers: after a crash it replays its log first."""
        options = {
            "listen_addresses": "",
            "unix_socket_directories": str(self.folder),
            "max_connections": "200",
            "shared_buffers": "32MB",
            # Everything is durable against the death of processes, which is what is done here.
            "full_page_writes": "on",
        }
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    *("/bin/sh", "-c", _LEASH, "leash"),
                    *(self._binaries / "postgres", "-D", self.folder / "data"),
                    *(part for item in options.items() for part in ("-c", "=".join(item))),
                ],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                cwd="/",
                start_new_session=True,
                **_identity(),
            )
        _await_answer(self.folder, self._process)

    def stop(self, how: signal.Signals = signal.SIGQUIT) -> None:
        """Stop it: SIGQUIT is PostgreSQL's immediate stop, SIGINT its fast one."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        postmaster = int((self.folder / "data/postmaster.pid").read_text().split()[0])
        os.kill(postmaster, how)
        process.stdin.close()
        process.wait(30)

    def restart(self, *, away_for: float = 0.0) -> None:
        """Stop at once, start again after so many seconds."""
        self.stop()
        time.sleep(away_for)
        self.start()
