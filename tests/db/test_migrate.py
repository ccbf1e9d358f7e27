"""Bringing the schema to this release's revision."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pydantic import SecretStr

import publisher
from publisher.config import Settings
from publisher.db import migrate
from publisher.db.connect import Database
from publisher.db.errors import MigrationError
from publisher.db.roles import Role
from tests.postgres import Postgres


@pytest.fixture
def empty(pg: Postgres) -> Iterator[Settings]:
    """Settings for a database that has the schema and nothing in it."""
    with pg.empty_database() as name:
        pg.give_roles(name)
        yield Settings(database_url=SecretStr(pg.url(name)))


def opened(settings: Settings, role: Role = Role.OWNER) -> Database:
    return Database.open(settings, role, application_name="test")


@pytest.mark.both_servers
def test_an_empty_database_is_brought_to_the_head(empty: Settings) -> None:
    with opened(empty) as database:
        before = migrate.check(database)
        assert before.current is None
        assert before.pending[-1] == before.head
        assert not before.is_current
        after = migrate.upgrade(database)
        assert after == migrate.check(database)
        assert after.is_current
        assert after.pending == ()
    with opened(empty, Role.APP) as database:
        assert migrate.check(database).is_current


def test_tables_belong_to_the_owner_and_lie_in_its_schema(owner_database: Database) -> None:
    with owner_database.engine.connect() as conn:
        owners = conn.exec_driver_sql(
            "SELECT DISTINCT schemaname::text, tableowner::text FROM pg_tables"
            " WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"
        ).all()
    assert [tuple(row) for row in owners] == [("publisher", "publisher_owner")]


def test_upgrades_at_once_take_turns(empty: Settings) -> None:
    def upgraded(_: int) -> bool:
        with opened(empty) as database:
            return migrate.upgrade(database).is_current

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(upgraded, range(4)))


def test_only_the_owner_upgrades(database: Database) -> None:
    with pytest.raises(MigrationError, match="opened as publisher_engine"):
        migrate.upgrade(database)


def test_a_database_of_a_newer_release_is_left_alone(owner_database: Database) -> None:
    with owner_database.engine.begin() as conn:
        conn.exec_driver_sql("UPDATE alembic_version SET version_num = 'from the future'")
    status = migrate.check(owner_database)
    assert status.is_newer
    assert not status.is_current
    with pytest.raises(MigrationError, match="Run the newer release"):
        migrate.upgrade(owner_database)


def test_a_lock_is_not_waited_for_without_end(pg: Postgres, owner_database: Database) -> None:
    with owner_database.engine.connect() as conn:
        conn.exec_driver_sql("LOCK TABLE alembic_version IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(MigrationError, match=r"waited 0\.2 s"):
            migrate.upgrade(owner_database, lock_wait_seconds=0.2)
    assert migrate.upgrade(owner_database).is_current


@pytest.mark.parametrize("inside", [True, False], ids=["wheel", "editable"])
def test_migrations_are_found_where_they_are_installed(tmp_path: Path, *, inside: bool) -> None:
    """In a wheel they lie inside the package, in a working copy beside it."""
    package = Path(publisher.__file__).parent
    ignored = shutil.ignore_patterns("__pycache__", "_migrations")
    shutil.copytree(package, tmp_path / "publisher", ignore=ignored)
    target = tmp_path / ("publisher/_migrations" if inside else "migrations")
    shutil.copytree(migrate.find_migrations(), target, ignore=ignored)
    code = "from publisher.db import migrate; print(migrate.find_migrations())"
    found = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        capture_output=True,
        text=True,
        cwd="/",
        env={"PYTHONPATH": str(tmp_path)},
    )
    assert Path(found.stdout.strip()) == target


def test_an_installation_without_migrations_says_so(tmp_path: Path) -> None:
    package = Path(publisher.__file__).parent
    ignored = shutil.ignore_patterns("__pycache__", "_migrations")
    shutil.copytree(package, tmp_path / "publisher", ignore=ignored)
    code = "from publisher.db import migrate; migrate.find_migrations()"
    done = subprocess.run(
        [sys.executable, "-c", code],
        check=False,
        capture_output=True,
        text=True,
        cwd="/",
        env={"PYTHONPATH": str(tmp_path)},
    )
    assert "Install the release again" in done.stderr
