"""Begin what is ready: recorded in the database, then on disk, then handed over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
import structlog

from publisher.engine import ledger, retry
from publisher.engine.adapter import Ready, SendPermit, boottime
from publisher.engine.job import JobId
from publisher.engine.ledger import BeginUnacknowledgedError
from publisher.engine.ledger.begin import Unbegun
from publisher.engine.outcome import Reason
from publisher.engine.points import Point
from publisher.engine.retry import Settlement
from publisher.engine.spool import CONTENT_BYTES, Opened
from publisher.engine.worker.held import DoSend, Held
from publisher.engine.worker.station import Station, first_line

log = structlog.get_logger(__name__)


class BeginLostError(Exception):
    """A begin was not acknowledged: the connection must be discarded."""


@dataclass(slots=True)
class Beginning:
    """Makes the record that comes before every send. ``one_at_a_time``: sets of one, so often."""

    station: Station
    one_at_a_time: int = 0

    def begin(self, conn: psycopg.Connection[Any]) -> bool:
        """Record the sends of as many ready jobs as hands are idle, and hand them over.

        Raises ``BeginLostError`` when that was not acknowledged; nothing of the set is sent then.
        """
        batch = self._take_ready()
        if not batch:
            return False
        self.station.at(Point.BEFORE_BEGIN)
        try:
            permits = ledger.begin_send(
                conn,
                [held.key for held, _ in batch],
                lease=self.station.timing.publish_lease,
                window=self.station.timing.distrust,
                budget=self.station.timing.publish_timeout,
            )
        except psycopg.errors.UniqueViolation:
            # The promise index refused: nothing of the set was begun, and one of it never may be.
            self._begin_one_by_one(batch)
            return True
        except (psycopg.Error, BeginUnacknowledgedError) as error:
            for held, _ in batch:
                self.station.stock.end(held, retry.begin_unacknowledged(self.station.policy.first))
            raise BeginLostError(first_line(error)) from error
        return self._hand_over(conn, batch, permits)

    def _begin_one_by_one(self, batch: Sequence[tuple[Held, Ready]]) -> None:
        for held, ready in batch:
            if len(batch) > 1:
                self.station.stock.ready.append((held, ready))
                continue
            log.error("job.earlier_attempt_unproved", job=held.job.key, alert=True)
            self.station.stock.end(held, retry.look_unclear("an earlier attempt has no proof"))
        if len(batch) > 1:
            self.one_at_a_time = len(batch)

    def _hand_over(
        self,
        conn: psycopg.Connection[Any],
        batch: Sequence[tuple[Held, Ready]],
        permits: Mapping[JobId, SendPermit],
    ) -> bool:
        self.station.at(Point.AFTER_BEGIN)
        begun = [(held, ready, permits[held.id]) for held, ready in batch if held.id in permits]
        self.station.begun += len(begun)
        try:
            self.station.spool.open(
                Opened(
                    held.id,
                    permit.attempt,
                    held.job.token,
                    held.can_look,
                    bytes(held.job.content_sha256[:CONTENT_BYTES]),
                )
                for held, _, permit in begun
            )
        except OSError as error:
            log.exception("spool.failed", alert=True)
            detail = f"the second record on disk failed ({error.strerror}), so it was not sent"
            for held, _, permit in begun:
                permit.revoke()
                lost = retry.not_sent(Reason.SPOOL_FAILED, detail, self.station.policy.first)
                self.station.stock.end(held, lost)
            begun = []
        self.station.at(Point.AFTER_SPOOL_OPEN)
        for held, ready, permit in begun:
            if permit.content_sha256 != bytes(held.job.content_sha256):  # pragma: no cover
                permit.revoke()
                changed = "the content changed before the send, so it was not sent"
                lost = retry.not_sent(Reason.NOT_STARTED, changed, self.station.policy.first)
                self.station.stock.end(held, lost)
                continue
            held.permit = permit
            held.busy = True
            self.station.hands.give(DoSend(held, held.task, ready, permit))
        if begun:
            log.info("jobs.begun", jobs=len(begun))
        missing = [(held, ready) for held, ready in batch if held.id not in permits]
        if missing:
            self._not_begun(conn, missing)
        return bool(begun)

    def _take_ready(self) -> list[tuple[Held, Ready]]:
        batch: list[tuple[Held, Ready]] = []
        trusted_since = boottime() - self.station.timing.distrust
        at_most = self.station.hands.idle
        if self.one_at_a_time:
            self.one_at_a_time -= 1
            at_most = min(at_most, 1)
        while self.station.stock.ready and len(batch) < at_most:
            held, ready = self.station.stock.ready.popleft()
            if not self.station.stock.holds(held):
                continue
            if held.lease_at <= trusted_since:
                self.station.stock.end(held, retry.release())
                continue
            batch.append((held, ready))
        return batch

    def _not_begun(
        self, conn: psycopg.Connection[Any], missing: Sequence[tuple[Held, Ready]]
    ) -> None:
        rows = ledger.unbegun(
            conn, [held.id for held, _ in missing], window=self.station.timing.distrust
        )
        stands = {row.id: row for row in rows}
        for held, ready in missing:
            row = stands.get(held.id)
            if row is None or row.token != held.job.token:
                self.station.lose(held)
            elif (end := _end_of(row)) is not None:
                self.station.stock.end(held, end)
            else:
                # Someone held the row just then; it is ours, and its turn comes again.
                self.station.stock.ready.append((held, ready))


def _end_of(row: Unbegun) -> Settlement | None:
    """Why a job of ours was not begun, or None when it was only locked just then."""
    if row.repeat_over:
        return retry.repeat_ended()
    if row.too_late:
        return retry.expire()
    if row.lease_over or row.gate_closed or row.not_before is not None:
        return retry.release()
    return None
