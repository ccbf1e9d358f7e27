"""Broken variants of the reconciler and of what people decide; see ``patches``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg.rows import dict_row

from publisher.adapters.mastodon import evidence as mastodon
from publisher.engine import ledger, matching
from publisher.engine.alerts import Alerts
from publisher.engine.evidence import Evidence, Inconclusive
from publisher.engine.job import State
from publisher.engine.ledger import Doubt, Judged, verdicts
from publisher.engine.ledger.driver import AnyConnection, driver_of
from publisher_broken_variants.patches import permits_do_not_lapse
from reconciler import reconcile
from reconciler.judge import Case, ItIsAbsent, Judgement, Patience

Driver = psycopg.Connection[Any]


def reconciler_trusts_absence() -> None:
    """What a listing does not show is not there, whatever the platform leaves out."""
    real = reconcile.judge

    def judge(case: Case, evidence: Evidence, patience: Patience) -> Judgement:
        if isinstance(evidence, Inconclusive) and evidence.clean:
            return ItIsAbsent("it is not in the listing", send=True)
        return real(case, evidence, patience)

    reconcile.judge = judge


def strict_matching_for_absence() -> None:
    """Only what is ours beyond doubt counts as there, on a server that shows texts its own way."""
    matching.could_be_ours = matching.is_ours
    real = mastodon.source_of

    def source_of(*arguments: Any, **named: Any) -> str | None:  # noqa: ANN401 - as the real one
        shown = real(*arguments, **named)
        return None if shown is None else f"{shown} …"

    mastodon.source_of = source_of


def resend_without_a_proof() -> None:
    """Nobody asks whether the first sender is gone, nor a permit whether it has lapsed."""
    horizon_not_waited_for()
    permits_do_not_lapse()


def horizon_not_waited_for() -> None:
    verdicts._require_gone = lambda *_: None


_ANY_ATTEMPT = """
UPDATE publisher.attempts
   SET proof = %(proof)s, proof_detail = %(reason)s, proved_by = %(who)s,
       proved_at = clock_timestamp(), settled_at = coalesce(settled_at, clock_timestamp())
 WHERE job_id = %(job_id)s AND proof IS NULL
"""


def old_look_believed() -> None:
    """A verdict is about the job, whichever attempt it was that somebody looked at."""

    @contextmanager
    def judging(conn: AnyConnection, doubt: Doubt) -> Iterator[tuple[Driver, dict[str, Any]]]:
        driver = driver_of(conn)
        with driver.transaction():
            with driver.cursor(row_factory=dict_row) as cursor:
                job = cursor.execute(verdicts._JOB, [doubt.job_id]).fetchone()
            assert job is not None
            yield driver, job

    verdicts._judging = judging
    verdicts._PROVE = _ANY_ATTEMPT
    verdicts._BACK = verdicts._BACK.replace("AND attempts = %(latest)s", "")


def nobody_is_told() -> None:
    """Doubts are asked about in the journal alone."""
    Alerts.asked = Alerts.sweep = lambda *_: None  # type: ignore[method-assign]


_RESCHEDULE = """
UPDATE publisher.jobs SET state = 'scheduled', run_at = clock_timestamp(), settled_at = NULL
 WHERE id = %s AND state = 'unknown'
"""


def new_time_for_an_unknown() -> None:
    """A person gives it a new time, as if it were one that failed."""

    def reschedule(conn: AnyConnection, doubt: Doubt, **_: str) -> Judged:
        driver_of(conn).execute(_RESCHEDULE, [doubt.job_id])
        return Judged(doubt.job_id, State.SCHEDULED)

    ledger.drop = reschedule
