"""``publisher doctor`` as an operator and a monitor have it."""

from __future__ import annotations

import json

import pytest

from publisher.config import Settings
from publisher.db.connect import Database
from publisher.doctor.catalogue import CHECKS
from tests.cli.conftest import Terminal


def plant(database: Database, statement: str) -> None:
    with database.engine.begin() as conn:
        conn.exec_driver_sql(statement)


@pytest.mark.both_servers
def test_all_is_well_with_nobody_working(terminal: Terminal) -> None:
    said = terminal.done("doctor")
    assert "error" not in said
    assert "warning" not in said
    assert "note     No worker runs. Start one: publisher worker (no_worker)" in said
    last = said.splitlines()[-1]
    assert last.startswith(f"{len(CHECKS)} checks: ")
    assert last.endswith("notes")
    listed = terminal.listed("doctor")
    assert {one["severity"] for one in listed} == {"note"}
    assert {*listed[0]} == {"severity", "code", "check", "group", "what", "remedy"}


def test_a_fault_is_told_with_its_remedy(terminal: Terminal, owner_database: Database) -> None:
    plant(owner_database, "DROP INDEX attempts_promise")
    plant(
        owner_database,
        "CREATE INDEX attempts_promise ON attempts (job_id) WHERE proof IS NULL",
    )
    result = terminal.run("doctor")
    assert (result.returncode, result.stderr) == (3, "")
    (line,) = [line for line in result.stdout.splitlines() if "promise_broken" in line]
    assert line.startswith("  error    The promise is not kept: index attempts_promise")
    assert "CREATE UNIQUE INDEX CONCURRENTLY attempts_promise" in line
    assert ": 1 error, " in result.stdout.splitlines()[-1]
    in_json = terminal.run("doctor", "--json")
    assert in_json.returncode == 3
    codes = [json.loads(line)["code"] for line in in_json.stdout.splitlines()]
    assert codes.count("promise_broken") == 1


def test_a_database_that_is_down(terminal: Terminal) -> None:
    url = "postgresql://someone:hunter2hunter2@127.0.0.1:1/none"
    result = terminal.run("doctor", PUBLISHER_DATABASE_URL=url)
    assert (result.returncode, result.stderr) == (3, "")
    assert "(database_unreachable)" in result.stdout
    assert "hunter2" not in result.stdout
    assert "need the database and its schema" in result.stdout.splitlines()[-1]


def test_it_could_not_run(terminal: Terminal) -> None:
    result = terminal.run("doctor", PUBLISHER_LEASE_SECONDS="-1")
    assert (result.returncode, result.stdout) == (2, "")
    assert "PUBLISHER_LEASE_SECONDS" in result.stderr


def test_platforms_are_asked_only_when_told_to(terminal: Terminal, page: str) -> None:
    terminal.done("doctor")
    refused = terminal.run("doctor", "--ask-platforms")
    assert refused.returncode == 0, refused
    terminal.done("channels", "reconnect", "1", "--token-env", "T", T="EAAnonsense")
    terminal.done("doctor")
    refused = terminal.run("doctor", "--ask-platforms")
    assert refused.returncode == 3
    assert "(access_refused)" in refused.stdout


def test_the_checks_are_listed(terminal: Terminal, settings: Settings) -> None:
    listed = terminal.listed("doctor", "--list")
    assert [one["check"] for one in listed] == [check.name for check in CHECKS]
    said = terminal.done("doctor", "--list")
    assert all(check.question in said for check in CHECKS)
