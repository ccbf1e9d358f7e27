"""Whether the post that a person names is the one we sent, and in which words it is not."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from publisher.engine.evidence import Candidate, Mismatch, NotThisPost
from publisher.engine.matching import SKEW, Sought
from publisher.engine.recognition import (
    another,
    difference,
    no_link,
    not_found,
    recognise,
    refuse,
    unreadable,
    visible_marks,
)

BEGAN = datetime(2026, 12, 7, 2, 0, 30, tzinfo=UTC)
SOUGHT = Sought("The whole text", BEGAN, BEGAN + timedelta(hours=1))
NOTHING = "Nothing was recorded."


def post(text: str = "The whole text", at: datetime = BEGAN, *, ours: bool | None = None) -> object:
    return recognise(SOUGHT, Candidate("7", text, at, ours=ours))


def refused(code: Mismatch, why: str) -> NotThisPost:
    return NotThisPost(code, f"That link is not this post: {why}. {NOTHING}")


@pytest.mark.parametrize("ours", [None, True])
@pytest.mark.parametrize("at", [BEGAN - SKEW, BEGAN, BEGAN + timedelta(days=9)])
def test_one_that_nothing_speaks_against_is_given_back(at: datetime, ours: bool | None) -> None:  # noqa: FBT001
    assert post(at=at, ours=ours) == Candidate("7", "The whole text", at, ours=ours)
    assert post("The  whole\ntext", at) == Candidate("7", "The  whole\ntext", at)


def test_what_was_there_before_we_sent_is_another() -> None:
    just = BEGAN - SKEW - timedelta(seconds=1)
    assert post(at=just) == refused(
        Mismatch.TOO_EARLY,
        f"it was created at {just:%H:%M:%S} UTC, before we sent at 02:00:30 UTC",
    )
    assert post(at=BEGAN - timedelta(days=1)) == refused(
        Mismatch.TOO_EARLY,
        "it was created at 2026-12-06 02:00:30 UTC, before we sent at 2026-12-07 02:00:30 UTC",
    )


def test_another_text_is_shown_where_it_differs() -> None:
    assert post("The whole thing") == refused(
        Mismatch.TEXT_DIFFERS,
        "its text differs here: we sent “The whole text”, it has “The whole thing”",
    )


def test_somebody_elses_is_not_ours() -> None:
    assert post(ours=False) == refused(
        Mismatch.NOT_OURS, "somebody else made it; another application or other media are on it"
    )


def test_each_refusal_has_its_sentence() -> None:
    assert refuse(Mismatch.NOT_OURS, "why") == refused(Mismatch.NOT_OURS, "why")
    assert not_found("this Page") == refused(
        Mismatch.NOT_FOUND,
        "no such post is on this Page; it was taken down, or it is somebody else's",
    )
    assert another("another Page (102)") == refused(
        Mismatch.ANOTHER_PAGE, "it belongs to another Page (102)"
    )
    assert unreadable("it is down. ") == NotThisPost(
        Mismatch.UNREADABLE, f"That link cannot be checked just now: it is down. {NOTHING}"
    )


@pytest.mark.parametrize(
    ("given", "shown"), [("x" * 80, "x" * 80), ("x" * 81, "x" * 79 + "…"), ("x", "x")]
)
def test_what_is_no_link_is_shown_as_far_as_fits(given: str, shown: str) -> None:
    assert no_link(given, "Fake", "https://fake/1") == refused(
        Mismatch.NO_LINK,
        f"“{shown}” is no link to or id of a post on Fake, such as https://fake/1",
    )


# Where two texts part


@pytest.mark.parametrize(
    ("sent", "shown", "parts"),
    [
        ("abc", "abd", ("abc", "abd")),
        ("", "a", ("", "a")),
        ("a", "", ("a", "")),
        ("same", "same and more", ("same", "same and more")),
        ("a  b\nc", "a b d", ("a b c", "a b d")),
        ("é", "e\u0301x", ("é", "éx")),
        ("b" * 16 + "c", "b" * 16 + "d", ("b" * 16 + "c", "b" * 16 + "d")),
        ("b" * 17 + "c", "b" * 17 + "d", (f"…{'b' * 16}c", f"…{'b' * 16}d")),
        ("c" * 24, "d" * 24, ("c" * 24, "d" * 24)),
        ("c" * 25, "d" * 25, (f"{'c' * 24}…", f"{'d' * 24}…")),
    ],
)
def test_two_texts_are_shown_around_where_they_part(
    sent: str, shown: str, parts: tuple[str, str]
) -> None:
    assert difference(sent, shown) == parts


def test_what_shows_nothing_is_shown_by_name_and_nothing_is_obeyed() -> None:
    assert visible_marks("a\u200cb\u202ec\x00\x1b\x7f\x9f\u00a0") == "a[ZWNJ]b[RLO]c␀␛��\u00a0"
