"""The PostgreSQL that schedules run on: one of the rehearsal's own, or one that it was given."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from typing import TypeAlias

import psycopg

from publisher.db.roles import Role

Upstream: TypeAlias = str
"""Where the relay finds it: the path of a socket, or ``host:port``."""


class Server(ABC):
    """A server that runs. Every schedule gets a database of its own there, which goes with it."""

    can_stop = False
    """Whether it may be stopped and started; otherwise the relay stands in for that."""

    @property
    @abstractmethod
    def version(self) -> str:
        """What a report calls it: ``PostgreSQL 18.1, its own``."""

    @property
    @abstractmethod
    def upstream(self) -> Upstream:
        """Where a relay to it leads."""

    @abstractmethod
    def url(self, database: str, *, port: int | None = None, role: Role = Role.ENGINE) -> str:
        """How the product reaches ``database`` to act in ``role``.

        ``port``: through a relay on this machine.
        """

    @abstractmethod
    def direct_url(self, database: str) -> str | None:
        """How it gets past a pooler, where there is one."""

    @abstractmethod
    def admin(self, database: str) -> psycopg.Connection:
        """Connect past pooler and relay, in autocommit, as one to whom ``database`` belongs."""

    @abstractmethod
    def new_database(self) -> AbstractContextManager[str]:
        """Give the name of a database at the newest revision; it is dropped at the end."""

    def restart(self, *, away_for: float = 0.0) -> None:
        """Stop at once, start again after so many seconds. Only where it ``can_stop``."""
        raise NotImplementedError

    def end_sessions(self, database: str) -> None:
        """End every server process that serves ``database``, but our own."""
        with self.admin(database) as conn:
            conn.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
                " AND backend_type = 'client backend'"
            )
