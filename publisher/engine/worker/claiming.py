"""Claim what fits: as many as this worker's hands will soon be free for, fairly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
import structlog

from publisher.engine import ledger, retry
from publisher.engine.adapter import boottime
from publisher.engine.errors import NotFound
from publisher.engine.ledger import Claimed
from publisher.engine.outcome import Reason
from publisher.engine.points import Point
from publisher.engine.worker.held import Held, current_progress
from publisher.engine.worker.preparing import Preparing
from publisher.engine.worker.station import Station

log = structlog.get_logger(__name__)

_NO_ADAPTER_PAUSE = 60.0


@dataclass(slots=True)
class Claiming:
    """Takes jobs up. ``after``: the channel where the last claim ended; ``suspects``: one waits."""

    station: Station
    preparing: Preparing
    after: int = 0
    suspects: bool = False

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
        )
        self.station.at(Point.AFTER_CLAIM)
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
            if (known := self.station.channels.get(job.channel_id)) is None
            or known.generation != job.generation
        }
        if stale:
            self.station.channels.update(ledger.channels(conn, sorted(stale)))
        begun = [job.id for job in jobs if job.attempts]
        earlier = ledger.earlier_attempts(conn, begun) if begun else {}
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
            )
            self.station.stock.held[job.id] = held
            self.preparing.route(held)
