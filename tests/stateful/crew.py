"""Workers and a reconciler in one process: the real ones, let go on step by step."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from queue import Empty
from typing import Any
from unittest import mock
from uuid import UUID

import psycopg
import structlog
from psycopg import pq

from publisher.engine import spool
from publisher.engine.guard import Guard
from publisher.engine.job import Token
from publisher.engine.ledger import DatabaseTrouble
from publisher.engine.outcome import Outcome, Published
from publisher.engine.points import Point
from publisher.engine.registry import Registry
from publisher.engine.rescue import Rescue
from publisher.engine.retry import Policy
from publisher.engine.spool import Spool
from publisher.engine.witness import (
    Held,
    Record,
    WitnessConflict,
    WitnessUnreachable,
)
from publisher.engine.worker import Timing, Worker, coordinator
from publisher.engine.worker.hands import Hands
from reconciler.judge import Patience
from reconciler.loop import Reconciler
from tests.engine.ground import Driver
from tests.stateful.baton import Actor, current, pause
from tests.stateful.platform import Orders

TIMING = Timing()
POLICY = Policy(tries=4, deaths=2, jitter=lambda _least, most: most)
ABSENT_AFTER = 420.0
IDLE = "idle"
Connect = Callable[[], Driver]

_SIGNS_OF_A_FAULT = frozenset({
    "move.broke", "settle.set_failed", "progress.set_failed", "progress.refused", "job.parked",
    "spool.unread", "spool.damaged", "spool.failed", "spool.without_head", "doubt.broke",
    "suspect.broke", "look.broke", "step.broke", "prepare.broke", "clock.parted",
    "job.earlier_attempt_unproved", "spool.answer_failed",
})  # fmt: skip


@dataclass(slots=True)
class Log:
    """What the engine logs. ``troubles``: what no sequence of these steps should bring about."""

    said: Counter[str] = field(default_factory=Counter)
    troubles: list[str] = field(default_factory=list)

    def __call__(self, _logger: Any, _method: str, line: dict[str, Any]) -> dict[str, Any]:  # noqa: ANN401 - structlog's
        event = str(line.get("event"))
        self.said[event] += 1
        refused = event == "database.failed" and line.get("sqlstate") not in {None, "57P01"}
        if event in _SIGNS_OF_A_FAULT or refused:
            error = sys.exc_info()[1]
            self.troubles.append(f"{line}" + (f" ({error!r})" if error is not None else ""))
        raise structlog.DropEvent

    @contextmanager
    def kept(self) -> Iterator[None]:
        before = structlog.get_config()
        structlog.configure(processors=[self], logger_factory=structlog.ReturnLoggerFactory())
        try:
            yield
        finally:
            structlog.configure(**before)


class Inline(Executor):
    """Does at once, in the caller's thread, what it is given."""

    def submit(self, fn: Callable[..., Any], /, *args: object, **kwargs: object) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 - as an executor
            future.set_exception(error)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002 - as the real one
        pass


@dataclass
class Witness:
    """A store outside the database, in memory."""

    held: Held | None = None
    is_away: bool = False
    _stamps: int = 0

    @property
    def name(self) -> str:
        return "memory"

    def read(self) -> Held | None:
        self._reach()
        return self.held

    def write(self, record: Record, *, over: str | None) -> str:
        self._reach()
        if over != (None if self.held is None else self.held.stamp):
            message = "somebody else wrote"
            raise WitnessConflict(message)
        return self.replace(record)

    def replace(self, record: Record) -> str:
        self._reach()
        self._stamps += 1
        self.held = Held(record, str(self._stamps))
        return self.held.stamp

    def _reach(self) -> None:
        if self.is_away:
            message = "it is away"
            raise WitnessUnreachable(message)


class Reports:
    """A worker's queue of reports, at which its coordinator waits until it is let go on."""

    def __init__(self) -> None:
        self._items: list[Any] = []

    def put(self, item: Any) -> None:  # noqa: ANN401 - a report
        self._items.append(item)

    def get_nowait(self) -> Any:  # noqa: ANN401 - a report
        if not self._items:
            raise Empty
        return self._items.pop(0)

    def get(self, timeout: float | None = None) -> Any:  # noqa: ANN401, ARG002 - as the real one
        pause(IDLE)
        return self.get_nowait()


class SteppedHands(Hands):
    """Hands that are actors: each does one order, as far as it is let."""

    def give(self, order: Any) -> None:  # noqa: ANN401 - an order
        self.busy += 1
        actor = current()
        assert actor is not None
        seat: Seat = actor.of

        def work() -> None:
            self._reports.put(self._carry_out(order))

        seat.hands.append(Actor(f"{seat.name}'s hand", work, of=seat))


def _at(point: Point) -> None:
    pause(str(point))


@dataclass
class Seat:
    """One worker process."""

    name: str
    worker: Worker
    coordinator: Actor = field(init=False)
    hands: list[Actor] = field(default_factory=list)
    conns: list[Driver] = field(default_factory=list)
    hang_up: Callable[[Driver], None] = psycopg.Connection.close
    code: int | None = None

    def __post_init__(self) -> None:
        self.coordinator = Actor(self.name, self._run, of=self)

    def _run(self) -> None:
        self.code = self.worker.run()

    @property
    def is_alive(self) -> bool:
        return not self.coordinator.over

    @property
    def run(self) -> int:
        return self.worker.incarnation

    def work(self, *places: str) -> None:
        """Let the coordinator go on to one of these places, or until it would wait."""
        self.coordinator.until(IDLE, *places)
        self._tidy()

    def let_hand(self, hand: Actor, orders: Orders, *places: str) -> None:
        """Let a hand go on to one of these places, or until its order is carried out."""
        hand.orders = orders
        hand.until(*places)
        self._tidy()

    def kill(self) -> None:
        """What a SIGKILL leaves: nothing of it does anything more; its file stays."""
        for actor in (self.coordinator, *self.hands):
            actor.die()
        for conn in self.conns:
            self.hang_up(conn)
        self.conns.clear()
        self.hands.clear()
        self._let_go_of_file()

    def _tidy(self) -> None:
        self.hands = [hand for hand in self.hands if not hand.over]
        if self.coordinator.over:
            # The process is gone, and whatever still was in it.
            self.kill()

    def _let_go_of_file(self) -> None:
        station = getattr(self.worker, "_station", None)
        if station is None:
            return
        spool = station.spool
        # A number that is closed already may be another file's by now.
        with suppress(OSError):
            if os.fstat(spool._descriptor).st_ino == spool.path.stat().st_ino:
                spool.close(remove=False)


@dataclass
class Lines:
    """Connections as workers open them. One that its owner left whole is given to the next."""

    open: Connect
    idle: list[Driver] = field(default_factory=list)

    def connect(self) -> Driver:
        return self.idle.pop() if self.idle else self.open()

    def hang_up(self, conn: Driver) -> None:
        """Whoever had it does nothing more with it."""
        if not conn.closed and conn.info.transaction_status is pq.TransactionStatus.IDLE:
            self.idle.append(conn)
        else:
            conn.close()


@dataclass
class Looker:
    """One round of a reconciler process."""

    actor: Actor

    @property
    def is_over(self) -> bool:
        return self.actor.over

    def kill(self) -> None:
        self.actor.die()


@dataclass(slots=True)
class Noted:
    """Tokens of sends that were started, and what was answered to those that are live."""

    started: set[str] = field(default_factory=set)
    answered: dict[str, str] = field(default_factory=dict)
    names: Iterator[int] = field(default_factory=lambda: count(1))

    def begin(self) -> None:
        """Forget all of it."""
        self.started.clear()
        self.answered.clear()
        self.names = count(1)


@dataclass
class Crew:
    """Who is at work in one run."""

    lines: Lines
    registry: Registry
    folder: Path
    witness: Witness = field(default_factory=Witness)
    seats: list[Seat] = field(default_factory=list)
    looker: Looker | None = None
    horizon: float = 60.0
    told: list[str] = field(default_factory=list)

    @staticmethod
    @contextmanager
    def stepped(noted: Noted) -> Iterator[None]:
        """Let every worker's hands be actors; what they write into their files is ``noted``."""
        start, answer = Spool.start, Spool.answer

        def started(self: Spool, token: Token) -> None:
            start(self, token)
            noted.started.add(token.hex)

        def answered(self: Spool, token: Token, outcome: Outcome) -> None:
            answer(self, token, outcome)
            if isinstance(outcome, Published):
                noted.answered[token.hex] = outcome.remote_id

        with ExitStack() as stack:
            patch = mock.patch.object
            stack.enter_context(patch(Spool, "start", started))
            stack.enter_context(patch(Spool, "answer", answered))
            # Files are read in the order of their names.
            stack.enter_context(patch(spool, "uuid4", lambda: UUID(int=next(noted.names))))
            stack.enter_context(patch(coordinator, "Hands", SteppedHands))
            stack.enter_context(patch(coordinator, "_calm_collector", lambda: None))
            yield

    @property
    def alive(self) -> list[Seat]:
        return [seat for seat in self.seats if seat.is_alive]

    @property
    def busy(self) -> list[tuple[Seat, Actor]]:
        """Hands that have an order, with whose they are."""
        return [(seat, hand) for seat in self.alive for hand in seat.hands]

    def hire(self, folder: Path | None = None) -> Seat:
        """Start a worker; on another machine, where its files go to another ``folder``."""
        conns: list[Driver] = []

        def connect() -> Driver:
            conns.append(self.lines.connect())
            return conns[-1]

        guard = Guard(self.witness, absent_after=ABSENT_AFTER, _thread=Inline())  # type: ignore[arg-type]
        worker = Worker(
            connect=connect,
            registry=self.registry,
            spool_folder=folder or self.folder,
            policy=POLICY,
            timing=TIMING,
            concurrency=3,
            probe=_at,
            guard=guard,
            _reports=Reports(),  # type: ignore[arg-type]
        )
        seat = Seat(
            f"worker {len(self.seats) + 1}", worker, conns=conns, hang_up=self.lines.hang_up
        )
        self.seats.append(seat)
        return seat

    def reconcile(self, patience: Patience) -> Looker:
        """Begin a round of looks."""
        conn = self.lines.connect()
        run = Reconciler(
            connect=self.lines.connect,
            registry=self.registry,
            patience=patience,
            told=lambda _conn, doubt, _reason: self.told.append(doubt.key),
            rescue=Rescue(
                folder=self.folder, policy=POLICY, grace=TIMING.grace, who="reconciler",
                absent_after=ABSENT_AFTER,
            ),
            at=_at,
        )  # fmt: skip

        def once() -> None:
            try:
                run.once(conn, Inline())  # type: ignore[arg-type]
            except DatabaseTrouble:
                if not (conn.closed or conn.broken):
                    raise
            finally:
                self.lines.hang_up(conn)

        self.looker = Looker(Actor("reconciler", once))
        return self.looker

    def end(self) -> None:
        """Everybody goes home."""
        for seat in self.alive:
            seat.kill()
        if self.looker is not None and not self.looker.is_over:
            self.looker.kill()
        self.looker = None
