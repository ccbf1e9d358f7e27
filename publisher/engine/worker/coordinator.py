"""The coordinator: the one thread of a worker that writes to the database.

It moves jobs in sets, never waits for a row, and comes again next tick for what was locked. What
it holds in memory is only ever a copy: on each new connection it asks the database what is still
its own.
"""

from __future__ import annotations

import gc
import os
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

import psycopg
import structlog

from publisher.engine import ledger, retry
from publisher.engine.adapter import boottime
from publisher.engine.alerts import Alarm, by_log
from publisher.engine.errors import PublisherError
from publisher.engine.guard import Guard
from publisher.engine.outcome import Reason, Unknown
from publisher.engine.points import Probe, unwatched
from publisher.engine.registry import Registry
from publisher.engine.rescue import Rescue
from publisher.engine.retry import Policy
from publisher.engine.spool import Spool, boot_id
from publisher.engine.tally import Tally
from publisher.engine.worker.admission import Admission, WentBackError
from publisher.engine.worker.beginning import BeginLostError, Beginning
from publisher.engine.worker.chores import Chores, ClocksPartedError
from publisher.engine.worker.claiming import Claiming
from publisher.engine.worker.dispatch import Dispatch, begun
from publisher.engine.worker.hands import Hands
from publisher.engine.worker.held import Report, Wake
from publisher.engine.worker.listening import start_listening
from publisher.engine.worker.preparing import Preparing
from publisher.engine.worker.settling import Settling
from publisher.engine.worker.station import Station, first_line, where
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
    hints, or is None for polling alone. ``guard`` holds the database against its witness; without
    one a restored backup goes unnoticed.
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
    alarm: Alarm = by_log
    tally: Tally = field(default_factory=Tally)
    guard: Guard | None = None
    incarnation: int = 0
    _reports: SimpleQueue[Report] = field(default_factory=SimpleQueue)
    _draining: bool = False
    _hurried: bool = False
    _failed: str = ""
    _conn: psycopg.Connection[Any] | None = None
    _station: Station = field(init=False)
    _admission: Admission = field(init=False)
    _settling: Settling = field(init=False)
    _preparing: Preparing = field(init=False)
    _beginning: Beginning = field(init=False)
    _claiming: Claiming = field(init=False)
    _dispatch: Dispatch = field(init=False)
    _chores: Chores = field(init=False)
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
        if self.listen is not None:
            start_listening(
                self.listen, self._reports, is_over=lambda: self._draining, poll=self.timing.poll
            )
        _calm_collector()
        while not self._is_over():
            worked = self._tick()
            self._wait(worked)
        return self._end(spool)

    def drain(self) -> None:
        """Stop claiming, let sends finish, then end; a second call waits for nothing.

        Safe to call from a signal handler or another thread.
        """
        # Plain flags: a second signal may come while the first is inside this very call.
        self._hurried = self._draining
        self._draining = True
        self._reports.put(Wake())

    def _stop(self, why: str) -> None:
        self._failed = why
        if not self._draining:
            self.drain()

    def _set_up(self, spool: Spool) -> None:
        hands = Hands(self.concurrency, spool, self._reports, self.probe)
        station = Station(
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
            alarm=self.alarm,
            tally=self.tally,
        )
        self._station = station
        self._admission = Admission(self.guard, station)
        self._settling = Settling(station)
        self._preparing = Preparing(station)
        self._beginning = Beginning(station)
        self._claiming = Claiming(station, self._preparing)
        self._dispatch = Dispatch(station, self._preparing)
        rescue = Rescue(
            folder=self.spool_folder,
            policy=self.policy,
            grace=self.timing.grace,
            who=station.who,
            own=spool.path,
            at=self.probe,
            alarm=self.alarm,
            tally=self.tally,
            absent_after=420.0 if self.guard is None else self.guard.absent_after,
        )
        self._chores = Chores(station, self._claiming, rescue)

    def _now(self) -> datetime:
        return self._chores.now()

    def _is_over(self) -> bool:
        if not self._draining:
            return False
        self._release_unsent()
        stock = self._station.stock
        if self._drain_until is None:
            self._drain_until = boottime() + self.timing.drain
            log.info("worker.draining", sending=len(stock.sending))
        late = self._hurried or boottime() >= self._drain_until
        if late:
            self._give_up_sends()
        settled = not stock.ends
        if late and boottime() >= self._drain_until + self.timing.lease:
            return True
        return settled and (late or self._station.hands.busy == 0)

    def _give_up_sends(self) -> None:
        """End what is still being sent when the time to drain is over.

        What no hand has begun to write never will be; the rest is a doubt.
        """
        stock = self._station.stock
        for held in stock.sending:
            held.busy = False
            if held.permit is not None and held.permit.revoke():
                detail = "the worker was stopped before it called the platform"
                end = retry.not_sent(Reason.NOT_STARTED, detail, self.policy.first)
            else:
                self._left_in_doubt += 1
                doubt = Unknown(Reason.DRAINED, "the worker was stopped before an answer came")
                end = retry.settle(doubt, held.standing(begun=True), self.policy, self._now())
            stock.end(held, begun(held, end))

    def _end(self, spool: Spool) -> int:
        hands = self._station.hands
        hands.dismiss()
        clean = hands.busy == 0 and not self._station.stock.ends and not self._station.parked
        clean = clean and self._record_end()
        self._admission.close(self._conn)  # before the file goes: one of them tells of its sends
        if clean:
            spool.close(remove=True)
        # Otherwise the file stays locked until this process is gone: a hand may still write.
        if self._conn is not None:
            self._conn.close()
        log.info("worker.ended", clean=clean, in_doubt=self._left_in_doubt)
        return 1 if self._failed or self._left_in_doubt or not clean else 0

    def _record_end(self) -> bool:
        """Record the clean end, which proves that nothing of this run can write any more."""
        if self._conn is None:
            return False
        try:
            # Put back to before us, or to a send of ours: the file knows what came of it.
            is_known = self._is_known(self._conn)
            if not is_known or ledger.is_sending(self._conn, self.incarnation):
                return False
            ledger.end(self._conn, self.incarnation, self._failed or "drained")
        except psycopg.Error as error:
            log.warning("worker.end_unrecorded", error=first_line(error))
            return False
        return True

    # Tick

    def _tick(self) -> bool:
        self._take_reports()
        if self._conn is None and not self._reconnect():
            return False
        worked = False
        for move in (
            self._admission.hold,
            self._chores.do,
            self._settling.settle,
            self._settling.rest,
            self._preparing.keep,
            self._dispatch.start,
            self._beginning.begin,
        ):
            worked |= self._try(move)
        if not self._draining and self._admission.may_claim(self._conn):
            worked |= self._try(self._claiming.claim)
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
        except WentBackError:
            log.critical("database.went_back", alert=True)
            self._discard(conn)
        except BeginLostError as error:
            log.error("begin.unacknowledged", error=str(error))  # noqa: TRY400
            self._discard(conn)
        except PublisherError as error:
            log.critical("worker.refused", error=str(error), alert=True)
            self._stop(str(error))
        except psycopg.Error as error:
            log.warning(
                "database.failed",
                move=getattr(move, "__name__", ""),
                sqlstate=error.sqlstate,
                error=first_line(error),
            )
            if conn.closed or conn.broken:
                self._discard(conn)
        except Exception as error:  # noqa: BLE001 - one bad row must not end the others' worker
            log.error(  # noqa: TRY400 - a traceback may hold what was to be written
                "move.broke",
                move=getattr(move, "__name__", ""),
                kind=type(error).__name__,
                where=where(error),
                alert=True,
            )
        return False

    def _discard(self, conn: psycopg.Connection[Any]) -> None:
        self._conn = None
        conn.close()

    def _reconnect(self) -> bool:
        conn: psycopg.Connection[Any] | None = None
        try:
            conn = self.connect()
            if not self._is_known(conn):
                # Restored, or failed over without our registration: this number may by now be
                # another run's, and so may everything that is held under it.
                conn.close()
                self._forget_claims()
                self._conn = self.connect()
                self._stop("the database no longer knows this worker run")
                return True
            claimed = ledger.claimed_by(conn, self.incarnation)
            lost_commits = self._settling.lost_attempts(conn)
        except psycopg.Error as error:
            log.warning("database.unreachable", error=first_line(error))
            if conn is not None:
                conn.close()
            return False
        except PublisherError as error:
            log.critical("worker.refused", error=str(error), alert=True)
            self._stop(str(error))
            return False
        self._conn = conn
        stock = self._station.stock
        if lost_commits:
            self._stop("the database lost commits: it does not hold sends that were begun")
        for job in list(stock.held.values()):
            if claimed.get(job.id) != job.job.token and job.permit is None and not job.busy:
                self._station.lose(job)
        # Claims whose answer was lost with the old connection: nobody here works on them.
        for job_id, token in claimed.items():
            mine = stock.held.get(job_id)
            if (mine is None or mine.job.token != token) and (job_id, token) not in stock.ends:
                stock.ends[job_id, token] = retry.release()
        log.info("database.connected_again", held=len(claimed))
        return True

    def _is_known(self, conn: psycopg.Connection[Any]) -> bool:
        spool = self._station.spool
        return ledger.is_registered(
            conn, self.incarnation, file=spool.path.name, boot_id=spool.boot
        )

    def _forget_claims(self) -> None:
        """Nothing of what was only claimed is ours any more; answers are still carried."""
        stock = self._station.stock
        for job in list(stock.held.values()):
            if job.permit is None:
                stock.drop(job.id)
        stock.ends = {key: end for key, end in stock.ends.items() if end.attempt is not None}

    def _release_unsent(self) -> None:
        stock = self._station.stock
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
        stock = self._station.stock
        if worked and self._conn is not None:
            return
        quick = stock.ends or stock.rests or stock.kept or self._conn is None or self._draining
        timeout = _SHORT if quick else min(self.timing.poll, self.timing.beat_every)
        timeout = min(timeout, self._claiming.wait_at_most())
        try:
            self._dispatch.take(self._reports.get(timeout=timeout))
        except Empty:
            return


def _calm_collector() -> None:
    """Keep the collector from going through the jobs in flight over and over.

    Nothing of them is cyclic, and thousands of them live at once; what was loaded lives as long as
    the process. It was a tenth of a busy worker's time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 100)
