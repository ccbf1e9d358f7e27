"""A database opened in a role: the pool for set statements and the coordinator's own connection.

The role, like everything else a session needs, is a start-up option, so that every connection of
the pool has it and no statement has to remember it. Only opening retries; whoever holds a
connection that breaks decides alone what that means.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final, NoReturn, Self

import psycopg
import sqlalchemy
import tenacity

from publisher.db.address import Address
from publisher.db.embedded import EmbeddedServer
from publisher.db.errors import LoginRefusedError, RoleRefusedError, UnreachableError
from publisher.db.roles import SCHEMA, Role, ensure_roles
from publisher.db.walls import WORKSPACE, Workspace, enter, setting

if TYPE_CHECKING:
    from publisher.config import Settings

_WAIT_SECONDS: Final = 10.0
_COORDINATOR: Final = {
    # Planned once: at 32 parameters and thousands of executions, planning is most of the work.
    "plan_cache_mode": "force_generic_plan",
    # And planned for what the tables become, not for the minutes after they were made: every
    # statement of the engine finds its rows by an index, one after the other.
    "enable_seqscan": "off",
    # Before PostgreSQL 18 a table without an index costs ten thousand million then, and a plan that
    # dear is compiled first: a tenth of a second for each.
    "jit": "off",
    "enable_bitmapscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    # The coordinator never waits for a row.
    "lock_timeout": "1000",
    # A worker frozen between locking gates and claiming must not keep them from the others.
    "idle_in_transaction_session_timeout": "10000",
}
_NOT_YET: Final = ("is starting up", "is shutting down", "in recovery mode", "too many clients")


class Database:
    """One database in one role, as long as it is not disposed of."""

    def __init__(
        self,
        settings: Settings,
        role: Role,
        application_name: str,
        embedded: EmbeddedServer | None,
        pool_size: int,
        workspace: Workspace,
    ) -> None:
        """Use ``open``."""
        self.role = role
        self._workspace = workspace
        self._application_name = application_name
        self._embedded = embedded
        self._prepares = settings.prepare == "on"
        self._timeout_ms = str(int(settings.tcp_user_timeout_seconds * 1000))
        self._address, self._direct = _addresses(settings, embedded)
        if role is Role.OWNER:
            # Migrations hold a session's lock, which a transaction pooler would lend to others.
            self._address = self._direct
        self.engine = sqlalchemy.create_engine(
            "postgresql+psycopg://",
            creator=self._pool_connection,
            pool_size=pool_size,
            max_overflow=pool_size,
            pool_timeout=10,
            pool_pre_ping=True,
            hide_parameters=True,  # they hold people's posts, and sealed credentials
        )
        if role is Role.APP:
            enter(self.engine, workspace)

    @classmethod
    def open(
        cls,
        settings: Settings,
        role: Role,
        *,
        application_name: str,
        pool_size: int = 5,
        wait_seconds: float = _WAIT_SECONDS,
        workspace: Workspace = None,
    ) -> Self:
        """Open the database that ``settings`` name, or the embedded one, and act in ``role``.

        A server that is not there yet is waited for, up to ``wait_seconds``. Opening as owner first
        makes the roles and the schema where they are missing. ``pool_size`` connections are kept,
        and as many again opened when needed. ``workspace`` is what the role of pages and API sees,
        unless a transaction names another (``db.walls``): nothing by itself.

        Raises a ``DatabaseError``: ``EmbeddedError``, ``AddressError``, ``UnreachableError``,
        ``LoginRefusedError``, ``RoleRefusedError`` or ``RolesMissingError``.
        """
        embedded = None
        if settings.database_url is None:
            embedded = EmbeddedServer.acquire(settings.home)
        try:
            database = cls(settings, role, application_name, embedded, pool_size, workspace)
            database._await_server(wait_seconds)
        except BaseException:
            if embedded is not None:
                embedded.release()
            raise
        return database

    def connect_driver(
        self, *, direct: bool = False, application_name: str | None = None
    ) -> psycopg.Connection:
        """Return a connection of the driver's own, in autocommit, outside the pool.

        Made for the coordinator: statements are prepared at first use (unless
        ``PUBLISHER_PREPARE=off``) and planned once, and a lock is waited for no longer than a
        second. ``direct`` goes past a pooler, for LISTEN and for locks that last a session.
        The caller closes it.

        Raises ``psycopg.OperationalError`` when it cannot connect, ``RoleRefusedError`` when it
        came out in another role.
        """
        # Outside the pool it is nobody else's, so the workspace may last as long as it does.
        own = {WORKSPACE: setting(self._workspace)} if self._workspace is not None else {}
        return self._connection(
            self._direct if direct else self._address,
            _COORDINATOR | own,
            application_name or self._application_name,
            prepare_threshold=0 if self._prepares else None,
        )

    def environment(self) -> dict[str, str]:
        """The variables with which PostgreSQL's own programs connect as this does, in its role.

        Past a pooler, and with no password on a command line, where anybody could read it.
        """
        parameters = self._parameters(self._direct, {"role": self.role.value})
        parameters["application_name"] = self._application_name
        known = {
            option.keyword.decode(): option.envvar.decode()
            for option in psycopg.pq.Conninfo.get_defaults()
            if option.envvar
        }
        given = {known[name]: str(value) for name, value in parameters.items() if name in known}
        return {**os.environ, "LC_ALL": "C", **given}

    def dispose(self) -> None:
        """Close the pool, then give up the embedded server, which stops when we were the last."""
        self.engine.dispose()
        if self._embedded is not None:
            self._embedded.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.dispose()

    def _await_server(self, wait_seconds: float) -> None:
        """Make the pool's first connection, retrying while nobody answers."""
        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(UnreachableError),
            stop=tenacity.stop_after_delay(wait_seconds),
            wait=tenacity.wait_random_exponential(multiplier=0.1, max=1),
            reraise=True,
        )
        retrying(self._check_server)

    def _check_server(self) -> None:
        try:
            if self.role is Role.OWNER:
                with psycopg.connect(**self._parameters(self._address), autocommit=True) as conn:
                    ensure_roles(conn)
            self.engine.connect().close()
        except psycopg.OperationalError as error:
            self._explain(error)
        except sqlalchemy.exc.OperationalError as error:
            self._explain(error.orig)

    def _pool_connection(self) -> psycopg.Connection:
        conn = self._connection(
            self._address,
            # A frozen process must not keep editors from their rows for as long as it is frozen.
            {"idle_in_transaction_session_timeout": "60000"},
            self._application_name,
            prepare_threshold=5 if self._prepares else None,
        )
        conn.autocommit = False
        return conn

    def _connection(
        self,
        address: Address,
        options: dict[str, str],
        application_name: str,
        *,
        prepare_threshold: int | None,
    ) -> psycopg.Connection:
        parameters = self._parameters(address, {"role": self.role.value, **options})
        parameters["application_name"] = application_name
        parameters["prepare_threshold"] = prepare_threshold
        try:
            conn = psycopg.connect(**parameters, autocommit=True)
        except psycopg.OperationalError:
            if self._embedded is None:
                raise
            # Nobody else looks after this server; what it had committed it still has.
            self._embedded.revive()
            conn = psycopg.connect(**parameters, autocommit=True)
        try:
            self._check_session(conn)
        except BaseException:
            conn.close()
            raise
        return conn

    def _parameters(
        self, address: Address, options: dict[str, str] | None = None
    ) -> dict[str, Any]:
        """Return what libpq needs to connect and to notice a peer that is gone, both ways."""
        session = {
            "search_path": SCHEMA,
            "TimeZone": "UTC",
            # Compare-and-set by token relies on it, whatever the server's default is.
            "default_transaction_isolation": "read committed",
            "tcp_keepalives_idle": "10",
            "tcp_keepalives_interval": "5",
            "tcp_keepalives_count": "3",
            "tcp_user_timeout": self._timeout_ms,
        }
        return {
            "connect_timeout": "10",
            "keepalives": "1",
            "keepalives_idle": "10",
            "keepalives_interval": "5",
            "keepalives_count": "3",
            "tcp_user_timeout": self._timeout_ms,
            **address.with_options(session | (options or {})),
        }

    def _check_session(self, conn: psycopg.Connection) -> None:
        """Refuse a session without the role: a pooler may have dropped the start-up options."""
        row = conn.execute(
            "SELECT current_user::text, current_setting('search_path')", prepare=False
        ).fetchone()
        if row != (self.role.value, SCHEMA):
            login = conn.info.user
            message = (
                "The connection came out without its role: a pooler drops start-up options. Set"
                f' them for the login user: ALTER ROLE "{login}" SET role = {self.role};'
                f' ALTER ROLE "{login}" SET search_path = {SCHEMA};'
                f" ALTER ROLE \"{login}\" SET TimeZone = 'UTC';"
            )
            raise RoleRefusedError(message)

    def _explain(self, error: BaseException | None) -> NoReturn:
        """Raise what a person can act on; the driver's own words hold no password."""
        said = str(error).strip()
        login = self._address.parameters.get("user", "the login user")
        if "permission denied to set role" in said:
            message = (
                f'User "{login}" may not act as {self.role}. Run: GRANT {self.role} TO "{login}";'
            )
            raise RoleRefusedError(message) from None
        if f'role "{self.role}" does not exist' in said:
            message = (
                f"Role {self.role} does not exist in the database. Run: publisher db"
                " upgrade. It makes the role, or prints the SQL for somebody who may."
            )
            raise RoleRefusedError(message) from None
        if "unsupported startup parameter" in said:
            message = (
                "The pooler refuses start-up options. Add options to its ignore_startup_parameters"
                f' and set the role for the login user: ALTER ROLE "{login}" SET role ='
                f' {self.role}; ALTER ROLE "{login}" SET search_path = {SCHEMA};'
            )
            raise RoleRefusedError(message) from None
        if "FATAL" in said and not any(words in said for words in _NOT_YET):
            message = f"The database does not let us in. Check PUBLISHER_DATABASE_URL.\n{said}"
            raise LoginRefusedError(message) from None
        message = f"No database answers. Start it, or check PUBLISHER_DATABASE_URL.\n{said}"
        raise UnreachableError(message) from None


def _addresses(settings: Settings, embedded: EmbeddedServer | None) -> tuple[Address, Address]:
    """Return the address of every day and the one past the pooler."""
    if embedded is not None or settings.database_url is None:
        if embedded is None:
            raise AssertionError
        address = Address.of(embedded.url())
        return address, address
    address = Address.parse(settings.database_url, "PUBLISHER_DATABASE_URL")
    if settings.direct_url is None:
        return address, address
    return address, Address.parse(settings.direct_url, "PUBLISHER_DIRECT_URL")
