"""What a seed means where the journal itself goes back: posts, a dump, a loss, an end. Pure.

What nobody could notice is not generated, and it is short:

- a snapshot that holds the database and its witness together;
- the witness gone as well, with nothing announced, for what cannot be looked at (Telegram), for
  what was sent before its time, and for a dump in which nothing had been sent yet;
- a Page that hides what was sent before its time;
- workers killed and their files gone, over a dump since which the witness was told nothing: at
  most ``PUBLISHER_WITNESS_STEP`` seconds of work (a worker that joins, a clean end, and
  ``publisher db dump`` each tell it).
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import Literal

from publisher.sandbox.behaviours import Behaviour

Way = Literal[
    "in place",
    "recreated",
    "db restore",
    "cold copy",
    "standby",
    "clone, same home",
    "clone, no key",
]
End = Literal["in order", "killed", "left running"]
Fate = Literal["kept", "lost", "spoilt"]
Since = Literal["before", "after", "anew"]
"""Whether a post was enqueued before the dump, after it, or after the loss."""

WAYS: tuple[Way, ...] = (
    "in place", "recreated", "db restore", "cold copy", "standby", "clone, same home",
    "clone, no key",
)  # fmt: skip
ENDS: tuple[End, ...] = ("in order", "killed", "left running")
FATES: tuple[Fate, ...] = ("kept", "kept", "lost", "spoilt")
PLATFORMS = ("facebook_pages", "bluesky", "mastodon", "telegram")
_UNSEEN = "telegram"
_LOST = (
    Behaviour.LOSE_ANSWER, Behaviour.ACCEPT_AND_RESET, Behaviour.HALF_ANSWER,
    Behaviour.GARBAGE_ANSWER, Behaviour.ACCEPT_AND_500, Behaviour.ACCEPT_AND_502, Behaviour.DROP,
    Behaviour.ACCEPT_LATE, Behaviour.REFUSE_429,
)  # fmt: skip
_LATE_SECONDS = 0.8
_HOUR = 3_600.0


@dataclass(frozen=True, slots=True)
class PostPlan:
    """One approved post. ``due_in``: seconds after it was enqueued.

    ``useful_for``: seconds; None: as long as is usual. ``is_moved``: brought forward after the
    dump, so that the dump has it in the future.
    """

    number: int
    platform: str
    since: Since
    due_in: float = 0.0
    behaviour: Behaviour | None = None
    useful_for: float | None = None
    is_moved: bool = False

    def mark(self, seed: int) -> str:
        """Its key, and the first word of its text: nothing else holds it."""
        return f"r{seed}-{self.number}"

    def text(self, seed: int) -> str:
        """What is approved: its mark, and a space behind it."""
        return f"{self.mark(seed)} was approved"

    @property
    def seconds(self) -> float | None:
        """How long its behaviour takes."""
        return _LATE_SECONDS if self.behaviour is Behaviour.ACCEPT_LATE else None


@dataclass(frozen=True, slots=True)
class Plan:
    """One run.

    ``sent_before``, ``sent_after``: so many requests before the dump, and then before the loss.
    ``announced``: when ``restore-guard`` is run, if it is.
    """

    seed: int
    posts: tuple[PostPlan, ...]
    way: Way
    end: End = "in order"
    witness: Fate = "kept"
    spool: Fate = "kept"
    announced: Literal["", "before", "after"] = ""
    dumps_itself: bool = False
    """``publisher db dump``, not pg_dump."""
    dumps_first: bool = False
    """Before any worker ever ran."""
    joins: bool = False
    """A worker joins after the dump, and tells the witness so."""
    workers: int = 1
    again: int = 1
    """Workers after the loss."""
    looks_before: bool = True
    """A reconciler runs before the loss as well."""
    sent_before: int = 2
    sent_after: int = 3
    concurrency: int = 4
    listing: Behaviour | None = None
    """How the Page's listing is read."""
    cuts: bool = False
    """Every connection is cut right after a restore in place."""
    outlives: bool = False
    """The loss comes when what was useful for seconds no longer is."""
    looks_late: bool = False
    """The reconciler comes some seconds after the workers."""
    variant: str | None = None
    guards: tuple[str, ...] = ()
    """What a broken variant takes out of the database, which would refuse what it does."""

    @property
    def is_clone(self) -> bool:
        """Nothing is lost; a copy runs beside it."""
        return self.way.startswith("clone")

    @property
    def by_files(self) -> bool:
        """The backup is the server's files."""
        return self.way in {"cold copy", "standby"}

    @property
    def is_blind(self) -> bool:
        """Nothing at all speaks for the loss."""
        return self.witness == "lost" and not self.announced and self.way != "db restore"


def planned(seed: int) -> Plan:
    """What a seed means, always the same."""
    rng = random.Random(f"restores:{seed}")
    turn = seed - 1
    way = WAYS[turn % len(WAYS)]
    plan = Plan(
        seed=seed,
        posts=_posts(rng),
        way=way,
        end=ENDS[(turn + turn // len(WAYS)) % len(ENDS)],
        witness=rng.choice(FATES),
        spool=rng.choice(("kept", "kept", "lost")),
        announced=rng.choice(("", "", "", "before", "after")),
        dumps_itself=rng.random() < 0.4,
        joins=rng.random() < 0.3,
        workers=rng.randint(1, 3),
        again=rng.randint(1, 3),
        looks_before=rng.random() < 0.7,
        sent_before=rng.randint(0, 6),
        sent_after=rng.randint(1, 8),
        concurrency=rng.choice((1, 4, 8)),
        listing=Behaviour.LISTING_DELAYED if rng.random() < 0.15 else None,
        outlives=rng.random() < 0.2,
        cuts=rng.random() < 0.5,
    )
    return _possible(plan)


def _posts(rng: random.Random) -> tuple[PostPlan, ...]:
    posts = []
    for number in range(rng.randint(8, 20)):
        since: Since = rng.choices(("before", "after", "anew"), (7, 2, 1))[0]
        due_in = rng.choices((0.0, rng.uniform(0.5, 4.0), _HOUR), (6, 3, 2))[0]
        posts.append(
            PostPlan(
                number,
                rng.choice(PLATFORMS),
                since,
                due_in=due_in,
                behaviour=rng.choice(_LOST) if rng.random() < 0.25 else None,
                useful_for=rng.uniform(6.0, 9.0) if rng.random() < 0.1 and not due_in else None,
                is_moved=due_in == _HOUR and since == "before" and rng.random() < 0.5,
            )
        )
    return tuple(posts)


def _possible(plan: Plan) -> Plan:
    """Take out what cannot be, and what nobody could notice."""
    if plan.is_clone or plan.way == "db restore":
        plan = replace(plan, end="killed" if plan.end == "left running" else plan.end)
    if plan.is_clone or plan.end == "left running":
        plan = replace(plan, witness="kept", spool="kept")
    if plan.is_clone:
        plan = replace(plan, announced="", listing=None)
    if plan.announced == "before" and plan.witness != "kept":
        plan = replace(plan, announced="")
    if plan.announced == "after" and plan.end == "left running":
        plan = replace(plan, announced="before")
    if plan.witness == "lost":
        plan = replace(plan, listing=None)
    if plan.listing is not None:
        on_time = tuple(
            replace(post, is_moved=False) if post.platform == "facebook_pages" else post
            for post in plan.posts
        )
        plan = replace(plan, posts=on_time)
    if plan.is_blind:
        seen = tuple(
            replace(post, is_moved=False, platform="mastodon")
            if post.platform == _UNSEEN
            else replace(post, is_moved=False)
            for post in plan.posts
        )
        two = tuple(replace(post, since="before", due_in=0.0, useful_for=None) for post in seen[:2])
        plan = replace(plan, posts=two + seen[2:], sent_before=max(2, plan.sent_before))
    if plan.end == "killed" and plan.spool == "lost" and not plan.announced:
        plan = replace(plan, joins=plan.joins or not (plan.dumps_itself or plan.by_files))
    return plan
