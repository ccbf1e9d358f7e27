"""PgBouncer in transaction mode before a PostgreSQL 15, as Debian has both."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

from tests.postgres import FOLDER_OF_15, initialise, new_folder, ordinary_account

PROGRAM = Path("/usr/sbin/pgbouncer")
_LOGINS = """
CREATE ROLE publisher_owner NOLOGIN;
CREATE ROLE publisher_engine NOLOGIN;
CREATE ROLE publisher_app NOLOGIN;
CREATE ROLE acceptance LOGIN CREATEDB;
GRANT pg_signal_backend, publisher_owner, publisher_engine, publisher_app TO acceptance;
CREATE ROLE worker LOGIN NOINHERIT;
GRANT publisher_engine TO worker;
ALTER ROLE worker SET role = publisher_engine;
ALTER ROLE worker SET search_path = publisher;
ALTER ROLE worker SET TimeZone = 'UTC';
CREATE ROLE page LOGIN NOINHERIT;
GRANT publisher_app TO page;
ALTER ROLE page SET role = publisher_app;
ALTER ROLE page SET search_path = publisher;
ALTER ROLE page SET TimeZone = 'UTC';
"""
_SETTINGS = """
[databases]
* = host=127.0.0.1 port={port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {pooled}
unix_socket_dir =
auth_type = trust
auth_file = {folder}/users
pool_mode = transaction
ignore_startup_parameters = extra_float_digits, options
max_client_conn = 1000
logfile = {folder}/pgbouncer.log
pidfile = {folder}/pgbouncer.pid
"""


@dataclass(frozen=True)
class Pooled:
    """Both, and how they are reached: the port of each."""

    port: int
    pooled: int

    def options(self) -> list[str]:
        """What ``publisher rehearse`` is told of them."""
        return [
            *("--database-url", f"postgresql://worker@127.0.0.1:{self.pooled}/postgres"),
            *("--app-url", f"postgresql://page@127.0.0.1:{self.pooled}/postgres"),
            *("--direct-url", f"postgresql://acceptance@127.0.0.1:{self.port}/postgres"),
        ]

    def execute(self, statement: str) -> list[tuple[object, ...]]:
        """Run a statement as superuser."""
        url = f"postgresql://postgres@127.0.0.1:{self.port}/postgres"
        with psycopg.connect(url, autocommit=True) as conn:
            cursor = conn.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def databases(self) -> set[str]:
        """What there is."""
        return {str(name) for (name,) in self.execute("SELECT datname FROM pg_database")}


def is_installed() -> bool:
    """Whether both are here; in CI the pooler is fetched where it is not."""
    if not (FOLDER_OF_15 / "postgres").exists():
        return False
    if not PROGRAM.exists() and os.environ.get("CI") == "true" and os.geteuid() == 0:
        for words in (("update",), ("install", "-y", "pgbouncer")):
            subprocess.run(["apt-get", *words], check=False, capture_output=True, timeout=300)
    return PROGRAM.exists()


@contextmanager
def running() -> Iterator[Pooled]:
    """Run both in a temporary folder."""
    folder = new_folder()
    port, pooled = _free_port(), _free_port()
    try:
        initialise(FOLDER_OF_15, folder)
        (folder / "users").write_text('"worker" ""\n"page" ""\n')
        settings = folder / "pgbouncer.ini"
        settings.write_text(_SETTINGS.format(port=port, pooled=pooled, folder=folder))
        server = (
            *(FOLDER_OF_15 / "postgres", "-D", folder / "data", "-p", str(port)),
            *("-c", "listen_addresses=127.0.0.1", "-c", f"unix_socket_directories={folder}"),
            *("-c", "max_connections=200"),
        )
        found = Pooled(port, pooled)
        with _started(port, *server):
            for statement in _LOGINS.strip().splitlines():
                found.execute(statement)
            with _started(pooled, PROGRAM, "-q", settings):
                yield found
    finally:
        shutil.rmtree(folder)


@contextmanager
def _started(port: int, *argv: Path | str) -> Iterator[None]:
    """Run a program as somebody who is not root until it is no longer needed."""
    uid, gid = ordinary_account()
    somebody = {"user": uid, "group": gid, "extra_groups": []} if os.geteuid() == 0 else {}
    process = subprocess.Popen(
        argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/",
        start_new_session=True, **somebody,
    )  # fmt: skip
    try:
        _await_port(port)
        yield
    finally:
        # PostgreSQL's fast stop, and PgBouncer's.
        process.send_signal(signal.SIGINT)
        process.wait(30)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _await_port(port: int) -> None:
    until = time.monotonic() + 30
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            assert time.monotonic() < until, f"nobody listens on port {port}"
            time.sleep(0.05)
        else:
            return
