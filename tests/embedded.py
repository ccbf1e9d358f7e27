"""Processes that hold the embedded server, and what can be seen of it from outside."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import psycopg

from publisher.db.embedded import EmbeddedServer
from publisher.db.locks import FileLock

USER = """
import signal, sys
from pathlib import Path
from publisher.db.embedded import EmbeddedServer
if "polite" in sys.argv:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
server = EmbeddedServer.acquire(Path(sys.argv[1]))
import psycopg
conn = psycopg.connect(host=str(server.socket_folder), user="publisher", dbname="publisher",
                       options="-c role=publisher_engine")
print("up", conn.execute("SELECT current_user").fetchone()[0], flush=True)
conn.close()
sys.stdin.readline()
"""


class User:
    """A process that holds the server until told to leave, or until it dies."""

    def __init__(self, home: Path, *words: str, as_user: list[str] | None = None) -> None:
        self.process = subprocess.Popen(
            [*(as_user or ()), sys.executable, "-c", USER, str(home), *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd="/",
        )

    def await_up(self) -> None:
        assert self.process.stdout is not None
        lines = iter(self.process.stdout.readline, "")
        assert any(line == "up publisher_engine\n" for line in lines)

    def leave(self) -> None:
        self.process.communicate("\n", timeout=30)
        assert self.process.returncode == 0

    def die(self, how: signal.Signals) -> int:
        self.process.send_signal(how)
        self.process.communicate(timeout=30)
        return self.process.returncode


def runs(home: Path) -> bool:
    """Tell whether any process of the home's server is alive."""
    with FileLock(home / "postgres" / "server.lock") as lock:
        return not lock.try_exclusive()


def postmaster_pid(home: Path) -> int:
    return int((home / "postgres/data/postmaster.pid").read_text().splitlines()[0])


def setpriv(uid: int, gid: int) -> list[str]:
    """Become an ordinary user who can still reach an interpreter in root's closed folders."""
    only = "-all,+dac_read_search"
    limit = [f"--inh-caps={only}", f"--ambient-caps={only}", f"--bounding-set={only}"]
    return ["setpriv", f"--reuid={uid}", f"--regid={gid}", "--clear-groups", *limit, "--"]


def await_gone(home: Path) -> None:
    with FileLock(home / "postgres" / "server.lock") as lock:
        assert lock.exclusive_within(20)


def superuser(server: EmbeddedServer) -> psycopg.Connection:
    return psycopg.connect(
        host=str(server.socket_folder), user="postgres", dbname="postgres", autocommit=True
    )
