"""Instants as people read them; the clock table has the awkward ones."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from publisher.editorial import clock, times

DUE = datetime(2026, 12, 7, 2, 0, tzinfo=UTC)
SAIGON = ZoneInfo("Asia/Ho_Chi_Minh")


def test_absolute_with_the_city_then_relative() -> None:
    now = DUE - timedelta(hours=2)
    assert clock.told(DUE, SAIGON, now) == "Mon 7 Dec 2026 09:00 Ho Chi Minh City · in 2 h"
    said = clock.told(DUE, SAIGON, now, ZoneInfo("Asia/Tehran"))
    assert said == "Mon 7 Dec 2026 09:00 Ho Chi Minh City (05:30 for you) · in 2 h"


def test_seconds_are_shown_where_there_are_any() -> None:
    assert clock.shown(DUE.replace(second=7), UTC) == "Mon 7 Dec 2026 02:00:07 UTC"


@pytest.mark.parametrize(
    ("zone", "city"),
    [
        ("Asia/Ho_Chi_Minh", "Ho Chi Minh City"),
        ("Asia/Saigon", "Ho Chi Minh City"),
        ("America/Argentina/Buenos_Aires", "Buenos Aires"),
        ("Etc/GMT+5", "Etc/GMT+5"),
        ("UTC", "UTC"),
        (SAIGON, "Ho Chi Minh City"),
        (UTC, "UTC"),
        (None, "UTC"),
    ],
)
def test_cities(zone: str | ZoneInfo | None, city: str) -> None:
    assert clock.city(zone) == city


@pytest.mark.parametrize("name", [None, "", "Nowhere/At_All", "../../etc/passwd", "\0"])
def test_a_zone_that_is_none_is_utc(name: str | None) -> None:
    assert clock.zone(name) is UTC


@settings(deadline=None)
@given(
    st.datetimes(datetime(2000, 1, 1), datetime(2036, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
    st.sampled_from(sorted(times.zones())),
)
def test_what_is_shown_names_one_instant(at: datetime, zone: str) -> None:
    """With its offset where a clock there shows the same twice."""
    place = ZoneInfo(zone)
    local = at.astimezone(place)
    other = local.replace(fold=1 - local.fold)
    twice = other.utcoffset() != local.utcoffset()
    assert ("(UTC" in clock.shown(at, place)) is twice
    if twice:
        assert clock.shown(other.astimezone(UTC), place) != clock.shown(at, place)
