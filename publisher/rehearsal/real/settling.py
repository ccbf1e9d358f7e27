"""Brings a rehearsal's jobs to their ends: what was not sent is called off, the rest looked at.

The looking is the product's own: a reconciler reads the files of dead workers and looks at the
page, and where nobody can look, a person is asked what they see.
"""

from __future__ import annotations

import time
from typing import Final

from publisher.editorial import unknowns
from publisher.editorial.unknowns import Signed
from publisher.engine import ledger
from publisher.engine.errors import PublisherError
from publisher.engine.job import Channel, Hold, State, public_id
from publisher.engine.queries import RehearsalJob
from publisher.rehearsal.real import processes
from publisher.rehearsal.real.ground import Ground, Question, mark_of, where
from publisher.words import _

_NOT_BEGUN: Final = (State.SCHEDULED, State.CLAIMED)
_POLL: Final = 0.2


def call_off(ground: Ground, channel: Channel, run: str | None) -> None:
    """Cancel what has not begun to be sent. A safe repeat that was to come becomes a doubt."""
    for job in ground.jobs(channel, run):
        # One in quarantine may have been sent before the database was put back.
        if job.row.state not in _NOT_BEGUN or job.row.hold_reason == Hold.QUARANTINE:
            continue
        try:
            with ground.database.engine.begin() as conn:
                ledger.cancel(conn, job.row.id, who=ground.who, reason=_("the rehearsal is over"))
        except PublisherError:
            continue  # it was begun meanwhile, or somebody else moved it


def look(ground: Ground, channel: Channel, run: str | None) -> None:
    """Have every doubt looked at until it is settled or asks for a person."""
    if not any(is_open(job) for job in ground.jobs(channel, run)):
        return
    ground.say(_("Looking at the page for what may be live …"))
    with processes.reconciler(ground.settings):
        await_ends(ground, channel, run, ground.patience.settle)


def ask(ground: Ground, channel: Channel, run: str | None) -> None:
    """Ask a person about what no look has settled."""
    for job in ground.jobs(channel, run):
        if job.row.state is State.UNKNOWN:
            _ask(ground, channel, job)


def await_ends(ground: Ground, channel: Channel, run: str | None, seconds: float) -> bool:
    """Wait until no job of the run goes on by itself; False when the time ran out."""
    until = time.monotonic() + seconds
    while any(is_open(job) for job in ground.jobs(channel, run)):
        if time.monotonic() > until:
            return False
        time.sleep(_POLL)
    return True


def is_open(job: RehearsalJob) -> bool:
    """Whether something more happens to it without a person."""
    row = job.row
    if row.state is State.UNKNOWN:
        return row.asked_at is None
    return row.state in (*_NOT_BEGUN, State.SENDING)


def _ask(ground: Ground, channel: Channel, job: RehearsalJob) -> None:
    """Where nobody can look by program, a person's word settles it, and is kept as theirs."""
    place = where(job, channel)
    if ground.ask is None or not ground.ask(Question.IS_IT_THERE, mark_of(job), place):
        return
    reason = _("seen on the page during rehearsal {run}").format(run=job.run)
    try:
        with ground.database.engine.begin() as conn:
            seen = unknowns.see(conn, ground.app.registry, job.row.id, horizon=ground.horizon)
        unknowns.decide_attested(ground.database.engine, seen, Signed(ground.who, reason))
    except PublisherError as error:
        name = public_id(job.row.id)
        ground.say(_("{id} was not recorded: {why}").format(id=name, why=error))
