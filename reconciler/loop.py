"""The reconciler's loop: claim due doubts, look at the page, record what follows."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Event

import structlog

from publisher.engine import ledger
from publisher.engine.errors import NotFound, PublisherError
from publisher.engine.evidence import Evidence
from publisher.engine.ledger import Conn, DatabaseTrouble
from publisher.engine.registry import Registry
from publisher.engine.rescue import Rescue
from reconciler.judge import Patience
from reconciler.reconcile import Look, Told, apply, look, prepare, record, without_a_look

log = structlog.get_logger(__name__)

_LEASE = 300.0
"""Seconds a doubt is held for one look; a platform's listing may be long."""


@dataclass(slots=True)
class Reconciler:
    """One run. ``connect`` opens a checked autocommit connection in the engine's role.

    ``rescue`` reads the files of worker runs of this machine that are over: their end is what
    proves that a sender is gone.
    """

    connect: Callable[[], Conn]
    registry: Registry
    patience: Patience
    told: Told
    rescue: Rescue
    poll: float = 1.0
    hands: int = 4
    _stop: Event = field(default_factory=Event)

    def stop(self) -> None:
        """End after the looks under way."""
        self._stop.set()

    def run(self) -> int:
        """Look until told to stop; returns 0. Raises ``PublisherError`` when it may not start."""
        conn: Conn | None = self.connect()
        log.info("reconciler.started")
        with ThreadPoolExecutor(self.hands, "look") as pool:
            while not self._stop.is_set():
                worked = False
                try:
                    conn = conn or self.connect()
                    worked = self.once(conn, pool)
                except DatabaseTrouble as error:
                    log.warning("database.failed", error=(str(error).splitlines() or [""])[0])
                    _discard(conn)
                    conn = None
                except PublisherError as error:
                    log.critical("reconciler.refused", error=str(error), alert=True)
                    return 1
                if not worked:
                    self._stop.wait(self.poll)
        _discard(conn)
        log.info("reconciler.ended")
        return 0

    def once(self, conn: Conn, pool: ThreadPoolExecutor) -> bool:
        """One round; returns whether any doubt was due."""
        self.rescue.spools(conn, ledger.clock(conn))
        held = ledger.claim_doubts(conn, limit=self.hands, lease=_LEASE)
        looks: list[tuple[Look, Future[tuple[Evidence, float]]]] = []
        for doubt, token in held:
            try:
                at = prepare(conn, self.registry, doubt, token)
            except NotFound as error:
                ledger.look_again(
                    conn, doubt.job_id, token, last_look=str(error), pause=None, asked=str(error)
                )
                continue
            plain = without_a_look(at)
            if plain is not None:
                apply(conn, at, plain, self.patience, self.told)
            else:
                looks.append((at, pool.submit(look, at, self.patience)))
        for at, future in looks:
            evidence, took = future.result()
            record(conn, at, evidence, took, self.patience, self.told)
        return bool(held)


def asked_by_log(conn: Conn, doubt: ledger.Doubt, reason: str) -> None:  # noqa: ARG001 - Told
    """Tell the log that a person must decide."""
    log.error("doubt.needs_a_person", job=doubt.key, reason=reason, alert=True)


def _discard(conn: Conn | None) -> None:
    if conn is not None:
        conn.close()
