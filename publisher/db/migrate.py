"""The schema's revision: what the database has, what this release needs, and the way there."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import psycopg
import sqlalchemy
import structlog
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import text

import publisher
from publisher.db.errors import MigrationError
from publisher.db.roles import SCHEMA, Role

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from publisher.db.connect import Database

VERSION_TABLE: Final = "alembic_version"
_UPGRADE_LOCK: Final = 0x7075626C6D696772
"""Any number that nobody else uses: ``publmigr`` in ASCII."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class SchemaStatus:
    """``current`` is None before the first upgrade; ``pending`` is oldest first."""

    current: str | None
    head: str
    pending: tuple[str, ...]

    @property
    def is_current(self) -> bool:
        """Whether the database is exactly where this release needs it."""
        return self.current == self.head

    @property
    def is_newer(self) -> bool:
        """Whether the database is at a revision this release does not know."""
        return not self.is_current and not self.pending


def upgrade(database: Database, *, lock_wait_seconds: float = 5) -> SchemaStatus:
    """Bring the schema to this release's revision; one transaction per migration.

    ``database`` is opened as owner, which made roles and schema. Any number of processes may call
    this at once: they take turns, and whoever comes second has nothing left to do.

    Raises ``MigrationError`` when the migrations cannot be found, when the database is newer than
    this release, or when a migration waited ``lock_wait_seconds`` for a lock: longer, and
    everything that comes after it waits behind it.
    """
    if database.role is not Role.OWNER:
        message = f"Migrations run as {Role.OWNER}; this database was opened as {database.role}."
        raise MigrationError(message)
    with database.engine.connect() as conn:
        conn.exec_driver_sql(f"SELECT pg_advisory_lock({_UPGRADE_LOCK})")
        conn.exec_driver_sql(f"SET lock_timeout = {int(lock_wait_seconds * 1000)}")
        conn.exec_driver_sql("SET idle_in_transaction_session_timeout = 0")
        conn.commit()
        try:
            return _upgrade(conn)
        except sqlalchemy.exc.OperationalError as error:
            if not isinstance(error.orig, psycopg.errors.LockNotAvailable):
                raise
            message = (
                f"A migration waited {lock_wait_seconds:g} s for a lock that another transaction"
                " holds. What was finished stays; end that transaction (pg_stat_activity shows it)"
                " and upgrade again."
            )
            raise MigrationError(message) from error
        finally:
            # The session ends, and its locks with it, whatever state it was left in.
            conn.invalidate()


def check(database: Database) -> SchemaStatus:
    """Tell which revision the database has and which are pending; any role may ask.

    Raises ``MigrationError`` when the migrations cannot be found.
    """
    with database.engine.connect() as conn:
        return status(conn)


def status(conn: Connection) -> SchemaStatus:
    """Do what ``check`` does, on an open connection."""
    script = _script()
    head = script.get_current_head()
    if head is None:
        message = f"There are no migrations in {script.dir}. Install the release again."
        raise MigrationError(message)
    newest_first = [revision.revision for revision in script.walk_revisions()]
    current = _current(conn)
    if current is None:
        return SchemaStatus(None, head, tuple(reversed(newest_first)))
    if current not in newest_first:
        return SchemaStatus(current, head, ())
    pending = newest_first[: newest_first.index(current)]
    return SchemaStatus(current, head, tuple(reversed(pending)))


def knows(revision: str) -> bool:
    """Whether this release can bring a schema at ``revision`` to its own."""
    return any(revision == one.revision for one in _script().walk_revisions())


def find_migrations() -> Path:
    """Return the folder of migrations: inside an installed wheel, or beside the package.

    Raises ``MigrationError`` when there is none.
    """
    package = Path(publisher.__file__).parent
    for folder in (package / "_migrations", package.parent / "migrations"):
        if (folder / "env.py").is_file():
            return folder
    message = f"No migrations are installed beside {package}. Install the release again."
    raise MigrationError(message)


def _upgrade(conn: Connection) -> SchemaStatus:
    before = status(conn)
    conn.rollback()
    if before.is_newer:
        message = (
            f"The database is at revision {before.current}, which this release does not know"
            f" (its newest is {before.head}). Run the newer release."
        )
        raise MigrationError(message)
    if before.pending:
        _run(conn)
        _log.info("schema.upgraded", before=before.current, after=before.head)
    # Alembic makes its table itself, so no migration can grant it; preflight reads it in any role.
    conn.exec_driver_sql(f"GRANT SELECT ON {SCHEMA}.{VERSION_TABLE} TO {Role.ENGINE}, {Role.APP}")
    after = status(conn)
    conn.commit()
    return after


def _run(conn: Connection) -> None:
    config = _config()
    # So that a migration's SQL is what psql would run: no parameters, and % is a plain character.
    config.attributes["connection"] = conn.execution_options(no_parameters=True)
    try:
        command.upgrade(config, "head")
    except CommandError as error:
        message = f"The migrations cannot be run: {error}"
        raise MigrationError(message) from error


def _current(conn: Connection) -> str | None:
    table = f"{SCHEMA}.{VERSION_TABLE}"
    if conn.execute(text("SELECT to_regclass(:table)"), {"table": table}).scalar() is None:
        return None
    revision = conn.exec_driver_sql(f"SELECT version_num FROM {table}").scalar()  # noqa: S608
    return None if revision is None else str(revision)


@cache
def _script() -> ScriptDirectory:
    return ScriptDirectory.from_config(_config())


def _config() -> Config:
    config = Config()
    # Config files interpolate %, and so does this.
    config.set_main_option("script_location", str(find_migrations()).replace("%", "%%"))
    return config
