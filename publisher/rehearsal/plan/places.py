"""Places between the engine's own points, and what can be done to a process there."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Place(StrEnum):
    """Places between the engine's points."""

    SPOOL_UNSYNCED = "spool written, not synced"
    """An ``open`` line is written, its fsync not asked for."""
    UNCLASSIFIED = "answer read, not classified"
    """Transport has the whole answer, the adapter has not judged it."""
    SPOOL_CLOSED = "spool closed"
    """The clean end is recorded and the file removed; the process still lives."""
    SPOOL_WRITE = "spool write"
    """Any line of the spool, before it is written: for a disk that is full."""
    SPOOL_COMPACTED = "spool compacted, not renamed"
    """The new file is written, the old one still stands in its place."""
    PAGE_READ = "page of the listing read"
    """A reconciler has an answer of the platform's, and has weighed nothing yet."""
    MATCHED = "match found, not bound"
    """A reconciler knows which post it is, and the database does not."""


class Fault(StrEnum):
    """What can be done to a worker at a place of its own."""

    KILL = "kill"
    FREEZE = "freeze"
    """SIGSTOP; whoever holds the strings sends SIGCONT when its leases were taken away."""
    TERM = "term"
    TERM_TWICE = "term twice"
    """SIGTERM, and another when the first has been handled."""
    TERMINATE = "terminate backend"
    """The server process behind the coordinator's connection, as ``pg_terminate_backend`` does."""
    EDIT = "edit"
    """A person cancels, holds, moves or changes a job just then."""
    DISK_FULL = "disk full"
    """Half of the line is written, then ENOSPC."""


@dataclass(frozen=True, slots=True)
class Strike:
    """At the ``nth`` time this worker is at ``place``."""

    place: str
    fault: Fault
    nth: int = 1


ON_THE_WIRE = (
    "connecting",
    "headers sent",
    "half the body",
    "all of it",
    "status read",
    "half the answer",
    "whole answer",
)
"""How far a request to the platform, and its answer, have come."""
