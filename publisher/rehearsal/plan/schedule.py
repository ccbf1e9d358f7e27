"""What a seed means: posts, workers, what strikes where, how the platform behaves. Pure."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from publisher.engine.points import Point
from publisher.rehearsal.plan.catalogue import BEHAVIOURS, FALSE_KEYS, LISTINGS, Hit, shuffled
from publisher.rehearsal.plan.places import Fault, Place
from publisher.sandbox.behaviours import Behaviour

HITS_EACH = 8
BEHAVIOURS_EACH = 3
_SECONDS: dict[Behaviour, tuple[float, float]] = {
    Behaviour.ANSWER_SLOWLY: (0.3, 3.0),
    # Within the horizon: what comes after it is nobody's promise.
    Behaviour.ACCEPT_LATE: (0.2, 1.2),
    Behaviour.ACCEPT_AND_LIMIT: (1.0, 1.0),
    Behaviour.ACCEPT_AND_HANG: (4.0, 4.0),
    Behaviour.ENDLESS_BODY: (4.0, 4.0),
    Behaviour.HEADER_DRIBBLE: (4.0, 4.0),
    Behaviour.HANG: (4.0, 4.0),
    Behaviour.REFUSE_LIMITED: (1.0, 1.0),
    Behaviour.REFUSE_429_RETRY_AFTER: (1.0, 1.0),
    Behaviour.LISTING_DELAYED: (2.0, 60.0),
}
OTHERS = ("bluesky", "mastodon", "telegram")
"""Platforms whose promise is another: by key, while a key lives, without evidence."""
_ANYWHERE = tuple(
    b for b in BEHAVIOURS
    if b not in LISTINGS and b not in {Behaviour.REFUSE_DUPLICATE, Behaviour.REFUSE_TOKEN}
)  # fmt: skip
_KEYS = ("", "", *FALSE_KEYS)
LOST = (
    Behaviour.LOSE_ANSWER, Behaviour.ACCEPT_AND_RESET, Behaviour.HALF_ANSWER,
    Behaviour.GARBAGE_ANSWER, Behaviour.ACCEPT_AND_500, Behaviour.ACCEPT_AND_502,
)  # fmt: skip
"""On the page, and nobody was told: what the reconciler is for."""
_VERDICTS = ("live", "attest", "absent, do not send", "drop")
"""What strikes a person comes when they decide."""
_LOOKED_AT = ("listing: ", "look", "bound elsewhere", "earlier attempts", "rest")
_WITH_PHOTOS = ("upload: ", "step", "progress", "hands")
_AFTER_DEATHS = (
    "forsake", "late ", "unsettled", "known attempts", "held", "registered", "end",
)  # fmt: skip

Kind = str
"""``text``, ``link`` or ``photo``."""


@dataclass(frozen=True, slots=True)
class PostPlan:
    """One approved post. ``behaviour``: how its first publish call is treated.

    ``refused_first``: refused once, so that a look comes before the second send. ``in_reserve``:
    due only when the workers have nothing else to do.
    """

    number: int
    page: int
    """Which page, counted over Facebook Pages first and the others' accounts behind them."""
    kind: Kind
    behaviour: Behaviour | None = None
    seconds: float | None = None
    refused_first: bool = False
    in_reserve: bool = False
    times: int = 1
    """How many of its publish calls are treated so."""
    then: Behaviour | None = None
    """How the call after those is treated."""
    overdue: float = 0.0
    """Seconds for which it has been due when the workers come."""
    useful_for: float | None = None
    """Seconds after its time; None: as long as is usual."""

    def text(self, seed: int) -> str:
        """What is approved: a mark that nothing else holds, and what the sandbox is to do."""
        text = f"c{seed}-{self.number} a {self.kind}"
        if self.refused_first:
            text += f" #sandbox:{Behaviour.REFUSE_LIMITED}=1*1"
        if self.behaviour is not None and self.behaviour not in LISTINGS:
            seconds = "" if self.seconds is None else f"={self.seconds:.2f}"
            text += f" #sandbox:{self.behaviour}{seconds}*{self.times}"
        if self.then is not None:
            text += f" #sandbox:{self.then}*1"
        return text


@dataclass(frozen=True, slots=True)
class Schedule:
    """One run. ``hits`` come to one worker each; ``listing``: how the page's listing is read."""

    seed: int
    hits: tuple[Hit, ...]
    behaviours: tuple[Behaviour, ...]
    workers: int
    pages: int
    """How many Facebook Pages."""
    in_flight: int
    concurrency: int
    posts: tuple[PostPlan, ...]
    listens: bool = True
    compact_bytes: int | None = None
    edits: int = 0
    edits_of: tuple[str, ...] = ()
    """What the person who edits chooses from; empty: everything they may do."""
    holds_connections: bool = False
    reset_unread: bool = False
    listing: Behaviour | None = None
    listing_seconds: float = 2.0
    kills_frozen: bool = False
    frozen_for: str = ""
    """``moment`` (half a second); ``taken``, ``ended`` or ``decided``: its jobs, the last without
    a doubt; empty: as it comes."""
    reconcilers: int = 0
    settlers: int = 0
    """Acts of a person who settles doubts meanwhile."""
    late_settlers: int = 0
    """Acts of another, when the reconciler has looked at everything."""
    acts: tuple[str, ...] = ()
    """What these people choose from; empty: everything they may do."""
    uploads: tuple[tuple[Behaviour, int, float | None], ...] = ()
    """How uploads to the first page are treated: so many of them, for so many seconds."""
    keys: str = ""
    """What an ``Idempotency-Key`` does on the Mastodon server, where it is not as it should."""
    others: tuple[str, ...] = ()
    """Other platforms, with an account each."""
    companions: tuple[Hit, ...] = ()
    """What comes to the worker of a hit besides."""
    variant: str | None = None
    """A broken copy of the engine to run, see ``variants``."""
    scenario: str = "random"
    """What it was drawn for."""

    @property
    def rng(self) -> random.Random:
        """Chance for what happens on the way."""
        return random.Random(f"{self.seed}:way")


def scheduled(seed: int) -> Schedule:
    """Draw the schedule of a seed. Hits and behaviours rotate: neighbours cover everything."""
    return drawn(seed, shuffled(), BEHAVIOURS)


def drawn(seed: int, every: Sequence[Hit], ways: Sequence[Behaviour]) -> Schedule:
    """Draw a schedule out of these hits and these behaviours of the platform alone."""
    rng = random.Random(seed)
    hits = tuple(every[(seed * HITS_EACH + i) % len(every)] for i in range(HITS_EACH))
    first = seed * BEHAVIOURS_EACH
    behaviours = tuple(ways[(first + i) % len(ways)] for i in range(BEHAVIOURS_EACH))
    listing = next((b for b in behaviours if b in LISTINGS), None)
    pages = rng.randint(2, 4)
    others = OTHERS if seed % 4 == 0 else (OTHERS[seed % 4 - 1],)
    return Schedule(
        seed=seed,
        hits=hits,
        behaviours=behaviours,
        workers=rng.choice((2, 2, 3, 3, 4, 4, 6, 8)),
        pages=pages,
        in_flight=rng.choice((1, 1, 2)),
        concurrency=rng.choice((1, 2, 4)),
        posts=_posts(rng, pages, hits, behaviours, others),
        others=others,
        keys=rng.choice(_KEYS),
        listens=rng.random() < 0.5,
        compact_bytes=400 if _needs(hits, (Place.SPOOL_COMPACTED,)) or rng.random() < 0.2 else None,
        edits=rng.choice((0, 2, 5)),
        holds_connections=seed % 11 == 0,
        reset_unread=Behaviour.RESET_UNREAD in behaviours,
        listing=listing,
        listing_seconds=rng.uniform(*_SECONDS[Behaviour.LISTING_DELAYED]),
        kills_frozen=rng.random() < 0.25,
        reconcilers=rng.choice((1, 1, 2)),
        settlers=8 if _is_peoples(hits) else rng.choice((0, 0, 3, 6)),
        acts=_VERDICTS if _is_peoples(hits) else (),
        late_settlers=rng.choice((0, 0, 3, 6)),
    )


def with_victims(schedule: Schedule) -> Schedule:
    """Add the deaths that some hits need: only a killed worker leaves a file to read."""
    if not _needs(schedule.hits, _AFTER_DEATHS):
        return schedule
    deaths = tuple(
        Hit("worker", str(place), "at", str(Fault.KILL))
        for place in (Point.AFTER_ANSWER, Point.AFTER_START)
    )
    return replace(schedule, hits=(*deaths, *schedule.hits))


def _needs(hits: tuple[Hit, ...], words: tuple[str, ...]) -> bool:
    return any(word in hit.place for hit in hits for word in words)


def _is_peoples(hits: tuple[Hit, ...]) -> bool:
    return any(hit.layer == "people" for hit in hits)


def _posts(
    rng: random.Random,
    pages: int,
    hits: tuple[Hit, ...],
    behaviours: tuple[Behaviour, ...],
    others: tuple[str, ...],
) -> tuple[PostPlan, ...]:
    plans: list[PostPlan] = []

    def add(kind: Kind, page: int | None = None, **more: object) -> None:
        where = rng.randrange(pages) if page is None else page
        plans.append(PostPlan(len(plans) + 1, where, kind, **more))  # type: ignore[arg-type]

    with_photos = _needs(hits, _WITH_PHOTOS)
    with_looks = _needs(hits, _LOOKED_AT) or any(b in LISTINGS for b in behaviours)
    kinds = ("photo", "photo", "text") if with_photos else ("text", "text", "link", "photo")
    for number in range(4):
        add(rng.choice(kinds), refused_first=with_looks and number % 2 == 0)
    for behaviour in behaviours:
        if behaviour in LISTINGS:
            continue
        seconds = rng.uniform(*_SECONDS[behaviour]) if behaviour in _SECONDS else None
        add(rng.choice(("text", "link")), behaviour=behaviour, seconds=seconds)
    for page in range(pages, pages + len(others)):
        behaviour = rng.choice(_ANYWHERE)
        seconds = rng.uniform(*_SECONDS[behaviour]) if behaviour in _SECONDS else None
        add("text", page)
        add("text", page, behaviour=behaviour, seconds=seconds)
        add("text", page, refused_first=True)
        add("text", page, behaviour=rng.choice(LOST))
        add("text", page, in_reserve=True)
    doubtful = any(hit.is_reconcilers for hit in hits)
    add("text", behaviour=rng.choice(LOST))
    add("text", behaviour=Behaviour.DROP, times=2)
    if _is_peoples(hits):
        for _ in range(3):
            add("text", behaviour=Behaviour.DROP, times=2)
    for number in range(20):
        refused = with_looks and number % 2 == 0
        lost = rng.choice(LOST) if doubtful and number % 4 == 1 else None
        add(rng.choice(kinds), refused_first=refused, behaviour=lost, in_reserve=True)
    return tuple(plans)
