"""A real platform and real workers before the desk of ``conftest``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from publisher.editorial import schedules
from publisher.editorial.posts import Destination
from publisher.engine.job import JobId
from publisher.sandbox.process import SandboxProcess
from tests.editorial.posts.conftest import CHIEF, DAY, Desk
from tests.engine.ground import Ground, Lane, await_that
from tests.reconciler.stage import Channel, Stage

QUIET = """
SELECT count(*) FROM jobs j JOIN posts p ON p.id = j.post_id
 WHERE j.state IN ('claimed', 'sending') OR j.state = 'scheduled' AND j.hold_reason IS NULL
"""
# A platform that is asked for too much wants minutes; they are over, as if they had passed.
HURRIED = (
    "UPDATE gates SET not_before = NULL WHERE not_before > clock_timestamp() + interval '1 second'",
    (
        "UPDATE jobs SET run_at = clock_timestamp() WHERE state = 'scheduled' AND due_at < now()"
        " AND run_at > clock_timestamp() + interval '1 second'"
    ),
)


@dataclass
class Site:
    """A sandbox, two worker processes, and an editors' desk before the same database."""

    stage: Stage
    desk: Desk
    pages: list[Channel]

    @classmethod
    @contextmanager
    def open(cls, ground: Ground, folder: Path) -> Iterator[Site]:
        with (
            SandboxProcess.start(folder / "sandbox", pages=0, accounts=0, fsync=False) as sandbox,
            Stage.open(ground, sandbox, folder) as stage,
        ):
            pages = [stage.channel(), stage.channel()]
            # More than are due at once, so that a full channel is no shelter.
            ground.sql("UPDATE gates SET max_in_flight = 16")
            workers = [stage.worker(PUBLISH_TIMEOUT_SECONDS="5.0") for _ in range(2)]
            for worker in workers:
                worker.says("worker.started")
            yield cls(stage, Desk(ground, stage.registry), pages)

    def lane(self, page: Channel) -> Lane:
        return Lane(self.stage.ground, page.id, "publish")

    def due_in(self, post: int, page: Channel, seconds: float) -> JobId:
        """Schedule a post; its job."""
        at = datetime.now(UTC) + timedelta(seconds=seconds)
        with self.desk.transaction() as conn:
            done = schedules.schedule(
                conn, post, [Destination(page.id, at, "UTC")], who=CHIEF,
                registry=self.desk.registry, useful_for=DAY,
            )  # fmt: skip
        return done.jobs[0].job_id

    def quiet(self) -> None:
        """Wait until nothing is under way, or is about to be; what waits for long waits no more."""

        def is_quiet() -> bool:
            for hurried in HURRIED:
                self.stage.ground.sql(hurried)
            return bool(self.stage.ground.one(QUIET) == 0)

        try:
            await_that(is_quiet, within=90)
        except AssertionError as error:
            gates = self.stage.ground.sql("SELECT * FROM gates")
            stands = self.stage.ground.sql(QUIET.replace("count(*)", "j.*"))
            message = f"never quiet: {stands}, {gates}"
            raise AssertionError(message) from error
