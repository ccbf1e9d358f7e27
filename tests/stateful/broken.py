"""Broken variants of the engine: each must be caught, or the machine proves nothing.

A variant changes one thing while its block lasts. Those that take a guard from the database give
it back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, Final
from unittest import mock

from psycopg.rows import dict_row

from publisher.engine import guard, ledger, rescue, spool
from publisher.engine.evidence import Evidence, Inconclusive
from publisher.engine.guard import Guard
from publisher.engine.ledger import leases, verdicts
from publisher.engine.ledger.driver import driver_of
from publisher.engine.outcome import Deferred, Reason
from publisher.engine.worker.held import Held
from reconciler import quarantine, reconcile
from reconciler.judge import Case, ItIsAbsent, Judgement, Patience
from tests.engine.ground import Ground

Apply = Callable[[Ground, ExitStack], None]


@dataclass(frozen=True, slots=True)
class Variant:
    """``without``: rules that have nothing to do with it, so that chance comes to it sooner."""

    apply: Apply
    without: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.apply.__name__.replace("_", " ")

    @contextmanager
    def at_work(self, ground: Ground) -> Iterator[None]:
        with ExitStack() as stack:
            self.apply(ground, stack)
            yield


def _cut(stack: ExitStack, module: Any, name: str, words: str, instead: str = "") -> None:  # noqa: ANN401 - a module
    statement = getattr(module, name)
    assert words in statement, f"{name} reads otherwise by now"
    stack.enter_context(mock.patch.object(module, name, statement.replace(words, instead)))


def _without(ground: Ground, stack: ExitStack, drop: str, make: str) -> None:
    ground.root.execute(drop.encode())
    stack.callback(ground.root.execute, make.encode())


def _without_trigger(ground: Ground, stack: ExitStack, table: str, trigger: str) -> None:
    _without(
        ground, stack, f"ALTER TABLE publisher.{table} DISABLE TRIGGER {trigger}",
        f"ALTER TABLE publisher.{table} ENABLE TRIGGER {trigger}",
    )  # fmt: skip


def rescue_requeues_sending(ground: Ground, stack: ExitStack) -> None:
    """What was being sent when its worker died is sent again, and no rule of the database minds."""
    _without_trigger(ground, stack, "jobs", "jobs_moved")
    _cut(
        stack, leases, "_RESCUE", "WHEN w.state = 'sending' THEN 'unknown'",
        "WHEN w.state = 'sending' THEN 'scheduled'",
    )  # fmt: skip


def trigger_is_gone(ground: Ground, stack: ExitStack) -> None:
    """Called off while it is being sent: only the trigger knows that this may not be."""
    _without_trigger(ground, stack, "jobs", "jobs_moved")
    real = ledger.cancel

    def cancel(conn: Any, job_id: int, *, who: str, reason: str = "") -> Any:  # noqa: ANN401 - as the real one
        moved = driver_of(conn).execute(
            "UPDATE publisher.jobs SET state = 'cancelled', token = NULL, incarnation = NULL,"
            " claimed_at = NULL, hand_at = NULL, lease_until = NULL, hold_reason = NULL,"
            " settled_at = clock_timestamp() WHERE id = %s AND state = 'sending'", [job_id],
        )  # fmt: skip
        return moved if moved.rowcount else real(conn, job_id, who=who, reason=reason)

    stack.enter_context(mock.patch.object(ledger, "cancel", cancel))


_FREE = """
WITH freed AS (
    UPDATE attempts a SET settled_at = clock_timestamp(), outcome = 'deferred',
           reason = 'not_started', proof = 'not_sent', proved_by = 'worker run 1',
           proved_at = clock_timestamp()
      FROM jobs j
     WHERE a.job_id = %s AND j.id = a.job_id AND a.number = j.attempts AND a.proof IS NULL
       AND a.outcome IS DISTINCT FROM 'published' AND j.state IN ('sending', 'unknown')
    RETURNING a.job_id)
UPDATE jobs j SET state = 'scheduled', token = NULL, incarnation = NULL, claimed_at = NULL,
       hand_at = NULL, lease_until = NULL, settled_at = NULL, run_at = clock_timestamp()
  FROM freed f WHERE j.id = f.job_id
"""


def late_not_sent_unfenced(ground: Ground, stack: ExitStack) -> None:
    """A late "not sent" frees whatever attempt the job has now."""
    real = ledger.settle

    def settle_all(conn: Any, ends: Any) -> ledger.Settled:  # noqa: ANN401 - as the real one
        settled = real(conn, ends)
        for key in settled.stale:
            if ends[key].event in {"release", "defer"}:
                conn.execute(_FREE, [key[0]])
        return settled

    stack.enter_context(mock.patch.object(ledger, "settle", settle_all))


def spool_says_not_started(ground: Ground, stack: ExitStack) -> None:
    """Whatever a dead worker's file says, nothing was sent."""
    outcome = Deferred(Reason.NOT_STARTED, "the worker ended before it called the platform")
    stack.enter_context(mock.patch.object(rescue, "_outcome", return_value=outcome))


def file_read_without_its_lock(ground: Ground, stack: ExitStack) -> None:
    """Who cannot be seen is taken for dead."""
    stack.enter_context(mock.patch.object(spool.fcntl, "flock", return_value=None))


def late_published_ignored(ground: Ground, stack: ExitStack) -> None:
    real = ledger.record_late

    def record_late(conn: Any, job_id: Any, token: Any, end: Any, **named: Any) -> ledger.Late:  # noqa: ANN401 - as the real one
        if end.outcome == "published":
            return ledger.Late.KNOWN
        return real(conn, job_id, token, end, **named)

    stack.enter_context(mock.patch.object(ledger, "record_late", record_late))


def lost_acknowledgement_then_sends(ground: Ground, stack: ExitStack) -> None:
    """A begin that was undone by its lost connection is as good as one."""
    real = ledger.begin_send

    def begin_send(conn: Any, held: Any, **times: float) -> Any:  # noqa: ANN401 - as the real one
        permits = real(conn, held, **times)
        for job_id, token in held:
            conn.execute(
                "UPDATE jobs SET state = 'scheduled', token = NULL, incarnation = NULL,"
                " claimed_at = NULL, hand_at = NULL, lease_until = NULL, attempts = 0"
                " WHERE id = %s AND token = %s AND attempts = 1", [job_id, token],
            )  # fmt: skip
            ground.root.execute(
                "DELETE FROM publisher.attempts WHERE job_id = %s AND number = 1 AND token = %s",
                [job_id, token],
            )
        return permits

    _without_trigger(ground, stack, "jobs", "jobs_moved")
    stack.enter_context(mock.patch.object(ledger, "begin_send", begin_send))


def reconciler_trusts_absence(ground: Ground, stack: ExitStack) -> None:
    """What a listing does not show is not there, whatever the platform leaves out."""
    real = reconcile.judge

    def judge(case: Case, evidence: Evidence, patience: Patience) -> Judgement:
        if isinstance(evidence, Inconclusive) and evidence.clean:
            return ItIsAbsent("it is not in the listing", send=True)
        return real(case, evidence, patience)

    stack.enter_context(mock.patch.object(reconcile, "judge", judge))


def horizon_not_waited_for(ground: Ground, stack: ExitStack) -> None:
    stack.enter_context(mock.patch.object(verdicts, "_require_gone", return_value=None))


_ANY_ATTEMPT = """
UPDATE publisher.attempts
   SET proof = %(proof)s, proof_detail = %(reason)s, proved_by = %(who)s,
       proved_at = clock_timestamp(), settled_at = coalesce(settled_at, clock_timestamp())
 WHERE job_id = %(job_id)s AND proof IS NULL
"""


def old_look_believed(ground: Ground, stack: ExitStack) -> None:
    """A verdict is about the job, whichever attempt it was that somebody looked at."""

    @contextmanager
    def judging(conn: Any, doubt: ledger.Doubt) -> Iterator[Any]:  # noqa: ANN401 - as the real one
        driver = driver_of(conn)
        with driver.transaction():
            with driver.cursor(row_factory=dict_row) as cursor:
                job = cursor.execute(verdicts._JOB, [doubt.job_id]).fetchone()
            assert job is not None
            if job["state"] != "unknown":
                raise verdicts._decided(doubt.job_id, job, None)
            yield driver, job

    stack.enter_context(mock.patch.object(verdicts, "_judging", judging))
    stack.enter_context(mock.patch.object(verdicts, "_PROVE", _ANY_ATTEMPT))
    _cut(stack, verdicts, "_BACK", "AND attempts = %(latest)s")


def nobody_looks_before_a_second_send(ground: Ground, stack: ExitStack) -> None:
    """A refusal is believed, and a lie is not looked for."""
    stack.enter_context(mock.patch.object(Held, "to_look_at", None))


def guard_never_compares(ground: Ground, stack: ExitStack) -> None:
    """Whatever database it is, it is the one."""
    stack.enter_context(mock.patch.object(Guard, "_doubt", return_value=None))
    stack.enter_context(mock.patch.object(Guard, "_went_back", return_value=None))
    stack.enter_context(mock.patch.object(ledger, "is_quarantined_for", return_value=True))


def tick_alone(ground: Ground, stack: ExitStack) -> None:
    """Whichever mark and timeline the witness holds, the database knows them."""
    real = guard.doubt_of

    def doubt_of(stands: Any, record: Any, *, step: int) -> Any:  # noqa: ANN401 - as the real one
        if record is not None:
            stands = replace(stands, marks=[record.mark], timeline=record.timeline)
        return real(stands, record, step=step)

    stack.enter_context(mock.patch.object(guard, "doubt_of", doubt_of))
    stack.enter_context(mock.patch.object(ledger, "is_quarantined_for", return_value=True))


def strict_is_ignored(ground: Ground, stack: ExitStack) -> None:
    """A look that sees nothing frees a post on a page that proves no absence."""
    real = quarantine.judge_suspect

    def judge(suspect: Any, *more: Any) -> Any:  # noqa: ANN401 - as the real one
        return real(replace(suspect, strict=False), *more)

    stack.enter_context(mock.patch.object(quarantine, "judge_suspect", judge))


def foreign_id_believed(ground: Ground, stack: ExitStack) -> None:
    """An answer that names another job's post is taken for this one's."""
    settling = import_module("publisher.engine.ledger.settle")  # its name is the verb's, too
    _cut(stack, settling, "_SETTLE", "AND r.job_id = p.id) AS foreign_id", ") AS foreign_id")
    _without_trigger(ground, stack, "jobs", "jobs_moved")


_BACKUPS = ("back_up", "unquarantine", "witness")
_EDITORS = ("edit", "gate", "write")
_PEOPLE = ("see", "decide", "state_gone")
_DOUBTS_ALONE = (*_BACKUPS, *_EDITORS, "strike")
_SENDS_ALONE = (*_BACKUPS, *_PEOPLE, "gate")
_LEASES_ALONE = (*_SENDS_ALONE, *_EDITORS, "strike", "reconcile", "arrive")

VARIANTS: Final = (
    Variant(rescue_requeues_sending, _SENDS_ALONE),
    Variant(trigger_is_gone, _SENDS_ALONE),
    Variant(late_not_sent_unfenced, _LEASES_ALONE),
    Variant(spool_says_not_started, _SENDS_ALONE),
    Variant(file_read_without_its_lock, _SENDS_ALONE),
    Variant(late_published_ignored, _SENDS_ALONE),
    Variant(lost_acknowledgement_then_sends, _SENDS_ALONE),
    Variant(foreign_id_believed, _DOUBTS_ALONE),
    Variant(nobody_looks_before_a_second_send, ()),
    Variant(reconciler_trusts_absence, _DOUBTS_ALONE),
    Variant(horizon_not_waited_for, _DOUBTS_ALONE),
    Variant(guard_never_compares, ()),
    Variant(tick_alone, ()),
    Variant(strict_is_ignored, ()),
)
"""Caught by chance."""

LED: Final = Variant(old_look_believed, ())
"""Caught on a way of its own: chance would need two sends and two pages of one doubt."""
