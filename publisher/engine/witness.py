"""The witness: what a place outside the database says about how far the database had come.

A backup that is put back re-arms every job sent since it was made, and nothing inside the database
can tell. So each step forward is told to a witness, too, and each new connection compares the two
before it claims anything. What is compared: the deployment's generation, the cluster's own
identity and timeline, a counter raised about once a second (the tick), and random marks. The
database notes a new mark among its latest ones *before* the witness is given it; a database that
does not know the witness's mark is not the one that gave it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from enum import StrEnum
from typing import Protocol, Self

from publisher.engine.errors import PublisherError

_LONGEST = 4_096


class WitnessUnreadable(PublisherError):
    """What is there is no record of ours: damaged, cut short, or somebody else's."""

    code = "witness-unreadable"


class WitnessUnreachable(PublisherError):
    """The place cannot be read or written just now; the sentence says why."""

    code = "witness-unreachable"


class WitnessConflict(PublisherError):
    """Another process wrote meanwhile: read again."""

    code = "witness-conflict"


@dataclass(frozen=True, slots=True)
class Record:
    """What the witness holds. ``tick``: how far the database may count before the next record.

    ``system`` is the cluster's identifier, ``mark`` random and new in each record, ``at`` an ISO
    8601 instant for people to read, ``step`` how far ``tick`` was ahead when it was written.
    """

    deployment: str
    system: str
    timeline: int
    generation: int
    tick: int
    mark: str
    at: str
    step: int = 0

    def to_json(self) -> bytes:
        """One line of JSON."""
        return json.dumps(asdict(self)).encode() + b"\n"

    @classmethod
    def from_json(cls, text: bytes) -> Self:
        """Read what ``to_json`` wrote. Raises ``WitnessUnreadable``."""
        try:
            if len(text) > _LONGEST:
                message = "it is too long"
                raise ValueError(message)  # noqa: TRY301 - as any other damage
            given = json.loads(text)
            values = {
                field.name: given[field.name] for field in fields(cls) if field.name != "step"
            }
            record = cls(**values, step=given.get("step", 0))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            message = f"The witness does not hold a record of ours ({type(error).__name__})."
            raise WitnessUnreadable(message) from error
        numbers = (record.timeline, record.generation, record.tick, record.step)
        words = (record.deployment, record.system, record.mark, record.at)
        # A bool is an int to Python, and no number of ours.
        if not all(type(n) is int and n >= 0 for n in numbers) or not all(
            isinstance(w, str) for w in words
        ):
            message = "The witness holds a record with values of the wrong kind."
            raise WitnessUnreadable(message)
        return record


@dataclass(frozen=True, slots=True)
class Held:
    """A record as it was read; ``stamp`` is the store's own, for the write that follows."""

    record: Record
    stamp: str


class Store(Protocol):
    """A place outside the database that holds one record. Any thread may call it."""

    @property
    def name(self) -> str:
        """Where it is, for people: a path or an address, without any secret."""
        ...

    def read(self) -> Held | None:
        """Read it; None where nothing was ever written.

        Raises ``WitnessUnreadable``, ``WitnessUnreachable``. Bounded in time.
        """
        ...

    def write(self, record: Record, *, over: str | None) -> str:
        """Write durably, if it still is as it was read; returns the new stamp.

        ``over``: the stamp that was read, or None where nothing was there. Raises
        ``WitnessConflict`` when it is not so any more, ``WitnessUnreachable``.
        """
        ...

    def replace(self, record: Record) -> str:
        """Write over whatever is there, a damaged record too, keeping that aside if it can.

        Returns the new stamp. Raises ``WitnessUnreachable``.
        """
        ...


class Cause(StrEnum):
    """Why the database may lack sends that were made."""

    NO_WITNESS = "no_witness"
    UNREADABLE = "witness_unreadable"
    GENERATION = "older_generation"
    SYSTEM = "another_cluster"
    TIMELINE = "failover"
    TICK = "behind_the_witness"
    MARK = "not_the_witnessed_one"
    WENT_BACK = "went_back"
    SPOOL = "lacks_a_begun_send"
    DECLARED = "declared"
    RESTORED = "restored"
    MOVED = "moved"


@dataclass(frozen=True, slots=True)
class Stands:
    """How the database stands: the same facts, read on one connection.

    ``marks``: the latest that were noted, oldest first. ``raised_at``: when the tick was last
    raised. ``quorum``: a commit waits for a standby, so that a failover loses none. ``used``:
    anything was ever sent.
    """

    deployment: str
    system: str
    timeline: int
    generation: int
    tick: int
    marks: Sequence[str]
    raised_at: datetime
    quorum: bool
    used: bool


def next_record(stands: Stands, mark: str, *, tick: int, step: int) -> Record:
    """The record that a witness is given next: ``stands`` as they are since ``mark`` was noted."""
    return Record(
        deployment=stands.deployment,
        system=stands.system,
        timeline=stands.timeline,
        generation=stands.generation,
        tick=tick + step,
        mark=mark,
        at=datetime.now(UTC).isoformat(timespec="seconds"),
        step=step,
    )


@dataclass(frozen=True, slots=True)
class Doubted:
    """The database may lack what was sent since. ``strict``: a clean look alone frees nothing."""

    cause: Cause
    strict: bool


def doubt_of(stands: Stands, record: Record | None, *, step: int) -> Doubted | None:
    """Hold the database against the witness; None where they agree. Pure.

    Without any witness, and after a failover in which every commit waited for a standby, there is
    no sign of a loss: then a look before each send that was due is enough.
    """
    if record is None:
        return Doubted(Cause.NO_WITNESS, strict=False) if stands.used else None
    signs = (
        (Cause.GENERATION, stands.generation < record.generation),
        (Cause.SYSTEM, stands.system != record.system),
        # The larger step of the two: a setting that was made smaller is no sign of a loss.
        (Cause.TICK, not record.tick - max(step, record.step) <= stands.tick <= record.tick),
        (Cause.MARK, record.mark not in stands.marks),
        (Cause.TIMELINE, stands.timeline != record.timeline),
    )
    for cause, shows in signs:
        if shows:
            return Doubted(cause, strict=cause is not Cause.TIMELINE or not stands.quorum)
    return None
