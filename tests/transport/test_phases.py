"""The table from phase and end to verdict, on its own."""

from __future__ import annotations

from itertools import product

import pytest

from publisher.engine.outcome import Reason
from publisher.transport.phases import OTHERWISE, TABLE, End, Phase, Verdict, judge

STATUSES = (None, *range(100, 1000))


@pytest.mark.parametrize("end", End)
@pytest.mark.parametrize("phase", [Phase.SENDING, Phase.ANSWERING])
def test_once_a_byte_may_have_left_nothing_is_called_unsent(phase: Phase, end: End) -> None:
    assert all(judge(phase, end, status).verdict is not Verdict.DEFERRED for status in STATUSES)


@pytest.mark.parametrize("end", End)
def test_before_that_only_a_used_permit_leaves_a_doubt(end: End) -> None:
    verdict = judge(Phase.CONNECTING, end, None).verdict
    expected = Verdict.UNKNOWN if end is End.PERMIT_USED else Verdict.DEFERRED
    assert verdict is expected


def test_a_reply_is_a_whole_answer_with_a_2xx_or_4xx_status_and_nothing_else() -> None:
    replies = {
        (phase, end, status)
        for phase, end, status in product(Phase, End, STATUSES)
        if judge(phase, end, status).verdict is Verdict.REPLY
    }
    assert replies == {
        (Phase.ANSWERING, End.WHOLE, status) for status in (*range(200, 300), *range(400, 500))
    }


def test_each_row_decides_something() -> None:
    reached = {
        id(judge(phase, end, status)) for phase, end, status in product(Phase, End, STATUSES)
    }
    assert reached == {id(row) for row in (*TABLE, OTHERWISE)}


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (301, Reason.REDIRECTED),
        (308, Reason.REDIRECTED),
        (500, Reason.SERVER_ERROR),
        (599, Reason.SERVER_ERROR),
        (101, Reason.ANSWER_UNREADABLE),
        (999, Reason.ANSWER_UNREADABLE),
    ],
)
def test_the_reason_for_a_status(status: int, reason: Reason) -> None:
    assert judge(Phase.ANSWERING, End.WHOLE, status).reason is reason
