"""The coordinator: the one thread of a worker that writes to the database.

It moves jobs in sets, never waits for a row, and comes again next tick for what was locked. What
it holds in memory is only ever a copy: on each new connection it asks the database what is still
its own.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import Any

import psycopg
import structlog

from publisher.engine import ledger, retry
from publisher.engine.adapter import boottime
from publisher.engine.errors import PublisherError
from publisher.engine.outcome import Reason, Unknown
from publisher.engine.points import Probe, unwatched
from publisher.engine.registry import Registry
from publisher.engine.rescue import Rescue
from publisher.engine.retry import Policy
from publisher.engine.spool import Spool, boot_id
from publisher.engine.worker.chores import Chores, ClocksPartedError
from publisher.engine.worker.dispatch import Dispatch
from publisher.engine.worker.hands import Hands
from publisher.engine.worker.held import Report, Wake
from publisher.engine.worker.moves import Begun, Moves
from publisher.engine.worker.stock import Stock
from publisher.engine.worker.timing import Timing

log = structlog.get_logger(__name__)

_SHORT = 0.05
Connect = Callable[[], psycopg.Connection[Any]]


@dataclass(slots=True)
class Worker:
    """One run of a worker process.

    ``connect`` opens a checked autocommit connection in the engine's role, or raises
    ``psycopg.Error``; a ``PublisherError`` from it ends the run. ``listen`` opens one more for
    hints, or is None for polling alone.
    """

    connect: Connect
    registry: Registry
    spool_folder: Path
    policy: Policy = field(default_factory=Policy)
    timing: Timing = field(default_factory=Timing)
    queues: Sequence[str] = ("publish",)
    concurrency: int = 32
    listen: Connect | None = None
    probe: Probe = unwatched
    incarnation: int = 0
    _reports: SimpleQueue[Report] = field(default_factory=SimpleQueue)
    _draining: Event = field(default_factory=Event)
    _hurry: Event = field(default_factory=Event)
    _failed: str = ""
    _conn: psycopg.Connection[Any] | None = None
    _moves: Moves = field(init=False)
    _chores: Chores = field(init=False)
    _dispatch: Dispatch = field(init=False)
    _drain_until: float | None = None
    _left_in_doubt: int = 0

    # Life

    def run(self) -> int:
        """Work until told to drain.

        Returns 0 after a clean end, 1 when sends were left in doubt or the run had to stop by
        itself. Raises ``PublisherError`` when it may not start.
        """
        spool = Spool.create(self.spool_folder)
        try:
            conn = self.connect()
            self.incarnation, deployment = ledger.register(
                conn,
                host=socket.gethostname(),
                boot_id=boot_id(),
                pid=os.getpid(),
                file=spool.path.name,
            )
            spool.head(deployment=deployment, incarnation=self.incarnation)
        except BaseException:
            spool.close(remove=True)
            raise
        self._conn = conn
        self._set_up(spool)
        log.info("worker.started", worker_run=self.incarnation, queues=list(self.queues))
        self._start_listening()
        while not self._is_over():
            worked = self._tick()
            self._wait(worked)
        return self._end(spool)

    def drain(self) -> None:
        """Stop claiming, let sends finish, then end; a second call waits for nothing.

        Safe to call from a signal handler or another thread.
        """
        if self._draining.is_set():
            self._hurry.set()
        self._draining.set()
        self._reports.put(Wake())

    def _stop(self, why: str) -> None:
        self._failed = why
        if not self._draining.is_set():
            self.drain()

    def _set_up(self, spool: Spool) -> None:
        hands = Hands(self.concurrency, spool, self._reports, self.probe)
        self._moves = Moves(
            registry=self.registry,
            policy=self.policy,
            timing=self.timing,
            queues=tuple(self.queues),
            incarnation=self.incarnation,
            spool=spool,
            hands=hands,
            stock=Stock(),
            at=self.probe,
            now=self._now,
        )
        self._dispatch = Dispatch(self._moves)
        rescue = Rescue(
            folder=self.spool_folder,
            policy=self.policy,
            grace=self.timing.grace,
            who=f"worker run {self.incarnation}",
            own=spool.path,
            at=self.probe,
        )
        self._chores = Chores(self.timing, rescue, self._moves)

    def _now(self) -> datetime:
        return self._chores.now()

    def _is_over(self) -> bool:
        if not self._draining.is_set():
            return False
        stock = self._moves.stock
        if self._drain_until is None:
            self._drain_until = boottime() + self.timing.drain
            log.info("worker.draining", sending=len(stock.sending))
        late = self._hurry.is_set() or boottime() >= self._drain_until
        if late:
            self._give_up_sends()
        settled = not stock.ends
        if late and boottime() >= self._drain_until + self.timing.lease:
            return True
        return settled and (late or self._moves.hands.busy == 0)

    def _give_up_sends(self) -> None:
        """End what is still being sent when the time to drain is over.

        What no hand has begun to write never will be; the rest is a doubt.
        """
        stock = self._moves.stock
        for held in stock.sending:
            held.busy = False
            if held.permit is not None and held.permit.revoke():
                detail = "the worker was stopped before it called the platform"
                end = retry.not_sent(Reason.NOT_STARTED, detail, self.policy.first)
            else:
                self._left_in_doubt += 1
                doubt = Unknown(Reason.DRAINED, "the worker was stopped before an answer came")
                end = retry.settle(doubt, held.standing(begun=True), self.policy, self._now())
            stock.end(held, end)

    def _end(self, spool: Spool) -> int:
        hands = self._moves.hands
        hands.dismiss()
        clean = hands.busy == 0 and not self._moves.stock.ends
        if clean and self._conn is not None:
            try:
                ledger.end(self._conn, self.incarnation, self._failed or "drained")
            except psycopg.Error:
                clean = False
        if clean:
            spool.close(remove=True)
        # Otherwise the file stays locked until this process is gone: a hand may still write.
        if self._conn is not None:
            self._conn.close()
        log.info("worker.ended", clean=clean, in_doubt=self._left_in_doubt)
        return 1 if self._failed or self._left_in_doubt or not clean else 0

    # Tick

    def _tick(self) -> bool:
        self._take_reports()
        if self._conn is None and not self._reconnect():
            return False
        if self._draining.is_set():
            self._release_unsent()
        moves = self._moves
        worked = False
        for move in (
            self._chores.do,
            moves.settle,
            moves.rest,
            moves.keep,
            self._dispatch.start,
            moves.begin,
        ):
            worked |= self._try(move)
        if not self._draining.is_set():
            worked |= self._try(moves.claim)
        return worked

    def _try(self, move: Callable[[psycopg.Connection[Any]], bool]) -> bool:
        conn = self._conn
        if conn is None:
            return False
        try:
            return move(conn)
        except ClocksPartedError as error:
            log.critical("clock.parted", error=str(error), alert=True)
            self._stop(str(error))
        except Begun as error:
            log.error("begin.unacknowledged", error=str(error))  # noqa: TRY400
            self._discard(conn)
        except psycopg.Error as error:
            log.warning(
                "database.failed",
                move=getattr(move, "__name__", ""),
                sqlstate=error.sqlstate,
                error=str(error).splitlines()[0] if str(error) else type(error).__name__,
            )
            if conn.closed or conn.broken:
                self._discard(conn)
        return False

    def _discard(self, conn: psycopg.Connection[Any]) -> None:
        self._conn = None
        conn.close()

    def _reconnect(self) -> bool:
        try:
            conn = self.connect()
            held = ledger.held_by(conn, self.incarnation)
        except psycopg.Error as error:
            log.warning("database.unreachable", error=str(error).splitlines()[0])
            return False
        except PublisherError as error:
            log.critical("worker.refused", error=str(error), alert=True)
            self._stop(str(error))
            return False
        self._conn = conn
        stock = self._moves.stock
        for job in list(stock.held.values()):
            if held.get(job.id) != job.job.token and job.permit is None and not job.busy:
                self._moves.lose(job)
        # Claims whose answer was lost with the old connection: nobody here works on them.
        for job_id, token in held.items():
            mine = stock.held.get(job_id)
            if (mine is None or mine.job.token != token) and (job_id, token) not in stock.ends:
                stock.ends[job_id, token] = retry.release()
        log.info("database.connected_again", held=len(held))
        return True

    def _release_unsent(self) -> None:
        stock = self._moves.stock
        for held in list(stock.held.values()):
            if held.permit is None and held.key not in stock.ends:
                stock.end(held, retry.release())
        stock.steps.clear()
        stock.looks.clear()
        stock.ready.clear()
        stock.kept.clear()

    def _take_reports(self) -> None:
        while True:
            try:
                self._dispatch.take(self._reports.get_nowait())
            except Empty:
                return

    # Waiting

    def _wait(self, worked: bool) -> None:  # noqa: FBT001 - one caller, one question
        """Sleep until a hand reports, a hint comes, or it is time to look by itself."""
        stock = self._moves.stock
        if worked and self._conn is not None:
            return
        pending = bool(stock.ends or stock.rests or stock.kept)
        quick = pending or self._conn is None or self._draining.is_set()
        timeout = _SHORT if quick else min(self.timing.poll, self.timing.beat_every)
        try:
            self._dispatch.take(self._reports.get(timeout=timeout))
        except Empty:
            return

    def _start_listening(self) -> None:
        if self.listen is not None:
            Thread(target=self._hear, name="listen", daemon=True).start()

    def _hear(self) -> None:
        """Turn notifications into wake-ups. Only a hint: polling goes on whatever happens here."""
        assert self.listen is not None  # noqa: S101 - started only then
        while not self._draining.is_set():
            try:
                with self.listen() as conn:
                    conn.execute("LISTEN publisher_due")
                    for _ in conn.notifies():
                        self._reports.put(Wake())
            except (psycopg.Error, PublisherError) as error:
                log.warning("listen.failed", error=str(error).splitlines()[0])
                self._draining.wait(self.timing.poll)
