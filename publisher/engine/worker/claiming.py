"""Claim what fits: as many as this worker's hands will soon be free for, fairly."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
import structlog

from publisher.engine import ledger, retry
from publisher.engine.adapter import boottime
from publisher.engine.errors import NotFound
from publisher.engine.ledger import Claim, Claimed
from publisher.engine.ledger.claim import next_due
from publisher.engine.outcome import Reason
from publisher.engine.points import Point
from publisher.engine.worker.held import Held, current_progress
from publisher.engine.worker.preparing import Preparing
from publisher.engine.worker.station import Station

log = structlog.get_logger(__name__)

_NO_ADAPTER_PAUSE = 60.0
_BREATH = 0.02
"""Seconds in which a claim that took all there was is not repeated, unless something happened."""


@dataclass(slots=True)
class Claiming:
    """Takes jobs up. ``after``: the channel where the last claim ended; ``suspects``: one waits.

    Boot clock: until ``not_before`` a claim would find nothing, unless something ``happened``
    since; ``due_at`` is when the next job is due, as of ``looked_at``; ``wake_at`` is when the next
    claim is to be made whatever happens.
    """

    station: Station
    preparing: Preparing
    after: int = 0
    suspects: bool = False
    not_before: float = 0.0
    happened: int = -1
    due_at: float = math.inf
    looked_at: float = -math.inf
    wake_at: float = math.inf

    def wait_at_most(self) -> float:
        """Seconds until a claim is to be made although nothing happens; told once a claim."""
        seconds, self.wake_at = self.wake_at - boottime(), math.inf
        return max(0.0, seconds)

    def claim(self, conn: psycopg.Connection[Any]) -> bool:
        """Claim up to twice as many jobs as there are hands; returns whether any came."""
        held = self.station.stock.held
        room = 2 * self.station.hands.size - len(held)
        if room <= 0 or any(one.job.deaths for one in held.values()):
            return False
        if self.suspects:
            # One that a worker died over is claimed when nothing else is held, so that it can
            # take no other with it.
            if held:
                return False
            self.suspects = self._claim(conn, limit=1, suspect=True) > 0
            return True
        rest_until = min(self.not_before, self.due_at)
        if self.happened == self.station.stock.happened and boottime() < rest_until:
            self.wake_at = rest_until
            return False
        self.happened = self.station.stock.happened
        return self._claim(conn, limit=room, suspect=False) > 0

    def _claim(self, conn: psycopg.Connection[Any], *, limit: int, suspect: bool) -> int:
        self.station.at(Point.BEFORE_CLAIM)
        now = boottime()
        claimed = ledger.claim(
            conn,
            incarnation=self.station.incarnation,
            queues=self.station.queues,
            limit=limit,
            lease=self.station.timing.lease,
            after=0 if suspect else self.after,
            suspect=suspect,
            floor=self.station.floor,
            file=self.station.spool.path.name,
        )
        self.station.at(Point.AFTER_CLAIM)
        if not suspect:
            began, self.after = self.after, claimed.after
            if began > 0 and claimed.after == 0 and not claimed.jobs:
                return self._claim(conn, limit=limit, suspect=False)
            self._plan(conn, claimed, now, is_all=began == 0 and claimed.whole)
        if claimed.jobs:
            log.info("jobs.claimed", jobs=len(claimed.jobs))
            self._take_up(conn, claimed.jobs, now)
        return len(claimed.jobs)

    def _plan(
        self, conn: psycopg.Connection[Any], claimed: Claim, now: float, *, is_all: bool
    ) -> None:
        """Decide when to claim again."""
        self.not_before = now + _BREATH if is_all else 0.0
        poll = self.station.timing.poll
        if claimed.jobs or not is_all:
            self.wake_at = now + _BREATH
            return
        if now - self.looked_at >= poll or self.due_at <= now:
            self.looked_at, self.due_at = now, math.inf
            due = next_due(conn, self.station.queues, since=claimed.at, within=poll)
            if due is not None:
                self.due_at = boottime() + due
        self.wake_at = self.due_at

    def _take_up(self, conn: psycopg.Connection[Any], jobs: Sequence[Claimed], now: float) -> None:
        stale = {
            job.channel_id
            for job in jobs
            if (known := self.station.channels.get(job.channel_id)) is None
            or known.generation != job.generation
        }
        if stale:
            self.station.channels.update(ledger.channels(conn, sorted(stale)))
        begun = [job.id for job in jobs if job.attempts]
        earlier = ledger.earlier_attempts(conn, begun) if begun else {}
        new = [job.id for job in jobs if job.replaces is not None]
        before = ledger.replaced_by(conn, new) if new else {}
        for job in jobs:
            channel = self.station.channels[job.channel_id]
            try:
                adapter = self.station.registry.adapter(channel.platform)
            except NotFound as error:
                log.error("job.no_adapter", job=job.key, error=str(error))  # noqa: TRY400
                end = retry.release(Reason.NO_ADAPTER, _NO_ADAPTER_PAUSE)
                self.station.stock.ends[job.id, job.token] = end
                continue
            held = Held(
                job=job,
                channel=channel,
                adapter=adapter,
                lease_at=now,
                progress=current_progress(job),
                earlier=earlier.get(job.id, ()),
                before=before.get(job.id, ()),
            )
            self.station.stock.held[job.id] = held
            if self.preparing.replacing.taken_up(held):
                self.preparing.route(held)
