"""A restore at a terminal: what is held back, what is said of it, and what a person may decide."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from publisher.sandbox.process import SandboxProcess
from tests.cli.conftest import Terminal

pytestmark = pytest.mark.timeout(300)  # a process for each command

TEXT = "The mill is open"
BRISK = {
    "PUBLISHER_LEASE_SECONDS": "2",
    "PUBLISHER_LEASE_DISTRUST_SECONDS": "1.6",
    "PUBLISHER_RESCUE_AFTER_SECONDS": "2.4",
    "PUBLISHER_PUBLISH_TIMEOUT_SECONDS": "1",
    "PUBLISHER_PUBLISH_LEASE_SECONDS": "1.2",
    "PUBLISHER_TCP_USER_TIMEOUT_SECONDS": "0.3",
    "PUBLISHER_LOOK_FIRST_SECONDS": "0.2",
    "PUBLISHER_LOOK_MAX_SECONDS": "0.4",
}
"""What was sent has arrived after less than two seconds."""


@pytest.fixture
def desk(terminal: Terminal) -> Terminal:
    return Terminal(terminal.environment | BRISK, terminal.folder)


@pytest.fixture
def reconciler(desk: Terminal) -> Iterator[None]:
    process = subprocess.Popen(
        [sys.executable, "-m", "reconciler"],
        env=desk.environment,
        cwd=desk.folder,
        stderr=subprocess.DEVNULL,
    )
    yield
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0


def await_that(holds: Callable[[], Any], *, within: float = 60.0) -> None:
    until = time.monotonic() + within
    while not holds():
        assert time.monotonic() < until, "waited in vain"
        time.sleep(0.1)


def restored(desk: Terminal, ago: timedelta = timedelta(hours=1)) -> str:
    since = (datetime.now(UTC) - ago).isoformat(timespec="seconds")
    return desk.done("restore-guard", "--since", since)


def released(desk: Terminal, confirm: str) -> subprocess.CompletedProcess[str]:
    given = ("--reason", "looked", "--confirm", confirm)
    return desk.run("quarantine", "release", "Page A", *given)


def asks(desk: Terminal) -> bool:
    rows = desk.listed("quarantine", "status")
    return bool(rows) and all(row["needs_a_person"] for row in rows)


def test_nothing_is_in_quarantine_by_itself(desk: Terminal, page: str) -> None:
    desk.import_posts(f"mill,Page A,{TEXT},now")
    assert "Nothing is in quarantine." in desk.done("quarantine", "status")
    assert desk.listed("quarantine", "status") == []


def test_what_is_not_found_waits_for_a_person_who_lets_it_go(
    desk: Terminal, sandbox: SandboxProcess, page: str, reconciler: None
) -> None:
    desk.import_posts(f"mill,Page A,{TEXT},now", "lock,Page A,The lock is shut,now")
    assert "2 posts are held back" in restored(desk)
    status = desk.done("quarantine", "status")
    assert "a restore was announced" in status
    assert "Page A" in status
    shown = desk.done("jobs", "show", "mill")
    assert "it is looked for on its page" in shown
    assert "publisher quarantine status" in shown
    with desk.working():
        await_that(lambda: asks(desk))
        assert sandbox.control.posts(page) == []
        status = desk.done("quarantine", "status")
        assert "2 need you" in status
        assert "publisher quarantine release" in status
        refused = released(desk, "Page B")
        assert refused.returncode == 2
        assert "Page A" in refused.stderr
        assert "2 posts go on." in released(desk, "Page A").stdout
        await_that(lambda: len(sandbox.control.posts(page)) == 2)
    assert "Nothing is in quarantine." in desk.done("quarantine", "status")
    assert "Nothing was changed." in released(desk, "Page A").stdout


def test_nobody_lets_it_go_while_something_may_still_arrive(desk: Terminal, page: str) -> None:
    slow = Terminal(desk.environment | {"PUBLISHER_TCP_USER_TIMEOUT_SECONDS": "600"}, desk.folder)
    slow.import_posts(f"mill,Page A,{TEXT},now")
    restored(slow)
    refused = released(slow, "Page A")
    assert refused.returncode == 4
    assert refused.stderr.startswith("Locked until ")


def test_a_person_names_the_post_that_is_there(
    desk: Terminal, sandbox: SandboxProcess, page: str
) -> None:
    """The platform shows it under another application, so no machine may bind it."""
    desk.import_posts(f"mill,Page A,{TEXT},now", "lock,Page A,The lock is shut,now")
    restored(desk)
    sandbox.control.foreign_post(page, TEXT, application=None)
    there = sandbox.control.posts(page)[0]["id"]
    wrong = desk.run("quarantine", "live", "lock", there, "--reason", "seen")
    assert wrong.returncode == 4
    assert "text" in wrong.stderr.lower()
    named = desk.done("quarantine", "live", "mill", there, "--reason", "seen")
    assert "It is not sent again." in named
    attested = desk.done("quarantine", "live", "lock", "--attest", "--reason", "seen in the app")
    assert "seen there" in attested
    rows = {row["ref"]: row["state"] for row in desk.listed("jobs", "list")}
    assert rows == {"mill": "published", "lock": "published"}
    late = desk.run("quarantine", "live", "mill", there, "--reason", "again")
    assert late.returncode == 4
    assert "not in quarantine" in late.stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["restore-guard", "--since", "yesterday"], "cannot be read"),
        (["restore-guard", "--since", "2999-01-01T00:00"], "in the future"),
        (["quarantine", "live", "mill", "--reason", "x"], "--attest"),
        (["quarantine", "release", "Nobody", "--reason", "x", "--confirm", "y"], "Nobody"),
    ],
)
def test_bad_words_are_named(desk: Terminal, page: str, words: list[str], says: str) -> None:
    desk.import_posts(f"mill,Page A,{TEXT},now")
    result = desk.run(*words)
    assert result.returncode in {2, 4}
    assert says in result.stderr
