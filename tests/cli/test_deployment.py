"""A copy of the database without its key sends nothing; a deliberate one becomes its own."""

from __future__ import annotations

import base64
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from publisher.sandbox.process import SandboxProcess
from tests.cli.conftest import Terminal
from tests.postgres import Postgres

pytestmark = pytest.mark.timeout(400)  # a dozen commands in a test, each a process


@pytest.fixture
def copy(pg: Postgres, terminal: Terminal, page: str, tmp_path: Path) -> Iterator[Terminal]:
    """The same database under another name, with a home of its own; one post is due later."""
    terminal.import_posts("late,Page A,Later,2030-05-01 09:00+00:00")
    source = terminal.environment["PUBLISHER_DATABASE_URL"]
    name = psycopg.conninfo.conninfo_to_dict(source)["dbname"]
    clone = f"{name}_copy"
    with pg.superuser() as conn:
        statement = sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy")
        conn.execute(statement.format(sql.Identifier(clone), sql.Identifier(str(name))))
    ours = {"PUBLISHER_DATABASE_URL": pg.url(clone), "PUBLISHER_HOME": str(tmp_path / "copy")}
    yield replace(terminal, environment=terminal.environment | ours)
    with pg.superuser() as conn:
        conn.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(clone)))


def shown(terminal: Terminal) -> dict[str, object]:
    (one,) = terminal.listed("deployment", "show")
    return one


def home(terminal: Terminal) -> Path:
    return Path(terminal.environment["PUBLISHER_HOME"])


def bring_key(source: Terminal, target: Terminal) -> None:
    home(target).mkdir(exist_ok=True)
    (home(target) / "vault.key").write_bytes((home(source) / "vault.key").read_bytes())
    (home(target) / "vault.key").chmod(0o600)


def reconciler(terminal: Terminal) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "reconciler"],
        env=terminal.environment,
        cwd=terminal.folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("key", [None, bytes(32)], ids=["no key", "another key"])
def test_a_copy_without_its_key_says_so_and_sends_nothing(
    terminal: Terminal, copy: Terminal, sandbox: SandboxProcess, page: str, key: bytes | None
) -> None:
    copy.run("jobs", "reschedule", "late", "--at", "2020-01-01 00:00", "--zone", "UTC")
    if key is not None:
        home(copy).mkdir()
        (home(copy) / "vault.key").write_bytes(base64.b64encode(key))
        (home(copy) / "vault.key").chmod(0o600)
    for refused in (
        copy.run("worker"),
        reconciler(copy),
        copy.run("channels", "check", "Page A"),
        copy.run("channels", "reconnect", "Page A", "--token-env", "T", T="token"),
        copy.run("posts", "import", str(copy.folder / "posts.csv")),
    ):
        assert refused.returncode == 3, refused
        assert "This is a copy of deployment" in refused.stderr
        assert "publisher deployment rebind" in refused.stderr
    assert (home(copy) / "vault.key").exists() is (key is not None)
    for words in (
        ("jobs", "list"),
        ("unknowns", "list"),
        ("workers", "list"),
        ("jobs", "show", "late"),
    ):
        told = copy.run(*words)
        assert told.returncode == 0
        assert len(told.stderr.splitlines()) == 1
        assert "This is a copy of deployment" in told.stderr
    assert shown(copy)["key"] == ("missing" if key is None else "another")
    assert copy.run("audit").returncode == 0
    assert "copy" in copy.done("deployment", "show")
    assert sandbox.control.posts(page) == []
    assert shown(terminal)["key"] == "matches"


def test_a_copy_that_is_brought_its_key_goes_on(terminal: Terminal, copy: Terminal) -> None:
    assert copy.run("channels", "check", "Page A").returncode == 3
    bring_key(terminal, copy)
    assert copy.run("channels", "check", "Page A").returncode == 0


def test_a_rebound_copy_is_its_own_and_looks_first(terminal: Terminal, copy: Terminal) -> None:
    bring_key(terminal, copy)
    before = shown(copy)
    said = copy.run("deployment", "rebind", "--confirm", str(before["deployment"]), "--by", "kim")
    assert said.returncode == 0, said
    assert "1 credential was sealed again." in said.stdout
    after = shown(copy)
    assert after["deployment"] != before["deployment"]
    assert (after["generation"], after["key"]) == (2, "matches")
    assert "quarantine" in copy.done("jobs", "show", "late")
    assert copy.run("channels", "check", "Page A").returncode == 0
    # The first one is what it was, and the copy's credentials are not for it.
    assert shown(terminal) == shown(terminal) | {
        "deployment": before["deployment"],
        "generation": 1,
        "key": "matches",
    }
    assert terminal.run("channels", "check", "Page A").returncode == 0


def test_without_the_old_key_each_channel_must_be_reconnected(
    copy: Terminal, sandbox: SandboxProcess, page: str
) -> None:
    identity = str(shown(copy)["deployment"])
    refused = copy.run("deployment", "rebind", "--confirm", "another")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert not (home(copy) / "vault.key").exists()
    said = copy.run("deployment", "rebind", "--confirm", identity)
    assert said.returncode == 0, said
    assert "1 channel must be reconnected" in said.stdout
    (channel,) = copy.listed("channels", "list")
    assert channel["open"] is False
    assert "needs reconnecting" in copy.done("channels", "list")
    assert shown(copy)["key"] == "matches"
    token = sandbox.control.add_pages(1)[0]["token"]
    copy.done("channels", "reconnect", "Page A", "--token-env", "T", T=token)
    (channel,) = copy.listed("channels", "list")
    assert channel["open"] is True


def test_a_key_can_be_changed(terminal: Terminal, page: str, tmp_path: Path) -> None:
    fresh = tmp_path / "fresh.key"
    identity = str(shown(terminal)["deployment"])
    words = ("deployment", "rebind", "--confirm", identity, "--with-key", str(fresh))
    said = terminal.run(*words)
    assert said.returncode == 0, said
    assert f"PUBLISHER_VAULT_KEY_FILE={fresh}" in said.stdout
    assert terminal.run("channels", "check", "Page A").returncode == 3
    named = {"PUBLISHER_VAULT_KEY_FILE": str(fresh)}
    assert terminal.run("channels", "check", "Page A", **named).returncode == 0
    assert "canary" not in said.stdout + said.stderr


def test_nothing_is_rebound_while_a_worker_is_at_work(terminal: Terminal, page: str) -> None:
    before = shown(terminal)
    with terminal.working():
        refused = terminal.run(
            "deployment", "rebind", "--take-witness", "--confirm", str(before["deployment"])
        )
        assert refused.returncode == 4, refused
        assert "Stop them" in refused.stderr
    assert shown(terminal)["deployment"] == before["deployment"]


def test_the_witness_of_one_that_may_go_on_is_not_taken(terminal: Terminal, page: str) -> None:
    terminal.import_posts("now,Page A,Now,now")
    with terminal.working():
        assert terminal.run("jobs", "wait", "--timeout", "30").returncode == 0
    before = shown(terminal)
    assert before["witness_says"] == "agrees"
    words = ("deployment", "rebind", "--confirm", str(before["deployment"]))
    refused = terminal.run(*words)
    assert refused.returncode == 2, refused
    assert "--take-witness" in refused.stderr
    assert shown(terminal)["deployment"] == before["deployment"]
    said = terminal.run(*words, "--take-witness")
    assert said.returncode == 0, said
    after = shown(terminal)
    assert (after["witness_says"], after["generation"]) == ("agrees", 2)


def test_nobody_is_asked_without_a_terminal(terminal: Terminal, page: str) -> None:
    refused = terminal.run("deployment", "rebind")
    assert refused.returncode == 2
    assert f"--confirm {shown(terminal)['deployment']}" in refused.stderr
