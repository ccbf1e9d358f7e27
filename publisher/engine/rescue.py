"""Take over from workers that are gone: by their locked file at once, by their leases in time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import psycopg
import structlog

from publisher.engine import ledger, retry
from publisher.engine.job import Token
from publisher.engine.ledger import Unsettled
from publisher.engine.outcome import Deferred, Outcome, Proof, Reason
from publisher.engine.points import Point, Probe, unwatched
from publisher.engine.retry import Policy, Standing
from publisher.engine.spool import Record, Trace, abandoned, boot_id

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Rescue:
    """What every worker does for the others, again and again.

    ``own``: this worker's file, which is left alone. ``grace``: seconds after the end of a lease.
    """

    folder: Path
    policy: Policy
    grace: float
    who: str
    own: Path | None = None
    at: Probe = unwatched

    def leases(self, conn: psycopg.Connection[Any]) -> bool:
        """Take jobs whose lease is long over, and end those whose useful time is."""
        self.at(Point.BEFORE_RESCUE)
        rescued = ledger.rescue(conn, grace=self.grace, deaths=self.policy.deaths, who=self.who)
        self.at(Point.AFTER_RESCUE)
        _tell(rescued)
        missed = ledger.expire(conn, who=self.who)
        if missed:
            log.warning("jobs.missed", jobs=len(missed))
        return bool(rescued or missed)

    def spools(self, conn: psycopg.Connection[Any], now: datetime) -> bool:
        """Read the files of worker runs of this machine that are proved to be over.

        Their locked file is the proof. Without a ``start`` line, in a whole file and on the same
        boot, an attempt was not sent; with an ``answer`` line it is settled from that; anything
        else stays a doubt. A file goes away only when the database holds all that it says.
        """
        deployment = ledger.deployment_id(conn)
        found = False
        for file in abandoned(self.folder, but=self.own):
            try:
                record = file.read()
                if record is None:
                    log.info("spool.without_head", file=file.path.name)
                    file.set_aside()
                    continue
                if record.deployment != deployment:
                    log.warning("spool.of_another_deployment", file=file.path.name)
                    file.leave()
                    continue
                found |= self._replay(conn, record, now)
            except BaseException:
                file.leave()
                raise
            file.remove()
        return found

    def _replay(self, conn: psycopg.Connection[Any], record: Record, now: datetime) -> bool:
        rebooted = record.boot != boot_id()
        unsettled = ledger.unsettled_of(conn, record.incarnation)
        complete = record.whole and not rebooted
        for attempt in unsettled:
            trace = record.traces.get(attempt.token)
            outcome = _outcome(attempt, trace, complete=complete)
            if outcome is not None:
                self._settle(conn, attempt, outcome, now)
        known = {attempt.token for attempt in unsettled}
        for token, trace in record.traces.items():
            if token not in known and trace.opened is not None and trace.started:
                self._late_or_lost(conn, record, token, trace, now)
        rescued = ledger.forsake(conn, record.incarnation, deaths=self.policy.deaths, who=self.who)
        _tell(rescued)
        why = "its machine was restarted" if rebooted else "its file could be locked"
        ledger.end(conn, record.incarnation, why)
        log.info(
            "spool.read",
            worker_run=record.incarnation,
            attempts=len(record.traces),
            unsettled=len(unsettled),
            whole=record.whole,
            rebooted=rebooted,
        )
        return bool(unsettled or rescued)

    def _settle(
        self, conn: psycopg.Connection[Any], attempt: Unsettled, outcome: Outcome, now: datetime
    ) -> None:
        if isinstance(outcome, Deferred) and outcome.reason is Reason.NOT_STARTED:
            settlement = retry.not_sent(outcome.reason, outcome.detail, self.policy.first)
        else:
            standing = _standing(outcome, attempt.failures, attempt.ends_at)
            settlement = retry.settle(outcome, standing, self.policy, now)
        late = ledger.record_late(
            conn, attempt.job_id, attempt.token, settlement, who=self.who, event="spool_read"
        )
        log.info("job.spool_read", job_id=attempt.job_id, by=settlement.event, became=late)
        if late is ledger.Late.LOCKED:
            message = "a job is held by another transaction just now"
            raise BlockedError(message)

    def _late_or_lost(
        self,
        conn: psycopg.Connection[Any],
        record: Record,
        token: Token,
        trace: Trace,
        now: datetime,
    ) -> None:
        """Treat a started send that is not among the unsettled.

        It was settled long since, or the database lost it.
        """
        assert trace.opened is not None  # noqa: S101 - for the type checker
        opened = trace.opened
        if trace.outcome is not None:
            standing = _standing(trace.outcome, 0, now)
            end = retry.settle(trace.outcome, standing, self.policy, now)
            late = ledger.record_late(
                conn, opened.job_id, token, end, who=self.who, event="spool_read"
            )
            if late is ledger.Late.LOCKED:
                message = "a job is held by another transaction just now"
                raise BlockedError(message)
            if late is not ledger.Late.NO_ATTEMPT:
                return
        elif ledger.has_attempt(conn, opened.job_id, token):
            return
        doubted = ledger.spool_found(
            conn,
            job_id=opened.job_id,
            attempt=opened.attempt,
            token=token,
            incarnation=record.incarnation,
            line={"started": True, "outcome": str(trace.outcome)},
            who=self.who,
        )
        log.error("spool.found", job_id=opened.job_id, doubted=doubted, alert=True)


class BlockedError(Exception):
    """Someone holds a row the replay needs; the file stays and is read again."""


def _outcome(attempt: Unsettled, trace: Trace | None, *, complete: bool) -> Outcome | None:
    """What a file proves about an attempt, or None where it proves nothing.

    An attempt that its own worker settled as unknown had been started, whatever a file without
    its lines may look like: only one that nobody settled, or that rescue did, can be *not sent*.
    """
    if trace is not None and trace.outcome is not None:
        return trace.outcome
    if complete and attempt.only_rescue_settled and (trace is None or not trace.started):
        return Deferred(Reason.NOT_STARTED, "the worker ended before it called the platform")
    return None


def _standing(outcome: Outcome, failures: int, ends_at: datetime) -> Standing:
    """An answer in a file was held against its permit before it was written there."""
    not_sent = isinstance(outcome, Deferred) and outcome.proof is Proof.NOT_SENT
    return Standing(failures=failures, ends_at=ends_at, begun=True, sent=not not_sent)


def _tell(rescued: tuple[ledger.Rescued, ...]) -> None:
    if rescued:
        doubts = sum(job.state == "unknown" for job in rescued)
        log.warning("jobs.rescued", jobs=len(rescued), unknown=doubts, alert=doubts > 0)
