"""The table: its shape, what its check refuses, and an exhaustive search for a hole in it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import pytest

from publisher.engine import transitions
from publisher.engine.job import State
from publisher.engine.transitions import NO_EXIT, START, TABLE, Event, allowed, sources

S, E = State, Event
Table = Mapping[tuple[State, Event], tuple[State, ...]]

# Events that come with a proof about the attempt a begun job stands on.
PROVES = {E.REJECT, E.DEFER, E.UNAUTHORIZED, E.CONFIRM_ABSENT}


def test_every_state_and_event_has_its_place() -> None:
    assert {state for state, _ in TABLE} == set(State) - NO_EXIT
    assert {event for _, event in TABLE} == set(Event)
    assert all(ends for ends in TABLE.values())


def test_published_has_no_exit_and_sending_one_entry() -> None:
    assert frozenset({S.PUBLISHED}) == NO_EXIT
    entries = [key for key, ends in TABLE.items() if S.SENDING in ends]
    assert entries == [(S.CLAIMED, E.BEGIN_SEND)]


def test_sending_and_unknown_are_past_the_editors_point_of_no_return() -> None:
    editors = {E.CANCEL, E.RESCHEDULE, E.REPLACE, E.HOLD, E.RELEASE_HOLD, E.REQUEUE, E.RESTORE}
    for state in (S.SENDING, S.UNKNOWN, S.PUBLISHED):
        assert not [event for event in editors if allowed(state, event)]


def test_an_answer_that_says_published_wins_from_wherever_it_may() -> None:
    assert sources(E.LATE_PUBLISH) == {
        S.SCHEDULED, S.CLAIMED, S.UNKNOWN, S.FAILED, S.MISSED, S.DROPPED,
    }  # fmt: skip
    assert sources(E.CONFIRM_PUBLISHED) == sources(E.LATE_PUBLISH)


def test_the_only_ends_of_a_lost_send_are_unknown() -> None:
    for event in (E.LOSE_ANSWER, E.LEASE_EXPIRED, E.REPEAT_ENDED):
        assert TABLE[S.SENDING, event] == (S.UNKNOWN,)


def test_pairs_leave_out_staying_put() -> None:
    pairs = transitions.trigger_pairs()
    assert list(pairs) == sorted(set(pairs))
    assert not [pair for pair in pairs if pair[0] == pair[1]]
    assert ("sending", "scheduled") in pairs
    assert ("cancelled", "published") not in pairs


ELSE = "sending is entered by something else than begin_send$"


@pytest.mark.parametrize(
    ("key", "ends", "hole"),
    [
        ((S.PUBLISHED, E.REQUEUE), (S.SCHEDULED,), "published has an exit$"),
        ((S.FAILED, E.BEGIN_SEND), (S.SENDING,), ELSE),
        ((S.SCHEDULED, E.HOLD), (S.SENDING,), ELSE),
        ((S.UNKNOWN, E.DROP), (S.FAILED,), "never reached: .*DROPPED"),
        ((S.CANCELLED, E.RESTORE), None, "events without a row: .*RESTORE"),
    ],
)
def test_a_table_with_a_hole_is_not_imported(
    key: tuple[State, Event], ends: tuple[State, ...] | None, hole: str
) -> None:
    broken = {**TABLE, key: ends}
    if ends is None:
        del broken[key]
    with pytest.raises(AssertionError, match=f"^{hole}"):
        transitions._check(broken)  # type: ignore[arg-type]


# The safety search: a small model of a job with its attempts, walked in every way the table
# allows; ``guarded`` adds what the database refuses on top of the table.


@dataclass(frozen=True)
class Model:
    """``unproven``: an attempt has no proof yet. ``possibly_live``: an earlier one's only proof is
    that a repeat is safe.
    """

    state: State = START
    unproven: bool = False
    possibly_live: bool = False
    begun: bool = False


def after(at: Model, event: Event, end: State) -> Model:
    if event is E.BEGIN_SEND:
        return replace(at, state=end, unproven=True, begun=True)
    proves = at.state in {S.SENDING, S.UNKNOWN} and event in PROVES | {E.REPEAT}
    return replace(
        at,
        state=end,
        unproven=at.unproven and not proves,
        possibly_live=at.possibly_live or event is E.REPEAT,
    )


def is_refused(at: Model, event: Event, to: Model) -> bool:
    """What the database says no to, given only where the row stands and where it is to go."""
    may_be_live = to.unproven or to.possibly_live
    return (
        (event is E.BEGIN_SEND and at.unproven)
        or (event is E.REQUEUE and may_be_live)
        or (event is E.RESTORE and at.begun)
        or (to.state in {S.FAILED, S.MISSED, S.CANCELLED} and may_be_live)
        or (to.state is S.SCHEDULED and at.state in {S.SENDING, S.UNKNOWN} and to.unproven)
    )


def moves(table: Table, *, guarded: bool) -> Iterator[tuple[Model, Event, Model]]:
    """Every move that can be made from a state that can be reached."""
    seen = {Model()}
    waiting = deque(seen)
    while waiting:
        at = waiting.popleft()
        for (state, event), ends in table.items():
            for end in ends if state is at.state else ():
                to = after(at, event, end)
                if guarded and is_refused(at, event, to):
                    continue
                yield at, event, to
                if to not in seen:
                    seen.add(to)
                    waiting.append(to)


def second_sends(table: Table, *, guarded: bool = False) -> list[Model]:
    """Where a send begins although the one before has no proof."""
    made = moves(table, guarded=guarded)
    return [at for at, event, _ in made if event is E.BEGIN_SEND and at.unproven]


def test_no_way_leads_from_sending_to_sending_without_a_proof() -> None:
    assert second_sends(TABLE) == []


def test_every_state_and_row_is_reached_within_what_the_database_allows() -> None:
    made = list(moves(TABLE, guarded=True))
    assert {to.state for _, _, to in made} == set(State)
    assert {(at.state, event, to.state) for at, event, to in made} == {
        (state, event, end) for (state, event), ends in TABLE.items() for end in ends
    }


@pytest.mark.parametrize(
    "key",
    [
        (S.SENDING, E.RELEASE),
        (S.SENDING, E.RESCHEDULE),
        (S.SENDING, E.CLAIM),
        (S.UNKNOWN, E.REQUEUE),
        (S.UNKNOWN, E.RELEASE),
        (S.DROPPED, E.REQUEUE),
    ],
)
def test_the_search_sees_a_hole_and_the_database_closes_it(key: tuple[State, Event]) -> None:
    holed = {**TABLE, key: (S.SCHEDULED,)}
    assert second_sends(holed)
    assert second_sends(holed, guarded=True) == []


def test_a_possibly_live_job_ends_as_published_unknown_or_dropped_only() -> None:
    ended = {to.state for _, _, to in moves(TABLE, guarded=True) if to.possibly_live}
    assert ended.isdisjoint({S.FAILED, S.MISSED, S.CANCELLED})
    assert {S.UNKNOWN, S.PUBLISHED, S.SCHEDULED} <= ended


def test_a_job_with_an_open_doubt_is_never_called_failed_missed_or_cancelled() -> None:
    doubted = {to.state for _, _, to in moves(TABLE, guarded=True) if to.unproven}
    assert doubted == {S.SENDING, S.UNKNOWN, S.PUBLISHED, S.DROPPED}
