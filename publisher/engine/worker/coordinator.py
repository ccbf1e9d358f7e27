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
from datetime import UTC, datetime, timedelta
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import Any, assert_never

import psycopg
import structlog

from publisher.engine import ledger, retry
from publisher.engine.adapter import LookQuery, More, Ready, Wait, boottime
from publisher.engine.errors import PublisherError
from publisher.engine.evidence import Absent, Found, Inconclusive
from publisher.engine.outcome import Deferred, Reason, Rejected, Unauthorized, Unknown
from publisher.engine.points import Probe, unwatched
from publisher.engine.registry import Registry
from publisher.engine.rescue import BlockedError, Rescue
from publisher.engine.retry import Policy
from publisher.engine.spool import Spool, boot_id
from publisher.engine.worker.hands import Hands
from publisher.engine.worker.held import (
    DoLook,
    DoStep,
    Held,
    Looked,
    Report,
    Sent,
    Stepped,
    Wake,
)
from publisher.engine.worker.moves import Begun, Moves
from publisher.engine.worker.stock import Stock
from publisher.engine.worker.timing import Timing

log = structlog.get_logger(__name__)

_CLOCKS_MAY_PART = 5.0
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
    _rescue: Rescue = field(init=False)
    _beat: ledger.Beat | None = None
    _beat_at: float = 0.0
    _drain_until: float | None = None
    _left_in_doubt: int = 0

    # Life

    def run(self) -> int:
        """Work until told to drain. Returns 0 after a clean end, 1 when sends were left in doubt
        or the run had to stop by itself. Raises ``PublisherError`` when it may not start.
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
        """Stop claiming, let sends finish, then end. A second call waits for nothing. Safe to
        call from a signal handler or another thread.
        """
        if self._draining.is_set():
            self._hurry.set()
        self._draining.set()
        self._reports.put(Wake())

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
            now=self.now,
        )
        self._rescue = Rescue(
            folder=self.spool_folder,
            policy=self.policy,
            grace=self.timing.grace,
            who=f"worker run {self.incarnation}",
            own=spool.path,
            at=self.probe,
        )

    def now(self) -> datetime:
        """The database's clock, carried on from the last heartbeat by the boot clock."""
        if self._beat is None:
            return datetime.now(UTC)
        return self._beat.now + timedelta(seconds=boottime() - self._beat_at)

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
        """The time to drain is over: what no hand has begun to write never will be; the rest is
        a doubt.
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
                end = retry.settle(doubt, held.standing(begun=True), self.policy, self.now())
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
        for move in (self._chores, moves.settle, moves.rest, moves.keep, self._start, moves.begin):
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
            self._failed = str(error)
            self.drain()
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

    # Reports of hands

    def _take_reports(self) -> None:
        while True:
            try:
                self._take(self._reports.get_nowait())
            except Empty:
                return

    def _take(self, report: Report) -> None:
        if isinstance(report, Wake):
            return
        self._moves.hands.returned()
        held = report.held
        held.busy = False
        match report:
            case Sent():
                # Whatever became of the job meanwhile, this answer is carried to the database.
                standing = held.standing(begun=True)
                end = retry.settle(report.outcome, standing, self.policy, self.now())
                self._moves.stock.end(held, end)
            case Stepped() if self._is_working_on(held):
                self._stepped(report)
            case Looked() if self._is_working_on(held):
                self._looked(report)
            case Stepped() | Looked():
                log.info("job.lost", job=held.job.key)
            case _:  # pragma: no cover - mypy proves that nothing gets here
                assert_never(report)

    def _is_working_on(self, held: Held) -> bool:
        return self._moves.stock.holds(held) and held.key not in self._moves.stock.ends

    def _stepped(self, report: Stepped) -> None:
        held = report.held
        match report.step:
            case Ready(progress) | More(progress):
                self._moves.keep_progress(held, progress)
            case Wait(progress, seconds, reason):
                self._moves.keep_progress(held, progress, retry.wait(reason, seconds))
            case Rejected() | Deferred() | Unauthorized() as failure:
                self._moves.end_unsent(held, failure)
            case _:  # pragma: no cover - mypy proves that nothing gets here
                assert_never(report.step)

    def _looked(self, report: Looked) -> None:
        held, stock = report.held, self._moves.stock
        stock.looked.append(report)
        match report.evidence:
            case Found(remote_id, permalink):
                stock.end(held, retry.found(remote_id, permalink))
            case Absent() | Inconclusive(clean=True):
                held.looked = True
                self._moves.route(held)
            case Inconclusive() if held.was_forced:
                held.looked = True
                self._moves.route(held)
            case Inconclusive(reason):
                stock.end(held, retry.look_unclear(reason))
            case _:  # pragma: no cover - mypy proves that nothing gets here
                assert_never(report.evidence)

    # Orders to hands

    def _start(self, conn: psycopg.Connection[Any]) -> bool:
        """Give steps and looks to idle hands; a job's own first hand is recorded before."""
        stock, hands = self._moves.stock, self._moves.hands
        steps: list[Held] = []
        while stock.steps and len(steps) < hands.idle:
            held = stock.steps.popleft()
            if stock.holds(held):
                steps.append(held)
        new = [held for held in steps if not held.hand_recorded]
        if new:
            now = boottime()
            ours = ledger.start_hands(conn, [h.key for h in new], lease=self.timing.lease)
            for held in new:
                held.hand_recorded = held.id in ours
                held.lease_at = now if held.hand_recorded else held.lease_at
                if not held.hand_recorded:
                    self._moves.lose(held)
        for held in steps:
            if stock.holds(held):
                held.busy = True
                hands.give(DoStep(held, held.task))
        looks = self._start_looks(conn)
        return bool(steps or looks)

    def _start_looks(self, conn: psycopg.Connection[Any]) -> bool:
        stock, hands = self._moves.stock, self._moves.hands
        started = False
        while stock.looks and hands.idle:
            held, _ = stock.looks.popleft()
            attempt = held.to_look_at
            if not stock.holds(held) or attempt is None:
                continue
            settled_at = held.earlier[-1].begun_at + timedelta(seconds=self.policy.settling)
            early = (settled_at - self.now()).total_seconds()
            if early > 0:
                stock.end(held, retry.wait("the page may not show the first send yet", early))
                continue
            query = LookQuery(
                task=held.task,
                began_at=attempt.begun_at,
                now=self.now(),
                bound=ledger.bound_elsewhere(conn, held.channel.id, held.id, attempt.begun_at),
            )
            held.busy = True
            hands.give(DoLook(held, query, attempt))
            started = True
        return started

    # Chores

    def _chores(self, conn: psycopg.Connection[Any]) -> bool:
        """Heartbeat, clock, leases, and the workers that are gone; every few seconds."""
        started = boottime()
        if self._beat is not None and started - self._beat_at < self.timing.beat_every:
            return False
        beat = ledger.beat(
            conn, self.incarnation, gap=self.timing.lease, pause=self.timing.publish_lease
        )
        parted = self._clocks_parted(beat, started)
        self._beat, self._beat_at = beat, started
        if parted:
            return False
        self._extend_leases(conn)
        self._moves.alone = ledger.suspects_wait(conn, self._moves.queues)
        worked = False
        try:
            worked = self._rescue.spools(conn, beat.now)
        except BlockedError as error:
            log.info("spool.blocked", why=str(error))
        if beat.may_rescue:
            worked |= self._rescue.leases(conn)
        return worked

    def _clocks_parted(self, beat: ledger.Beat, started: float) -> bool:
        """Stop everything when database time and boot time do not run alike."""
        if self._beat is None:
            return False
        apart = (beat.now - self._beat.now).total_seconds() - (started - self._beat_at)
        took = boottime() - started
        if -_CLOCKS_MAY_PART <= apart <= _CLOCKS_MAY_PART + took:
            return False
        log.critical("clock.parted", seconds=round(apart, 1), alert=True)
        self._failed = f"database time and this machine's parted by {apart:.1f} s"
        if not self._draining.is_set():
            self.drain()
        return True

    def _extend_leases(self, conn: psycopg.Connection[Any]) -> None:
        now = boottime()
        due = [
            held
            for held in self._moves.stock.held.values()
            if held.permit is None
            and held.key not in self._moves.stock.ends
            and now - held.lease_at >= self.timing.lease / 3
        ]
        if not due:
            return
        ours = ledger.extend_leases(conn, [held.key for held in due], lease=self.timing.lease)
        for held in due:
            if held.id in ours:
                held.lease_at = now
            else:
                self._moves.lose(held)

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
            self._take(self._reports.get(timeout=timeout))
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
