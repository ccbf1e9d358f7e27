"""Orders to hands, and what follows from their reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, assert_never

import psycopg
import structlog

from publisher.engine import ledger, retry
from publisher.engine.adapter import LookQuery, More, Ready, Wait, boottime
from publisher.engine.evidence import Absent, Found, Inconclusive
from publisher.engine.ledger import Replaced
from publisher.engine.outcome import Deferred, Rejected, Unauthorized
from publisher.engine.retry import Settlement
from publisher.engine.worker.held import (
    DoLook,
    DoStep,
    Held,
    Looked,
    Report,
    Sent,
    Stepped,
    Wake,
)
from publisher.engine.worker.preparing import Preparing
from publisher.engine.worker.station import Station
from publisher.engine.worker.stock import Stock

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Dispatch:
    """The coordinator's side of the hands."""

    station: Station
    preparing: Preparing

    @property
    def stock(self) -> Stock:
        """What the worker holds."""
        return self.station.stock

    def take(self, report: Report) -> None:
        """Act on one report.

        An answer to a send is carried to the database whatever became of the job meanwhile; a
        step or look of a job that was lost is dropped.
        """
        if isinstance(report, Wake):
            self.stock.happened += 1
            return
        self.station.hands.returned()
        held = report.held
        held.busy = False
        match report:
            case Sent():
                standing = held.standing(begun=True)
                end = retry.settle(
                    report.outcome, standing, self.station.policy, self.station.now()
                )
                self.stock.end(held, begun(held, end))
            case Stepped() if self._is_working_on(held):
                self._stepped(report)
            case Looked() if self._is_working_on(held):
                self._looked(report)
            case Stepped() | Looked():
                log.info("job.lost", job=held.job.key)
            case _:  # pragma: no cover - mypy proves that nothing gets here
                assert_never(report)

    def _is_working_on(self, held: Held) -> bool:
        return self.stock.holds(held) and held.key not in self.stock.ends

    def _stepped(self, report: Stepped) -> None:
        held = report.held
        match report.step:
            case Ready(progress) | More(progress):
                self.preparing.keep_progress(held, progress)
            case Wait(progress, seconds, reason):
                self.preparing.keep_progress(held, progress, retry.wait(reason, seconds))
            case Rejected() | Deferred() | Unauthorized() as failure:
                self.preparing.end_unsent(held, failure)
            case _:  # pragma: no cover - mypy proves that nothing gets here
                assert_never(report.step)

    def _looked(self, report: Looked) -> None:
        held, stock = report.held, self.stock
        stock.looked.append(report)
        if report.replaced is not None:
            self._looked_for_replaced(report, report.replaced)
            return
        match report.evidence:
            case Found(remote_id, permalink):
                attempt = report.attempt
                stock.end(
                    held,
                    retry.found(remote_id, permalink, attempt=attempt.number, about=attempt.token),
                )
            case Absent() | Inconclusive(clean=True):
                held.looked = True
                self.preparing.route(held)
            case Inconclusive() if held.was_forced:
                held.looked = True
                self.preparing.route(held)
            case Inconclusive(reason):
                stock.end(held, retry.look_unclear(reason))
            case _:  # pragma: no cover - mypy proves that nothing gets here
                assert_never(report.evidence)

    def _looked_for_replaced(self, report: Looked, replaced: Replaced) -> None:
        if isinstance(report.evidence, Found):
            return  # it is written first, where looks are kept
        held = report.held
        end = self.preparing.replacing.looked(held, replaced, report.evidence)
        if end is not None:
            self.stock.end(held, end)
            return
        held.searched += 1
        self.preparing.route(held)

    # Orders to hands

    def start(self, conn: psycopg.Connection[Any]) -> bool:
        """Give steps and looks to idle hands; a job's own first hand is recorded before."""
        stock, hands = self.stock, self.station.hands
        steps: list[Held] = []
        while stock.steps and len(steps) < hands.idle:
            held = stock.steps.popleft()
            if stock.holds(held):
                steps.append(held)
        try:
            self._record_hands(conn, steps)
        except BaseException:
            stock.steps.extendleft(reversed(steps))
            raise
        started = False
        for held in steps:
            if not stock.holds(held):
                continue
            if not held.hand_recorded:
                stock.steps.append(held)  # someone held its row just then
                continue
            held.busy = started = True
            hands.give(DoStep(held, held.task))
        return self._start_looks(conn) or started

    def _record_hands(self, conn: psycopg.Connection[Any], held: Sequence[Held]) -> None:
        """Record that these jobs' own hands start; those that are no longer ours are lost."""
        new = [one for one in held if not one.hand_recorded]
        if not new:
            return
        now = boottime()
        recorded = ledger.start_hands(
            conn, [one.key for one in new], lease=self.station.timing.lease
        )
        missing = [one for one in new if one.id not in recorded]
        ours = ledger.still_ours(conn, [one.key for one in missing]) if missing else frozenset()
        for one in new:
            if one.id in recorded:
                one.hand_recorded = True
                one.lease_at = now
            elif one.id not in ours:
                self.station.lose(one)

    def _start_looks(self, conn: psycopg.Connection[Any]) -> bool:
        stock, hands = self.stock, self.station.hands
        started = False
        while stock.looks and hands.idle:
            held, ready = stock.looks[0]
            replaced = held.replaced
            attempt = held.to_look_at if replaced is None else replaced.attempt
            if not stock.holds(held) or attempt is None:
                stock.looks.popleft()
                continue
            last = held.earlier[-1].begun_at if replaced is None else replaced.last_begun_at
            settled_at = last + timedelta(seconds=self.station.policy.settling)
            early = (settled_at - self.station.now()).total_seconds()
            if early > 0:
                stock.looks.popleft()
                stock.end(held, retry.wait("the page may not show the first send yet", early))
                continue
            query = LookQuery(
                task=held.task if replaced is None else replaced.task(held.channel),
                began_at=attempt.begun_at,
                now=self.station.now(),
                bound=ledger.bound_elsewhere(
                    conn, held.channel.id, attempt.job_id, attempt.begun_at
                ),
            )
            self._record_hands(conn, [held])
            stock.looks.popleft()
            if not held.hand_recorded:
                if stock.holds(held):
                    stock.looks.append((held, ready))
                    break
                continue
            held.busy = True
            hands.give(DoLook(held, query, attempt, replaced))
            started = True
        return started


def begun(held: Held, end: Settlement) -> Settlement:
    """The end of a send, with the attempt it is about."""
    if held.permit is None or end.attempt == held.permit.attempt:
        return end
    return replace(end, attempt=held.permit.attempt)
