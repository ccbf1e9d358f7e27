"""Moments at which a worker or a reconciler can be made to die, freeze or lose its connection.

In production every point is a no-op; acceptance runs and tests hand them a function of
their own. The names are those of the catalogue of crash points in the docs.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum


class Point(StrEnum):
    """Where the process is: a worker, or, at doubts and verdicts, a reconciler.

    ``before``/``after`` are about the statement or call named.
    """

    BEFORE_CLAIM = "before claim"
    AFTER_CLAIM = "after claim"
    BEFORE_STEP = "before step"
    AFTER_STEP = "after step"
    BEFORE_SAVE_PROGRESS = "before save progress"
    AFTER_SAVE_PROGRESS = "after save progress"
    BEFORE_BEGIN = "before begin"
    AFTER_BEGIN = "after begin"
    AFTER_SPOOL_OPEN = "after spool open"
    BEFORE_START = "before start line"
    AFTER_START = "after start line"
    AFTER_PUBLISH = "after publish"
    AFTER_ANSWER = "after answer line"
    BEFORE_SETTLE = "before settle"
    AFTER_SETTLE = "after settle"
    BEFORE_RESCUE = "before rescue"
    AFTER_RESCUE = "after rescue"
    BEFORE_DOUBTS = "before doubts"
    AFTER_DOUBTS = "after doubts"
    BEFORE_VERDICT = "before verdict"
    AFTER_VERDICT = "after verdict"


Probe = Callable[[Point], None]


def unwatched(point: Point) -> None:
    """The probe of every process outside a rehearsal."""
