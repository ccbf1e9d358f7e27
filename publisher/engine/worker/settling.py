"""Settle what finished, late answers included, and let channels rest for it.

One statement for a whole set. One row the database refuses by itself keeps nobody else's answer
from being written.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import psycopg
import structlog

from publisher.engine import ledger, retry
from publisher.engine.alert import Alert, Incident
from publisher.engine.job import State, Token
from publisher.engine.ledger import Key
from publisher.engine.outcome import Reason
from publisher.engine.points import Point
from publisher.engine.retry import Rest, Settlement
from publisher.engine.tally import Count
from publisher.engine.worker.held import Held
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
        batch = dict(stock.ends)
        if len(batch) > _SET:
            batch = dict(list(batch.items())[:_SET])
        self._space(conn, batch)
        self._tell(conn, batch)
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

    def _space(self, conn: psycopg.Connection[Any], batch: dict[Key, Settlement]) -> None:
        """Close the gates of channels with spacing for what was or may have been posted.

        While a send is unsettled it fills its channel, so with this before the settle there is no
        moment between, whoever dies when. It keeps no answer from being written: a gate that
        somebody holds is closed afterwards.
        """
        rests: dict[tuple[int, int], Rest] = {}
        for (job_id, token), end in batch.items():
            held = self.station.stock.held.get(job_id)
            if held is None or held.job.token != token or held.job.spacing <= 0:
                continue
            if held.permit is not None and end.proof is None:
                rests[held.channel.id, held.channel.generation] = Rest(held.job.spacing)
        if not rests:
            return
        try:
            ledger.rest_channels(conn, rests)
        except psycopg.errors.LockNotAvailable:
            for place, rest in rests.items():
                self.station.stock.rest(place, rest)

    def _tell(self, conn: psycopg.Connection[Any], batch: dict[Key, Settlement]) -> None:
        """Tell people of what will wait for them; before it is written, so that nobody is spared.

        A crash in between tells of it again, which is once by the alert's own key.
        """
        for (job_id, _), end in batch.items():
            if end.reason == Reason.REPLACED_UNCLEAR:
                alert = Alert(Incident.REPLACED, job_id=job_id, detail=end.detail)
                self.station.alarm(conn, alert)

    def _settle_one_by_one(
        self, conn: psycopg.Connection[Any], batch: dict[Key, Settlement]
    ) -> bool:
        for key, end in batch.items():
            try:
                self._settled(conn, {key: end}, ledger.settle(conn, {key: end}))
            except Exception as error:
                if not is_about_the_data(conn, error):
                    raise
                self._park(conn, key, end, error)
        return True

    def _park(
        self, conn: psycopg.Connection[Any], key: Key, end: Settlement, error: Exception
    ) -> None:
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
        self.station.alarm(
            conn, Alert(Incident.PARKED, job_id=key[0], mark=str(key[1]), detail=end.detail)
        )
        self._finish(key)

    def _count(self, held: Held, end: Settlement, now: datetime, *, foreign: bool) -> None:
        """Keep the numbers that the metrics endpoint shows."""
        if end.outcome is None:
            return
        outcome = "unknown" if foreign else end.outcome
        platform = held.channel.platform
        self.station.tally.count(Count.OUTCOMES, outcome, end.reason or "", platform)
        if outcome == "published":
            self.station.tally.late((now - held.job.due_at).total_seconds(), platform)

    def _settled(
        self,
        conn: psycopg.Connection[Any],
        batch: dict[Key, Settlement],
        settled: ledger.Settled,
    ) -> None:
        forgotten: list[Token] = []
        told = log.bind()  # once: an unbound logger is bound anew by every call
        now, as_asked = self.station.now(), settled.as_asked
        for key, end in batch.items():
            if not as_asked and not self._is_done(conn, key, end, settled):
                continue
            job_id, token = key
            foreign = not as_asked and key in settled.foreign
            held = self.station.stock.held.get(job_id)
            if held is not None:
                self._count(held, end, now, foreign=foreign)
            told.debug("job.settled", job_id=job_id, by=end.event, state=end.state)
            if end.state is not State.UNKNOWN and not foreign:
                # A doubt is never forgotten: a file without its lines would read "not started".
                forgotten.append(token)
            self._finish(key)
        self.station.spool.forget(forgotten)
        if settled.done:
            log.info("jobs.settled", jobs=len(settled.done))

    def _is_done(
        self,
        conn: psycopg.Connection[Any],
        key: Key,
        end: Settlement,
        settled: ledger.Settled,
    ) -> bool:
        """Whether this end was written; tells of what else became of it."""
        job_id, token = key
        if key in settled.locked:
            return False
        if key in settled.stale:
            self._was_late(conn, key, end)
            return False
        if key in settled.foreign:
            log.error("job.id_of_another_job", job_id=job_id, remote_id=end.remote_id, alert=True)
        if key in settled.live:
            log.error("job.earlier_attempt_is_live", job_id=job_id, alert=True)
            if end.outcome == "published":
                self.station.alarm(conn, Alert(Incident.LIVE, job_id=job_id, mark=str(token)))
        return True

    def _was_late(self, conn: psycopg.Connection[Any], key: Key, end: Settlement) -> None:
        """Keep the answer of a job that was taken away; it comes again while the row is locked."""
        job_id, token = key
        if end.outcome is None:
            self._finish(key)
            return
        try:
            with conn.transaction():
                late = ledger.record_late(
                    conn, job_id, end.about or token, end, who=self.station.who
                )
                if late is ledger.Late.KEPT_ALERT:
                    log.error("job.live_against_the_journal", job_id=job_id, alert=True)
                    self.station.alarm(conn, Alert(Incident.LIVE, job_id=job_id, mark=str(token)))
            if late is ledger.Late.NO_ATTEMPT and end.may_be_live and end.about is None:
                self._doubt(conn, key, end)
        except Exception as error:
            if not is_about_the_data(conn, error):
                raise
            self._park(conn, key, end, error)
            return
        if late is ledger.Late.LOCKED:
            return
        self.station.tally.count(Count.LATE_ANSWERS, late)
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
        if held is not None and (held.job.token is token or held.job.token == token):
            self.station.stock.drop(job_id)

    def rest(self, conn: psycopg.Connection[Any]) -> bool:
        """Close gates for a while, or until a person reconnects."""
        rests = self.station.stock.rests
        if not rests:
            return False
        with conn.transaction():
            ledger.rest_channels(conn, rests)
            for (channel_id, _), rest in rests.items():
                if rest.blocked is not None:
                    log.error("channel.blocked", channel_id=channel_id, reason=rest.blocked)
                    self.station.alarm(
                        conn,
                        Alert(Incident.BLOCKED, channel_id=channel_id, detail=rest.blocked),
                    )
        rests.clear()
        return True
