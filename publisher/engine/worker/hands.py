"""Hands: pool threads that talk to platforms, and to nothing else.

Whatever an adapter does, one report comes back for each order. The publish call is made in one
line of this file.
"""

from __future__ import annotations

from queue import SimpleQueue
from threading import Lock, Thread
from time import monotonic
from typing import assert_never

import structlog

from publisher.engine.adapter import SendPermit
from publisher.engine.evidence import Inconclusive
from publisher.engine.outcome import (
    Deferred,
    Outcome,
    Proof,
    Published,
    Reason,
    Rejected,
    Unauthorized,
    Unknown,
)
from publisher.engine.points import Point, Probe
from publisher.engine.spool import Spool
from publisher.engine.worker.held import (
    DoLook,
    DoSend,
    DoStep,
    Looked,
    Order,
    Report,
    Sent,
    Stepped,
)

log = structlog.get_logger(__name__)


class Hands:
    """A pool of daemon threads, started as they are needed.

    Daemons, so that a hand stuck in a call cannot keep a drained process from ending: its start
    line in the spool tells the next process what it was at.
    """

    def __init__(self, size: int, spool: Spool, reports: SimpleQueue[Report], probe: Probe) -> None:
        self.size = size
        self.busy = 0
        self._orders: SimpleQueue[Order | None] = SimpleQueue()
        self._spool = spool
        self._reports = reports
        self._at = probe
        self._threads: list[Thread] = []
        self._lock = Lock()

    @property
    def idle(self) -> int:
        """How many more orders can be taken up at once."""
        return self.size - self.busy

    def give(self, order: Order) -> None:
        """Hand an order over. Called by the coordinator alone, never for more than are idle."""
        self.busy += 1
        if self.busy > len(self._threads):
            thread = Thread(target=self._work, name=f"hand-{len(self._threads)}", daemon=True)
            self._threads.append(thread)
            thread.start()
        self._orders.put(order)

    def returned(self) -> None:
        """The coordinator has taken a hand's report."""
        self.busy -= 1

    def dismiss(self) -> None:
        """Let idle threads end."""
        for _ in self._threads:
            self._orders.put(None)

    def _work(self) -> None:
        while (order := self._orders.get()) is not None:
            self._reports.put(self._carry_out(order))

    def _carry_out(self, order: Order) -> Report:
        match order:
            case DoStep():
                return self._step(order)
            case DoLook():
                return _look(order)
            case DoSend():
                return Sent(order.held, self._send(order))
            case _:  # pragma: no cover - mypy proves that nothing gets here
                assert_never(order)

    def _step(self, order: DoStep) -> Report:
        self._at(Point.BEFORE_STEP)
        try:
            step = order.held.adapter.step(order.task)
        except Exception as error:
            log.exception("step.broke", job=order.held.job.key)
            step = Deferred(Reason.STEP_FAILED, f"the step broke: {type(error).__name__}")
        self._at(Point.AFTER_STEP)
        return Stepped(order.held, step)

    def _send(self, order: DoSend) -> Outcome:
        """Start line, the call, answer line. Every way out of the call is an outcome.

        An exception is *not sent* only where the permit was never used: nothing writes without
        it. With a used permit it is ``Unknown``, whatever the exception says.
        """
        token, permit = order.held.job.token, order.permit
        self._at(Point.BEFORE_START)
        try:
            self._spool.start(token)
        except OSError as error:
            return Deferred(Reason.SPOOL_FAILED, f"the second record failed: {error.strerror}")
        self._at(Point.AFTER_START)
        try:
            outcome = order.held.adapter.publish(order.task, order.ready, permit)
        except BaseException as error:
            log.exception("publish.broke", job=order.held.job.key)
            detail = f"the adapter broke: {type(error).__name__}"
            outcome = Unknown(Reason.ADAPTER_BROKE, detail)
        outcome = _believable(outcome, permit)
        self._at(Point.AFTER_PUBLISH)
        try:
            self._spool.answer(token, outcome)
        except Exception:
            log.exception("spool.answer_failed", job=order.held.job.key)
        self._at(Point.AFTER_ANSWER)
        return outcome


def _believable(outcome: Outcome, permit: SendPermit) -> Outcome:
    """Hold an adapter's word against its permit: only what never used it was *not sent*.

    An adapter that calls a used permit "not sent" is doubted, and so is a refusal without the line
    of a closed list that makes it one; an adapter that reports a doubt or a
    success without having used it has sent nothing, because nothing can be written without.
    """
    match outcome:
        case Deferred(proof=Proof.NOT_SENT) if permit.used:
            return Unknown(Reason.ADAPTER_BROKE, f"{outcome.detail} (but bytes may have left)")
        case Rejected() | Unauthorized() | Deferred() if permit.used and not outcome.row:
            return Unknown(
                Reason.UNLISTED_REFUSAL,
                f"{outcome.detail} (no line of a closed list says that it is not on the page)",
                answer=outcome.answer,
            )
        case Published() | Unknown() if not permit.used and permit.revoke():
            return Deferred(Reason.ADAPTER_BROKE, "nothing was sent: the permit was not used")
        case _:
            return outcome


def _look(order: DoLook) -> Report:
    begun = monotonic()
    try:
        evidence = order.held.adapter.look(order.query)
    except Exception as error:
        log.exception("look.broke", job=order.held.job.key)
        evidence = Inconclusive(f"the look broke: {type(error).__name__}")
    return Looked(order.held, order.attempt, evidence, monotonic() - begun, order.replaced)
