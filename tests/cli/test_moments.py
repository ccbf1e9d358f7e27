"""Times as people read them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from publisher.cli import moments

NOW = datetime(2026, 12, 6, 17, tzinfo=UTC)
DUE = datetime(2026, 12, 6, 19, tzinfo=UTC)


def test_absolute_with_the_city_then_relative() -> None:
    said = moments.long(DUE, ZoneInfo("Asia/Ho_Chi_Minh"), NOW)
    assert said == "Mon 7 Dec 2026 02:00 Ho Chi Minh City (Sun 19:00 UTC) · in 2 h"
    assert moments.long(DUE, UTC, NOW) == "Sun 6 Dec 2026 19:00 UTC · in 2 h"
    assert moments.short(DUE, NOW) == "6 Dec 19:00 UTC · in 2 h"
    assert moments.short(DUE.replace(year=2027), NOW).startswith("6 Dec 2027 19:00 UTC")


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "now"),
        (17, "in 17 s"),
        (-41 * 60, "41 min ago"),
        (7200, "in 2 h"),
        (-40 * 3600, "40 h ago"),
        (3 * 86_400, "in 3 days"),
    ],
)
def test_relative_in_the_largest_unit_that_fits(seconds: float, said: str) -> None:
    assert moments.relative(NOW + timedelta(seconds=seconds), NOW) == said


def test_json_has_utc_with_a_z() -> None:
    local = datetime(2026, 12, 7, 2, tzinfo=ZoneInfo("Asia/Ho_Chi_Minh"))
    assert moments.iso(local) == "2026-12-06T19:00:00.000000Z"
    assert moments.iso(None) is None


@pytest.mark.parametrize("name", [None, "", "Mars/Olympus", "../etc/passwd"])
def test_a_zone_that_is_none_is_utc(name: str | None) -> None:
    assert moments.zone(name) is UTC
