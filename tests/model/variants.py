"""Broken variants: each drops one rule, by its sentence, and must be caught.

``PROMISE`` and ``TRIGGER`` go with those that the database itself would otherwise stop: what two
rules guard, one broken rule does not show.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from tests.model.invariants import (
    DUPLICATE,
    FALSE_SUCCESS,
    HIDDEN,
    NO_WAY_OUT,
    SECOND,
    UNHEARD,
)
from tests.model.state import World
from tests.model.worlds import QUICK, WIDE

PROMISE: Final = "the promise index"
TRIGGER: Final = "the transition table"
UNDER_WAY: Final = "what was under way at a loss comes back into quarantine"


@dataclass(frozen=True, slots=True)
class Variant:
    """One broken rule, where it shows, and as what."""

    rule: str
    world: str
    caught_as: str
    with_it: tuple[str, ...] = ()

    def broken(self) -> World:
        """The world in which the rule is not kept."""
        world = QUICK.get(self.world) or WIDE[self.world]
        return replace(world, broken=frozenset({self.rule, *self.with_it}))


VARIANTS: Final = {
    "rescue requeues sending":
        Variant("rescue never frees what was begun", "kernel", HIDDEN, (TRIGGER,)),
    "begin without the fence":
        Variant("begin matches the token", "kernel", SECOND, (PROMISE, TRIGGER)),
    "send before begin commits":
        Variant("begin commits before the first byte", "kernel", HIDDEN),
    "timeout read as failure":
        Variant("a timeout is a doubt", "kernel", HIDDEN),
    "5xx read as failure":
        Variant("a 5xx is a doubt", "kernel", HIDDEN),
    "lost COMMIT acknowledgement then sends":
        Variant("nothing is sent under a begin that nobody confirmed", "kernel", HIDDEN),
    "settle unfenced":
        Variant("a settle matches its token", "kernel", HIDDEN),
    "late not-sent unfenced":
        Variant("late not sent is of its own attempt", "kernel", HIDDEN),
    "fence by number":
        Variant("an answer matches its token", "kernel", HIDDEN),
    "a late published ignored":
        Variant("a late published always wins", "kernel", UNHEARD),
    "another job's id believed":
        Variant("an id of another job proves nothing", "kernel", FALSE_SUCCESS),
    "cancel ignores sending":
        Variant("cancel asks the state", "edits", HIDDEN, (TRIGGER,)),
    "a new time for a post that is unknown":
        Variant("a doubt gets no new time", "edits", HIDDEN, (PROMISE, TRIGGER)),
    "spool says not started, unread":
        Variant("a start line is read", "kernel", HIDDEN),
    "file read without its lock":
        Variant("a file is read under its lock", "kernel", HIDDEN),
    "a file of another boot believed":
        Variant("a file of another boot proves no start", "host", HIDDEN),
    "a damaged file believed":
        Variant("a damaged file proves no start", "host", HIDDEN),
    "compaction misread":
        Variant("a compacted file proves no start", "lost, compacted", HIDDEN, (UNDER_WAY,)),
    "resend without proof the old process is gone":
        Variant("the sender is proved gone", "doubts", HIDDEN),
    "a claim that nobody rescues":
        Variant("a claim is rescued", "kernel", NO_WAY_OUT),
    "a look from before it could be decided":
        Variant("a person looks when they may decide", "doubts", HIDDEN),
    "resend before the horizon":
        Variant("the horizon is waited for", "doubts", HIDDEN),
    "absence trusted where the listing proves none":
        Variant("absence needs a complete listing", "doubts", HIDDEN),
    "strict matching used for absence":
        Variant("what could be ours is no absence", "listing", HIDDEN),
    "a verdict of an old look applied to a new attempt":
        Variant("a verdict is about the doubt that was looked at", "two lookers", HIDDEN),
    "no look before a second send":
        Variant("a look comes before a second send", "lies", DUPLICATE),
    "a refusal believed where nobody can look":
        Variant("a refusal is believed where a look can", "no page", DUPLICATE),
    "repeated after the key's life":
        Variant("a repeat ends with its key", "key", DUPLICATE),
    "repeated at any time under a key that is noted late":
        Variant("only a key kept at once is good at any time", "key", DUPLICATE),
    "a permit that never lapses":
        Variant("a permit lapses", "key", DUPLICATE),
    "a safe repeat that hides a doubt":
        Variant("a safe repeat hides no doubt", "key", HIDDEN),
    "the witness ignored after a restore":
        Variant("the witness is asked before a claim", "lost commits", DUPLICATE),
    "quarantine not held":
        Variant("what may be lost is held back", "lost commits", HIDDEN),
    "quarantine ended before what was lost has landed":
        Variant("a quarantine waits until nothing can arrive", "lost, and looked for", HIDDEN),
    "freed by a file after a loss, and not held":
        Variant(UNDER_WAY, "lost settles", HIDDEN),
    "absence said of one send of several":
        Variant(
            "absence is said of every send that may have put it there", "key for ever, and people",
            HIDDEN,
        ),
    "a doubt from before a loss judged too soon":
        Variant(
            "a doubt from before a loss waits until nothing can arrive",
            "lost while it is judged", HIDDEN, (UNDER_WAY,),
        ),
    "what comes back skips its quarantine":
        Variant("what comes back is held as well", "lost, and looked for", HIDDEN),
    "a worker run's number believed after lost commits":
        Variant("a number given out again is another's", "two runs, one number", HIDDEN),
    "a forgotten run goes on claiming":
        Variant("a run that is forgotten stops", "two runs, one number", HIDDEN),
    "freed by its own worker after a loss, and not held":
        Variant("what its own worker frees after a loss is held", "lost while it settles", HIDDEN),
}  # fmt: skip
