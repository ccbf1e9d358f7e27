"""Channels, drafts, the database, and what a command says when it cannot begin."""

from __future__ import annotations

import json
from pathlib import Path

from publisher.sandbox.process import SandboxProcess
from tests.cli.conftest import Terminal

TOKEN = "EAAcanarycanarycanarycanary0123456789"


def test_a_channel_is_added_listed_checked_paused_and_reconnected(
    terminal: Terminal, sandbox: SandboxProcess, page: str
) -> None:
    (channel,) = terminal.listed("channels", "list")
    assert (channel["name"], channel["remote_id"], channel["open"]) == ("Page A", page, True)
    terminal.done("channels", "pause", "page a")
    assert "paused by" in terminal.done("channels", "list")
    terminal.done("channels", "resume", "1")
    sandbox.control.revoke(page)
    checked = terminal.run("channels", "check", "Page A")
    assert checked.returncode == 3, checked
    assert "publisher channels reconnect" in checked.stdout
    sandbox.control.restore(page)
    token = sandbox.control.add_pages(1)[0]["token"]
    terminal.done("channels", "reconnect", "Page A", "--token-env", "T", T=token)
    assert terminal.run("channels", "check", "Page A").returncode == 0


def test_a_token_is_sealed_and_never_shown(terminal: Terminal) -> None:
    words = ["channels", "add", "facebook_pages", "--name", "N", "--remote-id", "7"]
    result = terminal.run(*words, "--token-env", "T", T=TOKEN, PUBLISHER_LOG_LEVEL="debug")
    assert result.returncode == 0
    again = terminal.run(*words, "--token-env", "T", T=TOKEN, PUBLISHER_LOG_LEVEL="debug")
    assert again.returncode == 2
    assert TOKEN not in result.stdout + result.stderr + again.stdout + again.stderr
    missing = terminal.run(*words, "--token-env", "NO_SUCH")
    assert missing.returncode == 2
    assert "NO_SUCH" in missing.stderr
    nobody = terminal.run(*words)
    assert nobody.returncode == 2
    assert "--token-env" in nobody.stderr


def test_drafts_wait_for_their_approval(terminal: Terminal, page: str) -> None:
    file = terminal.folder / "drafts.jsonl"
    row = {"ref": "d1", "channel": "Page A", "text": "Draft", "publish_at": "now"}
    file.write_text(json.dumps(row) + "\n")
    terminal.done("posts", "import", "--draft", str(file))
    assert terminal.listed("jobs", "list") == []
    (post,) = terminal.listed("posts", "list")
    assert post["approved_by"] is None
    terminal.done("posts", "approve", "d1")
    (job,) = terminal.listed("jobs", "list")
    assert (job["ref"], job["state"]) == ("d1", "scheduled")
    assert "1 was approved already · 0 jobs scheduled" in terminal.done("posts", "approve", "d1")
    assert terminal.listed("jobs", "list") == [job]
    assert terminal.run("posts", "approve", "none").returncode == 2


def test_a_bad_row_names_column_and_fix_and_nothing_is_stored(
    terminal: Terminal, page: str
) -> None:
    file = terminal.folder / "bad.csv"
    file.write_text(
        "ref,channel,text,publish_at\ngood,Page A,Fine,now\nbad,Page Z,Text,2030-13-01 09:00\n"
    )
    result = terminal.run("posts", "import", str(file))
    assert result.returncode == 2
    assert "line 3, bad, channel:" in result.stdout
    assert "line 3, bad, publish_at:" in result.stdout
    assert "Nothing was stored." in result.stdout
    assert terminal.listed("posts", "list") == []
    assert terminal.run("posts", "import", "--dry-run", str(file)).returncode == 2
    skipped = terminal.run("posts", "import", "--skip-bad", str(file))
    assert skipped.returncode == 1
    assert [post["ref"] for post in terminal.listed("posts", "list")] == ["good"]


def test_a_setting_that_is_wrong_is_named(terminal: Terminal) -> None:
    result = terminal.run("jobs", "list", PUBLISHER_CONCURRENCY="many")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("PUBLISHER_CONCURRENCY: ")
    related = terminal.run("jobs", "list", PUBLISHER_LEASE_SECONDS="5")
    assert related.returncode == 2
    assert "PUBLISHER_LEASE_DISTRUST_SECONDS < PUBLISHER_LEASE_SECONDS" in related.stderr
    assert "Traceback" not in result.stderr + related.stderr


def test_a_password_in_a_wrong_address_is_not_shown(terminal: Terminal) -> None:
    url = "postgresql://someone:hunter2hunter2@127.0.0.1:1/none"
    result = terminal.run("jobs", "list", PUBLISHER_DATABASE_URL=url)
    assert result.returncode == 2
    assert "No database answers" in result.stderr
    assert "hunter2" not in result.stderr


def test_a_database_without_tables_says_what_to_run(terminal: Terminal, tmp_path: Path) -> None:
    home = tmp_path / "fresh"
    fresh = Terminal(
        {k: v for k, v in terminal.environment.items() if k != "PUBLISHER_DATABASE_URL"}
        | {"PUBLISHER_HOME": str(home)},
        terminal.folder,
    )
    result = fresh.run("jobs", "list")
    assert result.returncode == 2
    assert "Run: publisher db upgrade" in result.stderr
    assert fresh.run("db", "check").returncode == 2
    fresh.done("db", "upgrade")
    fresh.done("db", "upgrade")
    fresh.done("db", "check")
    assert fresh.listed("jobs", "list") == []


def test_usage_and_version(terminal: Terminal) -> None:
    assert terminal.done("--version").startswith("publisher 0.")
    assert terminal.run("jobs", "nosuch").returncode == 2
    assert terminal.run("jobs", "list", "--state", "nosuch").returncode == 2
    helped = terminal.done("jobs", "--help")
    verbs = ("list", "show", "wait", "cancel", "reschedule", "requeue", "hold", "release")
    for verb in (*verbs, "restore"):
        assert f"  {verb} " in helped
