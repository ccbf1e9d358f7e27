"""Take claimed jobs to the point where they can be sent: steps kept, looks recorded, routes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import psycopg
import structlog

from publisher.engine import ledger, retry
from publisher.engine.adapter import Progress, boottime
from publisher.engine.evidence import Found
from publisher.engine.outcome import Certain, Deferred, Reason
from publisher.engine.points import Point
from publisher.engine.retry import Settlement
from publisher.engine.tally import Count
from publisher.engine.worker.held import Held
from publisher.engine.worker.replacing import Replacing
from publisher.engine.worker.station import Station, first_line, is_about_the_data
from publisher.engine.worker.stock import Kept

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Preparing:
    """Moves claimed jobs on, one harmless step after the other."""

    station: Station

    @property
    def replacing(self) -> Replacing:
        """What follows from what a job replaces."""
        return Replacing(self.station)

    def keep(self, conn: psycopg.Connection[Any]) -> bool:
        """Store progress and looks; then each job goes on, or back."""
        stock = self.station.stock
        while stock.looked:
            looked = stock.looked.pop(0)
            ledger.record_look(
                conn,
                job_id=looked.attempt.job_id,
                attempt=looked.attempt.number,
                token=looked.attempt.token,
                by=self.station.who,
                took=looked.took,
                evidence={"kind": type(looked.evidence).__name__, **asdict(looked.evidence)},
            )
            self.station.tally.count(Count.LOOKS, type(looked.evidence).__name__)
            if looked.replaced is not None and isinstance(looked.evidence, Found):
                end = self.replacing.found(conn, looked, looked.replaced, looked.evidence)
                if stock.holds(looked.held):
                    stock.end(looked.held, end)
        kept = [item for item in stock.kept if stock.holds(item.held)]
        stock.kept = kept
        if not kept:
            return False
        self.station.at(Point.BEFORE_SAVE_PROGRESS)
        try:
            stored = self._keep(conn, kept)
        except Exception as error:
            if not is_about_the_data(conn, error):
                raise
            log.warning("progress.set_failed", jobs=len(kept), error=first_line(error))
            stored = False
            for item in list(kept):
                stored |= self._keep_alone(conn, item)
        self.station.at(Point.AFTER_SAVE_PROGRESS)
        return stored

    def _keep(self, conn: psycopg.Connection[Any], kept: Sequence[Kept]) -> bool:
        now = boottime()
        stored = ledger.save_progress(
            conn, [item.as_stored() for item in kept], lease=self.station.timing.lease
        )
        missing = [item.held.key for item in kept if item.held.id not in stored]
        locked = ledger.still_ours(conn, missing) if missing else frozenset()
        for item in list(kept):
            if item.held.id in locked:
                continue
            self.station.stock.kept.remove(item)
            if item.held.id not in stored:
                self.station.lose(item.held)
                continue
            item.held.lease_at = now
            if item.then is not None:
                self.station.stock.end(item.held, item.then)
            else:
                self.route(item.held)
        return bool(stored)

    def _keep_alone(self, conn: psycopg.Connection[Any], item: Kept) -> bool:
        """Store one progress; what the database refuses by itself is a failed step."""
        try:
            return self._keep(conn, [item])
        except Exception as error:
            if not is_about_the_data(conn, error):
                raise
            log.error("progress.refused", job=item.held.job.key, error=first_line(error))  # noqa: TRY400
            self.station.stock.kept.remove(item)
            self.end_unsent(
                item.held, Deferred(Reason.STEP_FAILED, "its progress cannot be stored")
            )
            return True

    def route(self, held: Held) -> None:
        """Put a job where its next move is made: a step, a look, or the send."""
        try:
            ready = held.adapter.prepared(held.task)
            must_look = held.to_look_at is not None and not held.looked and held.can_look
            unseen = self._pass_over(held)
        except Exception as error:
            log.exception("prepare.broke", job=held.job.key)
            broke = Deferred(Reason.STEP_FAILED, f"preparing broke: {type(error).__name__}")
            self.end_unsent(held, broke)
            return
        if unseen is not None:
            self.station.stock.end(held, unseen)
        elif ready is None:
            self.station.stock.steps.append(held)
        elif must_look or held.replaced is not None:
            self.station.stock.looks.append((held, ready))
        else:
            self.station.stock.ready.append((held, ready))

    def _pass_over(self, held: Held) -> Settlement | None:
        """Leave out replaced jobs that no look can show; how it ends where one is doubtful."""
        while (replaced := held.replaced) is not None:
            if self.replacing.can_look(held, replaced):
                break
            if not (replaced.is_certain or replaced.let_go):
                return self.replacing.hold(held, replaced, "this platform cannot be looked at")
            held.searched += 1
        return None

    def end_unsent(self, held: Held, outcome: Certain) -> None:
        """End a claim whose step failed for certain."""
        standing = held.standing(begun=False)
        self.station.stock.end(
            held, retry.settle(outcome, standing, self.station.policy, self.station.now())
        )

    def keep_progress(self, held: Held, progress: Progress, then: Settlement | None = None) -> None:
        """Store this progress at the next tick, if it is new."""
        changed = progress != held.progress
        held.progress = progress
        if changed or then is not None:
            self.station.stock.kept.append(Kept(held, progress, then))
        else:
            self.route(held)

    def pick_up_strays(self) -> None:
        """Route held jobs that lie nowhere: a statement failed between two of their moves."""
        stock = self.station.stock
        lying = {held.id for held, _ in (*stock.looks, *stock.ready)}
        lying |= {held.id for held in stock.steps} | {item.held.id for item in stock.kept}
        for held in list(stock.held.values()):
            is_ours_to_move = not held.busy and held.permit is None and held.key not in stock.ends
            if is_ours_to_move and held.id not in lying:
                self.route(held)
