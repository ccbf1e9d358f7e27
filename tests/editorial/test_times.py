"""Local times: what is read, what is refused, and in which words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from publisher.editorial import times
from publisher.editorial.times import Moment, TimeRefused

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
DAY = timedelta(days=1)


def read(written: str, zone: str = "", now: datetime = NOW) -> Moment:
    return times.read(written, zone, now=now, useful_for=DAY)


def refused(written: str, zone: str = "", now: datetime = NOW) -> TimeRefused:
    with pytest.raises(TimeRefused) as caught:
        read(written, zone, now)
    return caught.value


@pytest.mark.parametrize(
    ("written", "zone"),
    [
        ("2026-12-07 09:00", "Asia/Ho_Chi_Minh"),
        ("2026-12-07T09:00", "Asia/Ho_Chi_Minh"),
        ("2026-12-7 9:00:00", "Asia/Ho_Chi_Minh"),
        ("  2026-12-07 09:00 ", " Asia/Ho_Chi_Minh "),
        ("2026-12-07 09:00+07:00", ""),
        ("2026-12-07 09:00 +0700", ""),
        ("2026-12-07T09:00:00.000+07", ""),
        ("2026-12-07T02:00Z", ""),
        ("2026-12-07T02:00z", "UTC"),
        ("2026-12-07 09:00+07:00", "Asia/Ho_Chi_Minh"),
        ("۲۰۲۶-۱۲-۰۷ ۰۹:۰۰", "Asia/Ho_Chi_Minh"),  # noqa: RUF001 - digits of a Persian keyboard
        ("2026-12-06 21:00-05:00", "America/New_York"),
    ],
)
def test_spellings_of_one_instant(written: str, zone: str) -> None:
    moment = read(written, zone)
    assert moment.at == datetime(2026, 12, 7, 2, 0, tzinfo=UTC)
    assert moment.at.tzinfo is UTC
    assert moment.zone == (zone.strip() or "UTC")
    assert not moment.is_now


def test_fractions_of_a_second_are_kept() -> None:
    assert read("2026-12-07 09:00:01.25Z").at.microsecond == 250_000


@pytest.mark.parametrize("word", ["now", "NOW", " Now "])
def test_the_word_now_is_the_clock(word: str) -> None:
    assert read(word) == Moment(NOW, "UTC", is_now=True)
    assert read(word, "Asia/Tehran") == Moment(NOW, "Asia/Tehran", is_now=True)


@pytest.mark.parametrize(
    ("written", "code"),
    [
        ("", "time-missing"),
        ("   ", "time-missing"),
        ("soon", "time-unreadable"),
        ("now!", "time-unreadable"),
        ("2026-12-07", "time-unreadable"),
        ("09:00", "time-unreadable"),
        ("07/12/2026 09:00", "time-unreadable"),
        ("20261207T0900", "time-unreadable"),
        ("2026-W50-1 09:00", "time-unreadable"),
        ("2026-02-30 09:00", "time-unreadable"),
        ("2026-12-07 24:00", "time-unreadable"),
        ("2026-12-07 23:59:60", "time-unreadable"),
        ("2026-12-07 09:00+15:00", "time-unreadable"),
        ("2026-12-07 09:00+07:75", "time-unreadable"),
        ("2026-12-07 09:00 PM", "time-unreadable"),
        ("१२२६-12-07 09:00", "time-unreadable"),
        ("46363.375", "time-unreadable"),
        ("1405-09-16 09:00", "time-past"),
        ("0001-01-01 00:00", "time-past"),
        ("9999-12-31 23:59", "time-too-far"),
    ],
)
@pytest.mark.parametrize("zone", ["", "Asia/Ho_Chi_Minh"])
def test_never_read_as_now(written: str, code: str, zone: str) -> None:
    assert refused(written, zone).code == code


def test_wording_of_a_time_that_does_not_exist() -> None:
    error = refused("2027-03-14 02:30", "America/New_York")
    assert error.code == "time-not-real"
    assert error.what == (
        "02:30 does not exist on 14 March in New York; clocks jump from 2:00 to 3:00."
    )
    assert error.fix == "Choose 03:30 or 01:30."


def test_wording_of_a_time_that_happens_twice() -> None:
    error = refused("2027-11-07 01:30", "America/New_York")
    assert error.code == "time-twice"
    assert error.what == (
        "01:30 happens twice on 7 November in New York; clocks go back from 2:00 to 1:00."
    )
    assert error.fix == (
        "Choose 2027-11-07 01:30-04:00 (the first) or 2027-11-07 01:30-05:00 (the second)."
    )


def test_a_whole_day_may_be_missing() -> None:
    error = refused("2011-12-30 09:00", "Pacific/Apia", datetime(2011, 12, 1, tzinfo=UTC))
    assert error.fix == "Choose 2011-12-31 09:00 or 2011-12-29 09:00."


def test_a_jump_at_midnight_names_the_days() -> None:
    error = refused("2024-03-31 00:30", "Asia/Beirut", datetime(2024, 3, 1, tzinfo=UTC))
    assert error.fix == "Choose 2024-03-31 01:30 or 2024-03-30 23:30."


def test_wording_of_zones() -> None:
    unknown = refused("2026-12-07 09:00", "Asia/Saigom")
    assert (unknown.code, unknown.field) == ("zone-unknown", "zone")
    assert str(unknown) == 'Zone "Asia/Saigom" is unknown. Did you mean "Asia/Saigon"?'
    assert refused("now", "Ho Chi Minh City").fix == 'Did you mean "Asia/Ho_Chi_Minh"?'
    assert refused("now", "asia/tehran").fix == 'Did you mean "Asia/Tehran"?'
    assert "IANA" in refused("now", "PST").fix
    for strange in ("../etc/passwd", "/etc/localtime", "America", "localtime", "a\0b"):
        assert refused("now", strange).code == "zone-unknown"
    missing = refused("2026-12-07 09:00")
    assert (missing.code, missing.field) == ("zone-missing", "zone")
    assert missing.fix.startswith("Fill in zone, such as Asia/Ho_Chi_Minh")


def test_offset_and_zone_must_agree() -> None:
    error = refused("2026-12-07 09:00+02:00", "Asia/Ho_Chi_Minh")
    assert (error.code, error.field) == ("zone-contradicts", "zone")
    assert error.what.endswith("at that instant it is 14:00 in Ho Chi Minh City.")
    assert error.fix == "Write 2026-12-07 14:00+07:00, or leave zone or the offset out."
    assert refused("2026-12-07 09:00Z", "Asia/Tehran").code == "zone-contradicts"


def test_an_offset_decides_between_the_two() -> None:
    first = read("2027-11-07 01:30-04:00", "America/New_York")
    second = read("2027-11-07 01:30-05:00", "America/New_York")
    assert second.at - first.at == timedelta(hours=1)


def test_past_is_accepted_while_it_is_useful() -> None:
    assert read("2026-11-29 12:01Z").at < NOW
    error = refused("2026-11-29 12:00Z")
    assert error.code == "time-past"
    assert error.what == (
        "2026-11-29 12:00 UTC is already past; it was useful until 2026-11-30 12:00."
    )


def test_useful_for_ever_is_no_overflow() -> None:
    moment = times.read("2026-01-01 00:00Z", "", now=NOW, useful_for=timedelta.max)
    assert moment.at.year == 2026


zone_names = st.sampled_from(sorted(times.zones()))
walls = st.datetimes(*(datetime.fromisoformat(day) for day in ("2026-12-02", "2036-12-30"))).map(
    lambda at: at.replace(second=0, microsecond=0)
)


@st.composite
def near_a_change(draw: st.DrawFn) -> tuple[datetime, str]:
    """A wall time within three hours of a change of offset, in a zone that has one."""
    zone = ZoneInfo(draw(zone_names))
    start = datetime(draw(st.integers(2027, 2036)), 1, 1, tzinfo=UTC)
    days = [start + timedelta(days=n) for n in range(366)]
    changes = [
        (day, after)
        for day, after in pairwise(days)
        if day.astimezone(zone).utcoffset() != after.astimezone(zone).utcoffset()
    ]
    assume(changes)
    low, high = draw(st.sampled_from(changes))
    while high - low > timedelta(minutes=1):
        middle = low + (high - low) / 2
        same = middle.astimezone(zone).utcoffset() == low.astimezone(zone).utcoffset()
        low, high = (middle, high) if same else (low, middle)
    wall = high.astimezone(zone).replace(tzinfo=None, second=0, microsecond=0)
    return wall + timedelta(minutes=draw(st.integers(-180, 180))), zone.key


def shown_at(wall: datetime, zone: str) -> list[datetime]:
    """Every instant at which a clock there shows ``wall``, by brute force over all offsets."""
    found = {
        at
        for minutes in range(-15 * 60, 15 * 60 + 1, 15)
        if (at := (wall - timedelta(minutes=minutes)).replace(tzinfo=UTC))
        .astimezone(ZoneInfo(zone))
        .replace(tzinfo=None)
        == wall
    }
    return sorted(found)


@settings(deadline=None, max_examples=300)
@given(st.one_of(near_a_change(), st.tuples(walls, zone_names)))
def test_a_local_time_is_read_exactly_when_it_happens_once(case: tuple[datetime, str]) -> None:
    wall, zone = case
    # Africa/Monrovia and its like had offsets of odd seconds long ago, none in these years.
    instants = shown_at(wall, zone)
    written = f"{wall:%Y-%m-%d %H:%M}"
    if len(instants) == 1:
        assert read(written, zone).at == instants[0]
        return
    error = refused(written, zone)
    choices = error.fix.removeprefix("Choose ").removesuffix(".").split(" or ")
    assert len(choices) == 2
    if instants:
        assert error.code == "time-twice"
        # Both choices are real, and are the two it could be.
        assert [read(choice.split(" (")[0], zone).at for choice in choices] == instants
    else:
        assert error.code == "time-not-real"
        full = [c if "-" in c else f"{wall:%Y-%m-%d} {c}" for c in choices]
        later, earlier = (read(choice, zone).at for choice in full)
        local = [at.astimezone(ZoneInfo(zone)).replace(tzinfo=None) for at in (earlier, later)]
        assert local[0] < wall < local[1]
        # As far apart as the clocks jump, and neither across another day than it says.
        assert local[1] - local[0] == 2 * (local[1] - wall) == 2 * (wall - local[0])


@settings(deadline=None)
@given(walls, st.integers(-14 * 60, 14 * 60))
def test_an_offset_names_its_instant(wall: datetime, minutes: int) -> None:
    at = wall.replace(tzinfo=timezone(timedelta(minutes=minutes)))
    moment = read(at.isoformat(sep=" ", timespec="minutes"))
    assert moment.at == at


@settings(deadline=None)
@given(walls.map(lambda wall: wall.replace(tzinfo=UTC)), zone_names)
def test_offset_with_its_own_zone_never_contradicts(at: datetime, zone: str) -> None:
    local = at.astimezone(ZoneInfo(zone))
    assert read(local.isoformat(sep=" "), zone).at == at


@settings(deadline=None)
@given(st.text(), st.text())
def test_whatever_is_written_is_read_or_refused(written: str, zone: str) -> None:
    if written.strip().casefold() == "now" and not zone.strip():
        assert read(written, zone).is_now
    else:
        # Hypothesis finds no other time that is one.
        assert refused(written, zone).fix
