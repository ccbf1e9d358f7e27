"""Worker runs that are over, as their own files and the database tell of them."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from publisher.engine import ledger
from publisher.engine.outcome import Outcome
from publisher.engine.rescue import Rescue
from publisher.engine.spool import Opened, Spool, boot_id
from tests.engine.ground import POLICY, Ground, Lane, Placed


@dataclass
class Fallen:
    """A worker run with a file of its own, and its jobs."""

    lane: Lane
    spool: Spool
    number: int

    @classmethod
    def start(cls, lane: Lane, folder: Path, *, boot: str | None = None) -> Fallen:
        spool = Spool.create(folder)
        spool.boot = boot or boot_id()
        number, deployment = ledger.register(
            lane.ground.conn, host=socket.gethostname(), boot_id=spool.boot, pid=1,
            file=spool.path.name,
        )  # fmt: skip
        spool.head(deployment=deployment, incarnation=number)
        lane.incarnation = number
        return cls(lane, spool, number)

    def begins(self, *jobs: Placed, can_look: bool = True) -> None:
        """Write the lines of begun sends."""
        self.spool.open(Opened(job.id, 1, job.token, can_look) for job in jobs)

    def sends(self, outcome: Outcome | None = None, *, started: bool = True) -> Placed:
        """A begun send; ``started`` and answered as far as is said."""
        job = self.lane.sending()
        self.begins(job)
        if started:
            self.spool.start(job.token)
        if outcome is not None:
            self.spool.answer(job.token, outcome)
        return job

    def dies(self) -> None:
        self.spool.close(remove=False)

    @property
    def ended(self) -> Any:  # noqa: ANN401 - a column
        return self.lane.ground.one(
            "SELECT end_reason FROM incarnations WHERE id = %s", self.number
        )


def replay(ground: Ground, folder: Path, **how: Any) -> bool:  # noqa: ANN401 - of Rescue
    rescue = Rescue(folder=folder, policy=POLICY, grace=15.0, who="worker run 99", **how)
    return rescue.spools(ground.conn, datetime.now(UTC))


def files(folder: Path) -> list[str]:
    return sorted(path.suffix for path in folder.iterdir())
