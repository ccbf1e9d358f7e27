"""What a worker's moves share: its settings, its hands, its spool, and what it holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import psycopg
import structlog

from publisher.engine.alerts import Alarm, by_log
from publisher.engine.job import Channel
from publisher.engine.points import Probe
from publisher.engine.registry import Registry
from publisher.engine.retry import Policy
from publisher.engine.spool import Spool
from publisher.engine.tally import Tally
from publisher.engine.worker.hands import Hands
from publisher.engine.worker.held import Held
from publisher.engine.worker.stock import Stock
from publisher.engine.worker.timing import Timing

log = structlog.get_logger(__name__)

# Errors of these classes say something of the server or the moment, not of the rows.
_OF_THE_MOMENT = ("08", "25", "40", "53", "55", "57", "58")


def is_about_the_data(conn: psycopg.Connection[Any], error: Exception) -> bool:
    """Whether a statement failed for what it was to write, so that it would fail again."""
    if conn.closed or conn.broken:
        return False
    if not isinstance(error, psycopg.Error):
        return True  # it could not even be put into words for the server
    return error.sqlstate is not None and error.sqlstate[:2] not in _OF_THE_MOMENT


def first_line(error: BaseException) -> str:
    """What an error says, without the statement and the parameters that may follow."""
    return (str(error).splitlines() or [""])[0] or type(error).__name__


def where(error: BaseException) -> str:
    """The innermost place of ours in a traceback, for a log line that may hold no values."""
    place = ""
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        place = f"{Path(code.co_filename).name}:{trace.tb_lineno} {code.co_name}"
        trace = trace.tb_next
    return place


@dataclass(slots=True)
class Station:
    """One worker run.

    ``now`` is the database's clock; ``floor`` the highest tick that was seen of it; ``begun``
    counts sends, ``parked`` ends it refused.
    """

    registry: Registry
    policy: Policy
    timing: Timing
    queues: Sequence[str]
    incarnation: int
    spool: Spool
    hands: Hands
    stock: Stock
    at: Probe
    now: Callable[[], datetime]
    alarm: Alarm = by_log
    tally: Tally = field(default_factory=Tally)
    channels: dict[int, Channel] = field(default_factory=dict)
    parked: int = 0
    floor: int = 0
    begun: int = 0

    @property
    def who(self) -> str:
        """This run, as events and proofs name it."""
        return f"worker run {self.incarnation}"

    def lose(self, held: Held) -> None:
        """Let a job go that a person or rescue took from us; nothing of it was sent."""
        log.info("job.lost", job=held.job.key)
        self.stock.drop(held.id)
