"""What a rehearsal on a real page came to."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from publisher.engine.job import JobId, State


class How(StrEnum):
    """Why nothing of a post is on the page any more."""

    DELETED = "deleted"
    GONE = "gone"
    """It was not there any more when we came to delete it."""
    BY_HAND = "by hand"
    """A person says that they deleted it."""
    NEVER_SENT = "never sent"


@dataclass(frozen=True, slots=True)
class Removed:
    """A post of a rehearsal that is not on its page any more. ``mark``: as its text begins."""

    job_id: JobId
    channel: str
    run: str
    mark: str
    how: How
    remote_id: str | None = None


@dataclass(frozen=True, slots=True)
class LeftBehind:
    """A post of a rehearsal that is, or may be, on its page still.

    ``where``: its link, or the nearest to one that is known. ``why``: one clause. ``then``: what to
    run, or do by hand.
    """

    job_id: JobId
    channel: str
    run: str
    mark: str
    where: str
    why: str
    then: str


@dataclass(frozen=True, slots=True)
class Posted:
    """One post of a run as it was before it was taken down.

    ``killed``: its worker was killed in the middle of its send. ``once``: a look showed it on the
    page, once; None where the platform shows nothing.
    """

    job_id: JobId
    mark: str
    state: State
    attempts: int
    killed: bool
    remote_id: str | None = None
    permalink: str | None = None
    once: bool | None = None


@dataclass(frozen=True, slots=True)
class SmokeResult:
    """What a smoke run on one channel came to.

    ``faults``: promises that were broken. ``unproved``: what the run was for and could not show.
    ``notes``: what this platform lets nobody show.
    """

    run: str
    channel: str
    posted: tuple[Posted, ...]
    removed: tuple[Removed, ...]
    left: tuple[LeftBehind, ...]
    faults: tuple[str, ...] = ()
    unproved: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """0 kept and clean, 1 a promise broken or something left behind, 3 proved too little."""
        if self.faults or self.left:
            return 1
        return 3 if self.unproved else 0


@dataclass(frozen=True, slots=True)
class CleanResult:
    """What cleaning up came to."""

    removed: tuple[Removed, ...]
    left: tuple[LeftBehind, ...]

    @property
    def exit_code(self) -> int:
        """0 clean, 1 something is left behind."""
        return 1 if self.left else 0
