"""Take over from workers that are gone: by their locked file at once, by their leases in time."""

from __future__ import annotations

import socket
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import psycopg
import structlog

from publisher.engine import ledger, retry
from publisher.engine.alert import Alert, Incident
from publisher.engine.alerts import Alarm, by_log
from publisher.engine.job import JobId, Token
from publisher.engine.ledger import Unsettled
from publisher.engine.outcome import Deferred, Outcome, Proof, Published, Reason, outcome_json
from publisher.engine.points import Point, Probe, unwatched
from publisher.engine.retry import Policy, Settlement, Standing
from publisher.engine.spool import (
    SUFFIX,
    Abandoned,
    Opened,
    Record,
    Trace,
    abandoned,
    boot_id,
    peek,
)
from publisher.engine.tally import Count, Tally
from publisher.engine.witness import Cause

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Rescue:
    """What every worker does for the others, again and again.

    ``own``: this worker's file, which is left alone. ``grace``: seconds after the end of a lease.
    ``absent_after``: seconds after which nothing that a lost commit's worker wrote can arrive.
    """

    folder: Path
    policy: Policy
    grace: float
    who: str
    own: Path | None = None
    at: Probe = unwatched
    alarm: Alarm = by_log
    tally: Tally = field(default_factory=Tally)
    absent_after: float = 420.0

    def leases(self, conn: psycopg.Connection[Any]) -> bool:
        """Take jobs whose lease is long over, and end those whose useful time is."""
        self.at(Point.BEFORE_RESCUE)
        rescued = ledger.rescue(conn, grace=self.grace, deaths=self.policy.deaths, who=self.who)
        self.at(Point.AFTER_RESCUE)
        self._tell(rescued)
        missed = ledger.expire(conn, who=self.who)
        if missed:
            log.warning("jobs.missed", jobs=len(missed))
        return bool(rescued or missed)

    def spools(self, conn: psycopg.Connection[Any], now: datetime) -> bool:
        """Read the files of worker runs of this machine that are proved to be over.

        Their locked file is the proof. Without a ``start`` line, in a whole file and on the same
        boot, an attempt was not sent; with an ``answer`` line it is settled from that; anything
        else stays a doubt. A file goes away only when the database holds all that it says. One
        that cannot be read or written to the database is left alone, and keeps nobody else's.
        """
        found = False
        deployment: str | None = None
        for file in abandoned(self.folder, but=self.own):
            try:
                deployment = deployment or ledger.deployment_id(conn)
                found |= self._read(conn, file, deployment, now)
            except BlockedError as error:
                log.info("spool.blocked", file=file.path.name, why=str(error))
                file.leave()
            except Exception as error:
                file.leave()
                if conn.closed or conn.broken:
                    raise
                kind = type(error).__name__
                log.error("spool.unread", file=file.path.name, kind=kind, alert=True)  # noqa: TRY400
        if ledger.holds_suspects(conn):
            self._ask_the_living(conn, deployment or ledger.deployment_id(conn))
        return found

    def _ask_the_living(self, conn: psycopg.Connection[Any], deployment: str) -> None:
        """Doubt sends of runs that still hold their file, where the database lost their begin.

        A frozen one cannot tell of it, and may write on when what is doubted was long let go.
        """
        for path in sorted(self.folder.glob(f"*{SUFFIX}")):
            if path == self.own:
                continue
            try:
                record, is_held = peek(path)
            except OSError:
                continue  # it ended, and took its file with it
            if not is_held or record is None or record.deployment != deployment:
                continue
            started = [
                (trace.opened, trace)
                for trace in record.traces.values()
                if trace.opened is not None and trace.started
            ]
            known = ledger.known_attempts(
                conn, [(opened.job_id, opened.attempt, opened.token) for opened, _ in started]
            )
            for opened, trace in started:
                if opened.token not in known:
                    self._lost(conn, record, opened, trace)

    def _read(
        self, conn: psycopg.Connection[Any], file: Abandoned, deployment: str, now: datetime
    ) -> bool:
        record = file.read()
        if record is None:
            log.warning("spool.without_head", file=file.path.name)
            file.set_aside()
            return False
        if record.deployment != deployment:
            log.warning("spool.of_another_deployment", file=file.path.name)
            file.leave()
            return False
        rebooted = record.boot != boot_id()
        if rebooted and record.host != socket.gethostname():
            # On a folder that machines share a lock of ours says nothing of another's process.
            log.warning("spool.of_another_machine", file=file.path.name, host=record.host)
            file.leave()
            return False
        found = self._replay(conn, record, file.path.name, now, rebooted=rebooted)
        if record.whole:
            file.remove()
        else:
            log.error("spool.damaged", file=file.path.name, alert=True)
            file.set_aside()
        return found

    def _replay(
        self,
        conn: psycopg.Connection[Any],
        record: Record,
        name: str,
        now: datetime,
        *,
        rebooted: bool,
    ) -> bool:
        number = record.incarnation
        registered = ledger.is_registered(conn, number, file=name, boot_id=record.boot)
        # A database that was restored gives numbers out again: then this one says nothing of what
        # is held or was begun under it now, and only the file's own tokens are believed.
        unsettled = ledger.unsettled_of(conn, number) if registered else ()
        if registered:
            ledger.space(conn, number)
        for attempt in unsettled:
            trace = record.traces.get(attempt.token)
            outcome = _outcome(record, attempt, trace, rebooted=rebooted)
            if outcome is not None:
                self._settle(conn, attempt, outcome, trace, now)
        rescued: tuple[ledger.Rescued, ...] = ()
        if registered:
            rescued = ledger.forsake(conn, number, deaths=self.policy.deaths, who=self.who)
            self._tell(rescued)
        self._late_or_lost(conn, record, name, now, but={attempt.token for attempt in unsettled})
        if registered:
            if ledger.held_by(conn, number):
                message = "another transaction holds a row of it"
                raise BlockedError(message)
            why = "its machine was restarted" if rebooted else "its file could be locked"
            ledger.end(conn, number, why)
        log.info(
            "spool.read",
            worker_run=number,
            registered=registered,
            attempts=len(record.traces),
            unsettled=len(unsettled),
            whole=record.whole,
            rebooted=rebooted,
        )
        return bool(unsettled or rescued)

    def _settle(
        self,
        conn: psycopg.Connection[Any],
        attempt: Unsettled,
        outcome: Outcome,
        trace: Trace | None,
        now: datetime,
    ) -> None:
        if isinstance(outcome, Deferred) and outcome.reason is Reason.NOT_STARTED:
            settlement = retry.not_sent(outcome.reason, outcome.detail, self.policy.first)
        else:
            standing = _standing(outcome, trace, attempt.failures, attempt.ends_at)
            settlement = retry.settle(outcome, standing, self.policy, now)
        self._record(conn, attempt.job_id, attempt.token, settlement)

    def _record(
        self, conn: psycopg.Connection[Any], job_id: JobId, token: Token, end: Settlement
    ) -> ledger.Late:
        with conn.transaction():
            late = ledger.record_late(conn, job_id, token, end, who=self.who, event="spool_read")
            if late is ledger.Late.KEPT_ALERT:
                log.error("job.live_against_the_journal", job_id=job_id, alert=True)
                self.alarm(conn, Alert(Incident.LIVE, job_id=job_id, mark=str(token)))
        if late is ledger.Late.LOCKED:
            message = "another transaction holds a job of it"
            raise BlockedError(message)
        self.tally.count(Count.LATE_ANSWERS, late)
        log.info("job.spool_read", job_id=job_id, by=end.event, became=late)
        return late

    def _late_or_lost(
        self,
        conn: psycopg.Connection[Any],
        record: Record,
        name: str,
        now: datetime,
        *,
        but: set[Token],
    ) -> None:
        """Treat started sends that are not among the unsettled.

        Most were settled long since. An answer that the database lacks is brought to it; a send
        it knows nothing of is a doubt.
        """
        started = [
            (trace.opened, trace)
            for token, trace in record.traces.items()
            if trace.opened is not None and trace.started and token not in but
        ]
        known = ledger.known_attempts(
            conn, [(opened.job_id, opened.attempt, opened.token) for opened, _ in started]
        )
        if any(opened.token not in known and not _is_unsent(trace) for opened, trace in started):
            self._doubt_database(conn, record, name)
        for opened, trace in started:
            attempt = known.get(opened.token)
            if attempt is None:
                self._lost(conn, record, opened, trace)
            elif isinstance(trace.outcome, Published) and not attempt.published:
                standing = _standing(trace.outcome, trace, 0, now)
                end = retry.settle(trace.outcome, standing, self.policy, now)
                self._record(conn, opened.job_id, opened.token, end)

    def _doubt_database(self, conn: psycopg.Connection[Any], record: Record, name: str) -> None:
        """A database that lacks one begun send may lack others, of workers that left no file.

        Once for each file, and before anything of it is recorded: what cannot be held back just
        now leaves the file to be read again.
        """
        if ledger.is_quarantined_for(conn, name):
            return
        with conn.transaction():
            opened = ledger.open_quarantine(
                conn,
                Cause.SPOOL,
                strict=True,
                absent_after=self.absent_after,
                who=self.who,
                since=record.made_at,
                detail={"worker_run": record.incarnation, "file": name},
            )
            assert opened is not None  # noqa: S101 - only a witness's record is met twice
            mark = str(opened.id)
            self.alarm(conn, Alert(Incident.QUARANTINE, mark=mark, detail=Cause.SPOOL))
        log.critical("quarantine.opened", cause=Cause.SPOOL, jobs=opened.jobs, alert=True)

    def _lost(
        self, conn: psycopg.Connection[Any], record: Record, opened: Opened, trace: Trace
    ) -> None:
        """Doubt a send that the database lacks."""
        if _is_unsent(trace):
            return
        if isinstance(trace.outcome, Published) and opened.content:
            bound = ledger.publish_lost(
                conn,
                opened.job_id,
                token=opened.token,
                attempt=opened.attempt,
                content=opened.content,
                remote_id=trace.outcome.remote_id,
                permalink=trace.outcome.permalink,
                incarnation=record.incarnation,
                who=self.who,
            )
            if bound:
                log.error("spool.bound", job_id=opened.job_id, alert=True)
                return
        outcome = None if trace.outcome is None else outcome_json(trace.outcome)
        doubted = ledger.spool_found(
            conn,
            job_id=opened.job_id,
            attempt=opened.attempt,
            token=opened.token,
            incarnation=record.incarnation,
            line={"started": True, "outcome": outcome},
            who=self.who,
        )
        log.error("spool.found", job_id=opened.job_id, doubted=doubted, alert=True)

    def _tell(self, rescued: tuple[ledger.Rescued, ...]) -> None:
        if rescued:
            doubts = sum(job.state == "unknown" for job in rescued)
            log.warning("jobs.rescued", jobs=len(rescued), unknown=doubts, alert=doubts > 0)
        for job in rescued:
            self.tally.count(Count.RESCUES, job.state)


class BlockedError(Exception):
    """Someone holds a row the replay needs; the file stays and is read again."""


def _is_unsent(trace: Trace) -> bool:
    """Whether a started send proved that no byte of it was written."""
    return isinstance(trace.outcome, Deferred) and trace.outcome.proof is Proof.NOT_SENT


def _outcome(
    record: Record, attempt: Unsettled, trace: Trace | None, *, rebooted: bool
) -> Outcome | None:
    """What a file proves about an attempt, or None where it proves nothing.

    An attempt that its own worker settled as unknown had been started, whatever a file without
    its lines may look like: only one that nobody settled, or that rescue did, can be *not sent*.
    In a compacted file, whose settled lines are gone, it must also have its ``open`` line.
    """
    if trace is not None and trace.outcome is not None:
        return trace.outcome
    if rebooted or not record.whole or not attempt.only_rescue_settled:
        return None
    may_have_started = record.compacted if trace is None else trace.started or trace.opened is None
    if may_have_started:
        return None
    return Deferred(Reason.NOT_STARTED, "the worker ended before it called the platform")


def _standing(outcome: Outcome, trace: Trace | None, failures: int, ends_at: datetime) -> Standing:
    """An answer in a file was held against its permit before it was written there."""
    not_sent = isinstance(outcome, Deferred) and outcome.proof is Proof.NOT_SENT
    opened = None if trace is None else trace.opened
    return Standing(
        failures=failures,
        ends_at=ends_at,
        begun=True,
        sent=not not_sent,
        can_look=opened is not None and opened.can_look,
    )
