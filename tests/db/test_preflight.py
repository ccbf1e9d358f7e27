"""What a worker refuses to run on, one server or setting at a time."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict
from pydantic import SecretStr

from publisher.config import Settings
from publisher.db import migrate, preflight
from publisher.db.binaries import find_binaries
from publisher.db.connect import Database
from publisher.db.embedded import LOGIN
from publisher.db.migrate import SchemaStatus
from publisher.db.preflight import PreflightError, ProblemCode, ServerFacts
from publisher.db.roles import Role, ensure_roles
from tests.conftest import chosen
from tests.postgres import FOLDER_OF_15, Postgres, initialise, new_folder, serving

SOUND = ServerFacts(
    version_num=150_004,
    version="15.4",
    standby=False,
    fsync="on",
    full_page_writes="on",
    synchronous_commit="on",
    read_only="off",
    login="publisher",
)
CURRENT = SchemaStatus("0002", "0002", ())


def codes(settings: Settings) -> list[ProblemCode]:
    """Return what the check finds on a fresh connection, so that its defaults are fresh too."""
    with (
        Database.open(settings, Role.ENGINE, application_name="test") as database,
        database.engine.connect() as conn,
    ):
        return [problem.code for problem in preflight.check(conn)]


@pytest.mark.both_servers
def test_a_sound_server_is_accepted(database: Database) -> None:
    with database.engine.connect() as conn:
        assert preflight.check(conn) == []
        preflight.refuse_unless_safe(conn)


@pytest.mark.both_servers
@pytest.mark.parametrize(
    ("setting", "code"),
    [
        ("synchronous_commit = off", ProblemCode.SYNCHRONOUS_COMMIT_OFF),
        ("default_transaction_read_only = on", ProblemCode.READ_ONLY),
    ],
)
@pytest.mark.parametrize("where", ["DATABASE {database}", "ROLE {login} IN DATABASE {database}"])
def test_a_setting_of_database_or_login_is_noticed(
    pg: Postgres, settings: Settings, database_url: str, setting: str, code: ProblemCode, where: str
) -> None:
    name = sql.Identifier(str(conninfo_to_dict(database_url)["dbname"]))
    with pg.superuser() as conn:
        conn.execute(
            sql.SQL(f"ALTER {where} SET {setting}").format(
                database=name, login=sql.Identifier(LOGIN)
            )
        )
    assert codes(settings) == [code]


def test_schema_missing_older_and_newer_are_told_apart(
    owner_database: Database, database: Database
) -> None:
    found = []
    for statement in (
        "UPDATE alembic_version SET version_num = 'from the future'",
        "DELETE FROM alembic_version",
        "DROP TABLE alembic_version",
    ):
        with owner_database.engine.begin() as conn:
            conn.exec_driver_sql(statement)
        with database.engine.connect() as conn:
            found += [problem.code for problem in preflight.check(conn)]
    assert found == [
        ProblemCode.SCHEMA_NEWER,
        ProblemCode.SCHEMA_MISSING,
        ProblemCode.SCHEMA_MISSING,
    ]
    with (
        database.engine.connect() as conn,
        pytest.raises(PreflightError, match="publisher db upgrade"),
    ):
        preflight.refuse_unless_safe(conn)


@pytest.fixture
def cluster() -> Iterator[tuple[Path, Path]]:
    """Binaries and folder of a cluster that is not served yet."""
    binaries = FOLDER_OF_15 if "15" in chosen() else find_binaries()
    folder = new_folder()
    initialise(binaries, folder)
    yield binaries, folder
    shutil.rmtree(folder)


def test_a_server_told_not_to_care_and_a_standby_are_refused(cluster: tuple[Path, Path]) -> None:
    binaries, folder = cluster
    server = Postgres(chosen()[-1], folder)
    settings = Settings(database_url=SecretStr(server.url("postgres")))
    careless = ("fsync=off", "full_page_writes=off", "synchronous_commit=off")
    with serving(binaries, folder, *careless):
        with server.superuser() as conn:
            conn.execute("CREATE ROLE publisher LOGIN")
            ensure_roles(conn, login=LOGIN)
        with Database.open(settings, Role.OWNER, application_name="test") as database:
            migrate.upgrade(database)
        assert codes(settings) == [
            ProblemCode.FSYNC_OFF,
            ProblemCode.FULL_PAGE_WRITES_OFF,
            ProblemCode.SYNCHRONOUS_COMMIT_OFF,
        ]
    (folder / "data" / "standby.signal").touch()
    with serving(binaries, folder):
        assert codes(settings) == [ProblemCode.STANDBY]


def test_every_problem_says_what_to_do() -> None:
    """What no server here can be made to show is judged from what it would say."""
    assert preflight.judge(SOUND, CURRENT) == []
    bad = replace(
        SOUND,
        version_num=140_010,
        version="14.10",
        standby=True,
        fsync="off",
        full_page_writes="off",
        synchronous_commit="off",
    )
    problems = preflight.judge(bad, SchemaStatus("0001", "0002", ("0002",)))
    assert [problem.code for problem in problems] == [
        ProblemCode.VERSION_TOO_OLD,
        ProblemCode.STANDBY,
        ProblemCode.FSYNC_OFF,
        ProblemCode.FULL_PAGE_WRITES_OFF,
        ProblemCode.SYNCHRONOUS_COMMIT_OFF,
        ProblemCode.SCHEMA_OLDER,
    ]
    text = str(PreflightError(problems))
    assert "14.10" in text
    assert "0001" in text
    assert "{" not in text


@pytest.mark.parametrize("level", ["on", "local", "remote_write", "remote_apply"])
def test_every_level_that_survives_a_crash_is_accepted(level: str) -> None:
    assert preflight.judge(replace(SOUND, synchronous_commit=level), CURRENT) == []
