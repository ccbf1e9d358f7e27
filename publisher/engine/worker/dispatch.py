"""Orders to hands, and what follows from their reports."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, assert_never

import psycopg
import structlog

from publisher.engine import ledger, retry
from publisher.engine.adapter import LookQuery, More, Ready, Wait, boottime
from publisher.engine.evidence import Absent, Found, Inconclusive
from publisher.engine.outcome import Deferred, Rejected, Unauthorized
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
from publisher.engine.worker.moves import Moves
from publisher.engine.worker.stock import Stock

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Dispatch:
    """The coordinator's side of the hands."""

    moves: Moves

    @property
    def stock(self) -> Stock:
        """What the worker holds."""
        return self.moves.stock

    def take(self, report: Report) -> None:
        """Act on one report.

        An answer to a send is carried to the database whatever became of the job meanwhile; a
        step or look of a job that was lost is dropped.
        """
        if isinstance(report, Wake):
            return
        self.moves.hands.returned()
        held = report.held
        held.busy = False
        match report:
            case Sent():
                standing = held.standing(begun=True)
                end = retry.settle(report.outcome, standing, self.moves.policy, self.moves.now())
                self.stock.end(held, end)
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
                self.moves.keep_progress(held, progress)
            case Wait(progress, seconds, reason):
                self.moves.keep_progress(held, progress, retry.wait(reason, seconds))
            case Rejected() | Deferred() | Unauthorized() as failure:
                self.moves.end_unsent(held, failure)
            case _:  # pragma: no cover - mypy proves that nothing gets here
                assert_never(report.step)

    def _looked(self, report: Looked) -> None:
        held, stock = report.held, self.stock
        stock.looked.append(report)
        match report.evidence:
            case Found(remote_id, permalink):
                stock.end(held, retry.found(remote_id, permalink))
            case Absent() | Inconclusive(clean=True):
                held.looked = True
                self.moves.route(held)
            case Inconclusive() if held.was_forced:
                held.looked = True
                self.moves.route(held)
            case Inconclusive(reason):
                stock.end(held, retry.look_unclear(reason))
            case _:  # pragma: no cover - mypy proves that nothing gets here
                assert_never(report.evidence)

    # Orders to hands

    def start(self, conn: psycopg.Connection[Any]) -> bool:
        """Give steps and looks to idle hands; a job's own first hand is recorded before."""
        stock, hands = self.stock, self.moves.hands
        steps: list[Held] = []
        while stock.steps and len(steps) < hands.idle:
            held = stock.steps.popleft()
            if stock.holds(held):
                steps.append(held)
        new = [held for held in steps if not held.hand_recorded]
        if new:
            now = boottime()
            ours = ledger.start_hands(conn, [h.key for h in new], lease=self.moves.timing.lease)
            for held in new:
                held.hand_recorded = held.id in ours
                held.lease_at = now if held.hand_recorded else held.lease_at
                if not held.hand_recorded:
                    self.moves.lose(held)
        for held in steps:
            if stock.holds(held):
                held.busy = True
                hands.give(DoStep(held, held.task))
        looks = self._start_looks(conn)
        return bool(steps or looks)

    def _start_looks(self, conn: psycopg.Connection[Any]) -> bool:
        stock, hands = self.stock, self.moves.hands
        started = False
        while stock.looks and hands.idle:
            held, _ = stock.looks.popleft()
            attempt = held.to_look_at
            if not stock.holds(held) or attempt is None:
                continue
            settled_at = held.earlier[-1].begun_at + timedelta(seconds=self.moves.policy.settling)
            early = (settled_at - self.moves.now()).total_seconds()
            if early > 0:
                stock.end(held, retry.wait("the page may not show the first send yet", early))
                continue
            query = LookQuery(
                task=held.task,
                began_at=attempt.begun_at,
                now=self.moves.now(),
                bound=ledger.bound_elsewhere(conn, held.channel.id, held.id, attempt.begun_at),
            )
            held.busy = True
            hands.give(DoLook(held, query, attempt))
            started = True
        return started
