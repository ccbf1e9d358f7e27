"""The judge at its very edges: the last moment at which it does one thing, and the next."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from publisher.engine.evidence import Absent, Candidate, Evidence, Found, Inconclusive
from publisher.engine.sender import Sender
from reconciler.judge import (
    AskAPerson,
    Case,
    ItIsAbsent,
    ItIsLive,
    LookAgain,
    Patience,
    RepeatIt,
    before_looking,
    judge,
)
from tests.reconciler.desk import ATOMIC, BLIND, HOOK, KEYED, LISTED, WHOLE

NOW = datetime(2026, 7, 1, 12, 0, tzinfo=UTC)
MOMENT = timedelta(microseconds=1)
GONE = Sender(7, "here", returned_at=NOW - timedelta(hours=1))
CASE = Case(
    capabilities=KEYED, sender=GONE, began_at=NOW, now=NOW, looks=0, latest=1, attempt=1
)  # fmt: skip
PATIENCE = Patience()
REPEATED = RepeatIt(
    "not seen, and the platform keeps one post per key: a repeat cannot double it", None, 30.0
)
ARRIVES = LookAgain(30.0, "not among 4, but it may still arrive")
ASKED = AskAPerson("it is not on the page (4 looked through); send it again?")
EAGER = replace(PATIENCE, requeue_absent=True)
AGAIN = ItIsAbsent("a complete listing of 4 does not hold it", send=True)
ONE = (Candidate("9", "x", NOW),)


def after(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def test_the_usual_patience() -> None:
    assert Patience() == Patience(30.0, 900.0, 8, timedelta(seconds=60), requeue_absent=False)


def test_pauses_stop_doubling_after_thirty() -> None:
    patience = Patience(first=1.0, longest=1e300)
    assert [patience.pause(looks) for looks in (0, 1, 29, 30, 31, 99)] == [
        1.0, 2.0, 2.0**29, 2.0**30, 2.0**30, 2.0**30,
    ]  # fmt: skip


def test_what_was_found_is_live_with_a_link_that_can_be_kept() -> None:
    for permalink, kept in (("https://x/1", "https://x/1"), ("https://x/\0", None), (None, None)):
        assert judge(CASE, Found("77", permalink), PATIENCE) == ItIsLive(
            "77", kept, "found on the page, and it can be no other"
        )
    why = "what was found has an id that cannot be kept"
    assert judge(CASE, Found("a\nb", None), PATIENCE) == LookAgain(30.0, why)
    assert judge(replace(CASE, looks=7), Found("", None), PATIENCE) == AskAPerson(why)


# Repeats


@pytest.mark.parametrize("limit", ["repeat_until", "useful_until"])
def test_a_repeat_is_made_before_its_time_is_over_or_not_at_all(limit: str) -> None:
    for until, repeats in (
        (after(30), False), (after(30) + MOMENT, True), (after(30) - MOMENT, False),
    ):  # fmt: skip
        case = replace(CASE, **{limit: until})  # type: ignore[arg-type]
        judgement = judge(case, Absent(4), PATIENCE)
        assert isinstance(judgement, RepeatIt) == repeats
        if repeats:
            assert judgement == replace(REPEATED, until=case.repeat_until)


@pytest.mark.parametrize(("latest", "pause"), [(1, 30.0), (2, 60.0), (7, 900.0), (8, None)])
def test_the_last_send_there_may_be_is_not_repeated(latest: int, pause: float | None) -> None:
    judgement = judge(replace(CASE, latest=latest), Absent(4), PATIENCE)
    assert judgement == (ASKED if pause is None else replace(REPEATED, after=pause))


@pytest.mark.parametrize(
    ("can", "evidence", "repeats"),
    [
        (KEYED, Absent(4), True),
        (KEYED, Inconclusive("why", clean=True), True),
        (KEYED, Inconclusive("why"), False),
        (KEYED, Inconclusive("why", ONE), False),
        (ATOMIC, Absent(4), True),
        (ATOMIC, Inconclusive("why"), True),
        (ATOMIC, Inconclusive("why", ONE), False),
        (WHOLE, Absent(4), False),
        (LISTED, Inconclusive("why", clean=True), False),
    ],
)
def test_what_a_repeat_needs_to_have_been_seen(
    can: object, evidence: Evidence, *, repeats: bool
) -> None:
    case = replace(CASE, capabilities=can)  # type: ignore[arg-type]
    assert (judge(case, evidence, PATIENCE) == REPEATED) == repeats
    called_off = replace(case, repeat_ended=True)
    assert not isinstance(judge(called_off, evidence, PATIENCE), RepeatIt)


# What may still arrive


@pytest.mark.parametrize(
    ("until", "arrives"), [(None, False), (NOW, False), (NOW - MOMENT, False), (NOW + MOMENT, True)]
)
def test_what_a_database_lacked_has_arrived_when_the_look_begins_or_not(
    until: datetime | None, *, arrives: bool
) -> None:
    case = replace(CASE, arrives_until=until)
    assert judge(case, Absent(4), PATIENCE) == (ARRIVES if arrives else REPEATED)
    whole = replace(case, capabilities=WHOLE)
    assert judge(whole, Absent(4), PATIENCE) == (ARRIVES if arrives else ASKED)
    assert judge(whole, Absent(4), EAGER) == (ARRIVES if arrives else AGAIN)
    atomic = replace(case, capabilities=ATOMIC)
    assert judge(atomic, Absent(4), PATIENCE) == REPEATED


def test_the_sender_is_gone_for_the_horizon_when_the_look_begins_or_not() -> None:
    for ago, arrives in ((60.0, False), (59.999, True)):
        sender = Sender(7, "here", ended_at=after(-ago))
        case = replace(CASE, capabilities=WHOLE, sender=sender, now=after(900))
        assert judge(case, Absent(4), PATIENCE) == (ARRIVES if arrives else ASKED)


def test_what_is_of_no_more_use_is_asked_about() -> None:
    whole = replace(CASE, capabilities=WHOLE)
    for until, sent in ((NOW + MOMENT, True), (NOW, False), (None, True)):
        judgement = judge(replace(whole, useful_until=until), Absent(4), EAGER)
        assert judgement == (AGAIN if sent else ASKED)
    assert judge(replace(whole, repeat_ended=True), Absent(4), EAGER) == ASKED


# Looks


@pytest.mark.parametrize(("looks", "pause"), [(0, 30.0), (1, 60.0), (6, 900.0), (7, None)])
def test_the_last_look_leaves_it_to_a_person(looks: int, pause: float | None) -> None:
    case = replace(CASE, capabilities=LISTED, looks=looks)
    again = judge(case, Inconclusive("why"), PATIENCE)
    assert again == (AskAPerson("why") if pause is None else LookAgain(pause, "why"))
    two = Inconclusive("why", (*ONE, Candidate("10", "x", NOW)))
    asked = judge(case, two, PATIENCE)
    assert asked == AskAPerson("2 posts on the page could be it", pause)


# Before any look


def test_a_receiver_that_knows_its_key_is_sent_it_again() -> None:
    case = replace(CASE, capabilities=HOOK, latest=3, repeat_until=after(9_999))
    reason = "whoever has it knows it by its key: a repeat cannot double it"
    assert before_looking(case) == RepeatIt(reason, after(9_999), 120.0)
    assert before_looking(case, Patience(first=1.0)) == RepeatIt(reason, after(9_999), 4.0)
    asked = AskAPerson("this platform cannot be looked at")
    for change in (
        {"latest": 8}, {"repeat_ended": True}, {"repeat_until": after(120)},
        {"useful_until": after(120)}, {"capabilities": BLIND},
        {"capabilities": replace(HOOK, repeat_is_atomic=False)},
    ):  # fmt: skip
        assert before_looking(replace(case, **change)) == asked  # type: ignore[arg-type]
    assert before_looking(replace(case, useful_until=after(120) + MOMENT)) == RepeatIt(
        reason, after(9_999), 120.0
    )


def test_what_can_be_looked_at_is_and_what_was_lost_is_a_persons() -> None:
    for can in (LISTED, WHOLE, KEYED, ATOMIC):
        assert before_looking(replace(CASE, capabilities=can)) is None
    lost = AskAPerson("the database lost the record of this send")
    for can in (LISTED, HOOK, BLIND):
        assert before_looking(replace(CASE, capabilities=can, attempt=0)) == lost
