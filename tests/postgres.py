"""The real PostgreSQL servers that tests run on: the embedded 18, and 15 where it is installed.

Each is started once in a session, when the first test asks for it. A migrated database is kept as
a template there, and every test gets a copy of its own.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import psycopg
from psycopg import sql
from pydantic import SecretStr

from publisher.config import Settings
from publisher.db import migrate
from publisher.db.binaries import find_binaries
from publisher.db.connect import Database
from publisher.db.embedded import LOGIN, SUPERUSER, EmbeddedServer
from publisher.db.errors import WheelMissingError
from publisher.db.roles import Role, ensure_roles

ServerName = Literal["embedded", "15"]
FOLDER_OF_15 = Path("/usr/lib/postgresql/15/bin")
TEMPLATE = "publisher_template"
_ROOM = 2 << 30


@dataclass
class Postgres:
    """A running server, reached through the socket in folder ``host``."""

    name: ServerName
    host: Path
    _has_template: bool = field(default=False, init=False)

    def url(self, database: str, user: str = LOGIN) -> str:
        """Return the address of ``database`` for ``user``, as PUBLISHER_DATABASE_URL has it."""
        return f"postgresql://{user}@/{database}?host={self.host}&port=5432"

    def superuser(self, database: str = "postgres") -> psycopg.Connection:
        """Return an autocommit connection that may do anything."""
        return psycopg.connect(self.url(database, SUPERUSER), autocommit=True)

    @contextmanager
    def empty_database(self) -> Iterator[str]:
        """Give the name of a new database that has nothing in it, then drop it."""
        with self._new("template0") as name:
            yield name

    @contextmanager
    def migrated_database(self) -> Iterator[str]:
        """Give the name of a new database at the newest revision, then drop it."""
        self._ensure_template()
        with self._new(TEMPLATE) as name:
            yield name

    @contextmanager
    def _new(self, template: str) -> Iterator[str]:
        name = f"test_{uuid.uuid4().hex[:12]}"
        with self.superuser() as conn:
            conn.execute(
                sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy").format(
                    sql.Identifier(name), sql.Identifier(template)
                )
            )
        try:
            yield name
        finally:
            with self.superuser() as conn:
                conn.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))

    def give_roles(self, database: str) -> None:
        """The login and the product's roles, as whoever sets a server up makes them."""
        with self.superuser(database) as conn:
            if conn.execute("SELECT FROM pg_roles WHERE rolname = %s", (LOGIN,)).rowcount == 0:
                conn.execute(
                    sql.SQL("CREATE ROLE {} LOGIN NOINHERIT").format(sql.Identifier(LOGIN))
                )
            ensure_roles(conn, login=LOGIN)

    def _ensure_template(self) -> None:
        if self._has_template:
            return
        with self.superuser() as conn:
            conn.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(TEMPLATE)))
        self.give_roles(TEMPLATE)
        settings = Settings(database_url=SecretStr(self.url(TEMPLATE)))
        with Database.open(settings, Role.OWNER, application_name="template") as database:
            migrate.upgrade(database)
        self._has_template = True


def installed() -> list[ServerName]:
    """Return the servers this machine can run, the embedded one first."""
    names: list[ServerName] = []
    try:
        find_binaries()
    except WheelMissingError:
        pass
    else:
        names.append("embedded")
    if (FOLDER_OF_15 / "postgres").exists():
        names.append("15")
    return names


def new_folder() -> Path:
    """Make a private folder in memory where there is room, otherwise on disk.

    What is killed in a test is processes, and memory outlasts those. Copying a database there takes
    20 ms; on a disk that others use as well it was seen to take 400.
    """
    memory = Path("/dev/shm")
    roomy = os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > _ROOM
    return Path(tempfile.mkdtemp(prefix="publisher-test-", dir=memory if roomy else None))


@contextmanager
def running(name: ServerName) -> Iterator[Postgres]:
    """Run the server ``name`` in a temporary folder."""
    if name == "15":
        with throwaway(name) as server:
            yield server
        return
    folder = new_folder()
    try:
        with EmbeddedServer.acquire(folder / "home") as embedded:
            yield Postgres(name, embedded.socket_folder)
    finally:
        shutil.rmtree(folder)


@contextmanager
def throwaway(name: ServerName, *settings: str) -> Iterator[Postgres]:
    """Run a server with ``settings`` (``name=value``), for what a shared one must not be set to.

    It is not the product's embedded server, whichever binaries it has: nothing protects it.
    """
    folder = new_folder()
    try:
        binaries = find_binaries() if name == "embedded" else FOLDER_OF_15
        initialise(binaries, folder)
        with serving(binaries, folder, *settings):
            yield Postgres(name, folder)
    finally:
        shutil.rmtree(folder)


def initialise(binaries: Path, folder: Path) -> None:
    """Make a cluster in ``folder``, with the product's login user."""
    uid, gid = ordinary_account()
    os.chown(folder, uid, gid)
    initdb = ("initdb", "-D", folder / "data", "-U", SUPERUSER, "-A", "trust", "--encoding=UTF8")
    subprocess.run(
        [binaries / initdb[0], *initdb[1:], "--locale=C.UTF-8", "--no-sync"],
        check=True,
        capture_output=True,
        cwd="/",
        **_identity(),
    )


@contextmanager
def serving(binaries: Path, folder: Path, *settings: str) -> Iterator[None]:
    """Serve the cluster in ``folder`` through a socket there."""
    data = folder / "data"
    options = ["listen_addresses=", f"unix_socket_directories={folder}", *settings]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [
                *(binaries / "postgres", "-D", data),
                *(part for option in options for part in ("-c", option)),
            ],
            stdout=log,
            stderr=log,
            cwd="/",
            start_new_session=True,
            **_identity(),
        )
    try:
        _await_answer(folder, process)
        yield
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(30)


def ordinary_account() -> tuple[int, int]:
    """Return user and group id of somebody who is not root: ourselves, or the first that exists."""
    if os.geteuid() != 0:
        return os.geteuid(), os.getegid()
    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return entry.pw_uid, entry.pw_gid
    message = "no ordinary account on this machine"
    raise LookupError(message)


def _identity() -> dict[str, Any]:
    if os.geteuid() != 0:
        return {}
    uid, gid = ordinary_account()
    return {"user": uid, "group": gid, "extra_groups": []}


def _await_answer(host: Path, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + 30
    while True:
        try:
            psycopg.connect(host=str(host), user=SUPERUSER, dbname="postgres").close()
        except psycopg.OperationalError:
            if process.poll() is not None or time.monotonic() > until:
                raise
            time.sleep(0.02)
        else:
            return
