"""What a coordinator does every few seconds: heartbeat, clock, leases, and the workers gone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import structlog

from publisher.engine import ledger
from publisher.engine.adapter import boottime
from publisher.engine.rescue import Rescue
from publisher.engine.worker.claiming import Claiming
from publisher.engine.worker.station import Station

log = structlog.get_logger(__name__)

_CLOCKS_MAY_PART = 5.0


class ClocksPartedError(Exception):
    """Database time and boot time do not run alike, so no lease can be believed."""


@dataclass(slots=True)
class Chores:
    """Keeps the database's clock, too: everything else asks ``now`` here."""

    station: Station
    claiming: Claiming
    rescue: Rescue
    beat: ledger.Beat | None = None
    beat_at: float = 0.0
    beat_took: float = 0.0

    def now(self) -> datetime:
        """The database's clock, carried on from the last heartbeat by the boot clock."""
        if self.beat is None:
            return datetime.now(UTC)
        return self.beat.now + timedelta(seconds=boottime() - self.beat_at)

    def do(self, conn: psycopg.Connection[Any]) -> bool:
        """Do what is due. Raises ``ClocksPartedError``; then nothing may be believed."""
        started = boottime()
        if self.beat is not None and started - self.beat_at < self.station.timing.beat_every:
            return False
        beat = ledger.beat(
            conn,
            self.station.incarnation,
            gap=self.station.timing.lease,
            pause=self.station.timing.publish_lease,
        )
        self._compare_clocks(beat, started)
        self.beat, self.beat_at, self.beat_took = beat, started, boottime() - started
        self._extend_leases(conn)
        self.claiming.preparing.pick_up_strays()
        self.claiming.suspects = ledger.suspects_wait(conn, self.station.queues)
        worked = self.rescue.spools(conn, beat.now)
        if beat.may_rescue:
            worked |= self.rescue.leases(conn)
        return self._backlog(conn, may_miss=beat.may_rescue) or worked

    def _backlog(self, conn: psycopg.Connection[Any], *, may_miss: bool) -> bool:
        """Look after what a standstill left; until that is done its channels are closed."""
        who = self.station.who
        if held := ledger.sort_backlog(conn, who=who):
            log.warning("backlog.held", jobs=held)
        released = ledger.release_backlog(conn, who=who)
        missed = ledger.miss_backlog(conn, who=who) if may_miss else frozenset()
        if missed:
            log.warning("backlog.missed", jobs=len(missed))
        if released:
            self.station.stock.happened += 1
        return bool(held or released or missed)

    def _compare_clocks(self, beat: ledger.Beat, started: float) -> None:
        if self.beat is None:
            return
        # Each beat's instant lies somewhere between the question and the answer.
        apart = (beat.now - self.beat.now).total_seconds() - (started - self.beat_at)
        took = boottime() - started
        if not -_CLOCKS_MAY_PART - self.beat_took <= apart <= _CLOCKS_MAY_PART + took:
            message = f"database time and this machine's parted by {apart:.1f} s"
            raise ClocksPartedError(message)

    def _extend_leases(self, conn: psycopg.Connection[Any]) -> None:
        now = boottime()
        stock = self.station.stock
        due = [
            held
            for held in stock.held.values()
            if held.permit is None
            and held.key not in stock.ends
            and now - held.lease_at >= self.station.timing.lease / 3
        ]
        if not due:
            return
        extended = ledger.extend_leases(
            conn, [held.key for held in due], lease=self.station.timing.lease
        )
        missing = [held.key for held in due if held.id not in extended]
        ours = ledger.still_ours(conn, missing) if missing else frozenset()
        for held in due:
            if held.id in extended:
                held.lease_at = now
            elif held.id not in ours:
                self.station.lose(held)
