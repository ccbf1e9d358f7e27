"""A sandbox and a database per test, and real dumps that are put back."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from publisher.db.binaries import find_binaries
from publisher.db.embedded import SUPERUSER
from publisher.sandbox.process import SandboxProcess
from tests.engine.ground import Ground
from tests.postgres import Postgres
from tests.reconciler.stage import Stage


@pytest.fixture
def sandbox(tmp_path: Path) -> Iterator[SandboxProcess]:
    """A sandbox of this test's own."""
    folder = tmp_path / "sandbox"
    with SandboxProcess.start(folder, pages=0, accounts=0, fsync=False) as started:
        yield started


@pytest.fixture
def stage(pg: Postgres, sandbox: SandboxProcess, tmp_path: Path) -> Iterator[Stage]:
    """A database and a home of this test's own."""
    with Ground.open(pg) as ground, Stage.open(ground, sandbox, tmp_path) as opened:
        yield opened


class Backup:
    """A dump of a stage's database, as an operator makes one."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._file = stage.folder / "backup.dump"
        self._run("pg_dump", "--format=custom", f"--file={self._file}", self._url)

    def put_back(self) -> None:
        """Restore it into the same database, under whoever is connected."""
        self._run(
            "pg_restore",
            "--clean",
            "--if-exists",
            "--single-transaction",
            f"--dbname={self._url}",
            str(self._file),
        )

    @property
    def _url(self) -> str:
        ground = self._stage.ground
        return ground.server.url(ground.name, SUPERUSER)

    def _run(self, program: str, *words: str) -> None:
        done = subprocess.run(
            [str(find_binaries() / program), *words], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
