"""The reconciler's loop: claim due doubts, look at the page, record what follows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic
from uuid import UUID

import structlog

from publisher.engine import ledger
from publisher.engine.bell import Bell
from publisher.engine.errors import NotFound, PublisherError
from publisher.engine.evidence import Evidence
from publisher.engine.job import JobId
from publisher.engine.ledger import Conn, DatabaseTrouble
from publisher.engine.points import Point, Probe, unwatched
from publisher.engine.registry import Registry
from publisher.engine.rescue import Rescue
from publisher.engine.tally import Count, Tally
from reconciler import quarantine
from reconciler.judge import Patience
from reconciler.reconcile import (
    Look,
    Told,
    apply,
    ask,
    broke,
    look,
    prepare,
    record,
    without_a_look,
)

log = structlog.get_logger(__name__)

_LEASE = 300.0
"""Seconds a doubt is held for one look; a platform's listing may be long."""
_SWEEP_EVERY = 10.0


@dataclass(slots=True)
class Reconciler:
    """One run. ``connect`` opens a checked autocommit connection in the engine's role.

    ``rescue`` reads the files of worker runs of this machine that are over: their end is what
    proves that a sender is gone. ``sweep`` tells people of what they were not told of.
    """

    connect: Callable[[], Conn]
    registry: Registry
    patience: Patience
    told: Told
    rescue: Rescue
    sweep: Callable[[Conn], None] | None = None
    tally: Tally = field(default_factory=Tally)
    poll: float = 1.0
    hands: int = 4
    at: Probe = unwatched
    _swept_at: float = -math.inf
    _stop: Bell = field(default_factory=Bell)
    _held: dict[JobId, UUID] = field(default_factory=dict)

    def stop(self) -> None:
        """End after the looks under way."""
        self._stop.ring()

    def run(self) -> int:
        """Look until told to stop; returns 0. Raises ``PublisherError`` when it may not start."""
        conn: Conn | None = self.connect()
        log.info("reconciler.started")
        with ThreadPoolExecutor(self.hands, "look") as pool:
            while not self._stop.is_rung():
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
        if self._held:
            # A connection broke in the last round: what was seen there is not known to be kept.
            ledger.let_go(conn, self._held)
            self._held.clear()
        self.rescue.spools(conn, ledger.clock(conn))
        self._sweep(conn)
        self.at(Point.BEFORE_DOUBTS)
        held = ledger.claim_doubts(conn, limit=self.hands, lease=_LEASE)
        self._held = {doubt.job_id: token for doubt, token in held}
        self.at(Point.AFTER_DOUBTS)
        looks: list[tuple[Look, Future[tuple[Evidence, float]]]] = []
        for doubt, token in held:
            with self._one_of_many(conn, doubt, token):
                at = self._start(conn, doubt, token)
                if at is not None:
                    looks.append((at, pool.submit(look, at, self.patience)))
        for at, future in looks:
            evidence, took = future.result()
            self.tally.count(Count.LOOKS, type(evidence).__name__)
            self.at(Point.BEFORE_VERDICT)
            with self._one_of_many(conn, at.doubt, at.token):
                record(conn, at, evidence, took, self.patience, self.told)
            self.at(Point.AFTER_VERDICT)
        self._held.clear()
        return self._search(conn, pool) or bool(held)

    def _search(self, conn: Conn, pool: ThreadPoolExecutor) -> bool:
        """Look for jobs in quarantine on their pages; returns whether any was due."""
        held = ledger.claim_suspects(conn, limit=self.hands, lease=_LEASE)
        searches: list[tuple[quarantine.Search, Future[Evidence]]] = []
        for suspect, token in held:
            with _one_suspect(conn, suspect):
                at = quarantine.prepare(conn, self.registry, suspect, token)
                plain = quarantine.without_a_look(suspect, at.adapter)
                if plain is None:
                    searches.append((at, pool.submit(quarantine.search, at)))
                else:
                    quarantine.record(conn, at, plain)
        for at, future in searches:
            evidence = future.result()
            self.tally.count(Count.LOOKS, type(evidence).__name__)
            with _one_suspect(conn, at.suspect):
                finding = quarantine.judge_suspect(at.suspect, evidence, self.patience)
                quarantine.record(conn, at, finding, evidence)
        return bool(held)

    def _sweep(self, conn: Conn) -> None:
        """Now and then, tell of what stands in the rows and nobody was told of."""
        if self.sweep is not None and monotonic() - self._swept_at >= _SWEEP_EVERY:
            self._swept_at = monotonic()
            self.sweep(conn)

    def _start(self, conn: Conn, doubt: ledger.Doubt, token: UUID) -> Look | None:
        """What to look with, or None where that is decided without."""
        try:
            at = prepare(conn, self.registry, doubt, token)
        except NotFound as error:
            ask(conn, doubt, token, str(error), None, self.told)
            return None
        plain = without_a_look(at, self.patience)
        if plain is None:
            return at
        apply(conn, at, plain, self.patience, self.told)
        return None

    @contextmanager
    def _one_of_many(self, conn: Conn, doubt: ledger.Doubt, token: UUID) -> Iterator[None]:
        """Let what is wrong with one doubt keep no other from being looked at."""
        try:
            yield
        except Exception as error:
            if conn.closed or conn.broken:
                raise
            broke(conn, doubt, token, error, self.patience, self.told)


@contextmanager
def _one_suspect(conn: Conn, suspect: ledger.Suspect) -> Iterator[None]:
    """Let what is wrong with one job keep no other from being looked for; a person has it then."""
    try:
        yield
    except Exception as error:
        if conn.closed or conn.broken:
            raise
        log.error("suspect.broke", job=suspect.key, kind=type(error).__name__, alert=True)  # noqa: TRY400
        ledger.ask_about_suspect(conn, suspect.job_id, seen=f"it could not be looked for: {error}")


def _discard(conn: Conn | None) -> None:
    if conn is not None:
        conn.close()
