"""Mail's table from stage, end and code to verdict, on its own, against one written by hand."""

from __future__ import annotations

from itertools import product

import pytest

from publisher.engine.outcome import Reason
from publisher.mailer.phases import OTHERWISE, TABLE, End, Stage, Verdict, judge

CODES = (None, *range(100, 700))
OPENING = (Stage.CONNECT, Stage.GREETING, Stage.HELLO, Stage.ENCRYPT)
NAMING = (Stage.SENDER, Stage.RECIPIENT, Stage.DATA)
BEFORE = (*OPENING, Stage.ACCESS, *NAMING)
V, R = Verdict, Reason


@pytest.mark.parametrize("end", End)
@pytest.mark.parametrize("stage", Stage)
def test_after_the_content_only_a_whole_reply_proves_anything(stage: Stage, end: End) -> None:
    for code in CODES:
        verdict = judge(stage, end, code).verdict
        if end is End.PERMIT_USED:
            assert verdict is V.UNKNOWN
        elif stage is not Stage.CONTENT:
            assert verdict in {V.DEFERRED, V.REJECTED, V.UNAUTHORIZED}
        elif end is not End.SAID:
            assert verdict is V.UNKNOWN


def said_after_the_dot(code: int | None) -> tuple[str, Verdict, Reason]:
    """RFC 5321, 4.2.1 and 4.2.5, by the first digit; 421 speaks of the channel (3.8)."""
    if code == 421:
        return "closing", V.UNKNOWN, R.CONNECTION_LOST
    kind = None if code is None else code // 100
    return {
        2: ("taken", V.TAKEN, R.NO_ANSWER),
        4: ("dot-4yz", V.DEFERRED, R.BUSY),
        5: ("dot-5yz", V.REJECTED, R.CONTENT_REFUSED),
    }.get(kind or 0, ("otherwise", V.UNKNOWN, R.ANSWER_UNREADABLE))


def test_what_a_reply_to_the_dot_means() -> None:
    for code in CODES:
        row = judge(Stage.CONTENT, End.SAID, code)
        assert (row.name, row.verdict, row.reason) == said_after_the_dot(code)


def said_before(stage: Stage, code: int | None) -> tuple[str, Verdict, Reason]:
    """A relay's codes about access may come at any command; the opening is about us alone."""
    if code in {530, 534, 535, 538}:
        return "access-code", V.UNAUTHORIZED, R.NEEDS_RECONNECTING
    kind = None if code is None else code // 100
    if stage is Stage.ACCESS and kind == 5:
        return "access", V.UNAUTHORIZED, R.NEEDS_RECONNECTING
    if stage in OPENING:
        return "opening", V.DEFERRED, R.CONNECT_FAILED
    if kind == 4:
        return "later", V.DEFERRED, R.BUSY
    if kind == 5:
        return "refused", V.REJECTED, R.CONTENT_REFUSED
    return "before", V.DEFERRED, R.CONNECT_FAILED


@pytest.mark.parametrize("stage", BEFORE)
def test_what_a_reply_before_the_content_means(stage: Stage) -> None:
    for code in CODES:
        row = judge(stage, End.SAID, code)
        assert (row.name, row.verdict, row.reason) == said_before(stage, code)


@pytest.mark.parametrize(
    ("end", "name", "verdict", "reason"),
    [
        (End.PERMIT_LATE, "permit-late", V.DEFERRED, R.PERMIT_LATE),
        (End.PERMIT_USED, "permit-used", V.UNKNOWN, R.ADAPTER_BROKE),
        (End.TOO_LARGE, "too-large", V.REJECTED, R.CONTENT_REFUSED),
        (End.NO_ACCESS, "no-access", V.UNAUTHORIZED, R.NEEDS_RECONNECTING),
        (End.REFUSED, "before", V.DEFERRED, R.CONNECT_FAILED),
        (End.TIME_UP, "before", V.DEFERRED, R.CONNECT_FAILED),
        (End.CLOSED, "before", V.DEFERRED, R.CONNECT_FAILED),
        (End.BROKEN, "before", V.DEFERRED, R.CONNECT_FAILED),
        (End.GARBLED, "before", V.DEFERRED, R.CONNECT_FAILED),
        (End.BROKE, "before", V.DEFERRED, R.CONNECT_FAILED),
    ],
)
def test_what_ends_it_before_the_content(
    end: End, name: str, verdict: Verdict, reason: Reason
) -> None:
    for stage, code in product(BEFORE, CODES):
        row = judge(stage, end, code)
        assert (row.name, row.verdict, row.reason) == (name, verdict, reason)


@pytest.mark.parametrize(
    ("end", "name", "reason"),
    [
        (End.PERMIT_USED, "permit-used", R.ADAPTER_BROKE),
        (End.TIME_UP, "silence", R.NO_ANSWER),
        (End.CLOSED, "closed", R.CONNECTION_LOST),
        (End.BROKEN, "broken", R.CONNECTION_LOST),
        (End.BROKE, "broke", R.ADAPTER_BROKE),
        (End.GARBLED, "otherwise", R.ANSWER_UNREADABLE),
        (End.REFUSED, "otherwise", R.ANSWER_UNREADABLE),
        (End.PERMIT_LATE, "otherwise", R.ANSWER_UNREADABLE),
        (End.NO_ACCESS, "otherwise", R.ANSWER_UNREADABLE),
        (End.TOO_LARGE, "otherwise", R.ANSWER_UNREADABLE),
    ],
)
def test_what_ends_it_after_the_content_is_unknown(end: End, name: str, reason: Reason) -> None:
    for code in CODES:
        row = judge(Stage.CONTENT, end, code)
        assert (row.name, row.verdict, row.reason) == (name, V.UNKNOWN, reason)


def test_each_row_decides_something() -> None:
    reached = {judge(*case).name for case in product(Stage, End, CODES)}
    assert reached == {row.name for row in (*TABLE, OTHERWISE)}
