"""A machine of a test's own: its server stops when nobody uses it, and its disk can be copied."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from pydantic import SecretStr

from publisher.config import Settings
from publisher.db import migrate
from publisher.db.connect import Database
from publisher.db.embedded import DATABASE, EmbeddedServer
from publisher.db.roles import Role
from tests.engine.ground import Ground, superuser
from tests.postgres import Postgres


@dataclass
class Machine:
    """``folder`` holds the server's disk and the home of the processes."""

    folder: Path

    @property
    def home(self) -> Path:
        """Key, witness and spool of the processes."""
        return self.folder / "home"

    @property
    def data(self) -> Path:
        """The cluster's files."""
        return self.folder / "server" / "postgres" / "data"

    @contextmanager
    def running(self) -> Iterator[Ground]:
        """Start the server, open its database, and stop it again."""
        self.home.mkdir(exist_ok=True)
        with ExitStack() as stack:
            server = stack.enter_context(EmbeddedServer.acquire(self.folder / "server"))
            pg = Postgres("embedded", server.socket_folder)
            settings = Settings(home=self.home, database_url=SecretStr(pg.url(DATABASE)))
            with Database.open(settings, Role.OWNER, application_name="machine") as owner:
                migrate.upgrade(owner)
            opened = [
                stack.enter_context(Database.open(settings, role, application_name="machine"))
                for role in (Role.ENGINE, Role.APP)
            ]
            conn = stack.enter_context(opened[0].connect_driver())
            root = stack.enter_context(superuser(pg, DATABASE))
            yield Ground(opened[0], opened[1], root, conn, pg, DATABASE, self.home)

    def copy(self) -> Path:
        """Copy the files of the server, which must be stopped."""
        copy = self.folder / "copy"
        subprocess.run(["cp", "-a", str(self.data), str(copy)], check=True)
        return copy

    def put_back(self, copy: Path) -> None:
        """Let the copy be the server's files."""
        subprocess.run(["rm", "-rf", str(self.data)], check=True)
        subprocess.run(["cp", "-a", str(copy), str(self.data)], check=True)

    def promote(self) -> None:
        """Start the files as a standby does that lost its primary, promote it, and stop it."""
        (self.data / "standby.signal").touch()
        account = self.data.stat()
        os.chown(self.data / "standby.signal", account.st_uid, account.st_gid)
        with EmbeddedServer.acquire(self.folder / "server") as server:
            pg = Postgres("embedded", server.socket_folder)
            with superuser(pg, DATABASE) as conn:
                assert conn.execute("SELECT pg_promote()").fetchone() == (True,)
