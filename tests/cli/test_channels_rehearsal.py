"""``publisher channels`` about rehearsals, and ``show``, as their user has them."""

from __future__ import annotations

import os
import pty
import subprocess

import pytest

from tests.cli.conftest import PUBLISHER, Terminal


@pytest.fixture
def connected(terminal: Terminal) -> Terminal:
    terminal.done(
        *("channels", "add", "facebook_pages", "--name", "Page A", "--remote-id", "101"),
        *("--base-url", "http://127.0.0.1:9", "--token-env", "PAGE_TOKEN"),
        PAGE_TOKEN="secret-token",
    )
    return terminal


def test_consent_is_shown_where_channels_are(connected: Terminal) -> None:
    said = connected.done("channels", "allow-rehearsal", "Page A", "--who", "admin-1", "--yes")
    assert "Rehearsals may publish on Page A: allowed" in said
    assert said.splitlines()[-1].startswith("Next: publisher rehearse smoke --channel 1")
    (listed,) = connected.listed("channels", "list")
    assert listed["rehearsal_allowed_by"] == "admin-1"
    assert listed["rehearsal_allowed_at"]
    assert "open · rehearsals allowed" in connected.done("channels", "list")
    shown = connected.done("channels", "show", "1")
    assert "by admin-1" in shown
    assert "rehearsals allowed by admin-1" in shown
    (page,) = connected.listed("channels", "show", "1")
    assert [(e["event"], e["who"]) for e in page["events"]][1:] == [
        ("rehearsal_allowed", "admin-1")
    ]

    again = connected.done("channels", "allow-rehearsal", "1", "--who", "admin-2", "--yes")
    assert "by admin-1" in again
    said = connected.done("channels", "forbid-rehearsal", "1")
    assert "No rehearsal may publish on Page A any more." in said
    assert "Nothing was changed" in connected.done("channels", "forbid-rehearsal", "1")
    (listed,) = connected.listed("channels", "list")
    assert listed["rehearsal_allowed_by"] is None
    assert "not allowed" in connected.done("channels", "show", "Page A")
    # Nothing of it is broken in the journal's eyes.
    assert connected.run("audit", "--only", "T30").returncode == 0


def test_who_paused_and_reconnected_is_shown(connected: Terminal) -> None:
    connected.done("channels", "pause", "1")
    connected.done("channels", "resume", "1")
    token = {"PAGE_TOKEN": "another-token"}
    connected.done("channels", "reconnect", "1", "--token-env", "PAGE_TOKEN", **token)
    (page,) = connected.listed("channels", "show", "1")
    events = [event["event"] for event in page["events"]]
    assert events == ["added", "paused", "resumed", "reconnected"]
    assert len({event["who"] for event in page["events"]}) == 1
    shown = connected.done("channels", "show", "1")
    assert "reconnected by " in shown
    assert "token" not in shown


def test_it_is_not_allowed_unasked(connected: Terminal) -> None:
    result = connected.run("channels", "allow-rehearsal", "1")
    assert result.returncode == 2
    assert "test, will be deleted" in result.stdout
    assert "Nothing was changed" in result.stderr
    assert "(not-confirmed)" in result.stderr
    (listed,) = connected.listed("channels", "list")
    assert listed["rehearsal_allowed_at"] is None


@pytest.mark.parametrize(("typed", "code"), [("Page A", 0), ("page b", 2)])
def test_its_name_is_typed_at_a_terminal(connected: Terminal, typed: str, code: int) -> None:
    ours, theirs = pty.openpty()
    try:
        process = subprocess.Popen(
            [*PUBLISHER, "channels", "allow-rehearsal", "1"],
            env=connected.environment,
            cwd=connected.folder,
            stdin=theirs,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        os.write(ours, f"{typed}\n".encode())
        said, _ = process.communicate(timeout=30)
    finally:
        os.close(ours)
        os.close(theirs)
    assert process.returncode == code, said
    (listed,) = connected.listed("channels", "list")
    assert (listed["rehearsal_allowed_at"] is not None) is (code == 0)


def test_it_is_refused_beside_a_real_post(connected: Terminal) -> None:
    connected.import_posts("r1,Page A,Hello,now")
    (job,) = connected.listed("jobs", "list")
    result = connected.run("channels", "allow-rehearsal", "1", "--yes")
    assert result.returncode == 4
    assert f"{job['id']} r1, scheduled, due" in result.stderr
    assert f"publisher jobs reschedule {job['id']} --at TIME" in result.stderr
    connected.done("jobs", "cancel", job["id"])
    connected.done("channels", "allow-rehearsal", "1", "--yes")


def test_a_mailbox_is_no_page(terminal: Terminal) -> None:
    terminal.done(
        *("channels", "add", "webhook", "--name", "Hook", "--remote-id", "hook"),
        *("--base-url", "http://127.0.0.1:9", "--token-env", "SECRET"),
        SECRET="0123456789abcdef",
    )
    result = terminal.run("channels", "allow-rehearsal", "Hook", "--yes")
    assert (result.returncode, "(no-page)" in result.stderr) == (4, True)
