"""``mastodon_mock``: set up once into a folder that git ignores, then started.

A server written by others, with a database of its own, from the Python package of that name.
It is in no lock of the product's; the one beside this file names no registry.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import ProxyHandler, Request, build_opener

HERE = Path(__file__).parent
LOCK = HERE / "requirements.lock"
CACHE = HERE.parents[1] / ".publisher-mastodon"
ACCOUNTS = 120

_OPENER = build_opener(ProxyHandler({}))


class NotSetUp(Exception):
    """A command of the set-up failed, or the server did not start; the text is what it said."""


@dataclass(frozen=True, slots=True)
class Mock:
    """A server that runs, spoken to by a client that shares nothing with the product's."""

    port: int

    def get(self, path: str, token: str) -> Any:  # noqa: ANN401 - JSON
        """Read something as an account."""
        headers = {"Authorization": f"Bearer {token}", "Connection": "close"}
        address = f"http://127.0.0.1:{self.port}{path}"
        with _OPENER.open(Request(address, headers=headers), timeout=20) as answer:
            return json.load(answer)

    def texts(self, account: str, token: str) -> list[str]:
        """What an account has posted, by the server's own record, newest first."""
        listed = self.get(f"/api/v1/accounts/{account}/statuses?limit=40", token)
        return [
            self.get(f"/api/v1/statuses/{status['id']}/source", token)["text"] for status in listed
        ]


@contextlib.contextmanager
def running() -> Iterator[Mock]:
    """Start the server with its database in memory, and stop it at the end."""
    program = set_up()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        config, log = Path(folder) / "mock.toml", Path(folder) / "log.txt"
        config.write_text(_config())
        command: list[str | Path] = [
            program,
            "serve",
            "--in-memory",
            "--config",
            config,
            "--host",
            "127.0.0.1",
        ]
        command += ["--port", str(port), "--log-level", "warning"]
        with log.open("wb") as out:
            process = subprocess.Popen(
                command, cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=out
            )
        try:
            _wait_for(Mock(port), process, log)
            yield Mock(port)
        finally:
            process.terminate()
            process.wait(timeout=30)


def token_of(number: int) -> str:
    """The token of account ``writer{number}``, 1 to ``ACCOUNTS``."""
    return f"canary-mock-{number}-mXkq7Zr0"


def set_up() -> Path:
    """Install what is missing and return the program. Raises ``NotSetUp``."""
    CACHE.mkdir(exist_ok=True)
    environment, stamp = CACHE / "venv", CACHE / "installed"
    wanted = hashlib.sha256(LOCK.read_bytes() + sys.version.encode()).hexdigest()
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not stamp.exists() or stamp.read_text() != wanted:
            sys.stderr.write("Setting up mastodon_mock (once, about a minute)\n")
            shutil.rmtree(environment, ignore_errors=True)
            venv.create(environment, with_pip=True)
            _install(environment / "bin" / "python")
            stamp.write_text(wanted)
    return environment / "bin" / "mastodon_mock"


def _install(python: Path) -> None:
    pip: list[str | Path] = [
        python,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
    ]
    done = subprocess.run(
        [*pip, "--require-hashes", "-r", LOCK], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise NotSetUp(done.stdout + done.stderr)


def _wait_for(mock: Mock, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until and process.poll() is None:
        with contextlib.suppress(URLError, ConnectionError):
            mock.get("/api/v2/instance", token_of(1))
            return
        time.sleep(0.05)
    raise NotSetUp(log.read_text())


def _config() -> str:
    """Accounts with a token each, so that every test has one of its own."""
    seeds = [
        f'[[seed.accounts]]\nusername = "writer{n}"\naccess_token = "{token_of(n)}"\n'
        for n in range(1, ACCOUNTS + 1)
    ]
    return "\n".join(seeds)
