"""One tick's moves: settle what finished, keep progress, begin what is ready, claim what fits.

Each is a statement of its own, caught by itself by the coordinator, so that one poisoned answer
cannot undo the others.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

import psycopg
import structlog

from publisher.engine import ledger, retry
from publisher.engine.adapter import Progress, boottime
from publisher.engine.errors import NotFound
from publisher.engine.job import Channel, JobId, State, Token
from publisher.engine.ledger import BeginUnacknowledgedError, Claimed
from publisher.engine.ledger.begin import Unbegun
from publisher.engine.outcome import Certain, Deferred, Reason
from publisher.engine.points import Point, Probe
from publisher.engine.registry import Registry
from publisher.engine.retry import Policy, Settlement
from publisher.engine.spool import Opened, Spool
from publisher.engine.worker.hands import Hands
from publisher.engine.worker.held import DoSend, Held, current_progress
from publisher.engine.worker.stock import Kept, Stock
from publisher.engine.worker.timing import Timing

log = structlog.get_logger(__name__)

_SET = 1000
_NO_ADAPTER_PAUSE = 60.0


class Begun(Exception):
    """A begin was not acknowledged: the connection must be discarded."""


@dataclass(slots=True)
class Moves:
    """The database side of a worker, on one connection at a time."""

    registry: Registry
    policy: Policy
    timing: Timing
    queues: Sequence[str]
    incarnation: int
    spool: Spool
    hands: Hands
    stock: Stock
    at: Probe
    now: Callable[[], datetime]
    channels: dict[int, Channel] = field(default_factory=dict)
    after: int = 0
    alone: bool = False

    # Settle

    def settle(self, conn: psycopg.Connection[Any]) -> bool:
        """Write how jobs ended; returns whether anything was written."""
        stock = self.stock
        if not stock.ends:
            return False
        batch = dict(list(stock.ends.items())[:_SET])
        self.at(Point.BEFORE_SETTLE)
        try:
            settled = ledger.settle(conn, batch)
        except psycopg.OperationalError:
            raise
        except psycopg.Error as error:
            if conn.closed or conn.broken:
                raise
            log.warning("settle.set_failed", jobs=len(batch), error=str(error).splitlines()[0])
            return self._settle_one_by_one(conn, batch)
        self.at(Point.AFTER_SETTLE)
        self._settled(conn, batch, settled)
        return bool(settled.done or settled.stale)

    def _settle_one_by_one(
        self, conn: psycopg.Connection[Any], batch: dict[tuple[JobId, Token], Settlement]
    ) -> bool:
        for key, end in batch.items():
            try:
                self._settled(conn, {key: end}, ledger.settle(conn, {key: end}))
            except psycopg.Error as error:
                if conn.closed or conn.broken:
                    raise
                # Parked: its lease runs out, rescue makes a doubt of it, and this line and the
                # spool hold what the platform said.
                log.exception(
                    "job.parked", job_id=key[0], by=end.event, error=str(error).splitlines()[0]
                )
                self._finish(key)
        return True

    def _settled(
        self,
        conn: psycopg.Connection[Any],
        batch: dict[tuple[JobId, Token], Settlement],
        settled: ledger.Settled,
    ) -> None:
        for key, end in batch.items():
            job_id, token = key
            if job_id in settled.locked:
                continue
            if job_id in settled.stale and not self._was_late(conn, key, end):
                continue
            if job_id in settled.foreign:
                log.error("job.id_of_another_job", job_id=job_id, remote_id=end.remote_id)
            log.debug("job.settled", job_id=job_id, by=end.event, state=end.state)
            doubtful = end.state is State.UNKNOWN or job_id in settled.foreign
            if not doubtful:
                # A doubt is never forgotten: a file without its lines would read "not started".
                self.spool.forget([token])
            self._finish(key)
        if settled.done:
            log.info("jobs.settled", jobs=len(settled.done))

    def _was_late(
        self, conn: psycopg.Connection[Any], key: tuple[JobId, Token], end: Settlement
    ) -> bool:
        """Keep the answer of a job that was taken away; False when it must come again."""
        if end.outcome is None:
            return True
        try:
            late = ledger.record_late(conn, *key, end, who=self._who)
        except psycopg.Error as error:
            if conn.closed or conn.broken:
                raise
            log.exception("late_answer.parked", job_id=key[0], error=str(error).splitlines()[0])
            return True
        if late is ledger.Late.KEPT_ALERT:
            log.error("job.live_against_the_journal", job_id=key[0], alert=True)
        log.info("job.late_answer", job_id=key[0], outcome=end.outcome, became=late)
        return late is not ledger.Late.LOCKED

    def _finish(self, key: tuple[JobId, Token]) -> None:
        job_id, token = key
        self.stock.ends.pop(key, None)
        held = self.stock.held.get(job_id)
        if held is not None and held.job.token == token:
            self.stock.drop(job_id)

    @property
    def _who(self) -> str:
        return f"worker run {self.incarnation}"

    def rest(self, conn: psycopg.Connection[Any]) -> bool:
        """Close gates for a while, or until a person reconnects."""
        rests = self.stock.rests
        if not rests:
            return False
        ledger.rest_channels(conn, rests)
        for (channel_id, _), rest in rests.items():
            if rest.blocked is not None:
                log.error("channel.blocked", channel_id=channel_id, reason=rest.blocked)
        rests.clear()
        return True

    # Steps and looks

    def keep(self, conn: psycopg.Connection[Any]) -> bool:
        """Store progress and looks; then each job goes on, or back."""
        stock = self.stock
        for looked in stock.looked:
            ledger.record_look(
                conn,
                job_id=looked.held.id,
                attempt=looked.attempt.number,
                token=looked.attempt.token,
                by=self._who,
                took=looked.took,
                evidence={"kind": type(looked.evidence).__name__, **asdict(looked.evidence)},
            )
        stock.looked.clear()
        kept = [item for item in stock.kept if stock.holds(item.held)]
        if not kept:
            stock.kept.clear()
            return False
        self.at(Point.BEFORE_SAVE_PROGRESS)
        now = boottime()
        ours = ledger.save_progress(
            conn,
            [(*item.held.key, json.dumps(item.progress)) for item in kept],
            lease=self.timing.lease,
        )
        self.at(Point.AFTER_SAVE_PROGRESS)
        stock.kept.clear()
        for item in kept:
            if item.held.id not in ours:
                self.lose(item.held)
                continue
            item.held.lease_at = now
            if item.then is not None:
                stock.end(item.held, item.then)
            else:
                self.route(item.held)
        return True

    def route(self, held: Held) -> None:
        """Put a job where its next move is made: a step, a look, or the send."""
        try:
            ready = held.adapter.prepared(held.task)
        except Exception as error:
            log.exception("prepare.broke", job=held.job.key)
            broke = Deferred(Reason.STEP_FAILED, f"preparing broke: {type(error).__name__}")
            self.end_unsent(held, broke)
            return
        if ready is None:
            self.stock.steps.append(held)
        elif held.to_look_at is not None and not held.looked and held.can_look:
            self.stock.looks.append((held, ready))
        else:
            self.stock.ready.append((held, ready))

    def end_unsent(self, held: Held, outcome: Certain) -> None:
        """End a claim whose step failed for certain."""
        standing = held.standing(begun=False)
        self.stock.end(held, retry.settle(outcome, standing, self.policy, self.now()))

    def keep_progress(self, held: Held, progress: Progress, then: Settlement | None = None) -> None:
        """Store this progress at the next tick, if it is new."""
        changed = progress != held.progress
        held.progress = progress
        if changed or then is not None:
            self.stock.kept.append(Kept(held, progress, then))
        else:
            self.route(held)

    # Begin

    def begin(self, conn: psycopg.Connection[Any]) -> bool:
        """Record the sends of as many ready jobs as hands are idle, and hand them over.

        Raises ``Begun`` when that was not acknowledged; nothing of the set is sent then.
        """
        batch = self._take_ready()
        if not batch:
            return False
        self.at(Point.BEFORE_BEGIN)
        try:
            permits = ledger.begin_send(
                conn,
                [held.key for held, _ in batch],
                lease=self.timing.publish_lease,
                window=self.timing.distrust,
                budget=self.timing.publish_timeout,
            )
        except (psycopg.Error, BeginUnacknowledgedError) as error:
            for held, _ in batch:
                self.stock.end(held, retry.begin_unacknowledged(self.policy.first))
            raise Begun(str(error)) from error
        self.at(Point.AFTER_BEGIN)
        begun = [(held, ready, permits[held.id]) for held, ready in batch if held.id in permits]
        try:
            self.spool.open(
                Opened(held.id, permit.attempt, held.job.token) for held, _, permit in begun
            )
        except OSError as error:
            log.exception("spool.failed", alert=True)
            detail = f"the second record on disk failed ({error.strerror}), so it was not sent"
            for held, _, permit in begun:
                permit.revoke()
                lost = retry.not_sent(Reason.SPOOL_FAILED, detail, self.policy.first)
                self.stock.end(held, lost)
            begun = []
        self.at(Point.AFTER_SPOOL_OPEN)
        for held, ready, permit in begun:
            if permit.content_sha256 != bytes(held.job.content_sha256):  # pragma: no cover
                permit.revoke()
                changed = "the content changed before the send, so it was not sent"
                lost = retry.not_sent(Reason.NOT_STARTED, changed, self.policy.first)
                self.stock.end(held, lost)
                continue
            held.permit = permit
            held.busy = True
            self.hands.give(DoSend(held, held.task, ready, permit))
        if begun:
            log.info("jobs.begun", jobs=len(begun))
        missing = [(held, ready) for held, ready in batch if held.id not in permits]
        if missing:
            self._not_begun(conn, missing)
        return bool(begun)

    def _take_ready(self) -> list[tuple[Held, Any]]:
        batch: list[tuple[Held, Any]] = []
        trusted_since = boottime() - self.timing.distrust
        while self.stock.ready and len(batch) < self.hands.idle:
            held, ready = self.stock.ready.popleft()
            if not self.stock.holds(held):
                continue
            if held.lease_at <= trusted_since:
                self.stock.end(held, retry.release())
                continue
            batch.append((held, ready))
        return batch

    def _not_begun(
        self, conn: psycopg.Connection[Any], missing: Sequence[tuple[Held, Any]]
    ) -> None:
        stands = {row.id: row for row in ledger.unbegun(conn, [held.id for held, _ in missing])}
        for held, ready in missing:
            row = stands.get(held.id)
            if row is None or row.token != held.job.token:
                self.lose(held)
            elif (end := _end_of(row)) is not None:
                self.stock.end(held, end)
            else:
                # Someone held the row just then; it is ours, and its turn comes again.
                self.stock.ready.append((held, ready))

    def lose(self, held: Held) -> None:
        """The job was taken from us, by a person or by rescue; nothing of it was sent."""
        log.info("job.lost", job=held.job.key)
        self.stock.drop(held.id)

    # Claim

    def claim(self, conn: psycopg.Connection[Any]) -> bool:
        """Claim up to twice as many jobs as there are hands; returns whether any came."""
        room = 2 * self.hands.size - len(self.stock.held)
        if room <= 0 or (self.alone and self.stock.held):
            return False
        if self.alone:
            found = self._claim(conn, limit=1, suspect=True)
            self.alone = found > 0
            return found > 0
        return self._claim(conn, limit=room, suspect=False) > 0

    def _claim(self, conn: psycopg.Connection[Any], *, limit: int, suspect: bool) -> int:
        self.at(Point.BEFORE_CLAIM)
        now = boottime()
        claimed = ledger.claim(
            conn,
            incarnation=self.incarnation,
            queues=self.queues,
            limit=limit,
            lease=self.timing.lease,
            after=0 if suspect else self.after,
            suspect=suspect,
        )
        self.at(Point.AFTER_CLAIM)
        if not suspect:
            wrapped = self.after > 0 and claimed.after == 0
            self.after = claimed.after
            if wrapped and not claimed.jobs:
                return self._claim(conn, limit=limit, suspect=False)
        if claimed.jobs:
            log.info("jobs.claimed", jobs=len(claimed.jobs))
            self._take_up(conn, claimed.jobs, now)
        return len(claimed.jobs)

    def _take_up(self, conn: psycopg.Connection[Any], jobs: Sequence[Claimed], now: float) -> None:
        stale = {
            job.channel_id
            for job in jobs
            if (known := self.channels.get(job.channel_id)) is None
            or known.generation != job.generation
        }
        if stale:
            self.channels.update(ledger.channels(conn, sorted(stale)))
        begun = [job.id for job in jobs if job.attempts]
        earlier = ledger.earlier_attempts(conn, begun) if begun else {}
        for job in jobs:
            channel = self.channels[job.channel_id]
            try:
                adapter = self.registry.adapter(channel.platform)
            except NotFound as error:
                log.error("job.no_adapter", job=job.key, error=str(error))  # noqa: TRY400
                end = retry.release(Reason.NO_ADAPTER, _NO_ADAPTER_PAUSE)
                self.stock.ends[job.id, job.token] = end
                continue
            held = Held(
                job=job,
                channel=channel,
                adapter=adapter,
                lease_at=now,
                progress=current_progress(job),
                earlier=earlier.get(job.id, ()),
            )
            self.stock.held[job.id] = held
            self.route(held)


def _end_of(row: Unbegun) -> Settlement | None:
    """Why a job of ours was not begun, or None when it was only locked just then."""
    if row.too_late:
        return retry.expire()
    if row.lease_over or row.gate_closed or row.not_before is not None:
        return retry.release()
    return None
