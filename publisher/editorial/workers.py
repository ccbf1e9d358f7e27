"""Worker runs, and an operator's signed word that the machine of one is gone.

Without that word a machine that will never come back keeps its doubts locked for ever: nothing
else can prove that it does not wake up and write on.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import structlog

from publisher.editorial import walls
from publisher.editorial.unknowns import NotConfirmed, Signed
from publisher.engine import ledger, queries
from publisher.engine.errors import Conflict, NotFound
from publisher.engine.queries import WorkerRun
from publisher.engine.sender import DECLARED_MARGIN
from publisher.words import _

if TYPE_CHECKING:
    from sqlalchemy import Connection

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Gone:
    """A run that was stated gone, since when, and when what it sent may be sent again."""

    run: WorkerRun
    declared_at: datetime
    unlocks_at: datetime


def listing(conn: Connection, *, every: bool = False) -> list[WorkerRun]:
    """Worker runs that are not over or left doubts, the newest first; or ``every`` one."""
    return queries.worker_runs(conn, every=every)


def declare_gone(
    conn: Connection,
    number: int,
    signed: Signed,
    *,
    confirm: str,
    silent_after: timedelta,
    horizon: timedelta,
) -> Gone:
    """Record that the machine of a run was switched off or is lost for good.

    ``confirm``: its host, as the operator typed it. A run that was seen within ``silent_after``
    is not gone. Raises ``NotFound``, ``NotConfirmed``, ``Conflict`` (``worker-alive``,
    ``worker-over``, ``serves-others``).
    """
    if walls.serves_others(conn):
        message = _(
            "Worker run {n} sends for other workspaces, too, and to state it gone unlocks theirs."
            " Nothing was recorded. Whoever runs the deployment may: publisher workers declare-gone"
            " {n}"
        )
        raise Conflict(message.format(n=number), code="serves-others")
    found = next((at for at in listing(conn, every=True) if at.row.id == number), None)
    if found is None:
        raise NotFound(_("There is no worker run {n}.").format(n=number))
    row = found.row
    if row.ended_at is not None:
        message = _("Worker run {n} is over since {when} ({why}). There is nothing to state.")
        when = f"{row.ended_at:%Y-%m-%d %H:%M:%S %Z}"
        raise Conflict(message.format(n=number, when=when, why=row.end_reason), code="worker-over")
    if row.now - row.seen_at < silent_after:
        message = _(
            "Worker run {n} on {host} was seen {seconds:.0f} s ago, so it is not gone. Nothing was"
            " recorded. Stop it instead."
        )
        seconds = (row.now - row.seen_at).total_seconds()
        raise Conflict(
            message.format(n=number, host=row.host, seconds=seconds), code="worker-alive"
        )
    if not signed.reason.strip():
        message = _("A statement needs a reason, which the journal keeps. Nothing was recorded.")
        raise NotConfirmed(message, code="reason-missing")
    if confirm.strip() != row.host:
        message = _(
            "To state it gone, confirm with the name of its machine, {host}. Nothing was recorded."
        )
        raise NotConfirmed(message.format(host=row.host), code="not-confirmed")
    declared_at = ledger.declare_gone(conn, number, who=signed.who, reason=signed.reason.strip())
    if declared_at is None:  # pragma: no cover - worker runs are never deleted
        raise NotFound(_("There is no worker run {n}.").format(n=number))
    _log.info(
        "worker.declared_gone",
        worker_run=number,
        host=row.host,
        who=signed.who,
        reason=signed.reason.strip(),
    )
    return Gone(found, declared_at, declared_at + DECLARED_MARGIN + horizon)
