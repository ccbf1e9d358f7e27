"""What follows from a look at a post that is to go: ``Found`` says gone, ``Absent`` says there."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from publisher.engine.evidence import Absent, Evidence, Found, Inconclusive
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
from tests.reconciler.desk import ATOMIC, BLIND, HOOK, WHOLE

NOW = datetime(2026, 12, 7, 12, tzinfo=UTC)
PATIENCE = Patience(first=30, longest=900, limit=4, horizon=timedelta(seconds=60))
GONE = Sender(7, "here", returned_at=NOW - timedelta(hours=1))
ALIVE = Sender(7, "here")
THERE = Absent(1)
UNREADABLE = Inconclusive("nobody answers")
CASE = Case(ATOMIC, GONE, NOW, NOW, looks=0, latest=1, attempt=1, removes=True)
ONCE = replace(CASE, capabilities=WHOLE)


def test_gone_is_through_whoever_took_it_down() -> None:
    for case in (CASE, ONCE, replace(CASE, sender=ALIVE, latest=9, repeat_ended=True)):
        judged = judge(case, Found("removed:1"), PATIENCE)
        assert judged == ItIsLive("removed:1", None, "the post is gone from the page")


@pytest.mark.parametrize("seen", [THERE, UNREADABLE])
@pytest.mark.parametrize("sender", [GONE, ALIVE])
def test_where_a_repeat_is_safe_it_is_asked_for_again(seen: Evidence, sender: Sender) -> None:
    judged = judge(replace(CASE, sender=sender), seen, PATIENCE)
    assert isinstance(judged, RepeatIt)
    assert (judged.until, judged.after) == (None, 30)
    assert "deletes nothing else" in judged.reason


def test_where_nobody_can_look_it_is_asked_for_again_until_tries_end() -> None:
    blind = replace(CASE, capabilities=HOOK)
    assert isinstance(before_looking(blind, PATIENCE), RepeatIt)
    assert isinstance(before_looking(replace(blind, latest=4), PATIENCE), AskAPerson)
    once = replace(CASE, capabilities=BLIND)
    assert isinstance(before_looking(once, PATIENCE), AskAPerson)


def test_without_a_safe_repeat_the_page_decides() -> None:
    judged = judge(ONCE, THERE, PATIENCE)
    assert judged == ItIsAbsent("the post is still there", send=True)
    assert isinstance(judge(ONCE, UNREADABLE, PATIENCE), LookAgain)


def test_while_the_first_may_still_arrive_nothing_is_said_of_what_is_there() -> None:
    waiting = replace(ONCE, sender=ALIVE)
    assert isinstance(judge(waiting, THERE, PATIENCE), LookAgain)
    last = replace(waiting, looks=3)
    assert judge(last, THERE, PATIENCE) == AskAPerson("the post is still there, and may yet go")


@pytest.mark.parametrize(
    "case", [replace(CASE, latest=4), replace(CASE, repeat_ended=True), replace(ONCE, latest=4)]
)
def test_what_was_called_off_or_tried_in_vain_has_failed(case: Case) -> None:
    assert judge(case, THERE, PATIENCE) == ItIsAbsent("the post is still there", send=False)


def test_of_a_post_absent_still_asks_a_person() -> None:
    judged = judge(replace(ONCE, removes=False), THERE, PATIENCE)
    assert isinstance(judged, AskAPerson)
