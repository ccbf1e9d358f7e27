"""Settle what finished, late answers included, and let channels rest for it.

One statement for a whole set. One row the database refuses by itself keeps nobody else's answer
from being written.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import psycopg
import structlog

from publisher.engine import ledger, retry
from publisher.engine.job import State
from publisher.engine.ledger import Key
from publisher.engine.points import Point
from publisher.engine.retry import Settlement
from publisher.engine.worker.station import Station, first_line, is_about_the_data

log = structlog.get_logger(__name__)

_SET = 1000


@dataclass(slots=True)
class Settling:
    """Writes how claims and attempts ended."""

    station: Station

    def settle(self, conn: psycopg.Connection[Any]) -> bool:
        """Write how jobs ended; returns whether anything was written."""
        stock = self.station.stock
        if not stock.ends:
            return False
        batch = dict(list(stock.ends.items())[:_SET])
        self.station.at(Point.BEFORE_SETTLE)
        try:
            settled = ledger.settle(conn, batch)
        except Exception as error:
            if not is_about_the_data(conn, error):
                raise
            log.warning("settle.set_failed", jobs=len(batch), error=first_line(error))
            return self._settle_one_by_one(conn, batch)
        self.station.at(Point.AFTER_SETTLE)
        self._settled(conn, batch, settled)
        return bool(settled.done or settled.stale)

    def _settle_one_by_one(
        self, conn: psycopg.Connection[Any], batch: dict[Key, Settlement]
    ) -> bool:
        for key, end in batch.items():
            try:
                self._settled(conn, {key: end}, ledger.settle(conn, {key: end}))
            except Exception as error:
                if not is_about_the_data(conn, error):
                    raise
                self._park(key, end, error)
        return True

    def _park(self, key: Key, end: Settlement, error: Exception) -> None:
        """Give up writing an end that the database refuses by itself.

        The job's lease runs out and rescue makes a doubt of it; this line and the spool, which
        stays where it is, hold what the platform said.
        """
        self.station.parked += 1
        log.error(
            "job.parked",
            job_id=key[0],
            by=end.event,
            outcome=end.outcome,
            remote_id=end.remote_id,
            why=end.detail,
            error=first_line(error),
            alert=True,
        )
        self._finish(key)

    def _settled(
        self,
        conn: psycopg.Connection[Any],
        batch: dict[Key, Settlement],
        settled: ledger.Settled,
    ) -> None:
        for key, end in batch.items():
            job_id, token = key
            if key in settled.locked:
                continue
            if key in settled.stale:
                self._was_late(conn, key, end)
                continue
            if key in settled.foreign:
                log.error(
                    "job.id_of_another_job", job_id=job_id, remote_id=end.remote_id, alert=True
                )
            if key in settled.live:
                log.error("job.earlier_attempt_is_live", job_id=job_id, alert=True)
            log.debug("job.settled", job_id=job_id, by=end.event, state=end.state)
            if end.state is not State.UNKNOWN and key not in settled.foreign:
                # A doubt is never forgotten: a file without its lines would read "not started".
                self.station.spool.forget([token])
            self._finish(key)
        if settled.done:
            log.info("jobs.settled", jobs=len(settled.done))

    def _was_late(self, conn: psycopg.Connection[Any], key: Key, end: Settlement) -> None:
        """Keep the answer of a job that was taken away; it comes again while the row is locked."""
        job_id, token = key
        if end.outcome is None:
            self._finish(key)
            return
        try:
            late = ledger.record_late(conn, job_id, end.about or token, end, who=self.station.who)
            if late is ledger.Late.NO_ATTEMPT and end.may_be_live and end.about is None:
                self._doubt(conn, key, end)
        except Exception as error:
            if not is_about_the_data(conn, error):
                raise
            self._park(key, end, error)
            return
        if late is ledger.Late.LOCKED:
            return
        if late is ledger.Late.KEPT_ALERT:
            log.error("job.live_against_the_journal", job_id=job_id, alert=True)
        log.info("job.late_answer", job_id=job_id, outcome=end.outcome, became=late)
        if late in {ledger.Late.MOVED, ledger.Late.KNOWN} and end.state is not State.UNKNOWN:
            self.station.spool.forget([token])
        self._finish(key)

    def _doubt(self, conn: psycopg.Connection[Any], key: Key, end: Settlement) -> None:
        """We sent under an attempt that the database no longer holds: it lost commits."""
        self.station.parked += 1
        doubted = ledger.spool_found(
            conn,
            job_id=key[0],
            attempt=end.attempt or 0,
            token=key[1],
            incarnation=self.station.incarnation,
            line={"outcome": end.outcome, "remote_id": end.remote_id, "why": end.detail},
            who=self.station.who,
        )
        log.error("job.attempt_lost_by_the_database", job_id=key[0], doubted=doubted, alert=True)

    def lost_attempts(self, conn: psycopg.Connection[Any]) -> bool:
        """Doubt the jobs of sends under way that the database no longer holds."""
        sends = [held for held in self.station.stock.held.values() if held.permit is not None]
        if not sends:
            return False
        keys = [(h.id, h.permit.attempt, h.job.token) for h in sends if h.permit is not None]
        known = ledger.known_attempts(conn, keys)
        lost = [key for key in keys if key[2] not in known]
        for job_id, attempt, token in lost:
            doubt = retry.lost_by_the_database(attempt)
            self._doubt(conn, (job_id, token), doubt)
        return bool(lost)

    def _finish(self, key: Key) -> None:
        job_id, token = key
        self.station.stock.ends.pop(key, None)
        held = self.station.stock.held.get(job_id)
        if held is not None and held.job.token == token:
            self.station.stock.drop(job_id)

    @property
    def _who(self) -> str:
        return f"worker run {self.station.incarnation}"

    def rest(self, conn: psycopg.Connection[Any]) -> bool:
        """Close gates for a while, or until a person reconnects."""
        rests = self.station.stock.rests
        if not rests:
            return False
        ledger.rest_channels(conn, rests)
        for (channel_id, _), rest in rests.items():
            if rest.blocked is not None:
                log.error("channel.blocked", channel_id=channel_id, reason=rest.blocked)
        rests.clear()
        return True
