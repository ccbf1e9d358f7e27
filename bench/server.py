"""A PostgreSQL of the bench's own, on loopback, as durable as it comes."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psycopg

from publisher.db.account import Account
from publisher.db.binaries import find_binaries

_DEBIAN = Path("/usr/lib/postgresql")
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "shared_buffers": "512MB",
    "max_wal_size": "4GB",
    "max_connections": "200",
    "log_checkpoints": "off",
    "autovacuum": "on",
}
_READY_SECONDS = 60.0
_STOP_SECONDS = 60
DATABASE = "bench"


class Server:
    """Runs for as long as its ``with`` block; its folder goes with it."""

    def __init__(self, major: int) -> None:
        """Use PostgreSQL ``major``: 18 from the embedded wheel, others from Debian's packages."""
        self.major = major
        self.folder = Path(tempfile.mkdtemp(prefix="publisher-bench-"))
        self.folder.chmod(0o755)
        self._data = self.folder / "data"
        self._port = _free_port()
        self._password = secrets.token_hex(16)
        self._binaries = find_binaries() if major == 18 else _DEBIAN / str(major) / "bin"
        self._account = Account.for_home(self.folder)
        self._process: subprocess.Popen[bytes] | None = None
        self._made: set[str] = set()

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop()

    @property
    def pid(self) -> int:
        """The postmaster's process id."""
        if self._process is None:
            message = "the server does not run"
            raise RuntimeError(message)
        return self._process.pid

    def url(self, database: str = DATABASE) -> str:
        """Where a contestant connects to."""
        return f"postgresql://postgres:{self._password}@127.0.0.1:{self._port}/{database}"

    def connect(self, database: str = "postgres") -> psycopg.Connection[tuple[Any, ...]]:
        """A connection for the bench itself, in autocommit."""
        return psycopg.connect(self.url(database), autocommit=True)

    def fresh(self, template: str, make: Callable[[str], None]) -> None:
        """Have a new database, copied from ``template``; ``make`` fills that once, by its URL.

        A checkpoint follows, so that a run's WAL holds no images of pages that came before it.
        """
        with self.connect() as conn:
            if template not in self._made:
                conn.execute(f'DROP DATABASE IF EXISTS "{template}" WITH (FORCE)'.encode())
                conn.execute(f'CREATE DATABASE "{template}"'.encode())
                make(self.url(template))
                self._made.add(template)
            conn.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = ANY(%s) AND pid <> pg_backend_pid()",
                [[DATABASE, template]],
            )
            conn.execute(f"DROP DATABASE IF EXISTS {DATABASE} WITH (FORCE)".encode())
            conn.execute(
                f'CREATE DATABASE {DATABASE} TEMPLATE "{template}" STRATEGY file_copy'.encode()
            )
            conn.execute("CHECKPOINT")

    def sync_microseconds(self) -> int:
        """The median time of a synced write of 8 kB where the data lies."""
        took = []
        path = self.folder / "sync"
        descriptor = os.open(path, os.O_CREAT | os.O_WRONLY, 0o600)
        for _ in range(101):
            began = time.perf_counter()
            os.pwrite(descriptor, bytes(8192), 0)
            os.fdatasync(descriptor)
            took.append(time.perf_counter() - began)
        os.close(descriptor)
        path.unlink()
        return round(sorted(took)[50] * 1_000_000)

    def _start(self) -> None:
        self._data.mkdir(mode=0o700)
        password = self.folder / "password"
        password.write_text(self._password)
        if self._account.switches:
            for path in (self._data, password):
                os.chown(path, self._account.uid, self._account.gid)
        initdb = ["initdb", "-D", str(self._data), "--username=postgres", "--pwfile", str(password)]
        self._run([*initdb, "--auth=scram-sha-256", "--encoding=UTF8", "--locale=C"]).wait()
        password.unlink()
        given = _SETTINGS | {"port": str(self._port)}
        options = [part for name, value in given.items() for part in ("-c", f"{name}={value}")]
        self._process = self._run(["postgres", "-D", str(self._data), *options])
        until = time.monotonic() + _READY_SECONDS
        while True:
            try:
                self.connect().close()
            except psycopg.OperationalError:
                if time.monotonic() > until or self._process.poll() is not None:
                    raise
                time.sleep(0.05)
            else:
                return

    def _run(self, command: list[str]) -> subprocess.Popen[bytes]:
        program = self._binaries / command[0]
        launch = self._account.launch([str(program), *command[1:]], (program, self._data))
        with (self.folder / "server.log").open("ab") as log:
            return subprocess.Popen(
                launch.argv,
                user=launch.user,
                group=launch.group,
                extra_groups=launch.extra_groups,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                env={"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"},
                start_new_session=True,
            )

    def _stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            try:
                self._process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.send_signal(signal.SIGQUIT)
                self._process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
