"""What lies where inside a coordinator, between one tick and the next."""

from __future__ import annotations

import json
from collections import deque
from dataclasses import dataclass, field

from publisher.engine.adapter import Progress, Ready
from publisher.engine.job import JobId
from publisher.engine.ledger import Key, Progressed
from publisher.engine.retry import Rest, Settlement
from publisher.engine.worker.held import Held, Looked


@dataclass(frozen=True, slots=True)
class Kept:
    """Progress to store; then the job ends as ``then`` says, or goes on."""

    held: Held
    progress: Progress
    then: Settlement | None = None

    def as_stored(self) -> Progressed:
        """What the ledger is given."""
        job = self.held.job
        return Progressed(job.id, job.token, bytes(job.content_sha256), json.dumps(self.progress))


@dataclass(slots=True)
class Stock:
    """Every job this worker holds lies in ``held``, and in at most one of the others.

    ``ends`` outlive ``held``: an answer is carried until the database has it, even when the job
    was taken away meanwhile. ``happened`` goes up with all that may let another job run: one held
    no longer, or a hint that one was enqueued.
    """

    held: dict[JobId, Held] = field(default_factory=dict)
    steps: deque[Held] = field(default_factory=deque)
    looks: deque[tuple[Held, Ready]] = field(default_factory=deque)
    ready: deque[tuple[Held, Ready]] = field(default_factory=deque)
    kept: list[Kept] = field(default_factory=list)
    looked: list[Looked] = field(default_factory=list)
    ends: dict[Key, Settlement] = field(default_factory=dict)
    rests: dict[tuple[int, int], Rest] = field(default_factory=dict)
    happened: int = 0

    def holds(self, held: Held) -> bool:
        """Whether this claim is still ours, as far as this process knows."""
        return self.held.get(held.id) is held

    def end(self, held: Held, settlement: Settlement) -> None:
        """Settle this job at the next tick, and let its channel rest where that follows."""
        self.ends[held.key] = settlement
        rest = settlement.rest
        if rest is not None:
            self.rest((held.channel.id, held.channel.generation), rest)

    def rest(self, place: tuple[int, int], rest: Rest) -> None:
        """Let a channel (id, generation) rest after the next settle."""
        self.rests[place] = _longer(self.rests.get(place), rest)

    def drop(self, job_id: JobId) -> None:
        """Hold this job no longer."""
        self.held.pop(job_id, None)
        self.happened += 1

    @property
    def sending(self) -> list[Held]:
        """Jobs whose send was begun and whose hand has not reported."""
        return [held for held in self.held.values() if held.permit is not None and held.busy]


def _longer(one: Rest | None, other: Rest) -> Rest:
    if one is None:
        return other
    blocked = one if one.blocked is not None else other
    seconds = [s for s in (one.seconds, other.seconds) if s is not None]
    return Rest(max(seconds, default=None), blocked.blocked, blocked.detail)
