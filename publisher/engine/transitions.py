"""Which event may take a job from which state to which, and by whom.

``TABLE`` is laid out as design table 4 and checked when this module is imported. The database
trigger that enforces it (``trigger_pairs``) and the diagram in the docs are made from it, so there
is one place to change and three that follow.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import NoReturn

from publisher.engine.job import State

S = State


class Event(StrEnum):
    """One verb per transition: the same word in code, journal, logs and API."""

    CLAIM = "claim"
    RESCHEDULE = "reschedule"
    REPLACE = "replace"
    HOLD = "hold"
    RELEASE_HOLD = "release_hold"
    CANCEL = "cancel"
    EXPIRE = "expire"
    WAIT = "wait"
    DEFER = "defer"
    UNAUTHORIZED = "unauthorized"
    RELEASE = "release"
    LEASE_EXPIRED = "lease_expired"
    REJECT = "reject"
    LOOK_UNCLEAR = "look_unclear"
    REPEAT_ENDED = "repeat_ended"
    BEGIN_SEND = "begin_send"
    PUBLISH = "publish"
    LOSE_ANSWER = "lose_answer"
    LOOK_AGAIN = "look_again"
    REPEAT = "repeat"
    CONFIRM_PUBLISHED = "confirm_published"
    CONFIRM_ABSENT = "confirm_absent"
    DROP = "drop"
    LATE_PUBLISH = "late_publish"
    SPOOL_FOUND = "spool_found"
    REQUEUE = "requeue"
    RESTORE = "restore"


E = Event

TABLE: Mapping[tuple[State, Event], tuple[State, ...]] = {
    # Waiting its time.
    (S.SCHEDULED, E.CLAIM): (S.CLAIMED,),
    (S.SCHEDULED, E.RESCHEDULE): (S.SCHEDULED,),
    (S.SCHEDULED, E.REPLACE): (S.SCHEDULED,),
    (S.SCHEDULED, E.HOLD): (S.SCHEDULED,),
    (S.SCHEDULED, E.RELEASE_HOLD): (S.SCHEDULED,),
    (S.SCHEDULED, E.CANCEL): (S.CANCELLED,),
    (S.SCHEDULED, E.EXPIRE): (S.MISSED,),
    (S.SCHEDULED, E.REPEAT_ENDED): (S.UNKNOWN,),
    (S.SCHEDULED, E.LATE_PUBLISH): (S.PUBLISHED,),
    (S.SCHEDULED, E.CONFIRM_PUBLISHED): (S.PUBLISHED,),
    (S.SCHEDULED, E.SPOOL_FOUND): (S.UNKNOWN,),
    # Held by a worker, nothing sent.
    (S.CLAIMED, E.BEGIN_SEND): (S.SENDING,),
    (S.CLAIMED, E.WAIT): (S.SCHEDULED,),
    (S.CLAIMED, E.DEFER): (S.SCHEDULED, S.FAILED),
    (S.CLAIMED, E.UNAUTHORIZED): (S.SCHEDULED, S.FAILED),
    (S.CLAIMED, E.RELEASE): (S.SCHEDULED,),
    (S.CLAIMED, E.LEASE_EXPIRED): (S.SCHEDULED, S.FAILED),
    (S.CLAIMED, E.REJECT): (S.FAILED,),
    (S.CLAIMED, E.CANCEL): (S.CANCELLED,),
    (S.CLAIMED, E.HOLD): (S.SCHEDULED,),
    (S.CLAIMED, E.RESCHEDULE): (S.SCHEDULED,),
    (S.CLAIMED, E.EXPIRE): (S.MISSED,),
    (S.CLAIMED, E.LOOK_UNCLEAR): (S.UNKNOWN,),
    (S.CLAIMED, E.REPEAT_ENDED): (S.UNKNOWN,),
    (S.CLAIMED, E.LATE_PUBLISH): (S.PUBLISHED,),
    (S.CLAIMED, E.CONFIRM_PUBLISHED): (S.PUBLISHED,),
    (S.CLAIMED, E.SPOOL_FOUND): (S.UNKNOWN,),
    # Begun: from here on only proof leads back.
    (S.SENDING, E.PUBLISH): (S.PUBLISHED,),
    (S.SENDING, E.REJECT): (S.FAILED,),
    (S.SENDING, E.DEFER): (S.SCHEDULED, S.FAILED),
    (S.SENDING, E.UNAUTHORIZED): (S.SCHEDULED, S.FAILED),
    (S.SENDING, E.LOSE_ANSWER): (S.UNKNOWN,),
    (S.SENDING, E.LEASE_EXPIRED): (S.UNKNOWN,),
    (S.SENDING, E.REPEAT_ENDED): (S.UNKNOWN,),
    # May be live.
    (S.UNKNOWN, E.LATE_PUBLISH): (S.PUBLISHED,),
    (S.UNKNOWN, E.REJECT): (S.FAILED,),
    (S.UNKNOWN, E.DEFER): (S.SCHEDULED, S.FAILED),
    (S.UNKNOWN, E.UNAUTHORIZED): (S.SCHEDULED, S.FAILED),
    (S.UNKNOWN, E.LOOK_AGAIN): (S.UNKNOWN,),
    (S.UNKNOWN, E.REPEAT): (S.SCHEDULED,),
    (S.UNKNOWN, E.CONFIRM_PUBLISHED): (S.PUBLISHED,),
    (S.UNKNOWN, E.CONFIRM_ABSENT): (S.SCHEDULED, S.FAILED),
    (S.UNKNOWN, E.DROP): (S.DROPPED,),
    # Ended, until somebody knows better.
    (S.FAILED, E.LATE_PUBLISH): (S.PUBLISHED,),
    (S.FAILED, E.CONFIRM_PUBLISHED): (S.PUBLISHED,),
    (S.FAILED, E.SPOOL_FOUND): (S.UNKNOWN,),
    (S.FAILED, E.REQUEUE): (S.SCHEDULED,),
    (S.MISSED, E.LATE_PUBLISH): (S.PUBLISHED,),
    (S.MISSED, E.CONFIRM_PUBLISHED): (S.PUBLISHED,),
    (S.MISSED, E.SPOOL_FOUND): (S.UNKNOWN,),
    (S.MISSED, E.REQUEUE): (S.SCHEDULED,),
    (S.DROPPED, E.LATE_PUBLISH): (S.PUBLISHED,),
    (S.DROPPED, E.CONFIRM_PUBLISHED): (S.PUBLISHED,),
    (S.CANCELLED, E.RESTORE): (S.SCHEDULED,),
}

START = S.SCHEDULED
NO_EXIT = frozenset({S.PUBLISHED})


def allowed(state: State, event: Event) -> bool:
    """Whether ``event`` may happen to a job in ``state``."""
    return (state, event) in TABLE


def sources(event: Event) -> frozenset[State]:
    """The states from which ``event`` may happen."""
    return frozenset(state for state, at in TABLE if at is event)


def trigger_pairs() -> tuple[tuple[str, str], ...]:
    """Every change of state the database lets through, sorted; staying put is not a change."""
    pairs = {(state, to) for (state, _), ends in TABLE.items() for to in ends if state is not to}
    return tuple(sorted(pairs))


def _check(table: Mapping[tuple[State, Event], Iterable[State]]) -> None:
    """Refuse to be imported with a hole in the promise."""
    ends = {(state, to) for (state, _), targets in table.items() for to in targets}
    if any(state in NO_EXIT for state, _ in ends):
        _fail("published has an exit")
    reached = {START}
    while more := {to for state, to in ends if state in reached} - reached:
        reached |= more
    if reached != set(State):
        _fail(f"never reached: {set(State) - reached}")
    entries = {key for key, to in table.items() if S.SENDING in to}
    if entries != {(S.CLAIMED, E.BEGIN_SEND)}:
        _fail("sending is entered by something else than begin_send")
    unused = set(Event) - {event for _, event in table}
    if unused:
        _fail(f"events without a row: {unused}")


def _fail(hole: str) -> NoReturn:
    raise AssertionError(hole)


_check(TABLE)
