"""A newcomer's first minutes: ``make run`` twice, and ``make doubt``, with an empty home."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from publisher.sandbox import log

ROOT = Path(__file__).parents[2]
QUICK = {"PUBLISHER_POLL_SECONDS": "0.1", "PUBLISHER_SETTLING_SECONDS": "0.2"}


def demo(home: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    return publisher(home, "demo", *words, **more)


def publisher(home: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PUBLISHER_")}
    return subprocess.run(
        [sys.executable, "-m", "publisher", *words],
        env=kept | QUICK | {"PUBLISHER_HOME": str(home), "LANGUAGE": "en"} | more,
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )


@pytest.fixture
def port() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return str(free.getsockname()[1])


def test_a_dozen_posts_go_live_once_and_a_doubt_is_found(tmp_path: Path, port: str) -> None:
    home = tmp_path / "home"
    first = demo(home, "run", "--once", PUBLISHER_SANDBOX_PORT=port)
    assert first.returncode == 0, first
    assert first.stdout.startswith("12 approved · 12 live · 0 may be live · 0 not published")
    assert first.stdout.count(f"http://127.0.0.1:{port}/a/") == 12
    assert first.stderr == ""

    second = demo(home, "run", "--once", PUBLISHER_SANDBOX_PORT=port)
    assert second.returncode == 0, second
    assert "nothing was posted again" in second.stdout

    examined = publisher(home, "doctor")
    assert (examined.returncode, examined.stderr) == (0, ""), examined
    assert "error" not in examined.stdout
    assert "warning" not in examined.stdout
    assert "No worker runs." in examined.stdout

    doubt = demo(home, "doubt", PUBLISHER_SANDBOX_PORT=port)
    assert doubt.returncode == 0, doubt
    assert "MAYBE on the page · nothing is sent by itself" in doubt.stdout
    assert "On the Page it stands 1 time. The journal says: Live." in doubt.stdout
    assert "Where a look cannot prove that, a person decides." in doubt.stdout
    kept = log.read(home / "sandbox")
    assert len(kept.ever_posted) == 13
    assert kept.duplicates() == {}


def test_a_busy_port_names_its_setting(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        busy = str(taken.getsockname()[1])
        result = demo(tmp_path / "home", "run", "--once", PUBLISHER_SANDBOX_PORT=busy)
    assert result.returncode == 2
    assert "PUBLISHER_SANDBOX_PORT" in result.stderr
