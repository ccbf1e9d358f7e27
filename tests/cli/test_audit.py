"""``publisher audit`` as an operator has it: what it says, and its exit codes."""

from __future__ import annotations

import json

import psycopg

from publisher.config import Settings
from publisher.engine.audit import CATALOGUE
from tests.cli.conftest import Terminal


def corrupt(settings: Settings, *statements: str) -> None:
    """Do as the owner of the tables could."""
    assert settings.database_url is not None
    with psycopg.connect(settings.database_url.get_secret_value(), autocommit=True) as conn:
        conn.execute("SET ROLE publisher_owner")
        conn.execute("SET search_path = publisher")
        for statement in statements:
            conn.execute(statement.encode())


def test_all_hold(terminal: Terminal, page: str) -> None:
    assert page
    terminal.import_posts("one,Page A,a first post,2031-05-01T10:00:00+00:00")
    for words in ((), ("--full",), ("--only", "d02")):
        said = terminal.done("audit", *words)
        number = 1 if "--only" in words else len(CATALOGUE)
        assert said.startswith(f"{number} invariant")
        assert " held in " in said
    held = [json.loads(line) for line in terminal.done("audit", "--json").splitlines()]
    assert [one["id"] for one in held] == [one.id for one in CATALOGUE]
    assert all(one["held"] for one in held)


def test_what_is_broken_says_what_to_do(terminal: Terminal, page: str, settings: Settings) -> None:
    assert page
    terminal.import_posts("one,Page A,a first post,2031-05-01T10:00:00+00:00")
    corrupt(settings, "UPDATE jobs SET run_at = run_at - interval '1 day'")
    result = terminal.run("audit")
    assert result.returncode == 3, result
    assert "L05 · lost · does not hold: nothing waits for a time that comes too late" in (
        result.stdout
    )
    assert "publisher jobs reschedule" in result.stdout
    assert "Page A" in result.stdout
    assert "1 of " in result.stdout
    only = terminal.run("audit", "--json", "--only", "L05")
    assert only.returncode == 3
    (told,) = [json.loads(line) for line in only.stdout.splitlines()]
    assert (told["held"], told["count"], told["severity"]) == (False, 1, "lost")
    (job,) = terminal.listed("jobs", "list")
    assert told["rows"][0]["job"] == job["id"]


def test_what_could_not_be_asked_is_no_success(
    terminal: Terminal, page: str, settings: Settings
) -> None:
    assert page
    corrupt(settings, "REVOKE SELECT ON looks FROM publisher_engine")
    result = terminal.run("audit", "--only", "T23")
    assert result.returncode == 2, result
    assert "T23 could not be asked: permission denied" in result.stdout


def test_the_catalogue_needs_no_database(terminal: Terminal) -> None:
    said = terminal.done(
        "audit", "--list", PUBLISHER_DATABASE_URL="postgresql://nobody@127.0.0.1:1/x"
    )
    assert all(one.id in said and one.title in said for one in CATALOGUE)
    result = terminal.run("audit", "--only", "X99")
    assert result.returncode == 2
    assert "publisher audit --list" in result.stderr


def test_it_does_not_run_without_tables(terminal: Terminal, settings: Settings) -> None:
    corrupt(settings, "DROP TABLE publisher.alembic_version")
    result = terminal.run("audit")
    assert result.returncode == 2
    assert "publisher db upgrade" in result.stderr
