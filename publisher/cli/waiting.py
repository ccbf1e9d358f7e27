"""Wait until nothing that is due is under way, and say how it ended.

What counts: every job whose due time (the instant an editor asked for) has come, by the
database's clock. A retry that waits its turn, a hold or a closed gate does not make a job less
due, so those are waited for as well. Settled ones count whenever they were settled, so that the
answer does not depend on whether a worker was quicker than the command. Jobs that a person
cancelled or dropped are as that person wished.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rich.progress import Progress

from publisher.cli import moments, screen
from publisher.cli.exits import Exit
from publisher.engine import queries
from publisher.engine.job import JobId, State, public_id
from publisher.engine.queries import DueCounts
from publisher.words import _, many

if TYPE_CHECKING:
    from publisher.config import Settings
    from publisher.db.connect import Database

_POLL_SECONDS: Final = 0.2
_LONELY_AFTER: Final = 3.0
"""Seconds after which a wait without any worker says so."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a wait ended. ``example``: one job that is not live, to look at next."""

    counts: DueCounts
    settled: bool
    waited: float
    example: JobId | None


def wait(
    database: Database,
    settings: Settings,
    *,
    timeout: float | None = None,
    only: Collection[JobId] | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> Outcome:
    """Poll until no due job is scheduled, claimed or sending, or ``timeout`` seconds are over.

    ``stop``: asked between two looks; True ends the wait as a time-out does.
    """
    began = time.monotonic()
    told = False
    with screen.progress() as bar:
        task = bar.add_task(_("due and settled"), total=None)
        while True:
            with database.engine.begin() as conn:
                counts = queries.due_counts(conn, only=only)
            waited = time.monotonic() - began
            _advance(bar, task, counts)
            over = stop() or (timeout is not None and waited >= timeout)
            if counts.unsettled == 0 or over:
                break
            if not told and waited >= _LONELY_AFTER:
                told = True
                _say_when_nobody_works(database, settings)
            left = _POLL_SECONDS if timeout is None else timeout - waited
            time.sleep(min(_POLL_SECONDS, max(left, 0.01)))
    return Outcome(counts, counts.unsettled == 0, waited, _example(database, counts, only))


def verdict(outcome: Outcome) -> Exit:
    """A doubt weighs more than a post that is certainly not there: it needs a person."""
    if not outcome.settled:
        return Exit.NOT_AS_WISHED
    if outcome.counts.unknown:
        return Exit.NEEDS_A_PERSON
    if outcome.counts.not_published:
        return Exit.NOT_AS_WISHED
    return Exit.DONE


def tell(outcome: Outcome, *, timeout: float | None, digits: int) -> Exit:
    """Say how the wait ended and return the exit code."""
    screen.say(summary(outcome.counts, outcome.waited))
    if not outcome.settled:
        screen.note(_still_waiting(outcome.counts, timeout or 0.0))
    code = verdict(outcome)
    if outcome.example is not None:
        screen.say_next(f"publisher jobs show {public_id(outcome.example)[:digits]}")
    elif code is Exit.DONE:
        screen.say_next("publisher jobs list")
    return code


def summary(counts: DueCounts, seconds: float) -> str:
    """``12 due · 11 live · 0 may be live · 1 not published · 17 s``."""
    return " · ".join(
        [
            many("{n} due", "{n} due", sum(counts.by_state.values())),
            many("{n} live", "{n} live", counts.live),
            many("{n} may be live", "{n} may be live", counts.unknown),
            many("{n} not published", "{n} not published", counts.not_published),
            moments.duration(seconds),
        ]
    )


def _still_waiting(counts: DueCounts, seconds: float) -> str:
    parts = [
        f"{counts.by_state[state]} {words}"
        for state, words in (
            (State.SENDING, _("being sent")),
            (State.CLAIMED, _("being prepared")),
            (State.SCHEDULED, _("scheduled")),
        )
        if counts.by_state[state]
    ]
    if counts.held:
        parts.append(_("{n} of them on hold").format(n=counts.held))
    if counts.retrying:
        parts.append(_("{n} of them waiting for their next try").format(n=counts.retrying))
    return many(
        "Waited {time}: {n} job is due and not settled ({parts}).",
        "Waited {time}: {n} jobs are due and not settled ({parts}).",
        counts.unsettled,
        time=moments.duration(seconds),
        parts=", ".join(parts),
    )


def _advance(bar: Progress, task: object, counts: DueCounts) -> None:
    total = sum(counts.by_state.values())
    for known in bar.task_ids:
        if known == task:
            bar.update(known, total=total, completed=total - counts.unsettled)


def _say_when_nobody_works(database: Database, settings: Settings) -> None:
    with database.engine.begin() as conn:
        alive = [
            worker
            for worker in queries.worker_rows(conn)
            if (worker.now - worker.seen_at).total_seconds() < settings.rescue_after_seconds
        ]
    if not alive:
        screen.note(_("No worker is running, so nothing is sent. Start one: publisher worker"))


def _example(database: Database, counts: DueCounts, only: Collection[JobId] | None) -> JobId | None:
    order = (State.UNKNOWN, State.FAILED, State.MISSED, State.SENDING, State.CLAIMED)
    for state in (*order, State.SCHEDULED):
        if counts.by_state[state]:
            with database.engine.begin() as conn:
                return next(
                    (row.id for row in queries.job_rows(conn, states=[state], limit=1, only=only)),
                    None,
                )
    return None
