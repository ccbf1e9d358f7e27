"""The sandbox as a process: how it starts, how it ends, what it says when it cannot."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from publisher.sandbox.process import SandboxNotStarted, SandboxProcess

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_stops_in_order(tmp_path: Path, number: signal.Signals) -> None:
    with SandboxProcess.start(tmp_path, fsync=False, pages=3) as sandbox:
        assert [page["name"] for page in sandbox.control.pages()] == ["Page A", "Page B", "Page C"]
        sandbox.control.behave("hang", times=None)
        port = int(sandbox.url.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port)) as kept:
            kept.sendall(b"GET /101 HTTP/1.1\r\nHost: x\r\n\r\n")
            sandbox.process.send_signal(number)
            assert sandbox.process.wait(timeout=10) == 0
    assert (tmp_path / "stderr.txt").read_text() == ""


def test_it_ends_with_who_started_it(tmp_path: Path) -> None:
    with SandboxProcess.start(tmp_path) as sandbox:
        assert sandbox.process.stdin is not None
        sandbox.process.stdin.close()
        assert sandbox.process.wait(timeout=10) == 0


def test_a_busy_port_is_named(tmp_path: Path) -> None:
    with socket.socket() as busy:
        busy.bind(("127.0.0.1", 0))
        busy.listen()
        port = busy.getsockname()[1]
        command = [sys.executable, "-m", "publisher.sandbox", "--port", str(port)]
        ended = subprocess.run(
            [*command, "--log", str(tmp_path)], capture_output=True, text=True, check=False
        )
    assert ended.returncode == 2
    assert f"Port {port} is taken" in ended.stderr
    assert "PUBLISHER_SANDBOX_PORT" in ended.stderr


def test_a_process_that_does_not_start_says_why(tmp_path: Path) -> None:
    with pytest.raises(SandboxNotStarted, match="invalid parse value"):
        SandboxProcess.start(tmp_path, chaos="7:9")


def test_it_is_not_reachable_from_outside(tmp_path: Path) -> None:
    with SandboxProcess.start(tmp_path) as sandbox:
        port = int(sandbox.url.rpartition(":")[2])
        with socket.socket() as outside, pytest.raises(ConnectionRefusedError):
            outside.connect(("127.0.0.2", port))  # another address of this machine
