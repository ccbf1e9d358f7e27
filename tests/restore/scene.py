"""Ten posts on a page of the sandbox, sent by real processes of which some come to a bad end."""

from __future__ import annotations

import signal

from publisher.engine.job import JobId, State
from tests.engine.ground import Row, await_that
from tests.reconciler.stage import Channel, Process, Stage

SENT = 10
S = State
# Nothing that was sent before the loss can arrive 3.4 seconds after it.
BRISK = {
    "LEASE_SECONDS": "2",
    "LEASE_DISTRUST_SECONDS": "1.6",
    "RESCUE_AFTER_SECONDS": "2.4",
    "PUBLISH_LEASE_SECONDS": "2.2",
    "LOOK_LIMIT": "4",
}


class Scene:
    """Posts on one page, and the processes that send and look for them."""

    def __init__(self, stage: Stage, platform: str) -> None:
        self.stage = stage
        self.page: Channel = stage.channel(platform)
        self.sent: list[JobId] = []
        self.on_page: list[str] = []

    def schedule(self) -> None:
        self.sent = [self.page.post(f"Sent {n}") for n in range(SENT)]

    def worker(self) -> Process:
        """One that works: it has told the witness so."""
        witness = self.stage.ground.home / "witness"
        before = witness.read_bytes() if witness.exists() else b""
        worker = self.stage.worker(**BRISK)
        worker.says("worker.started")
        await_that(lambda: witness.exists() and witness.read_bytes() != before)
        return worker

    def reconciler(self) -> Process:
        reconciler = self.stage.reconciler(**BRISK)
        reconciler.says("reconciler.started")
        return reconciler

    def await_sent(self) -> dict[JobId, str]:
        """Wait until all are on the page; returns which is which."""
        rows = {job: self.stage.await_state(job, S.PUBLISHED) for job in self.sent}
        self.on_page = self.page.ids()
        assert len(self.on_page) == SENT
        return {job: row["remote_id"] for job, row in rows.items()}

    def quarantines(self) -> list[Row]:
        return self.stage.ground.sql("SELECT * FROM quarantines ORDER BY id")

    def tick(self) -> int:
        value: int = self.stage.ground.one("SELECT value FROM tick")
        return value

    def held(self) -> list[Row]:
        return self.stage.ground.sql(
            "SELECT q.*, j.state FROM quarantined q JOIN jobs j ON j.id = q.job_id"
            " WHERE q.released_at IS NULL ORDER BY job_id"
        )

    def await_bound(self, posts: dict[JobId, str]) -> None:
        """Each is found on the page and bound, and the page holds what it held."""
        found = {job: self.stage.await_state(job, S.PUBLISHED, within=30) for job in posts}
        assert {job: row["remote_id"] for job, row in found.items()} == posts
        assert self.page.ids() == self.on_page
        await_that(lambda: not self.held())


def end_in_order(worker: Process) -> None:
    worker.send(signal.SIGTERM)
    assert worker.ends() == 0


def kill(worker: Process) -> None:
    worker.send(signal.SIGKILL)
    worker.ends()


def leave_running(_worker: Process) -> None:
    pass
