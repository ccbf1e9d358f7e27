"""Holds the database against the witness: on each new connection, and as both go on.

Who claims jobs asks here first. What speaks for lost commits puts the jobs that may be among the
missing sends into quarantine; only then is the witness told of this database again.
"""

from __future__ import annotations

import logging
import math
import secrets
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

import structlog

from publisher.engine import ledger
from publisher.engine.adapter import boottime
from publisher.engine.alert import Alert, Incident
from publisher.engine.alerts import Alarm, by_log
from publisher.engine.errors import PublisherError
from publisher.engine.ledger import Conn, DatabaseTrouble
from publisher.engine.witness import (
    Cause,
    Doubted,
    Held,
    Record,
    Stands,
    Store,
    WitnessConflict,
    WitnessUnreachable,
    WitnessUnreadable,
    doubt_of,
    next_record,
)

log = structlog.get_logger(__name__)

_TRIES = 8
_BETWEEN_TICKS = 1.0
_AFTER_A_SEND = 0.25
_BETWEEN_WRITES = 5.0


class WrongWitness(PublisherError):
    """The witness speaks of another deployment; the sentence says what to do."""

    code = "wrong-witness"


@dataclass(slots=True)
class Guard:
    """One process's dealings with the witness.

    ``step``: how far the tick may go on one record. ``absent_after``: seconds after which nothing
    that an earlier life of this database sent can arrive any more. ``ceiling``: what the witness
    is known to allow; ``floor``: the highest tick that was seen. ``loss``: the last loss of commits
    that this process knows of.
    """

    store: Store
    step: int = 60
    absent_after: float = 420.0
    who: str = "worker"
    alarm: Alarm = by_log
    ceiling: int = 0
    floor: int = 0
    loss: datetime | None = None
    _has_compared: bool = False
    _ticked_at: float = -math.inf
    _told_at: float = -math.inf
    _has_sent: bool = False
    _opened: set[Cause] = field(default_factory=set)
    _thread: ThreadPoolExecutor = field(default_factory=partial(ThreadPoolExecutor, 1, "witness"))
    _under_way: Future[Held | None] | Future[Record] | None = None

    def admit(
        self, conn: Conn, *, known: Cause | None = None, since: datetime | None = None
    ) -> None:
        """Compare, before anything is claimed on this connection, and bring both to agree.

        ``known``: why the database lacks sends, and ``since`` when, even where nothing shows it.
        Raises ``WitnessUnreachable`` (then nothing may be claimed; try again), ``WrongWitness``,
        ``psycopg.Error``.
        """
        given = None if known is None else Doubted(known, strict=True)
        self.ceiling = 0
        if not self._has_compared:
            self.loss, self._has_compared = ledger.newest_loss(conn), True
        for tried in range(_TRIES):
            try:
                held = self.store.read()
                stands = ledger.stands(conn)
                doubt = given or self._went_back(stands) or self._doubt(stands, held)
                # What others did between the two readings is no sign of a loss.
                if doubt is not None and doubt is not given and self.store.read() != held:
                    continue
            except WitnessUnreadable as error:
                self._start_anew(conn, error, given, since)
                return
            if doubt is not None:
                record = None if held is None else held.record
                self._quarantine(conn, doubt, record, since)
                given = None
            elif tried and held is not None:
                # Another process was quicker, and its record is as good as ours.
                self._agreed(held.record, stands.tick)
                return
            try:
                self._write(conn, held)
            except WitnessConflict:
                continue
            return
        message = f"The witness {self.store.name} changes faster than it is read. Trying again."
        raise WitnessUnreachable(message)

    def beat(self, conn: Conn, *, has_sent: bool = False) -> bool:
        """Raise the tick about once a second, and have the witness told in time.

        ``has_sent``: something was begun since the last beat. Then it is raised sooner: a database
        restored under a living connection is noticed by its tick, so what was sent since the last
        raise is what could go unnoticed. Returns False where the database went back so, also where
        somebody else found it first; what was due is in quarantine then, and whatever this process
        remembers of the database must be read anew. Raises ``psycopg.Error``,
        ``WitnessUnreachable``, ``WrongWitness``.
        """
        self._go_on(conn)
        now = boottime()
        apart = _AFTER_A_SEND if has_sent or self._has_sent else _BETWEEN_TICKS
        if now - self._ticked_at < apart:
            self._has_sent |= has_sent
            return True
        self._ticked_at, self._has_sent = now, False
        tick = ledger.raise_tick(conn, ceiling=self.ceiling, apart=apart)
        went_back = tick < self.floor
        if went_back:
            self.admit(conn, known=Cause.WENT_BACK)
        # Whoever notices it first brings the count up, so that to nobody else it shows any more.
        known, self.loss = self.loss, ledger.newest_loss(conn)
        if went_back or self.loss != known:
            return False
        self.floor = tick
        low = self.ceiling - tick <= self.step / 2
        if low and self._under_way is None and now - self._told_at >= _BETWEEN_WRITES:
            self._told_at = now
            self._under_way = self._thread.submit(self.store.read)
        return True

    @property
    def may_claim(self) -> bool:
        """Whether the witness allows the database to go on."""
        return self.floor < self.ceiling

    def close(self, conn: Conn | None) -> None:
        """Leave a record that no backup made before this run's last sends agrees with.

        Compared first, as always: it may have been put back since the last beat.
        """
        self._thread.shutdown(wait=True)
        if conn is None or conn.closed or conn.broken:
            return
        try:
            self.admit(conn)
        except (PublisherError, DatabaseTrouble) as error:
            log.warning("witness.not_told", witness=self.store.name, error=str(error))

    def _went_back(self, stands: Stands) -> Doubted | None:
        """Whether this process saw the database further than it is: restored meanwhile."""
        return Doubted(Cause.WENT_BACK, strict=True) if stands.tick < self.floor else None

    def _doubt(self, stands: Stands, held: Held | None) -> Doubted | None:
        if held is not None and held.record.deployment != stands.deployment:
            message = (
                f"The witness {self.store.name} speaks of deployment {held.record.deployment}; "
                f"this database is {stands.deployment}. Give each deployment a witness of its own "
                "(PUBLISHER_WITNESS)."
            )
            raise WrongWitness(message)
        return doubt_of(stands, None if held is None else held.record, step=self.step)

    def _quarantine(
        self, conn: Conn, doubt: Doubted, record: Record | None, since: datetime | None = None
    ) -> None:
        if record is None and doubt.cause in self._opened:
            return  # already, and the witness could not be told yet
        with conn.transaction():
            opened = ledger.open_quarantine(
                conn,
                doubt.cause,
                strict=doubt.strict,
                absent_after=self.absent_after,
                who=self.who,
                since=since,
                witnessed=record,
            )
            if opened is not None and doubt.strict and doubt.cause is not Cause.DECLARED:
                mark = str(opened.id)
                self.alarm(conn, Alert(Incident.QUARANTINE, mark=mark, detail=doubt.cause))
        self._opened.add(doubt.cause)
        self.floor = 0
        if opened is not None:
            log.log(_level(doubt), "quarantine.opened", cause=doubt.cause, jobs=opened.jobs)

    def _start_anew(
        self, conn: Conn, error: WitnessUnreadable, given: Doubted | None, since: datetime | None
    ) -> None:
        """A damaged witness says nothing, so anything may be missing; a new one takes its place."""
        log.error("witness.unreadable", witness=self.store.name, error=str(error), alert=True)
        doubt = given or Doubted(Cause.UNREADABLE, strict=True)
        self._quarantine(conn, doubt, None, since)
        record = self._next(conn, None)
        self.store.replace(record)
        self._agreed(record, record.tick - self.step)

    def _write(self, conn: Conn, held: Held | None) -> None:
        record = self._next(conn, held)
        self.store.write(record, over=None if held is None else held.stamp)
        self._agreed(record, record.tick - self.step)

    def _next(self, conn: Conn, held: Held | None) -> Record:
        """The record that is written next; its mark is noted and committed first."""
        mark = secrets.token_hex(8)
        tick = ledger.note_mark(conn, mark, given=None if held is None else held.record.mark)
        return next_record(ledger.stands(conn), mark, tick=tick, step=self.step)

    def _agreed(self, record: Record, tick: int) -> None:
        self._opened.clear()
        self.ceiling = record.tick
        self.floor = max(self.floor, tick)

    def _go_on(self, conn: Conn) -> None:
        """Take the next step of telling the witness; a thread reads and writes it.

        A network may be slow, and leases wait for the coordinator.
        """
        if self._under_way is None or not self._under_way.done():
            return
        ended, self._under_way = self._under_way, None
        try:
            told = ended.result()
        except WitnessUnreadable:
            self.admit(conn)
        except WitnessConflict:
            self._told_at = -math.inf
        except PublisherError as error:
            log.error("witness.not_told", witness=self.store.name, error=str(error), alert=True)  # noqa: TRY400
        else:
            if isinstance(told, Record):
                self._agreed(told, 0)
            elif self._doubt(ledger.stands(conn), told) is not None:
                self.admit(conn)
            else:
                self._under_way = self._thread.submit(self._put, self._next(conn, told), told)

    def _put(self, record: Record, held: Held | None) -> Record:
        self.store.write(record, over=None if held is None else held.stamp)
        return record


def _level(doubt: Doubted) -> int:
    """How loud it is said: whoever announced it knows."""
    if doubt.cause is Cause.DECLARED:
        return logging.INFO
    return logging.CRITICAL if doubt.strict else logging.WARNING
