"""The judge, by what must hold of every case: it never guesses, and its default is no send."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from publisher.engine.evidence import Absent, Candidate, Evidence, Found, Inconclusive
from publisher.engine.retry import is_storable_id
from publisher.engine.sender import DECLARED_MARGIN, Sender
from reconciler.judge import (
    AskAPerson,
    Case,
    ItIsAbsent,
    ItIsLive,
    Judgement,
    LookAgain,
    Patience,
    RepeatIt,
    before_looking,
    judge,
)
from tests.reconciler.desk import ATOMIC, BLIND, HOOK, KEYED, LISTED, WHOLE

NOW = datetime(2026, 7, 1, 12, 0, tzinfo=UTC)
GONE = Sender(7, "here", returned_at=NOW - timedelta(hours=1))
ALIVE = Sender(7, "here")

calm = settings(deadline=None)  # on a busy machine one example may take its time

# Close to the edges, where rules go wrong, and far from them.
spans = st.one_of(
    st.integers(-3, 3), st.integers(-100_000, 100_000), st.sampled_from([-60, -59, -61, 30])
).map(lambda seconds: timedelta(seconds=seconds))
moments = spans.map(lambda span: NOW + span)
maybe = st.none() | moments
senders = st.builds(
    Sender, run=st.just(7), host=st.just("here"),
    returned_at=maybe, ended_at=maybe, declared_gone_at=maybe,
)  # fmt: skip


@st.composite
def patiences(draw: st.DrawFn) -> Patience:
    first = draw(st.floats(0.1, 120))
    return Patience(
        first=first,
        longest=first * draw(st.floats(1, 100)),
        limit=draw(st.integers(1, 12)),
        horizon=timedelta(seconds=draw(st.integers(0, 600))),
        requeue_absent=draw(st.booleans()),
    )


cases = st.builds(
    Case,
    capabilities=st.sampled_from([LISTED, WHOLE, KEYED, ATOMIC, BLIND, HOOK]),
    sender=senders,
    began_at=moments,
    now=st.just(NOW),
    looks=st.integers(0, 15),
    latest=st.integers(1, 15),
    attempt=st.integers(0, 3),
    repeat_until=maybe,
    useful_until=maybe,
    repeat_ended=st.booleans(),
)
candidates = st.builds(
    Candidate,
    st.text(min_size=1, max_size=3),
    st.just("text"),
    moments,
    ours=st.sampled_from([None]),
)
founds = st.builds(Found, st.text(max_size=5) | st.just("x" * 501), st.none() | st.text(max_size=5))
inconclusives = st.builds(
    Inconclusive, st.just("why"), st.lists(candidates, max_size=3).map(tuple), clean=st.booleans()
)
absents = st.builds(Absent, st.integers(0, 9))
evidences: st.SearchStrategy[Evidence] = st.one_of(founds, inconclusives, absents)
not_founds = st.one_of(inconclusives, absents)


def may_still_write(case: Case, patience: Patience) -> bool:
    """Reckoned here once more, from design R4 alone."""
    sender = case.sender
    declared = sender.declared_gone_at
    over = [
        at
        for at in (
            sender.returned_at,
            sender.ended_at,
            declared + DECLARED_MARGIN if declared is not None else None,
        )
        if at is not None
    ]
    return all(at + patience.horizon > case.began_at for at in over)


def sends(judgement: Judgement) -> bool:
    return isinstance(judgement, RepeatIt) or (isinstance(judgement, ItIsAbsent) and judgement.send)


def pause_of(judgement: Judgement) -> float | None:
    match judgement:
        case LookAgain(pause, _) | AskAPerson(_, pause):
            return pause
    return None


@calm
@given(cases, founds, patiences())
def test_what_was_found_is_live_always(case: Case, found: Found, patience: Patience) -> None:
    judgement = judge(case, found, patience)
    if is_storable_id(found.remote_id):
        assert isinstance(judgement, ItIsLive)
        assert judgement.remote_id == found.remote_id
        assert judgement.permalink in {None, found.permalink}
    else:
        assert isinstance(judgement, LookAgain | AskAPerson)


@calm
@given(cases, not_founds, patiences())
def test_only_what_was_found_is_live(case: Case, seen: Evidence, patience: Patience) -> None:
    assert not isinstance(judge(case, seen, patience), ItIsLive)


@calm
@given(cases, evidences, patiences())
def test_nothing_is_sent_while_the_sender_may_write(
    case: Case, seen: Evidence, patience: Patience
) -> None:
    judgement = judge(case, seen, patience)
    if may_still_write(case, patience):
        assert not isinstance(judgement, ItIsAbsent)
        assert not isinstance(judgement, RepeatIt) or case.capabilities.repeat_is_atomic


@calm
@given(cases, evidences, patiences())
def test_a_repeat_only_while_it_is_safe_and_of_use(
    case: Case, seen: Evidence, patience: Patience
) -> None:
    judgement = judge(case, seen, patience)
    if not isinstance(judgement, RepeatIt):
        return
    at = case.now + timedelta(seconds=judgement.after)
    assert case.capabilities.repeat_for is not None
    assert case.repeat_until is None or at < case.repeat_until
    assert case.useful_until is None or at < case.useful_until
    assert judgement.until == case.repeat_until
    assert case.latest < patience.limit
    assert not case.repeat_ended
    assert isinstance(seen, Absent | Inconclusive)
    assert isinstance(seen, Absent) or not seen.candidates
    if not case.capabilities.repeat_is_atomic:
        assert isinstance(seen, Absent) or seen.clean


@calm
@given(cases, evidences, patiences())
def test_absence_needs_evidence_of_absence_and_the_channels_policy(
    case: Case, seen: Evidence, patience: Patience
) -> None:
    judgement = judge(case, seen, patience)
    if isinstance(judgement, ItIsAbsent):
        assert isinstance(seen, Absent)
        assert patience.requeue_absent
        assert judgement.send
        assert not case.repeat_ended
        assert case.useful_until is None or case.now < case.useful_until


@calm
@given(cases, evidences, patiences())
def test_the_default_is_never_a_send(case: Case, seen: Evidence, patience: Patience) -> None:
    case = replace(case, capabilities=replace(case.capabilities, repeat_for=None))
    assert not sends(judge(case, seen, replace(patience, requeue_absent=False)))


@calm
@given(cases, patiences(), st.lists(candidates, min_size=2, max_size=4), st.booleans())
def test_two_candidates_are_a_persons_to_tell_apart(
    case: Case,
    patience: Patience,
    two: list[Candidate],
    clean: bool,  # noqa: FBT001
) -> None:
    judgement = judge(case, Inconclusive("unsure", tuple(two), clean=clean), patience)
    assert isinstance(judgement, AskAPerson)
    assert str(len(two)) in judgement.reason


@calm
@given(cases, evidences, patiences())
def test_looks_end(case: Case, seen: Evidence, patience: Patience) -> None:
    judgement = judge(case, seen, patience)
    if isinstance(judgement, LookAgain):
        assert case.looks + 1 < patience.limit
    pause = pause_of(judgement)
    if pause is not None:
        assert case.looks + 1 < patience.limit
        assert 0 < pause <= patience.longest


@calm
@given(patiences(), st.integers(0, 10_000))
def test_pauses_grow_and_are_capped(patience: Patience, looks: int) -> None:
    assert patience.pause(0) == min(patience.first, patience.longest)
    assert patience.pause(looks) <= patience.pause(looks + 1) <= patience.longest
    if patience.pause(looks + 1) < patience.longest:
        assert patience.pause(looks + 1) == 2 * patience.pause(looks)


@calm
@given(cases, patiences())
def test_what_no_look_can_help_is_asked_at_once(case: Case, patience: Patience) -> None:
    plain = before_looking(case, patience)
    if case.attempt and case.capabilities.can_look:
        assert plain is None
        return
    assert isinstance(plain, AskAPerson | RepeatIt)
    if isinstance(plain, AskAPerson):
        assert plain.pause is None
        return
    at = case.now + timedelta(seconds=plain.after)
    assert case.attempt
    assert case.capabilities.repeat_is_atomic
    assert case.latest < patience.limit
    assert not case.repeat_ended
    assert case.repeat_until is None or at < case.repeat_until
    assert case.useful_until is None or at < case.useful_until


# The words, and the edges by hand.

CASE = Case(
    capabilities=LISTED, sender=GONE, began_at=NOW, now=NOW, looks=0, latest=1, attempt=1
)  # fmt: skip
PATIENCE = Patience()


def test_cannot_look() -> None:
    asked = AskAPerson("this platform cannot be looked at")
    assert before_looking(replace(CASE, capabilities=BLIND)) == asked


def test_lost_by_the_database() -> None:
    asked = before_looking(replace(CASE, attempt=0))
    assert asked == AskAPerson("the database lost the record of this send")


def test_absent_while_it_may_arrive_is_looked_for_again() -> None:
    case = replace(CASE, capabilities=WHOLE, sender=ALIVE)
    assert judge(case, Absent(4), PATIENCE) == LookAgain(
        30.0, "not among 4, but it may still arrive"
    )


def test_absent_asks_whether_to_send() -> None:
    case = replace(CASE, capabilities=WHOLE)
    why = "it is not on the page (4 looked through); send it again?"
    assert judge(case, Absent(4), PATIENCE) == AskAPerson(why)


def test_absent_is_sent_again_where_the_channel_says_so() -> None:
    eager = replace(PATIENCE, requeue_absent=True)
    case = replace(CASE, capabilities=WHOLE)
    assert judge(case, Absent(4), eager) == ItIsAbsent(
        "a complete listing of 4 does not hold it", send=True
    )
    assert isinstance(judge(replace(case, useful_until=NOW), Absent(4), eager), AskAPerson)
    assert isinstance(judge(replace(case, repeat_ended=True), Absent(4), eager), AskAPerson)


@pytest.mark.parametrize(("horizon", "waits"), [(3600, False), (3601, True)])
def test_the_horizon_is_over_when_the_look_begins_or_it_is_not(horizon: int, waits: bool) -> None:  # noqa: FBT001
    patience = replace(PATIENCE, horizon=timedelta(seconds=horizon))
    judgement = judge(replace(CASE, capabilities=KEYED), Absent(0), patience)
    assert isinstance(judgement, LookAgain) == waits
    assert isinstance(judgement, RepeatIt) != waits


def test_an_atomic_key_repeats_with_the_sender_alive() -> None:
    case = replace(CASE, capabilities=ATOMIC, sender=ALIVE)
    judgement = judge(case, Inconclusive("it could not be read"), PATIENCE)
    assert judgement == RepeatIt(
        "not seen, and the platform keeps one post per key: a repeat cannot double it", None, 30.0
    )
    assert ATOMIC.repeat_for == inf


def test_something_else_in_the_keys_place_is_not_pressed_against() -> None:
    case = replace(CASE, capabilities=ATOMIC, sender=ALIVE)
    there = Inconclusive("not this post", (Candidate("at://1", "other", NOW),))
    assert judge(case, there, PATIENCE) == LookAgain(30.0, "not this post")


def test_repeats_are_made_ever_more_slowly_and_end() -> None:
    case = replace(CASE, capabilities=ATOMIC)
    pauses = [
        judgement.after
        for latest in range(1, 9)
        if isinstance(
            judgement := judge(replace(case, latest=latest), Absent(0), PATIENCE), RepeatIt
        )
    ]
    assert pauses == [30.0, 60.0, 120.0, 240.0, 480.0, 900.0, 900.0]


def test_one_candidate_is_looked_at_again_and_at_last_a_person_is_asked() -> None:
    one = Inconclusive("a post like it", (Candidate("9", "like it", NOW),))
    assert judge(CASE, one, PATIENCE) == LookAgain(30.0, "a post like it")
    assert judge(replace(CASE, looks=7), one, PATIENCE) == AskAPerson("a post like it")


def test_two_candidates_are_watched_while_looks_remain() -> None:
    two = Inconclusive("alike", (Candidate("9", "x", NOW), Candidate("10", "x", NOW)))
    assert judge(CASE, two, PATIENCE) == AskAPerson("2 posts on the page could be it", 30.0)
    assert judge(replace(CASE, looks=7), two, PATIENCE) == AskAPerson(
        "2 posts on the page could be it"
    )
