"""Reading a file of the spool: every outcome comes back, and no damage reads as *not started*."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from publisher.engine import spool as spools
from publisher.engine.job import Token
from publisher.engine.outcome import (
    Outcome,
    Published,
    Reason,
    Unknown,
    outcome_from_json,
    outcome_json,
)
from tests.engine.outcomes import OUTCOMES

LIVE = Published("1_2")


def head_line() -> bytes:
    return spools._line({"k": "head", "d": "0a0b", "i": 5, "h": "here", "b": "boot"})


@example(Published("1_2", at=datetime(2026, 12, 7, 2, 0, 0, 5, tzinfo=UTC)))
@given(OUTCOMES)
def test_every_outcome_comes_back_as_it_was(outcome: Outcome) -> None:
    line = spools._line({"k": "answer", "t": UUID(int=1).hex, "o": outcome_json(outcome)})
    (body,), whole = spools._bodies(line)
    assert whole
    record = spools._parse(head_line() + line)
    assert record is not None
    assert record.traces[Token(UUID(int=1))].outcome == outcome
    assert outcome_from_json(outcome_json(outcome)) == outcome
    assert body.isascii()


# Damage


@pytest.fixture(scope="module")
def lines() -> list[bytes]:
    """A file of every kind of line; the second send is started, the third answered."""
    tokens = [UUID(int=n) for n in (1, 2, 3)]
    opens = [
        spools._line({"k": "open", "j": n, "n": 1, "t": t.hex}) for n, t in enumerate(tokens, 1)
    ]
    starts = [spools._framed(b"s" + t.hex.encode()) for t in tokens[1:]]
    answer = spools._line({"k": "answer", "t": tokens[2].hex, "o": outcome_json(LIVE)})
    return [head_line(), *opens, *starts, answer]


def boundaries(lines: list[bytes]) -> set[int]:
    return {sum(map(len, lines[:n])) for n in range(len(lines) + 1)}


def test_a_file_torn_inside_any_line_is_not_whole(lines: list[bytes]) -> None:
    """The end of a line is no tear that could be seen; only a boot between can make one there."""
    data = b"".join(lines)
    for at in range(len(lines[0]), len(data) + 1):
        record = spools._parse(data[:at])
        assert record is not None
        assert record.whole is (at in boundaries(lines))
        expected, _ = spools._bodies(data[:at])
        assert len(expected) == sum(1 for end in boundaries(lines) if 0 < end <= at)


def test_a_file_without_a_finished_head_is_none(lines: list[bytes]) -> None:
    for at in range(len(lines[0])):
        assert spools._parse(lines[0][:at]) is None


@settings(deadline=None)
@given(st.data())
def test_a_changed_byte_is_never_read_as_a_send_that_was_not_started(data: st.DataObject) -> None:
    token = UUID(int=2)
    parts = [
        head_line(),
        spools._line({"k": "open", "j": 1, "n": 1, "t": token.hex}),
        spools._framed(b"s" + token.hex.encode()),
        spools._line({"k": "answer", "t": token.hex, "o": outcome_json(LIVE)}),
    ]
    good = b"".join(parts)
    at = data.draw(st.integers(len(parts[0]), len(good) - 1))
    bad = bytearray(good)
    bad[at] ^= data.draw(st.integers(1, 255))
    record = spools._parse(bytes(bad))
    assert record is not None
    trace = record.traces.get(Token(token))
    assert not record.whole or (trace is not None and trace.started)


@given(st.binary(max_size=200))
def test_any_bytes_can_be_read(tail: bytes) -> None:
    record = spools._parse(head_line() + tail)
    assert record is not None
    assert record.whole is (tail == b"")
    assert spools._parse(tail) is None


@pytest.mark.parametrize(
    "facts",
    [
        {"k": "answer", "t": UUID(int=1).hex, "o": {"kind": "Published", "said": "x"}},
        {"k": "answer", "t": UUID(int=1).hex, "o": {"kind": "Adjourned"}},
        {
            "k": "answer",
            "t": UUID(int=1).hex,
            "o": {"kind": "Unknown", "reason": "new", "detail": ""},
        },
        {"k": "answer", "t": UUID(int=1).hex, "o": 7},
        {"k": "answer", "t": UUID(int=1).hex},
    ],
)
def test_an_answer_of_another_release_is_a_doubt(facts: dict[str, object]) -> None:
    start = spools._framed(b"s" + UUID(int=1).hex.encode())
    record = spools._parse(head_line() + start + spools._line(facts))
    assert record is not None
    trace = record.traces[Token(UUID(int=1))]
    assert trace.started
    assert isinstance(trace.outcome, Unknown)
    assert trace.outcome.reason is Reason.ANSWER_UNREADABLE


@pytest.mark.parametrize(
    "line",
    [
        spools._line({"k": "later", "t": UUID(int=1).hex}),
        spools._line({"t": UUID(int=1).hex}),
        spools._line({"k": "open", "j": 1, "n": 1, "t": "short"}),
        spools._framed(b"snot a token"),
        spools._framed(b"[]"),
        spools._framed(b"{"),
    ],
)
def test_a_line_of_another_release_leaves_the_file_not_whole(line: bytes) -> None:
    """It may say that a send was started, in words this release does not know."""
    record = spools._parse(head_line() + line)
    assert record is not None
    assert not record.whole
