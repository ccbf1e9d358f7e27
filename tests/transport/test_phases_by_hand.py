"""The table from phase and end to verdict, whole, against one written by hand."""

from __future__ import annotations

import pytest

from publisher.engine.outcome import Reason
from publisher.transport.phases import End, Phase, Row, Verdict, judge

C, S, A = Phase.CONNECTING, Phase.SENDING, Phase.ANSWERING
V, R = Verdict, Reason
Says = tuple[Verdict, Reason, str]

NOT_MADE = (V.DEFERRED, R.CONNECT_FAILED, "the request was not made")
NO_CONNECTION = (V.DEFERRED, R.CONNECT_FAILED, "no connection; nothing was sent")
STOPPED = (V.DEFERRED, R.CONNECT_FAILED, "stopped before the request; nothing was sent")
USED = (
    V.UNKNOWN, R.ADAPTER_BROKE, "a second request was tried under one permit; it was not written",
)  # fmt: skip
REUSED = (
    V.UNKNOWN, R.ADAPTER_BROKE,
    "a connection was used twice, which must not be; its answer may be another's",
)  # fmt: skip
BROKE = (V.UNKNOWN, R.ADAPTER_BROKE, "our own code failed half-way")
NOTHING = (V.UNKNOWN, R.ANSWER_UNREADABLE, "ended in a way that proves nothing")

BY_HAND: dict[End, dict[Phase, Says]] = {
    End.PERMIT_USED: {C: USED, S: USED, A: USED},
    End.PERMIT_LATE: {
        C: (V.DEFERRED, R.PERMIT_LATE, "the time to begin had passed; nothing was sent"),
        S: NOTHING,
        A: NOTHING,
    },
    End.REFUSED: {C: NOT_MADE, S: NOTHING, A: NOTHING},
    End.NOT_CONNECTED: {C: NO_CONNECTION, S: NOTHING, A: NOTHING},
    End.TIME_UP: {
        C: (V.DEFERRED, R.CONNECT_FAILED, "no connection in time; nothing was sent"),
        S: (V.UNKNOWN, R.NO_ANSWER, "sent, and no answer in time"),
        A: (V.UNKNOWN, R.ANSWER_CUT, "the answer was not whole in time"),
    },
    End.CLOSED: {
        C: STOPPED,
        S: (V.UNKNOWN, R.CONNECTION_LOST, "the connection was closed without an answer"),
        A: (V.UNKNOWN, R.ANSWER_CUT, "the connection was closed in the middle of the answer"),
    },
    End.RESET: {
        C: STOPPED,
        S: (V.UNKNOWN, R.CONNECTION_LOST, "the connection broke before an answer"),
        A: (V.UNKNOWN, R.ANSWER_CUT, "the connection broke in the middle of the answer"),
    },
    End.GARBLED: {
        C: STOPPED, S: NOTHING, A: (V.UNKNOWN, R.ANSWER_UNREADABLE, "the answer is not HTTP"),
    },
    End.UNDECODABLE: {
        C: STOPPED,
        S: NOTHING,
        A: (V.UNKNOWN, R.ANSWER_UNREADABLE, "the answer could not be unpacked"),
    },
    End.TOO_LARGE: {
        C: STOPPED, S: NOTHING, A: (V.UNKNOWN, R.ANSWER_UNREADABLE, "the answer is too large"),
    },
    End.REUSED: {C: STOPPED, S: REUSED, A: REUSED},
    End.BROKE: {C: STOPPED, S: BROKE, A: BROKE},
}  # fmt: skip


def said(row: Row) -> Says:
    return row.verdict, row.reason, row.says


@pytest.mark.parametrize("phase", Phase)
@pytest.mark.parametrize("end", [end for end in End if end is not End.WHOLE])
def test_what_ends_a_call_without_a_whole_answer(phase: Phase, end: End) -> None:
    for status in (None, 200, 302, 400, 503):
        assert said(judge(phase, end, status)) == BY_HAND[end][phase]


def of_status(status: int | None) -> Says:
    match (status or 0) // 100:
        case 2:
            return V.REPLY, R.NO_ID, "answered"
        case 3:
            return V.UNKNOWN, R.REDIRECTED, "answered with a redirect, which is not followed"
        case 4:
            return V.REPLY, R.UNLISTED_REFUSAL, "refused"
        case 5:
            return V.UNKNOWN, R.SERVER_ERROR, "answered with a server error"
        case _:
            return NOTHING


def test_what_a_whole_answer_is_by_its_status() -> None:
    for status in (None, *range(100, 1000)):
        assert said(judge(A, End.WHOLE, status)) == of_status(status)
        assert said(judge(S, End.WHOLE, status)) == NOTHING
        assert said(judge(C, End.WHOLE, status)) == STOPPED
