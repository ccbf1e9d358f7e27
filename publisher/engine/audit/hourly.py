"""Audits by itself, once an hour in a deployment, on a thread and a connection of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import Final

import structlog

from publisher.engine.alert import Alert, Incident
from publisher.engine.alerts import Alarm, by_log
from publisher.engine.audit.run import Report, audit
from publisher.engine.errors import PublisherError
from publisher.engine.ledger import Conn, DatabaseTrouble
from publisher.engine.ledger.chores import take_turn
from publisher.engine.tally import Count, Tally

log = structlog.get_logger(__name__)

CHORE: Final = "audit"


@dataclass(slots=True)
class Hourly:
    """Asks whether it is time every ``poll`` seconds; the database says whose turn it is.

    ``connect`` opens an autocommit connection in the engine's role; nothing else uses it, so a
    claim never waits for an audit. ``alerted`` as ``audit`` has it.
    """

    connect: Callable[[], Conn]
    alarm: Alarm = by_log
    alerted: bool = False
    every: float = 3600.0
    poll: float = 60.0
    patience: float = 30.0
    tally: Tally = field(default_factory=Tally)
    _over: Event = field(default_factory=Event)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Do it while the block lasts. One that is under way then ends with the process."""
        Thread(target=self._run, name="audit", daemon=True).start()
        try:
            yield
        finally:
            self._over.set()

    def _run(self) -> None:
        while not self._over.wait(self.poll):
            try:
                self.once()
            except (DatabaseTrouble, PublisherError) as error:
                log.warning("audit.failed", error=str(error).partition("\n")[0])
            except Exception as error:  # noqa: BLE001 - the next hour's audit must come all the same
                log.error("audit.broke", kind=type(error).__name__, alert=True)  # noqa: TRY400

    def once(self) -> Report | None:
        """Audit and tell people, if it is this process's turn; None where it is not."""
        with self.connect() as conn:
            if not take_turn(conn, CHORE, every=self.every):
                return None
            report = audit(conn, alerted=self.alerted, patience=self.patience)
            for broken in report.broken:
                one = broken.invariant
                self.tally.count(Count.BROKEN, one.id, str(one.severity))
                # One message for each invariant and day: the mark is part of the alert's key.
                alert = Alert(
                    Incident.AUDIT,
                    mark=f"{one.id} {report.at:%Y-%m-%d}",
                    detail=f"{one.title}: {broken.total}",
                )
                self.alarm(conn, alert)
            for one, why in report.unasked:
                log.warning("audit.unasked", invariant=one.id, why=why)
        log.info(
            "audit.made",
            broken=[broken.invariant.id for broken in report.broken],
            unasked=len(report.unasked),
            jobs=report.jobs,
            took=round(report.took, 2),
        )
        return report
