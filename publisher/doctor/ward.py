"""What a check is given to examine."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import Connection

from publisher.config import Settings
from publisher.db.connect import Database
from publisher.engine.registry import Registry

_PATIENCE = "10s"


@dataclass(frozen=True, slots=True)
class Limits:
    """From where on something is worth a finding. Seconds, bytes and counts."""

    skew_warning: float = 1.0
    skew_error: float = 5.0
    old_transaction: float = 600.0
    idle_in_transaction: float = 60.0
    snapshot_behind: int = 5_000_000
    lock_wait: float = 10.0
    free_connections: int = 12
    frozen_note: int = 500_000_000
    frozen_warning: int = 1_000_000_000
    frozen_error: int = 1_800_000_000
    disk_warning: int = 1 << 30
    disk_error: int = 128 << 20
    inodes_warning: int = 10_000
    inodes_error: int = 500
    spool_waits: float = 300.0
    overdue: float = 600.0
    access_ends: float = 14 * 86_400.0


@dataclass(frozen=True, slots=True)
class Ward:
    """A deployment as this process sees it: its settings, its disk, its database if there is one.

    ``wall`` is this host's clock. ``ask_platforms``: each channel's platform may be asked.
    """

    settings: Settings
    spool: Path
    registry: Registry
    opened: Database | None = None
    limits: Limits = field(default_factory=Limits)
    wall: Callable[[], float] = time.time
    ask_platforms: bool = False

    @property
    def database(self) -> Database:
        """The open database; checks that need it are not run without."""
        assert self.opened is not None  # noqa: S101 - the catalogue says which check needs it
        return self.opened

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """One read-only transaction, which gives up rather than weigh on a busy server."""
        with self.database.engine.connect() as conn:
            conn.exec_driver_sql("SET TRANSACTION READ ONLY")
            conn.exec_driver_sql(f"SET LOCAL statement_timeout = '{_PATIENCE}'")
            yield conn
