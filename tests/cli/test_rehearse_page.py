"""Rehearsing on a page from the terminal: what is said, asked, left behind, and the exit codes."""

from __future__ import annotations

import json
import os
import pty
import subprocess

import pytest

from publisher.sandbox.process import SandboxProcess
from tests.cli.conftest import PUBLISHER, Terminal

QUICK = {
    "PUBLISHER_TCP_USER_TIMEOUT_SECONDS": "1",
    "PUBLISHER_LOOK_FIRST_SECONDS": "0.2",
    "PUBLISHER_LOOK_MAX_SECONDS": "0.4",
    "PUBLISHER_LOOK_LIMIT": "4",
}


def argv(*words: str) -> list[str]:
    return [*PUBLISHER, "rehearse", *words]


def run(terminal: Terminal, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        argv(*words),
        env=terminal.environment | QUICK,
        cwd=terminal.folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )


def test_a_run_and_what_it_leaves(terminal: Terminal, page: str, sandbox: SandboxProcess) -> None:
    refused = run(terminal, "smoke", "--channel", "Page A")
    assert refused.returncode == 4
    assert "publisher channels allow-rehearsal 1" in refused.stderr
    terminal.done("channels", "allow-rehearsal", "1", "--yes")

    done = run(terminal, "smoke", "--channel", "Page A", "--posts", "2")
    assert done.returncode == 0, done.stderr
    assert "2 posts on Page A · 2 deleted again · 0 left behind" in done.stdout
    assert "its worker was killed" in done.stdout
    assert "killing its worker" in done.stderr
    assert sandbox.control.texts(page) == []
    listed = terminal.listed("jobs", "list")
    assert [(job["key"].partition("channel")[0], job["ref"], job["state"]) for job in listed] == [
        (f"rehearsal:1:{n}/", None, "published") for n in (1, 2)
    ]
    shown = terminal.done("jobs", "list")
    assert "[rehearsal 1]" in shown
    assert "Was live, then deleted" in shown
    assert "NOT on the page" in terminal.done("jobs", "show", listed[0]["id"])
    assert terminal.listed("posts", "list") == []

    sandbox.control.behave(
        "refuse-invalid", page=page, endpoint="delete", times=1, error={"code": 200}
    )
    left = run(terminal, "smoke", "--channel", "1", "--posts", "1", "--json")
    assert left.returncode == 1
    told = json.loads(left.stdout)
    (stays,) = told["left"]
    assert stays["mark"] == "[rehearsal 2-1]"
    assert stays["where"].startswith("http")
    cleaned = run(terminal, "clean", "Page A")
    assert (cleaned.returncode, "1 post is gone" in cleaned.stdout) == (0, True)
    assert sandbox.control.texts(page) == []
    again = run(terminal, "clean", "--json")
    assert json.loads(again.stdout) == {"removed": [], "left": []}


def test_a_person_at_the_terminal_is_asked(terminal: Terminal, sandbox: SandboxProcess) -> None:
    account = sandbox.control.add_accounts("telegram", 1)[0]
    terminal.done(
        *("channels", "add", "telegram", "--name", "Channel", "--remote-id", account["id"]),
        *("--base-url", sandbox.url, "--token-env", "BOT"),
        BOT=account["token"],
    )
    terminal.done("channels", "allow-rehearsal", "1", "--yes")
    ours, theirs = pty.openpty()
    try:
        process = subprocess.Popen(
            argv("smoke", "--channel", "1", "--posts", "1"),
            env=terminal.environment | QUICK,
            cwd=terminal.folder,
            stdin=theirs,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        # It is there; and then, that it was deleted by hand.
        os.write(ours, b"y\ny\n")
        said, _ = process.communicate(timeout=110)
    finally:
        os.close(ours)
        os.close(theirs)
    assert process.returncode == 0, said
    assert "Is there a post that begins with [rehearsal 1-1]?" in said
    assert "Is it deleted?" in said
    (job,) = terminal.listed("jobs", "list")
    assert job["state"] == "published"


@pytest.mark.parametrize("words", [["smoke", "--channel", "No such"], ["clean", "No such"]])
def test_a_page_there_is_none_of(terminal: Terminal, page: str, words: list[str]) -> None:
    result = run(terminal, *words)
    assert (result.returncode, "(not-found)" in result.stderr) == (2, True)
