"""Commands as their user has them: real processes, a real database, a sandbox as the platform."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from publisher.config import Settings
from publisher.sandbox.process import SandboxProcess

PUBLISHER = [sys.executable, "-m", "publisher"]
QUICK = {
    "PUBLISHER_POLL_SECONDS": "0.1",
    "PUBLISHER_RETRY_FIRST_SECONDS": "0.2",
    "PUBLISHER_RETRY_MAX_SECONDS": "0.4",
    "PUBLISHER_SETTLING_SECONDS": "0.2",
    "PUBLISHER_TRIES": "2",
}


@dataclass(frozen=True)
class Terminal:
    """Runs commands with one set of variables, in one folder."""

    environment: dict[str, str]
    folder: Path

    def run(self, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*PUBLISHER, *words],
            env=self.environment | more,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def done(self, *words: str, **more: str) -> str:
        """Run a command that must end with 0 and say nothing on standard error."""
        result = self.run(*words, **more)
        assert (result.returncode, result.stderr) == (0, ""), result
        return result.stdout

    def listed(self, *words: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.done(*words, "--json").splitlines()]

    def import_posts(self, *rows: str) -> str:
        """Import rows ``ref,channel,text,publish_at`` and return what was said."""
        file = self.folder / "posts.csv"
        file.write_text("\n".join(["ref,channel,text,publish_at", *rows]) + "\n")
        return self.done("posts", "import", str(file))

    @contextmanager
    def working(self, *words: str) -> Iterator[subprocess.Popen[str]]:
        """A worker that has started, for as long as the block lasts; it is stopped in order."""
        process = subprocess.Popen(
            [*PUBLISHER, "worker", *words],
            env=self.environment,
            cwd=self.folder,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            assert process.stderr is not None
            assert any("worker.started" in line for line in process.stderr)
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            _, said = process.communicate(timeout=30)
        assert process.returncode == 0, said


@pytest.fixture
def terminal(settings: Settings, tmp_path: Path) -> Terminal:
    assert settings.database_url is not None
    folder = tmp_path / "desk"
    folder.mkdir()
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PUBLISHER_")}
    ours = {
        "PUBLISHER_HOME": str(settings.home),
        "PUBLISHER_DATABASE_URL": settings.database_url.get_secret_value(),
        "LANGUAGE": "en",
    }
    return Terminal(kept | QUICK | ours, folder)


@pytest.fixture
def sandbox(tmp_path: Path) -> Iterator[SandboxProcess]:
    with SandboxProcess.start(tmp_path / "sandbox", fsync=False) as running:
        yield running


@pytest.fixture
def page(terminal: Terminal, sandbox: SandboxProcess) -> str:
    """A channel of the sandbox's first Page; returns the Page's id."""
    first = sandbox.control.add_pages(1)[0]
    terminal.done(
        *("channels", "add", "facebook_pages", "--name", "Page A", "--remote-id", first["id"]),
        *("--base-url", sandbox.url, "--token-env", "PAGE_TOKEN"),
        PAGE_TOKEN=first["token"],
    )
    return first["id"]
