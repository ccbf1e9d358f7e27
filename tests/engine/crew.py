"""Workers of this process, on a real database, with a platform that does as it is told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread, current_thread
from typing import Any

from publisher.engine import ledger
from publisher.engine.job import JobId, NewJob, State
from publisher.engine.points import Point, Probe, unwatched
from publisher.engine.registry import Registry
from publisher.engine.retry import Policy
from publisher.engine.worker import Timing, Worker
from tests.engine.ground import Driver, Ground, Lane, await_that
from tests.engine.platform import Fake

PATIENCE = Policy(first=0.01, longest=0.02, settling=0.0, tries=5)


class Brisk(Timing):
    """Looks after leases and the dead all the time."""

    @property
    def beat_every(self) -> float:
        return 0.02


BRISK = Brisk(poll=0.02, drain=5.0)


class Death(BaseException):
    """The end of a worker run, as sudden as an exception can be."""


@dataclass
class Reaper:
    """A probe at which the whole run dies: the coordinator and every hand that comes by."""

    point: Point
    dead: Event = field(default_factory=Event)

    def __call__(self, point: Point) -> None:
        if point is self.point:
            self.dead.set()
        if self.dead.is_set():
            if current_thread().name.startswith("hand-"):
                Event().wait()  # for ever: a dead process does nothing more
            raise Death


@dataclass
class Run:
    """A worker in a thread of its own."""

    worker: Worker
    thread: Thread = field(init=False)
    code: int | None = None
    error: BaseException | None = None

    def __post_init__(self) -> None:
        self.thread = Thread(target=self._run, daemon=True)
        self.thread.start()
        await_that(lambda: hasattr(self.worker, "_chores") or not self.thread.is_alive())

    def _run(self) -> None:
        try:
            self.code = self.worker.run()
        except BaseException as error:  # noqa: BLE001 - told by ``join``
            self.error = error
            self._vanish()

    def _vanish(self) -> None:
        """What the kernel does for a dead process: its locks and its connections go."""
        with suppress(AttributeError):
            self.worker._station.spool.close(remove=False)
        if self.worker._conn is not None:
            self.worker._conn.close()

    def join(self) -> int:
        self.thread.join(30)
        assert not self.thread.is_alive(), "the worker does not end"
        if self.error is not None:
            raise self.error
        assert self.code is not None
        return self.code

    def drain(self) -> int:
        self.worker.drain()
        return self.join()


@dataclass
class Crew:
    """Everything that workers of one test share."""

    ground: Ground
    lane: Lane
    folder: Path
    fake: Fake = field(default_factory=Fake)

    def add(self, number: int = 1, **changes: Any) -> list[NewJob]:  # noqa: ANN401 - of NewJob
        jobs = [self.lane.new(**changes) for _ in range(number)]
        ledger.enqueue(self.ground.conn, jobs)
        return jobs

    def id(self, job: NewJob) -> JobId:
        return JobId(self.ground.one("SELECT job_id FROM job_keys WHERE key = %s", job.key))

    def row(self, job: NewJob) -> dict[str, Any]:
        return self.ground.row(self.id(job))

    def state(self, job: NewJob) -> State:
        return self.ground.state(self.id(job))

    def connect(self) -> Driver:
        return self.ground.engine.connect_driver()

    def worker(
        self,
        *,
        policy: Policy = PATIENCE,
        timing: Timing = BRISK,
        connect: Callable[[], Driver] | None = None,
        probe: Probe = unwatched,
        concurrency: int = 4,
        **how: Any,  # noqa: ANN401 - of Worker
    ) -> Worker:
        return Worker(
            connect=connect or self.connect,
            registry=Registry([self.fake]),
            spool_folder=self.folder,
            policy=policy,
            timing=timing,
            queues=(self.lane.queue,),
            concurrency=concurrency,
            probe=probe,
            **how,
        )

    @contextmanager
    def working(self, **how: Any) -> Iterator[Run]:  # noqa: ANN401 - of ``worker``
        """Run a worker for as long as the block; drained at its end."""
        run = Run(self.worker(**how))
        try:
            yield run
        finally:
            if run.thread.is_alive():
                run.drain()
        if run.error is not None:
            raise run.error

    def await_state(self, *wanted: State, jobs: list[NewJob]) -> None:
        ids = [self.id(job) for job in jobs]
        query = "SELECT count(*) FROM jobs WHERE id = ANY(%s) AND NOT state = ANY(%s)"
        states = [str(state) for state in wanted]
        try:
            await_that(lambda: self.ground.one(query, ids, states) == 0)
        except AssertionError as error:
            stand = "SELECT state, reason, count(*) FROM jobs WHERE id = ANY(%s) GROUP BY 1, 2"
            message = f"waited in vain for {wanted}: {self.ground.sql(stand, ids)}"
            raise AssertionError(message) from error

    def dies_at(self, point: Point, **how: Any) -> None:  # noqa: ANN401 - of ``worker``
        """Run a worker until it dies there."""
        reaper = Reaper(point)
        run = Run(self.worker(probe=reaper, **how))
        run.thread.join(20)
        assert isinstance(run.error, Death), (point, run.error, run.code)
