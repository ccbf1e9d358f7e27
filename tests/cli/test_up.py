"""Everything in one process group, stopped in order, and a part that dies ends it all."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import psutil

from tests.cli.conftest import PUBLISHER, Terminal
from tests.embedded import runs


@contextmanager
def up(terminal: Terminal, *words: str) -> Iterator[subprocess.Popen[str]]:
    """``publisher up`` in a group of its own, once it has said how to stop it."""
    process = subprocess.Popen(
        [*PUBLISHER, "up", *words],
        env=terminal.environment,
        cwd=terminal.folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("Next"):
                break
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=30)


def children(process: subprocess.Popen[str], word: str) -> list[psutil.Process]:
    found = psutil.Process(process.pid).children()
    return [child for child in found if word in " ".join(child.cmdline())]


def embedded(terminal: Terminal) -> Terminal:
    kept = {k: v for k, v in terminal.environment.items() if k != "PUBLISHER_DATABASE_URL"}
    home = str(terminal.folder / "home")
    port = {"PUBLISHER_SANDBOX_PORT": "0"}
    return Terminal(kept | port | {"PUBLISHER_HOME": home}, terminal.folder)


def test_one_interrupt_stops_everything_in_order(terminal: Terminal) -> None:
    own = embedded(terminal)
    with up(own, "--sandbox") as process:
        (worker,) = children(process, "publisher worker")
        (sandbox,) = children(process, "publisher.sandbox")
        assert os.getpgid(worker.pid) == os.getpgid(sandbox.pid) == process.pid
        assert process.stderr is not None
        assert any("worker.started" in line for line in process.stderr)
        os.killpg(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=30)
    assert process.returncode == 0, said
    assert '"clean": true' in said
    assert not worker.is_running()
    assert not sandbox.is_running()
    assert not runs(own.folder / "home")


def test_a_part_that_dies_ends_it_all(terminal: Terminal) -> None:
    with up(terminal) as process:
        (worker,) = children(process, "publisher worker")
        worker.kill()
        _, said = process.communicate(timeout=30)
    assert process.returncode == 1
    assert f"The worker (process {worker.pid}) ended with exit code -9" in said


def test_the_parts_end_with_a_killed_parent(terminal: Terminal) -> None:
    with up(terminal) as process:
        (worker,) = children(process, "publisher worker")
        process.kill()
        process.wait(timeout=30)
        worker.wait(timeout=30)
    assert not worker.is_running()
