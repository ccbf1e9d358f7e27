"""Everything that can be done, and where: the places of a publish, times what strikes there.

After the tables "Crash points", "Platform behaviours" and "Database and host faults" of the
project's catalogue of faults, as far as the parts they are about exist.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from itertools import product

from publisher.engine.points import Point
from publisher.rehearsal.plan.blows import Blow
from publisher.rehearsal.plan.places import ON_THE_WIRE, Fault, Place
from publisher.sandbox.behaviours import Behaviour


@dataclass(frozen=True, slots=True, order=True)
class Hit:
    """One thing done at one place. ``layer``: worker, reconciler, database, wire or people.

    ``when``: before or after a statement; ``at`` elsewhere.
    """

    layer: str
    place: str
    when: str
    fault: str

    @property
    def is_reconcilers(self) -> bool:
        """Whether only a reconciler comes there."""
        return self.layer == "reconciler" or (
            self.layer == "database" and self.place.startswith(("doubts", "look again", "verdict"))
        )

    @property
    def point(self) -> tuple[str, str, str]:
        """Where, whatever is done there."""
        return (self.layer, self.place, self.when)


_DEADLY = (Fault.KILL, Fault.FREEZE, Fault.TERM, Fault.TERM_TWICE)
_COORDINATORS = (
    Point.BEFORE_CLAIM, Point.AFTER_CLAIM, Point.BEFORE_SAVE_PROGRESS, Point.AFTER_SAVE_PROGRESS,
    Point.BEFORE_BEGIN, Point.AFTER_BEGIN, Point.AFTER_SPOOL_OPEN, Point.BEFORE_SETTLE,
    Point.AFTER_SETTLE, Point.BEFORE_RESCUE, Point.AFTER_RESCUE,
)  # fmt: skip
_WORKERS = tuple(p for p in Point if "doubts" not in p and "verdict" not in p)
_EDITED = (
    Point.BEFORE_CLAIM, Point.AFTER_CLAIM, Point.BEFORE_STEP, Point.AFTER_STEP,
    Point.BEFORE_BEGIN, Point.AFTER_BEGIN, Point.BEFORE_START, Point.AFTER_START,
    Point.AFTER_PUBLISH, Point.BEFORE_SETTLE,
)  # fmt: skip

_RECONCILERS = (
    Point.BEFORE_DOUBTS, Point.AFTER_DOUBTS, Place.PAGE_READ, Place.MATCHED,
    Point.BEFORE_VERDICT, Point.AFTER_VERDICT,
)  # fmt: skip

_MAIN_STATEMENTS = (
    "claim read", "hands", "progress", "begin", "settle",
    "forsake", "late move commit",
)  # fmt: skip
"""Statements after which the database holds something else than before."""
_SMALL_STATEMENTS = (
    "register", "beat", "channels", "earlier attempts", "bound elsewhere", "look",
    "rest", "rescue", "expire", "suspects", "unsettled", "late job", "known attempts", "held",
    "registered", "deployment", "end",
)  # fmt: skip
_MAIN_BLOWS = (
    ("before", Blow.CUT), ("after", Blow.CUT), ("before", Blow.KILL), ("after", Blow.KILL),
    ("before", Blow.FREEZE), ("after", Blow.FREEZE), ("before", Blow.TERMINATE),
    ("after", Blow.TERMINATE), ("before", Blow.HOLD), ("after", Blow.HOLD),
    ("before", Blow.HOLD_AND_CUT), ("before", Blow.RESTART), ("after", Blow.RESTART),
)  # fmt: skip
_SMALL_BLOWS = (("before", Blow.CUT), ("after", Blow.CUT), ("after", Blow.KILL))
_LOOKING = ("doubts", "doubts commit", "look again")
_JUDGING = ("verdict bind", "verdict commit")
_JUDGING_BLOWS = (
    ("before", Blow.CUT), ("after", Blow.CUT), ("before", Blow.KILL), ("after", Blow.KILL),
    ("before", Blow.FREEZE), ("after", Blow.FREEZE), ("after", Blow.TERMINATE),
    ("before", Blow.HOLD_AND_CUT), ("after", Blow.RESTART),
)  # fmt: skip
_SCHEDULING = ("enqueue", "enqueue commit")
_AWAY_AT = (("claim read", "after"), ("begin", "after"), ("settle", "before"))


def _worker() -> list[Hit]:
    points = [Hit("worker", str(p), "at", str(f)) for p, f in product(_WORKERS, _DEADLY)]
    points += [Hit("worker", str(p), "at", str(Fault.TERMINATE)) for p in _COORDINATORS]
    points += [Hit("worker", str(p), "at", str(Fault.EDIT)) for p in _EDITED]
    between = (Place.SPOOL_UNSYNCED, Place.UNCLASSIFIED, Place.SPOOL_COMPACTED)
    points += [
        Hit("worker", str(p), "at", str(f)) for p, f in product(between, (Fault.KILL, Fault.FREEZE))
    ]
    points += [
        Hit("worker", str(Place.SPOOL_CLOSED), "at", str(Fault.KILL)),
        Hit("worker", str(Place.SPOOL_WRITE), "at", str(Fault.DISK_FULL)),
    ]
    return points


def _reconciler() -> list[Hit]:
    """What strikes reconcilers in their own process, and their statements on the wire."""
    strikes = (Fault.KILL, Fault.FREEZE, Fault.TERM)
    hits = [Hit("reconciler", str(p), "at", str(f)) for p, f in product(_RECONCILERS, strikes)]
    hits += [
        Hit("database", place, when, str(blow))
        for place, (when, blow) in product(_LOOKING, _SMALL_BLOWS)
    ]
    hits += [
        Hit("database", place, when, str(blow))
        for place, (when, blow) in product(_JUDGING, _JUDGING_BLOWS)
    ]
    return hits


def _people() -> list[Hit]:
    """A person's verdict that is lost on its way, and one whose answer is."""
    ways = (("before", Blow.CUT), ("after", Blow.CUT), ("after", Blow.KILL))
    return [Hit("people", "verdict commit", when, str(blow)) for when, blow in ways]


def _database() -> list[Hit]:
    hits = [
        Hit("database", place, when, str(blow))
        for place, (when, blow) in product(_MAIN_STATEMENTS, _MAIN_BLOWS)
    ]
    hits += [
        Hit("database", place, when, str(blow))
        for place, (when, blow) in product(_SMALL_STATEMENTS, _SMALL_BLOWS)
    ]
    hits += [Hit("database", place, when, str(Blow.OUTAGE)) for place, when in _AWAY_AT]
    hits += [
        Hit("database", place, when, str(blow))
        for place, when, blow in product(_SCHEDULING, ("before", "after"), (Blow.CUT, Blow.KILL))
    ]
    return hits


def _wire() -> list[Hit]:
    blows = (Blow.CUT, Blow.KILL, Blow.FREEZE)
    hits = [Hit("wire", ON_THE_WIRE[0], "at", str(blow)) for blow in blows]
    hits += [Hit("wire", ON_THE_WIRE[0], "at", "refuse")]
    for call, place, blow in product(("publish", "upload"), ON_THE_WIRE[1:], (*blows, Blow.TERM)):
        hits.append(Hit("wire", f"{call}: {place}", "at", str(blow)))
    reading = (place for place in ON_THE_WIRE[1:] if place != "half the body")
    hits += [
        Hit("wire", f"listing: {place}", "at", str(blow)) for place, blow in product(reading, blows)
    ]
    return hits


HITS: tuple[Hit, ...] = (*_worker(), *_database(), *_wire(), *_reconciler(), *_people())
POINTS = frozenset(hit.point for hit in HITS)
"""Every place where something must have struck at least once."""

UNUSUAL = frozenset({Behaviour.ANSWER})
BEHAVIOURS: tuple[Behaviour, ...] = tuple(b for b in Behaviour if b not in UNUSUAL)
LISTINGS = (Behaviour.LISTING_DELAYED, Behaviour.LISTING_GAP)
HOLD_CONNECTIONS = "hold-connections"
"""The platform accepts connections and reads nothing: nothing ever answers."""
FALSE_KEYS = ("ignored", "late", "replay-500")
"""What a server may make of a key that it says makes a repeat safe."""
OTHER_WAYS = (HOLD_CONNECTIONS, *(f"key {way}" for way in FALSE_KEYS))
"""Ways of the platform besides its behaviours."""


def shuffled() -> tuple[Hit, ...]:
    """All hits in an order that is always the same, so that neighbours have little in common."""
    hits = list(HITS)
    random.Random(20260712).shuffle(hits)
    return tuple(hits)
