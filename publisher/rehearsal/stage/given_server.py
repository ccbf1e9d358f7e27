"""A PostgreSQL that the rehearsal was given: databases of its own are made there and removed.

It is not ours to stop, so the relay stands in for that: every connection through it is cut, and
nobody is let in for as long as a restart would take.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, Self
from urllib.parse import quote, urlencode

import psycopg
from psycopg import sql
from pydantic import SecretStr

from publisher.config import Settings
from publisher.db import migrate
from publisher.db.address import Address
from publisher.db.connect import Database
from publisher.db.errors import DatabaseError
from publisher.db.roles import Role, ensure_roles
from publisher.doctor import pooler
from publisher.rehearsal.errors import SetUpError
from publisher.rehearsal.stage.own_server import MIGRATING
from publisher.rehearsal.stage.server import Server, Upstream
from publisher.words import _

PREFIX: Final = "publisher_rehearsal_"
"""What the names of databases begin with that a rehearsal made: ``clean`` drops those left."""

_TLS: Final = frozenset({"require", "verify-ca", "verify-full"})


class GivenServer(Server):
    """A server at ``url``; ``direct``: the way past a pooler, where ``url`` leads through one.

    A pooler that drops start-up options needs a login for each role: ``url`` has the engine's,
    ``app`` that of pages and people, on the same pooler. The login user of ``direct`` (of ``url``,
    where there is no pooler) needs CREATEDB, and membership in the product's roles.
    """

    def __init__(
        self, url: SecretStr, direct: SecretStr | None = None, app: SecretStr | None = None
    ) -> None:
        self._address = Address.parse(url, "--database-url")
        self._past = self._address if direct is None else Address.parse(direct, "--direct-url")
        self._app = self._address if app is None else Address.parse(app, "--app-url")
        self._has_pooler = direct is not None
        self._template = PREFIX + uuid.uuid4().hex[:12]
        self._version = ""
        if self._address.parameters.get("sslmode") in _TLS:
            raise SetUpError(
                _(
                    "The rehearsal reads what passes between product and database, so it cannot"
                    " use TLS there. Give an address without sslmode, inside a network you trust."
                )
            )

    @classmethod
    @contextmanager
    def taken(
        cls, url: SecretStr, direct: SecretStr | None = None, app: SecretStr | None = None
    ) -> Iterator[Self]:
        """Make what is needed there; remove it at the end.

        Raises ``SetUpError``, or ``AddressError`` for a URL that cannot be read.
        """
        server = cls(url, direct, app)
        try:
            server._make_template()
            server._try_it()
            yield server
        finally:
            server._drop(server._template)

    @property
    def version(self) -> str:
        """See ``Server``."""
        return _("PostgreSQL {version}, given").format(version=self._version)

    @property
    def upstream(self) -> Upstream:
        """See ``Server``."""
        host = self._address.parameters.get("host", "127.0.0.1").partition(",")[0]
        port = self._address.parameters.get("port", "5432").partition(",")[0]
        return f"{host}/.s.PGSQL.{port}" if host.startswith("/") else f"{host}:{port}"

    def url(self, database: str, *, port: int | None = None, role: Role = Role.ENGINE) -> str:
        """See ``Server``."""
        given = (self._app if role is Role.APP else self._address).parameters
        if port is None:
            return _as_url({**given, "dbname": database})
        at = {"host": "127.0.0.1", "port": str(port), "sslmode": "disable"}
        relayed = {**given, **at, "gssencmode": "disable", "dbname": database}
        return _as_url(relayed)

    def direct_url(self, database: str) -> str | None:
        """See ``Server``."""
        if not self._has_pooler:
            return None
        return _as_url({**self._past.parameters, "dbname": database})

    def admin(self, database: str) -> psycopg.Connection:
        """See ``Server``; as the role that everything of the product's belongs to."""
        conn = self._login(database)
        conn.execute(sql.SQL("SET ROLE {}").format(sql.Identifier(Role.OWNER)))
        return conn

    @contextmanager
    def new_database(self) -> Iterator[str]:
        """See ``Server``."""
        name = PREFIX + uuid.uuid4().hex[:12]
        copied = sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(
            sql.Identifier(name), sql.Identifier(self._template)
        )
        may = sql.SQL("GRANT CREATE ON DATABASE {} TO {}").format(
            sql.Identifier(name), sql.Identifier(Role.OWNER)
        )
        with MIGRATING, self._login() as conn:
            conn.execute(copied)
            conn.execute(may)
        try:
            yield name
        finally:
            self._drop(name)

    def _login(self, database: str | None = None) -> psycopg.Connection:
        given: dict[str, Any] = dict(self._past.parameters)
        if database is not None:
            given["dbname"] = database
        try:
            return psycopg.connect(**given, autocommit=True)
        except psycopg.OperationalError:
            if self._version:
                raise
            message = _("The database does not let us in: {said}")
            raise SetUpError(message.format(said=_last_error(given))) from None

    def _make_template(self) -> None:
        made = sql.SQL("CREATE DATABASE {}").format(sql.Identifier(self._template))
        with self._login() as conn:
            version = str(conn.info.parameter_status("server_version")).split()[0]
            self._require_signals(conn)
            try:
                conn.execute(made)
            except psycopg.errors.InsufficientPrivilege:
                message = _('The login user "{user}" may not make databases. Run: {sql}')
                run = f'ALTER ROLE "{conn.info.user}" CREATEDB;'
                raise SetUpError(message.format(user=conn.info.user, sql=run)) from None
        try:
            with self._login(self._template) as conn:
                ensure_roles(conn, login=conn.info.user)
            settings = Settings(
                database_url=SecretStr(_as_url({**self._past.parameters, "dbname": self._template}))
            )
            with (
                MIGRATING,
                Database.open(settings, Role.OWNER, application_name="rehearsal") as database,
            ):
                migrate.upgrade(database)
        except DatabaseError as error:
            raise SetUpError(str(error)) from error
        self._version = version

    def _require_signals(self, conn: psycopg.Connection) -> None:
        """Sessions of other logins, which a pooler keeps, must be ended with their database."""
        may = conn.execute("SELECT pg_has_role(current_user, 'pg_signal_backend', 'USAGE')")
        if self._has_pooler and may.fetchone() != (True,):
            message = _('The login user "{user}" may not end sessions. Run: {sql}')
            user = conn.info.user
            run = f'ALTER ROLE "{user}" INHERIT; GRANT pg_signal_backend TO "{user}";'
            raise SetUpError(message.format(user=user, sql=run))

    def _try_it(self) -> None:
        """See that the product gets into a new database by the way it will take."""
        with self.new_database() as name:
            for role in (Role.ENGINE, Role.APP):
                settings = Settings(database_url=SecretStr(self.url(name, role=role)))
                try:
                    with Database.open(
                        settings, role, application_name="rehearsal", wait_seconds=5.0
                    ) as database:
                        lost = pooler.loses_prepared(database)
                except DatabaseError as error:
                    message = _(
                        "The product does not get into a database that the rehearsal has just made"
                        " as {role}. Through a pooler it must be let into any (in PgBouncer: * ="
                        " host=… under [databases]), with a login for each role: give the one of"
                        " publisher_app as --app-url. {said}"
                    )
                    raise SetUpError(message.format(role=role, said=error)) from error
                if lost and settings.prepare == "on":
                    raise SetUpError(
                        _(
                            "The pooler loses prepared statements. Set PUBLISHER_PREPARE=off here,"
                            " as you must for the product, or the pooler's max_prepared_statements."
                        )
                    )

    def _drop(self, name: str) -> None:
        drop = sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name))
        with self._login() as conn:
            conn.execute(drop)


def left_behind(url: SecretStr, direct: SecretStr | None = None) -> list[str]:
    """Drop the databases that rehearsals which were killed left there; returns their names.

    Only such that nobody is connected to: another rehearsal may be running.
    """
    server = GivenServer(url, direct)
    with server._login() as conn:
        rows = conn.execute(
            "SELECT datname FROM pg_database d WHERE starts_with(datname, %s) AND NOT EXISTS"
            " (SELECT FROM pg_stat_activity a WHERE a.datname = d.datname) ORDER BY datname",
            [PREFIX],
        ).fetchall()
        names = [str(name) for (name,) in rows]
        for name in names:
            conn.execute(sql.SQL("DROP DATABASE {}").format(sql.Identifier(name)))
    return names


def _last_error(given: dict[str, Any]) -> str:
    try:
        psycopg.connect(**given).close()
    except psycopg.OperationalError as error:
        return str(error).strip()
    return ""


def _as_url(parameters: dict[str, str]) -> str:
    rest = {**parameters}
    user, password = rest.pop("user", ""), rest.pop("password", "")
    database = rest.pop("dbname", "")
    who = quote(user, safe="") + (f":{quote(password, safe='')}" if password else "")
    return f"postgresql://{who}{'@' if who else ''}/{quote(database, safe='')}?{urlencode(rest)}"
