"""Before a job that took another's place is sent: the other one may be on the page after all.

It was refused, and a refusal may be a lie. Where the page can be looked at it is, and what is found
there ends the newer job and is told; what is unclear keeps it on hold for a person. Where it cannot
be looked at, a refusal counts only if the platform makes it before it stores anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import psycopg
import structlog

from publisher.engine import ledger, retry
from publisher.engine.alert import Alert, Incident
from publisher.engine.evidence import Absent, Evidence, Found, Inconclusive
from publisher.engine.job import public_id
from publisher.engine.ledger import Late, Replaced
from publisher.engine.retry import Settlement
from publisher.engine.worker.held import Held, Looked
from publisher.engine.worker.station import Station

log = structlog.get_logger(__name__)

_LOCKED_PAUSE = 1.0


@dataclass(slots=True)
class Replacing:
    """What follows from what a job replaces."""

    station: Station

    def taken_up(self, held: Held) -> bool:
        """Whether a claimed job may go on; it ends here when what it replaces is live."""
        live = next((one for one in held.before if one.is_live), None)
        if live is not None:
            self.station.stock.end(held, _is_live(live))
        return live is None

    def can_look(self, held: Held, replaced: Replaced) -> bool:
        """Whether the page shows posts such as the one that is replaced."""
        return held.adapter.capabilities(replaced.content, replaced.progress).can_look

    def looked(self, held: Held, replaced: Replaced, evidence: Evidence) -> Settlement | None:
        """How the newer job ends after this look; None: it goes on.

        ``Found`` is ``found``'s, which writes.
        """
        match evidence:
            case Inconclusive(clean=False) if not replaced.let_go:
                return self._unclear(held, replaced, evidence)
            case Absent() | Inconclusive() if replaced.is_certain or replaced.let_go:
                return None
            case _:
                return self.hold(held, replaced, "nothing proves that it is not on the page")

    def _unclear(self, held: Held, replaced: Replaced, seen: Inconclusive) -> Settlement:
        policy = self.station.policy
        if seen.candidates or replaced.looks + 1 >= policy.tries:
            return self.hold(held, replaced, seen.reason)
        pause = retry.pause(policy, replaced.looks + 1)
        return retry.wait("the page could not be read for the one that it replaces", pause)

    def hold(self, held: Held, replaced: Replaced, why: str) -> Settlement:
        """Keep the newer job for a person."""
        log.warning("job.replaced_unclear", job=held.job.key, replaced=replaced.key, why=why)
        return retry.replaced_unclear(f"job {public_id(replaced.job_id)}: {why}")

    def found(
        self, conn: psycopg.Connection[Any], report: Looked, replaced: Replaced, found: Found
    ) -> Settlement:
        """Write that the older job is on the page and tell people; how the newer one ends.

        A crash after it changes nothing: the next claim of the newer one sees that the older is
        live.
        """
        end = retry.found(
            found.remote_id, found.permalink, attempt=replaced.attempt.number,
            about=replaced.attempt.token,
        )  # fmt: skip
        if end.remote_id is None:
            return self.hold(report.held, replaced, end.detail)
        with conn.transaction():
            late = ledger.record_late(
                conn, replaced.job_id, replaced.attempt.token, end, who=self.station.who
            )
            if late in {Late.MOVED, Late.KEPT_ALERT}:
                mark = str(replaced.attempt.token)
                self.station.alarm(conn, Alert(Incident.LIVE, job_id=replaced.job_id, mark=mark))
        if late is Late.LOCKED:
            return retry.wait("what it replaces is held by somebody just now", _LOCKED_PAUSE)
        if late is Late.KEPT:
            return self.hold(report.held, replaced, f"{found.remote_id} is another job's")
        log.error("job.replaced_is_live", job=report.held.job.key, remote_id=found.remote_id,
                  alert=True)  # fmt: skip
        return _is_live(replaced)


def _is_live(replaced: Replaced) -> Settlement:
    return retry.replaced_is_live(f"job {public_id(replaced.job_id)} is on the page after all")
