"""Roles and schema: made by whoever may, and otherwise spelled out for somebody who may."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import psycopg
import pytest
from psycopg import sql
from pydantic import SecretStr

from publisher.config import Settings
from publisher.db import migrate
from publisher.db.connect import Database
from publisher.db.errors import RolesMissingError
from publisher.db.roles import Role, ensure_roles, missing_statements
from tests.conftest import chosen
from tests.postgres import Postgres, throwaway


@pytest.fixture(scope="module", params=chosen())
def bare(request: pytest.FixtureRequest) -> Iterator[Postgres]:
    """A server of its own, for roles belong to a whole server."""
    with throwaway(request.param) as server:
        yield server


@pytest.fixture
def fresh(bare: Postgres) -> Iterator[Postgres]:
    """The server without our roles or anything that depends on them."""
    yield bare
    with bare.superuser() as conn:
        for (name,) in conn.execute(
            "SELECT rolname FROM pg_roles WHERE rolname ~ '^(publisher_|login_)'"
        ).fetchall():
            conn.execute(sql.SQL("DROP OWNED BY {}").format(sql.Identifier(name)))
            conn.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(name)))


def owned_by(pg: Postgres, stack: ExitStack, login: str, words: str = "") -> str:
    """Make a login user with a database of its own; return the database's address for it."""
    database = stack.enter_context(pg.empty_database())
    with pg.superuser() as conn:
        user = sql.Identifier(login)
        conn.execute(sql.SQL("CREATE ROLE {} LOGIN ").format(user) + sql.SQL(words))
        conn.execute(
            sql.SQL("ALTER DATABASE {} OWNER TO {}").format(sql.Identifier(database), user)
        )
    return pg.url(database, login)


def upgraded(url: str) -> migrate.SchemaStatus:
    settings = Settings(database_url=SecretStr(url))
    with Database.open(settings, Role.OWNER, application_name="test") as database:
        return migrate.upgrade(database)


def test_a_login_that_may_create_roles_needs_nobody(fresh: Postgres) -> None:
    with ExitStack() as stack:
        url = owned_by(fresh, stack, "login_creator", "CREATEROLE NOINHERIT")
        assert upgraded(url).is_current
        settings = Settings(database_url=SecretStr(url))
        for role in Role:
            with Database.open(settings, role, application_name="test") as database:
                assert migrate.check(database).is_current
        with psycopg.connect(url, autocommit=True) as conn:
            assert missing_statements(conn) == []
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                conn.execute("SELECT FROM publisher.alembic_version")


def test_a_login_that_may_not_is_given_the_sql_and_it_suffices(fresh: Postgres) -> None:
    with ExitStack() as stack:
        url = owned_by(fresh, stack, "login_plain")
        with pytest.raises(RolesMissingError, match="Have this run in database") as caught:
            upgraded(url)
        assert 'CREATE ROLE "publisher_engine" NOLOGIN;' in caught.value.sql
        with psycopg.connect(url.replace("login_plain@", "postgres@"), autocommit=True) as dba:
            dba.execute(sql.SQL(caught.value.sql))
        assert upgraded(url).is_current


def test_the_owners_login_needs_no_other_role(fresh: Postgres) -> None:
    with ExitStack() as stack:
        url = owned_by(fresh, stack, "login_owner")
        with psycopg.connect(url.replace("login_owner@", "postgres@"), autocommit=True) as dba:
            ensure_roles(dba)
            dba.execute("GRANT publisher_owner TO login_owner")
        assert upgraded(url).is_current


def test_a_schema_of_somebody_elses_is_taken_over_by_who_may(fresh: Postgres) -> None:
    with ExitStack() as stack:
        url = owned_by(fresh, stack, "login_owner")
        with psycopg.connect(url.replace("login_owner@", "postgres@"), autocommit=True) as dba:
            dba.execute("CREATE SCHEMA publisher")
            ensure_roles(dba, login="login_owner")
        assert upgraded(url).is_current


def test_many_databases_may_be_set_up_at_once(fresh: Postgres) -> None:
    with ExitStack() as stack:
        names = [stack.enter_context(fresh.empty_database()) for _ in range(3)]
        with fresh.superuser() as conn:
            conn.execute("CREATE ROLE login_shared LOGIN")

        def set_up(name: str) -> None:
            with fresh.superuser(name) as conn:
                ensure_roles(conn, login="login_shared")

        with ThreadPoolExecutor(len(names)) as pool:
            list(pool.map(set_up, names))
        for name in names:
            with fresh.superuser(name) as conn:
                assert missing_statements(conn, login="login_shared") == []
