"""Opening a database in a role: what every session has, and how a refusal reads."""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
import sqlalchemy
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict
from pydantic import SecretStr

from publisher.config import Settings
from publisher.db.connect import Database
from publisher.db.errors import (
    AddressError,
    DatabaseError,
    LoginRefusedError,
    RoleRefusedError,
    UnreachableError,
)
from publisher.db.roles import Role
from tests.pooler import OptionDroppingPooler
from tests.postgres import Postgres, installed, throwaway

both_servers = pytest.mark.both_servers
CANARY = "canary-9f2"


def open_at(url: str, role: Role = Role.ENGINE, wait_seconds: float = 0.2) -> Database:
    """Open the database at ``url``."""
    settings = Settings(database_url=SecretStr(url))
    return Database.open(settings, role, application_name="test", wait_seconds=wait_seconds)


@pytest.fixture
def login(pg: Postgres) -> Iterator[Callable[..., str]]:
    """Make login users, who may act in nothing; they are dropped at the end."""
    made: list[str] = []

    def make(name: str, *words: sql.SQL) -> str:
        with pg.superuser() as conn:
            conn.execute(
                sql.SQL(" ").join(
                    [sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(name)), *words]
                )
            )
        made.append(name)
        return name

    yield make
    with pg.superuser() as conn:
        for name in made:
            conn.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(name)))


@both_servers
def test_every_connection_has_role_and_session(database: Database, app_database: Database) -> None:
    with database.engine.connect() as first, database.engine.connect() as second:
        for conn in (first, second):
            row = conn.exec_driver_sql(
                "SELECT current_user::text, session_user::text, current_setting('search_path'),"
                " current_setting('TimeZone'), current_setting('application_name'),"
                " current_setting('transaction_isolation')"
            ).one()
            assert tuple(row) == (
                "publisher_engine",
                "publisher",
                "publisher",
                "UTC",
                "test engine",
                "read committed",
            )
    with app_database.engine.connect() as conn:
        assert conn.exec_driver_sql("SELECT current_user::text").scalar() == "publisher_app"


@both_servers
def test_a_reset_leads_back_to_the_role(database: Database) -> None:
    with database.connect_driver() as conn:
        for reset in ("RESET ROLE", "RESET ALL", "DISCARD ALL"):
            conn.execute("SET search_path = pg_catalog")
            conn.execute(sql.SQL(reset))
            conn.execute("RESET search_path")
            row = conn.execute(
                "SELECT current_user::text, current_setting('search_path')"
            ).fetchone()
            assert row == ("publisher_engine", "publisher")


@both_servers
def test_the_coordinators_connection(database: Database) -> None:
    with database.connect_driver(application_name="coordinator") as conn:
        assert conn.autocommit
        assert conn.prepare_threshold == 0
        names = ("plan_cache_mode", "lock_timeout", "application_name", "role")
        shown = [
            conn.execute(sql.SQL("SHOW {}").format(sql.Identifier(n))).fetchone() for n in names
        ]
        assert shown == [("force_generic_plan",), ("1s",), ("coordinator",), ("publisher_engine",)]


def test_prepared_statements_can_be_off(settings: Settings) -> None:
    behind_pooler = settings.model_copy(update={"prepare": "off"})
    with Database.open(behind_pooler, Role.ENGINE, application_name="test") as database:
        with database.connect_driver() as conn:
            assert conn.prepare_threshold is None
        with database.engine.connect() as pooled:
            driver = pooled.connection.driver_connection
            assert isinstance(driver, psycopg.Connection)
            assert driver.prepare_threshold is None


def test_direct_goes_past_the_pooler(settings: Settings, pg: Postgres) -> None:
    with pg.empty_database() as beside:
        both = settings.model_copy(update={"direct_url": SecretStr(pg.url(beside))})
        with Database.open(both, Role.ENGINE, application_name="test") as database:
            with database.connect_driver(direct=True) as conn:
                assert conn.info.dbname == beside
            with database.connect_driver() as conn:
                assert conn.info.dbname != beside


def test_options_of_the_url_are_kept(database_url: str) -> None:
    url = f"{database_url}&options=-c%20work_mem%3D7MB&application_name=mine"
    with open_at(url) as database, database.connect_driver() as conn:
        assert conn.execute("SHOW work_mem").fetchone() == ("7MB",)
        assert conn.execute("SHOW role").fetchone() == ("publisher_engine",)
        assert conn.execute("SHOW application_name").fetchone() == ("test",)


@both_servers
def test_a_login_without_the_role_is_told_the_grant(
    pg: Postgres, database_url: str, login: Callable[..., str]
) -> None:
    name = login("stranger")
    address = database_url.replace("publisher@", f"{name}@")
    with pytest.raises(RoleRefusedError, match='GRANT publisher_engine TO "stranger"'):
        open_at(address)
    with pg.superuser() as conn:
        conn.execute('GRANT publisher_engine TO "stranger"')
    with open_at(address) as database, database.connect_driver() as conn:
        assert conn.execute("SHOW role").fetchone() == ("publisher_engine",)
    with pytest.raises(RoleRefusedError, match="GRANT publisher_app"):
        open_at(address, Role.APP)


@both_servers
def test_a_refused_login_is_not_tried_again(pg: Postgres) -> None:
    started_at = time.monotonic()
    with pytest.raises(LoginRefusedError, match="PUBLISHER_DATABASE_URL"):
        open_at(pg.url("nowhere"), wait_seconds=30)
    with pytest.raises(LoginRefusedError):
        open_at(pg.url("postgres", "nobody_at_all"), wait_seconds=30)
    assert time.monotonic() - started_at < 5


def test_a_server_that_is_not_there_yet_is_waited_for(tmp_path: Path) -> None:
    with throwaway(installed()[0]) as server:
        front = tmp_path / ".s.PGSQL.5432"
        real = server.host / ".s.PGSQL.5432"
        opener = threading.Timer(0.5, front.symlink_to, [real])
        opener.start()
        address = f"postgresql://postgres@/postgres?host={tmp_path}"
        with open_at(address, Role.OWNER, wait_seconds=20) as database:
            assert database.engine.dialect.name == "postgresql"
        opener.join()


def test_nobody_there_is_said_after_the_wait(tmp_path: Path) -> None:
    with pytest.raises(UnreachableError, match="No database answers"):
        open_at(f"postgresql://u:{CANARY}@/d?host={tmp_path}", wait_seconds=0.2)


@pytest.mark.parametrize(
    ("url", "error"),
    [
        (f"mysql://u:{CANARY}@localhost/d", AddressError),
        (f"host=localhost password={CANARY}", AddressError),
        (f"postgresql://u:p@{CANARY}@localhost/d", AddressError),
        (f"postgresql://u:{CANARY}%zz@localhost/d", AddressError),
        (f"postgresql://u:{CANARY}/x@localhost/d", DatabaseError),
        (f"postgresql://u:{CANARY}#x@localhost:1/d", DatabaseError),
        (f"postgresql://localhost/d?{CANARY}=1", AddressError),
        (f"postgresql://u:{CANARY}@localhost:1/d", UnreachableError),
        (f"postgresql://u:{CANARY}@localhost:port/d", DatabaseError),
        (f"postgres://u:{CANARY}@name.invalid/d", UnreachableError),
    ],
)
def test_no_error_repeats_a_password(url: str, error: type[DatabaseError]) -> None:
    with pytest.raises(error) as caught:
        open_at(url, wait_seconds=0.05)
    assert CANARY not in "".join(traceback.format_exception(caught.value))
    assert CANARY not in repr(caught.value)


def test_parameters_stay_out_of_errors(database: Database) -> None:
    with database.engine.connect() as conn, pytest.raises(sqlalchemy.exc.DBAPIError) as caught:
        conn.execute(sqlalchemy.text("SELECT 1 / 0, :secret"), {"secret": CANARY})
    assert CANARY not in str(caught.value)


def test_a_pooler_that_drops_the_options_is_noticed(
    pg: Postgres, database_url: str, tmp_path: Path
) -> None:
    name = str(conninfo_to_dict(database_url)["dbname"])
    with OptionDroppingPooler(tmp_path, pg.host):
        address = f"postgresql://publisher@/{name}?host={tmp_path}"
        with pytest.raises(RoleRefusedError, match="a pooler drops start-up options") as caught:
            open_at(address)
        with pg.superuser() as conn:
            database_name = sql.Identifier(name)
            for line in ("role = publisher_engine", "search_path = publisher"):
                assert f'ALTER ROLE "publisher" SET {line};' in str(caught.value)
                conn.execute(
                    sql.SQL("ALTER ROLE publisher IN DATABASE {} SET ").format(database_name)
                    + sql.SQL(line)
                )
        with open_at(address) as database, database.connect_driver() as driver:
            assert driver.execute("SHOW role").fetchone() == ("publisher_engine",)
