"""The rules of a channel's times, as they are written, changed, refused and told."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import text

from publisher.db.connect import Database
from publisher.editorial import channel_events, channel_rules
from publisher.editorial.channel_events import Event
from publisher.editorial.channel_rules import Change, RuleRefused, Rules
from publisher.engine.errors import NotFound
from publisher.engine.job import Backlog, Channel

Pages = tuple[Channel, Channel]
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
USUAL = Rules(
    spacing=timedelta(0),
    useful_for=None,
    backlog=Backlog.RELEASE,
    overdue_after=30 * MINUTE,
    release_every=10 * MINUTE,
)


@pytest.mark.parametrize(
    ("written", "span"),
    [
        ("0", timedelta(0)),
        ("90s", 90 * timedelta(seconds=1)),
        ("30m", 30 * MINUTE),
        (" 30 min ", 30 * MINUTE),
        ("2H", 2 * HOUR),
        ("1d", DAY),
        ("2w", 14 * DAY),
    ],
)
def test_lengths_of_time(written: str, span: timedelta) -> None:
    assert channel_rules.read_span(written, "spacing") == span


@pytest.mark.parametrize("written", ["", "30", "-30m", "1.5h", "1h30m", "h", "1000000s", "½h"])
def test_what_is_no_length_of_time(written: str) -> None:
    with pytest.raises(RuleRefused, match="Write it as 90s, 30m, 2h, 1d or 0") as caught:
        channel_rules.read_span(written, "spacing")
    assert (caught.value.code, caught.value.field) == ("span-unreadable", "spacing")


@given(st.integers(0, 10**7))
def test_a_length_of_time_is_written_whole(seconds: int) -> None:
    written = channel_rules.span(timedelta(seconds=seconds))
    units = {"d": 86_400, "h": 3600, "m": 60, "s": 1}
    total, number = 0, ""
    for sign in written if written != "0" else "":
        number, total = (number + sign, total) if sign.isdigit() else (
            "", total + int(number) * units[sign]
        )  # fmt: skip
    assert total == seconds


def test_rules_by_name() -> None:
    assert channel_rules.read_backlog(" Miss ") is Backlog.MISS
    with pytest.raises(RuleRefused) as caught:
        channel_rules.read_backlog("realease")
    assert str(caught.value) == (
        '"realease" is no rule. Did you mean "release"? There are: send, release, miss.'
    )


def test_a_page_begins_with_these(app_database: Database, pages: Pages) -> None:
    with app_database.engine.connect() as conn:
        assert channel_rules.of_channel(conn, pages[0].id) == USUAL
        assert channel_rules.useful_for(conn, [page.id for page in pages]) == {}
        with pytest.raises(NotFound):
            channel_rules.of_channel(conn, 99)


def test_changed_and_told(app_database: Database, pages: Pages) -> None:
    page, other = pages
    with app_database.engine.begin() as conn:
        to = Change(spacing=HOUR, useful_for=3 * HOUR, backlog=Backlog.MISS)
        after = channel_rules.change(conn, page, to, who="p")
        assert after == channel_rules.of_channel(conn, page.id)
        assert (after.spacing, after.useful_for, after.backlog) == (HOUR, 3 * HOUR, Backlog.MISS)
        assert channel_rules.useful_for(conn, [page.id, other.id]) == {page.id: 3 * HOUR}
        channel_rules.change(conn, page, Change(useful_for=timedelta(0)), who="q")
        channel_rules.change(conn, page, Change(), who="r")
        assert channel_rules.of_channel(conn, other.id) == USUAL
        events = [
            event
            for event in channel_events.of_channel(conn, page.id)
            if event.event == Event.RULES_CHANGED
        ]
    assert [(event.who, event.detail) for event in events] == [
        (
            "p",
            {
                "spacing": ["0", "1h"],
                "useful_for": [None, "3h"],
                "backlog": ["release", "miss"],
            },
        ),
        ("q", {"useful_for": ["3h", None]}),
    ]


@pytest.mark.parametrize(
    ("to", "field"),
    [
        (Change(spacing=25 * HOUR), "spacing"),
        (Change(spacing=-HOUR), "spacing"),
        (Change(useful_for=367 * DAY), "useful_for"),
        (Change(overdue_after=MINUTE), "overdue_after"),
        (Change(release_every=timedelta(0)), "release_every"),
    ],
)
def test_out_of_bounds(app_database: Database, pages: Pages, to: Change, field: str) -> None:
    with app_database.engine.begin() as conn:
        with pytest.raises(RuleRefused, match=r"Nothing was changed\.") as caught:
            channel_rules.change(conn, pages[0], to, who="p")
        assert (caught.value.code, caught.value.field) == ("rule-out-of-bounds", field)
        assert channel_rules.of_channel(conn, pages[0].id) == USUAL


def test_no_spacing_where_several_are_sent_at_once(
    app_database: Database, owner_database: Database, pages: Pages
) -> None:
    with owner_database.engine.begin() as conn:
        conn.execute(text("UPDATE gates SET max_in_flight = 8"))
    with (
        app_database.engine.begin() as conn,
        pytest.raises(RuleRefused, match="several at once"),
    ):
        channel_rules.change(conn, pages[0], Change(spacing=HOUR), who="p")
