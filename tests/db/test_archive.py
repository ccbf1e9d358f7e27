"""A dump is whole or not there, and is put back whole or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pydantic import SecretStr
from sqlalchemy import text

from publisher.config import Settings
from publisher.db import archive, migrate
from publisher.db.archive import Archive
from publisher.db.connect import Database
from publisher.db.errors import BackupError
from publisher.db.programs import Programs
from publisher.db.roles import Role
from tests.postgres import FOLDER_OF_15, Postgres, throwaway


def nothing() -> None:
    """Nothing is to be done before the file has its name."""


def posts(database: Database) -> int:
    with database.engine.connect() as conn:
        return int(conn.execute(text("SELECT count(*) FROM posts")).scalar_one())


def add_posts(database: Database, number: int) -> None:
    with database.engine.begin() as conn:
        statement = (
            "INSERT INTO posts (created_by) SELECT md5(n::text) FROM generate_series(1, :n) n"
        )
        conn.execute(text(statement), {"n": number})


@pytest.fixture
def dumped(owner_database: Database, tmp_path: Path) -> Path:
    """Of 5,000 posts; the database has one more since."""
    add_posts(owner_database, 5_000)
    archive.write(owner_database, tmp_path / "kept.dump", before_it_is_there=nothing)
    add_posts(owner_database, 1)
    return tmp_path / "kept.dump"


@contextmanager
def opened(server: Postgres, name: str) -> Iterator[Database]:
    settings = Settings(database_url=SecretStr(server.url(name, "postgres")))
    with Database.open(settings, Role.OWNER, application_name="test owner") as database:
        yield database


def test_it_is_put_in_the_place_of_everything(owner_database: Database, dumped: Path) -> None:
    with owner_database.engine.begin() as conn:
        conn.execute(text("CREATE TYPE publisher.stray AS ENUM ('a')"))
        conn.execute(text("CREATE TABLE publisher.of_a_later_release (a publisher.stray)"))
        conn.execute(text("CREATE VIEW publisher.stray_view AS SELECT * FROM posts"))
    Archive.read(dumped).put_into(owner_database)
    assert posts(owner_database) == 5_000
    assert migrate.check(owner_database).is_current
    with owner_database.engine.connect() as conn:
        assert conn.execute(text("SELECT to_regclass('of_a_later_release')")).scalar() is None


def test_what_each_role_may_do_comes_back(
    owner_database: Database, database: Database, app_database: Database, dumped: Path
) -> None:
    rights = text(
        "SELECT grantee, table_name, privilege_type FROM information_schema.role_table_grants"
        " WHERE table_schema = 'publisher' ORDER BY 1, 2, 3"
    )

    def granted() -> list[tuple[str, ...]]:
        with owner_database.engine.connect() as conn:
            return [tuple(row) for row in conn.execute(rights)]

    before = granted()
    Archive.read(dumped).put_into(owner_database)
    assert granted() == before
    assert any(role == "publisher_engine" for role, *_more in before)
    assert posts(app_database) == 5_000


def test_it_says_what_it_is_of(owner_database: Database, dumped: Path) -> None:
    old = Archive.read(dumped)
    with owner_database.engine.connect() as conn:
        row = conn.execute(text("SELECT id::text, generation FROM deployment")).one()
        beat = conn.execute(text("SELECT beat_at FROM pulse")).scalar_one()
    assert (old.deployment, old.generation, old.beat_at) == (*row, beat)
    assert migrate.knows(old.revision)
    assert old.size == dumped.stat().st_size


@pytest.mark.parametrize(
    "damaged",
    [
        lambda whole: whole[: len(whole) * 3 // 4],
        lambda whole: whole[:-40],
        lambda whole: whole[:-600] + bytes(byte ^ 0xFF for byte in whole[-600:-400]) + whole[-400:],
        lambda _whole: b"",
        lambda _whole: b"hello",
    ],
    ids=["cut", "cut at its end", "flipped", "empty", "text"],
)
def test_a_damaged_one_changes_nothing(
    owner_database: Database, dumped: Path, damaged: Callable[[bytes], bytes]
) -> None:
    dumped.write_bytes(damaged(dumped.read_bytes()))
    with pytest.raises(BackupError):
        Archive.read(dumped).put_into(owner_database)
    assert posts(owner_database) == 5_001


def test_a_dump_of_something_else_is_none(pg: Postgres, tmp_path: Path) -> None:
    with pg.empty_database() as name, opened(pg, name) as database:
        with database.engine.begin() as conn:
            conn.execute(text("CREATE TABLE publisher.jobs (id int)"))
        archive.write(database, tmp_path / "other.dump", before_it_is_there=nothing)
    with pytest.raises(BackupError, match="holds no Publisher database"):
        Archive.read(tmp_path / "other.dump")


def test_what_fails_before_it_has_its_name_leaves_no_file(
    owner_database: Database, tmp_path: Path
) -> None:
    def fail() -> None:
        raise LookupError

    with pytest.raises(LookupError):
        archive.write(owner_database, tmp_path / "kept.dump", before_it_is_there=fail)
    assert list(tmp_path.glob("*dump*")) == list(tmp_path.glob(".*dump*")) == []


def test_a_file_that_somebody_made_meanwhile_stays(
    owner_database: Database, tmp_path: Path
) -> None:
    file = tmp_path / "kept.dump"
    with pytest.raises(BackupError, match="exists"):
        archive.write(
            owner_database, file, before_it_is_there=lambda: file.write_text("theirs") and None
        )
    assert file.read_text() == "theirs"


@pytest.mark.skipif(not (FOLDER_OF_15 / "postgres").exists(), reason="PostgreSQL 15 is missing")
def test_it_goes_to_a_newer_server_and_not_to_an_older(
    pg: Postgres, dumped: Path, tmp_path: Path
) -> None:
    if pg.name == "15":
        pytest.skip("the dump is of 15 itself")
    kept = tmp_path / "of15.dump"
    with throwaway("15") as older, older.empty_database() as name, opened(older, name) as database:
        with pytest.raises(BackupError, match="not older"):
            Archive.read(dumped).put_into(database)
        migrate.upgrade(database)
        add_posts(database, 3)
        archive.write(database, kept, before_it_is_there=nothing)
        add_posts(database, 1)
        Archive.read(kept).put_into(database)
        assert posts(database) == 3
    with pg.empty_database() as name, opened(pg, name) as database:
        Archive.read(kept).put_into(database)
        assert posts(database) == 3


def test_programs_that_are_too_old_are_named() -> None:
    with pytest.raises(BackupError, match="PostgreSQL 99 needs pg_dump"):
        Programs.for_server(99)
