"""A dump put back is noticed, whoever put it back, and nothing is sent unseen."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from publisher.db.binaries import find_binaries
from publisher.sandbox.process import SandboxProcess
from tests.cli.conftest import PUBLISHER, Terminal
from tests.postgres import Postgres

pytestmark = pytest.mark.timeout(400)  # a dozen commands in a test, each a process


def name_of(terminal: Terminal) -> str:
    url = terminal.environment["PUBLISHER_DATABASE_URL"]
    return str(psycopg.conninfo.conninfo_to_dict(url)["dbname"])


def generation(terminal: Terminal) -> object:
    return terminal.listed("deployment", "show")[0]["generation"]


def restored(terminal: Terminal, file: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return terminal.run(
        "db", "restore", str(file), "--replace", "--confirm", name_of(terminal), *words
    )


@pytest.fixture
def dumped(terminal: Terminal, page: str, tmp_path: Path) -> Path:
    """A dump in which two posts are scheduled, one of them due at once."""
    terminal.import_posts("now,Page A,Now,now", "late,Page A,Late,2030-05-01 09:00+00:00")
    file = tmp_path / "kept.dump"
    terminal.done("db", "dump", str(file))
    return file


def test_a_dump_is_private_whole_and_never_written_over(terminal: Terminal, dumped: Path) -> None:
    assert stat.S_IMODE(dumped.stat().st_mode) == 0o600
    assert generation(terminal) == 2
    before = dumped.read_bytes()
    again = terminal.run("db", "dump", str(dumped))
    assert again.returncode == 2
    assert "exists" in again.stderr
    assert dumped.read_bytes() == before
    assert generation(terminal) == 2
    assert [path.name for path in dumped.parent.glob(".*.part")] == []
    nowhere = terminal.run("db", "dump", str(dumped.parent / "no" / "folder.dump"))
    assert (nowhere.returncode, nowhere.stdout) == (2, "")


def test_what_was_sent_since_the_dump_is_not_sent_again(
    terminal: Terminal, sandbox: SandboxProcess, dumped: Path, page: str
) -> None:
    with terminal.working():
        assert terminal.run("jobs", "wait", "--timeout", "30").returncode == 0
    sent = sandbox.control.posts(page)
    assert len(sent) == 1
    said = restored(terminal, dumped)
    assert said.returncode == 0, said
    assert "2 posts are looked for" in said.stdout
    assert generation(terminal) == 3
    with terminal.working():
        time.sleep(2)  # some ticks of the worker, in which it would send
    assert sandbox.control.posts(page) == sent
    held = {job["ref"]: job["state"] for job in terminal.listed("jobs", "list")}
    assert held == {"now": "scheduled", "late": "scheduled"}


def test_put_back_by_other_means_it_is_noticed_by_the_next_worker(
    terminal: Terminal, sandbox: SandboxProcess, page: str, tmp_path: Path, pg: Postgres
) -> None:
    terminal.import_posts("first,Page A,First,now")
    with terminal.working():
        assert terminal.run("jobs", "wait", "--timeout", "30").returncode == 0
    terminal.import_posts("second,Page A,Second,now")
    file = tmp_path / "kept.dump"
    said = terminal.done("db", "dump", str(file))
    assert "not told" not in said
    with terminal.working():
        assert terminal.run("jobs", "wait", "--timeout", "30").returncode == 0
    sent = sandbox.control.posts(page)
    assert len(sent) == 2
    with pg.superuser(name_of(terminal)) as conn:
        conn.execute("DROP SCHEMA publisher CASCADE")
    subprocess.run(
        [
            find_binaries() / "pg_restore",
            "-h",
            pg.host,
            "-U",
            "postgres",
            "-d",
            name_of(terminal),
            file,
        ],
        check=True,
        capture_output=True,
    )
    with terminal.working():
        time.sleep(2)
    assert sandbox.control.posts(page) == sent
    assert "older_generation" in terminal.done("jobs", "show", "second")


def test_nothing_is_replaced_unasked(terminal: Terminal, dumped: Path) -> None:
    for words in ((), ("--replace",), ("--replace", "--confirm", "another")):
        refused = terminal.run("db", "restore", str(dumped), *words)
        assert refused.returncode == 2, refused
        assert f"--replace --confirm {name_of(terminal)}" in refused.stderr
    assert generation(terminal) == 2


def test_workers_are_stopped_first(terminal: Terminal, dumped: Path) -> None:
    with terminal.working():
        refused = restored(terminal, dumped)
    assert refused.returncode == 4, refused
    assert "Stop them" in refused.stderr
    assert generation(terminal) == 2


def test_one_that_is_killed_half_way_changes_nothing(terminal: Terminal, dumped: Path) -> None:
    url = terminal.environment["PUBLISHER_DATABASE_URL"]
    with psycopg.connect(url) as reader:
        reader.execute("SET ROLE publisher_owner")
        reader.execute("SELECT count(*) FROM publisher.jobs")  # a lock that keeps it waiting
        process = subprocess.Popen(
            [*PUBLISHER, "db", "restore", str(dumped), "--replace", "--confirm", name_of(terminal)],
            env=terminal.environment,
            cwd=terminal.folder,
        )
        waiting = (
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE query LIKE '%DROP %' AND wait_event_type = 'Lock'"
        )
        until = time.monotonic() + 60
        with psycopg.connect(url, autocommit=True) as watcher:
            while watcher.execute(waiting).fetchone() == (0,) and time.monotonic() < until:
                time.sleep(0.02)
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
    with psycopg.connect(url, autocommit=True) as watcher:
        running = (
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            " AND application_name = 'publisher db restore'"
        )
        while watcher.execute(running).fetchone() != (0,) and time.monotonic() < until:
            time.sleep(0.02)
    assert generation(terminal) == 2
    assert {job["ref"] for job in terminal.listed("jobs", "list")} == {"now", "late"}


def test_a_fresh_machine_takes_it_and_looks_first(
    terminal: Terminal, dumped: Path, pg: Postgres, tmp_path: Path
) -> None:
    with pg.empty_database() as name:
        ours = {
            "PUBLISHER_DATABASE_URL": pg.url(name, "postgres"),
            "PUBLISHER_HOME": str(tmp_path / "new"),
        }
        fresh = replace(terminal, environment=terminal.environment | ours)
        said = fresh.run("db", "restore", str(dumped))
        assert said.returncode == 0, said
        (shown,) = fresh.listed("deployment", "show")
        assert (shown["generation"], shown["key"], shown["witness_says"]) == (
            3,
            "missing",
            "agrees",
        )
        assert fresh.run("worker").returncode == 3
        assert fresh.run("db", "check").returncode == 0


def test_the_witness_of_another_deployment_is_not_taken(
    terminal: Terminal, dumped: Path, pg: Postgres
) -> None:
    with pg.empty_database() as name:
        ours = {"PUBLISHER_DATABASE_URL": pg.url(name, "postgres")}
        other = replace(terminal, environment=terminal.environment | ours)
        other.done("db", "upgrade")
        other.done("db", "dump", str(dumped.parent / "other.dump"))
        words = ("--replace", "--confirm", name)
        assert other.run("db", "restore", str(dumped.parent / "other.dump"), *words).returncode == 0
        (shown,) = other.listed("deployment", "show")
        assert shown["witness_says"] == "agrees"
    refused = restored(terminal, dumped)
    assert refused.returncode == 2, refused
    assert "--take-witness" in refused.stderr
    assert generation(terminal) == 2
    assert restored(terminal, dumped, "--take-witness").returncode == 0
    assert generation(terminal) == 3
