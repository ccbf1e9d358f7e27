"""Backups of a plan's database, made and put back as operators do both."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from psycopg import sql

from publisher.db.binaries import find_binaries
from publisher.rehearsal.restores.plan import Plan
from publisher.rehearsal.stage.own_server import OwnServer

Command = Callable[[Sequence[str]], int]
"""Runs ``publisher`` with these words; returns its exit code."""


class Backup:
    """One of the database ``name``. ``at``: when it was begun to be made."""

    def __init__(
        self, server: OwnServer, name: str, folder: Path, plan: Plan, run: Command
    ) -> None:
        self._server, self._name, self._plan, self._run = server, name, plan, run
        self._file, self._files = folder / "backup.dump", folder / "backup.files"
        self._url = server.admin_url(name)
        self.at = datetime.now(UTC)
        if plan.by_files:
            self._copy()
        elif plan.dumps_itself:
            self._succeed("db", "dump", str(self._file))
        else:
            _program("pg_dump", "--format=custom", f"--file={self._file}", self._url)

    def put_back(self) -> None:
        """Let the database be what it was then."""
        match self._plan.way:
            case "in place":
                self._restore()
                if self._plan.cuts:
                    self._cut()
            case "recreated":
                self._recreate()
                self._restore()
            case "db restore":
                self._forget_workers()
                named = ("--replace", "--confirm", self._name)
                self._succeed("db", "restore", str(self._file), *named)
            case _:
                self._put_files_back()

    def _restore(self) -> None:
        how = ("--clean", "--if-exists", "--single-transaction", f"--dbname={self._url}")
        _program("pg_restore", *how, str(self._file))

    def _cut(self) -> None:
        """Cut every connection, as a pooler does that is restarted."""
        with self._server.admin() as conn:
            conn.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s",
                [self._name],
            )

    def _recreate(self) -> None:
        name = sql.Identifier(self._name)
        with self._server.admin() as conn:
            conn.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(name))
            conn.execute(sql.SQL("CREATE DATABASE {} TEMPLATE template0").format(name))

    def _forget_workers(self) -> None:
        """Let the minute be over for which somebody who stopped them waits."""
        with self._server.admin(self._name) as conn:
            conn.execute(
                "UPDATE publisher.incarnations SET seen_at = seen_at - interval '2 minutes'"
            )
            conn.execute(
                "UPDATE publisher.jobs SET lease_until = lease_until - interval '2 minutes'"
                " WHERE lease_until IS NOT NULL"
            )

    def _succeed(self, *words: str) -> None:
        code = self._run(words)
        assert code == 0, f"publisher {' '.join(words)} ended with {code}"

    # The server's files

    def _copy(self) -> None:
        self._server.stop(signal.SIGINT)
        _program("cp", "-a", str(self._data), str(self._files))
        self._server.start()

    def _put_files_back(self) -> None:
        self._server.stop()
        _program("rm", "-rf", str(self._data))
        _program("cp", "-a", str(self._files), str(self._data))
        if self._plan.way == "standby":
            standby = self._data / "standby.signal"
            standby.touch()
            account = self._data.stat()
            os.chown(standby, account.st_uid, account.st_gid)
        self._server.start()
        if self._plan.way == "standby":
            with self._server.admin() as conn:
                assert conn.execute("SELECT pg_promote()").fetchone() == (True,)

    @property
    def _data(self) -> Path:
        return self._server.data


def copy_beside(server: OwnServer, name: str, copy: str) -> None:
    """Copy a database that nobody is connected to."""
    with server.admin() as conn:
        conn.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy").format(
                sql.Identifier(copy), sql.Identifier(name)
            )
        )


def drop(server: OwnServer, name: str) -> None:
    """Drop a database, whoever is connected."""
    with server.admin() as conn:
        conn.execute(
            sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name))
        )


def _program(program: str, *words: str) -> None:
    known = find_binaries() / program
    done = subprocess.run(
        [str(known) if known.exists() else program, *words],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{program}: {done.stderr}"
