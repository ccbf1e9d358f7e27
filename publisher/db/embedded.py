"""The PostgreSQL the product brings along, for when no database is named: one per home directory.

Each process that uses it holds a shared lock on ``users.lock`` for as long as it does. Whoever
leaves and then gets that lock exclusively was the last, and stops the server. A killed process
leaves nothing behind that has to be cleaned up: the kernel drops its lock, and the next one to
leave stops the server. Starting and stopping happen under ``start.lock``, so never both at once.

What a fork does: the child has no hold on the server, and ``release`` in it does nothing; a child
that wants to use the server acquires it itself. What was inherited is closed, so that a child that
outlives its parent does not keep the server alive.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, LiteralString, Self

import psycopg
import structlog
from psycopg import sql
from sqlalchemy import URL

from publisher.db import postmaster
from publisher.db.binaries import find_binaries
from publisher.db.cluster import Cluster, failure, unusable
from publisher.db.errors import EmbeddedError, StartFailedError
from publisher.db.locks import FileLock
from publisher.db.roles import ensure_roles

if TYPE_CHECKING:
    from collections.abc import Iterator

LOGIN: Final = "publisher"
"""Whom every process logs in as: no superuser, and nothing before it acts in a role."""
DATABASE: Final = "publisher"
SUPERUSER: Final = "postgres"

_TURN_SECONDS: Final = 330.0
_START_SECONDS: Final = 300.0
"""Long, for a start after a crash replays the log first."""
_POLL_SECONDS: Final = 0.02

_log = structlog.get_logger(__name__)


class EmbeddedServer:
    """A hold on the embedded server: it runs at least as long as this is not released."""

    def __init__(self, cluster: Cluster) -> None:
        """Use ``acquire``."""
        self._cluster = cluster
        self._pid = os.getpid()
        self._users = cluster.lock("users")
        self._socket_folder = Path()
        self._held = False

    @classmethod
    def acquire(cls, home: Path) -> Self:
        """Start the server under ``home`` unless it runs, and hold it.

        Takes about a second for the first one ever, a tenth for later starts. Safe to call from
        any number of processes at once, and more than once in one. Released at exit at the latest.

        Raises an ``EmbeddedError`` whose message says what to do: ``WheelMissingError``,
        ``HomeUnusableError``, ``DiskFullError``, ``WrongMajorError`` or ``StartFailedError``.
        """
        binaries = find_binaries()
        server = cls(Cluster.at(home))
        try:
            with server._turn():
                server._enter(binaries)
        except BaseException:
            server._users.close()
            raise
        atexit.register(server._release_at_exit)
        return server

    def url(self, user: str = LOGIN, database: str = DATABASE) -> URL:
        """Return where to connect as ``user``; there is no password, the socket is private."""
        return URL.create(
            "postgresql+psycopg",
            username=user,
            database=database,
            query={"host": str(self._socket_folder), "port": "5432"},
        )

    @property
    def socket_folder(self) -> Path:
        """The folder that holds the server's socket, which is libpq's ``host``."""
        return self._socket_folder

    def revive(self) -> None:
        """Start the server again if it died while we hold it; does nothing when it runs.

        Raises what ``acquire`` does.
        """
        if os.getpid() != self._pid or not self._held:
            return
        with self._turn():
            self._bring_up(find_binaries())

    def release(self) -> None:
        """Give the server up, and stop it when nobody else holds it. Twice is harmless.

        Raises ``StartFailedError`` when it was to stop and did not.
        """
        if os.getpid() != self._pid or not self._held:
            return
        self._held = False
        atexit.unregister(self._release_at_exit)
        with self._turn():
            self._leave()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    @contextlib.contextmanager
    def _turn(self) -> Iterator[None]:
        """Hold ``start.lock``: one process at a time starts or stops."""
        with self._cluster.lock("start") as lock:
            if not lock.exclusive_within(_TURN_SECONDS):
                message = (
                    f"Another process has been starting or stopping the database under"
                    f" {self._cluster.home} for minutes. Look for a stopped one and end it."
                )
                raise StartFailedError(message)
            yield

    def _enter(self, binaries: Path) -> None:
        """Take the shared lock and see that the server runs; under ``start.lock``."""
        self._users.share()
        try:
            self._bring_up(binaries)
        except BaseException:
            self._leave()
            raise
        self._held = True

    def _bring_up(self, binaries: Path) -> None:
        started = False
        until = time.monotonic() + _START_SECONDS
        while True:
            with self._cluster.lock("server") as lock:
                if lock.try_exclusive():
                    # No process of the server is left: there is none, or it died, or it has just
                    # finished stopping.
                    if started:
                        raise failure(self._cluster.home, self._cluster.last_words())
                    self._start(binaries, lock)
                    started = True
            if self._prepared():
                break
            if time.monotonic() > until:
                raise failure(self._cluster.home, self._cluster.last_words())
            time.sleep(_POLL_SECONDS)
        if started:
            _log.info("embedded.started", home=str(self._cluster.home))

    def _start(self, binaries: Path, lock: FileLock) -> None:
        postmaster.reap()
        try:
            self._cluster.initialise(binaries, lock)
            postmaster.start(self._cluster, binaries, lock)
        except OSError as error:
            raise unusable(self._cluster.home, error) from error

    def _prepared(self) -> bool:
        """Tell whether the server answers, and make login, database, roles and schema sure.

        Every time, not only after ``initdb``: whoever made the cluster may have died in between.
        """
        folder = postmaster.listening_in(self._cluster)
        if folder is None:
            return False
        self._socket_folder = folder
        try:
            with self._superuser_connection("postgres") as conn:
                _ensure_login(conn)
                _ensure_database(conn)
            with self._superuser_connection(DATABASE) as conn:
                ensure_roles(conn, login=LOGIN)
        except psycopg.errors.DiskFull as error:
            raise failure(self._cluster.home, str(error)) from error
        except psycopg.OperationalError:
            return False  # it died, or is stopping
        return True

    def _superuser_connection(self, database: str) -> psycopg.Connection:
        return psycopg.connect(
            host=str(self._socket_folder),
            port=5432,
            user=SUPERUSER,
            dbname=database,
            autocommit=True,
            connect_timeout=10,
            application_name="publisher embedded",
        )

    def _leave(self) -> None:
        """Drop the shared lock and stop the server if nobody else has one; under ``start.lock``."""
        try:
            if self._users.try_exclusive():
                with self._cluster.lock("server") as lock:
                    if postmaster.stop(self._cluster, lock):
                        _log.info("embedded.stopped", home=str(self._cluster.home))
        finally:
            self._users.close()

    def _release_at_exit(self) -> None:
        try:
            self.release()
        except EmbeddedError as error:
            _log.warning("embedded.left_running", reason=str(error))


def _ensure_login(conn: psycopg.Connection) -> None:
    if not _exists(conn, "SELECT 1 FROM pg_roles WHERE rolname = %s", LOGIN):
        # Without inheritance: a login that forgot to take a role can do nothing.
        conn.execute(
            sql.SQL("CREATE ROLE {} LOGIN NOINHERIT NOSUPERUSER NOCREATEROLE NOCREATEDB").format(
                sql.Identifier(LOGIN)
            )
        )


def _ensure_database(conn: psycopg.Connection) -> None:
    if not _exists(conn, "SELECT 1 FROM pg_database WHERE datname = %s", DATABASE):
        conn.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(DATABASE)))


def _exists(conn: psycopg.Connection, question: LiteralString, name: str) -> bool:
    return conn.execute(question, (name,)).fetchone() is not None
