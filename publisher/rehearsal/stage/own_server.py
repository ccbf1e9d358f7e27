"""A PostgreSQL of the rehearsal's own, that can be stopped at once and started again."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import psycopg
from psycopg import sql
from pydantic import SecretStr

from publisher.config import Settings
from publisher.db import migrate
from publisher.db.account import Account, Launch
from publisher.db.binaries import find_binaries
from publisher.db.connect import Database
from publisher.db.embedded import LOGIN, SUPERUSER
from publisher.db.roles import Role, ensure_roles
from publisher.rehearsal.errors import SetUpError
from publisher.rehearsal.stage.server import Server, Upstream

TEMPLATE = "publisher_template"
MIGRATING = threading.Lock()
"""Alembic has one environment for each process."""

_ROOM = 2 << 30
_STARTS_WITHIN = 60.0
_LEASH = """
"$@" </dev/null &
server=$!
cat >/dev/null
kill -INT $server 2>/dev/null
wait $server
"""
"""Runs a command that is stopped when standard input ends: whoever started it may be killed."""


def new_folder() -> Path:
    """Make a private folder in memory where there is room, otherwise on disk.

    What is killed here is processes, and memory outlasts those. Copying a database there takes
    20 ms; on a disk that others use as well it was seen to take 400.
    """
    memory = Path("/dev/shm")  # noqa: S108 - a private folder inside it
    roomy = os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > _ROOM
    return Path(tempfile.mkdtemp(prefix="publisher-rehearsal-", dir=memory if roomy else None))


class OwnServer(Server):
    """A server in ``folder``, reached through its socket there. ``restart`` is a crash.

    ``programs``: the folder of PostgreSQL's programs; None: those of the embedded server.
    """

    can_stop = True

    def __init__(self, folder: Path, programs: Path | None = None) -> None:
        self.folder = folder
        self.programs = programs or find_binaries()
        self._account = Account.for_home(folder)
        self._process: subprocess.Popen[bytes] | None = None
        self._version = ""

    @classmethod
    @contextmanager
    def running(cls, programs: Path | None = None) -> Iterator[Self]:
        """Run one in a temporary folder. Raises ``SetUpError``."""
        folder = new_folder()
        try:
            server = cls(folder, programs)
            server._initialise()
            server.start()
            try:
                with MIGRATING:
                    server._make_template()
                yield server
            finally:
                server.stop(signal.SIGINT)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    @property
    def version(self) -> str:
        """See ``Server``."""
        return f"PostgreSQL {self._version}, its own"

    @property
    def upstream(self) -> Upstream:
        """See ``Server``."""
        return str(self.folder / ".s.PGSQL.5432")

    @property
    def data(self) -> Path:
        """Its files."""
        return self.folder / "data"

    def url(self, database: str, *, port: int | None = None, role: Role = Role.ENGINE) -> str:  # noqa: ARG002 - one login acts in all
        """See ``Server``."""
        if port is not None:
            relayed = f"postgresql://{LOGIN}@127.0.0.1:{port}/{database}"
            return f"{relayed}?sslmode=disable&gssencmode=disable"
        return f"postgresql://{LOGIN}@/{database}?host={self.folder}&port=5432"

    def direct_url(self, database: str) -> str | None:  # noqa: ARG002 - there is no pooler
        """See ``Server``."""
        return None

    def admin_url(self, database: str = "postgres") -> str:
        """How one who may do anything reaches it."""
        return f"postgresql://{SUPERUSER}@/{database}?host={self.folder}&port=5432"

    def admin(self, database: str = "postgres") -> psycopg.Connection:
        """See ``Server``; may do anything."""
        return psycopg.connect(self.admin_url(database), autocommit=True)

    @contextmanager
    def new_database(self) -> Iterator[str]:
        """See ``Server``."""
        name = f"rehearsal_{uuid.uuid4().hex[:12]}"
        copy = "CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy"
        with self.admin() as conn:
            conn.execute(sql.SQL(copy).format(sql.Identifier(name), sql.Identifier(TEMPLATE)))
        try:
            yield name
        finally:
            with self.admin() as conn:
                conn.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))

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
        settings = (part for item in options.items() for part in ("-c", "=".join(item)))
        argv = [str(self.programs / "postgres"), "-D", str(self.data), *settings]
        launch = self._account.launch(argv, (self.programs / "postgres", self.folder))
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", _LEASH, "leash", *launch.argv],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                cwd="/",
                start_new_session=True,
                user=launch.user,
                group=launch.group,
                extra_groups=launch.extra_groups,
            )
        self._await_answer(self._process)

    def stop(self, how: signal.Signals = signal.SIGQUIT) -> None:
        """Stop it: SIGQUIT is PostgreSQL's immediate stop, SIGINT its fast one."""
        process, self._process = self._process, None
        if process is None or process.stdin is None:
            return
        postmaster = int((self.data / "postmaster.pid").read_text().split()[0])
        os.kill(postmaster, how)
        process.stdin.close()
        process.wait(30)

    def restart(self, *, away_for: float = 0.0) -> None:
        """See ``Server``."""
        self.stop()
        time.sleep(away_for)
        self.start()

    def _initialise(self) -> None:
        os.chown(self.folder, self._account.uid, self._account.gid)
        argv = [
            str(self.programs / "initdb"), "-D", str(self.data), "-U", SUPERUSER, "-A", "trust",
            "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync",
        ]  # fmt: skip
        launch = self._account.launch(argv, (self.programs / "initdb", self.folder))
        done = _run(launch)
        if done.returncode != 0:
            message = f"PostgreSQL could not be set up: {done.stderr.strip()}"
            raise SetUpError(message)

    def _make_template(self) -> None:
        with self.admin() as conn:
            self._version = str(conn.info.parameter_status("server_version")).split()[0]
            conn.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(TEMPLATE)))
            conn.execute(sql.SQL("CREATE ROLE {} LOGIN NOINHERIT").format(sql.Identifier(LOGIN)))
        with self.admin(TEMPLATE) as conn:
            ensure_roles(conn, login=LOGIN)
        settings = Settings(database_url=SecretStr(self.url(TEMPLATE)))
        with Database.open(settings, Role.OWNER, application_name="template") as database:
            migrate.upgrade(database)

    def _await_answer(self, process: subprocess.Popen[bytes]) -> None:
        until = time.monotonic() + _STARTS_WITHIN
        while True:
            try:
                self.admin().close()
            except psycopg.OperationalError as error:
                if process.poll() is not None or time.monotonic() > until:
                    said = (self.folder / "log").read_text(errors="replace")[-600:]
                    message = f"PostgreSQL did not start: {said}"
                    raise SetUpError(message) from error
                time.sleep(0.02)
            else:
                return


def _run(launch: Launch) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        launch.argv,
        user=launch.user,
        group=launch.group,
        extra_groups=launch.extra_groups,
        check=False,
        capture_output=True,
        text=True,
        cwd="/",
    )
