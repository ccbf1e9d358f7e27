"""From what a person wrote to an instant: local times with a zone, offsets, and the word ``now``.

Nothing is guessed. A time that does not exist or exists twice is refused with both times it could
be; a date without a time of day, an empty cell and an unknown zone are never read as now.
"""

from __future__ import annotations

import re
import zoneinfo
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from functools import cache
from typing import Final, Literal

from publisher.editorial.clock import city
from publisher.editorial.spelling import near, quoted
from publisher.engine.errors import PublisherError

NOW: Final = "now"
_YEARS_AHEAD: Final = 10
_CENTURY: Final = timedelta(days=36_525)
_SURE: Final = 0.75
_SOLAR_HIJRI: Final = range(1300, 1500)
_WRITTEN: Final = re.compile(
    r"(\d{4})-(\d{1,2})-(\d{1,2})[Tt ] *(\d{1,2}):(\d{2})(?::(\d{2})(?:\.(\d{1,6}))?)?"
    r"(?: *([Zz]|[+-]\d{2}(?::?\d{2})?))?",
    re.ASCII,
)
_DATE_ONLY: Final = re.compile(r"\d{4}-\d{1,2}-\d{1,2}", re.ASCII)
_FARTHEST_OFFSET: Final = timedelta(hours=14)
# Persian and Arabic keyboards.
_DIGITS: Final = str.maketrans("۰۱۲۳۴۵۶۷۸۹٠١٢٣٤٥٦٧٨٩", "01234567890123456789")
_EXAMPLE: Final = "Write it as 2026-12-07 09:00 with a zone, as 2026-12-07 09:00+07:00, or as now."

Field = Literal["publish_at", "zone"]


class TimeRefused(PublisherError):
    """A time that names no instant, or none a post can go out at.

    ``field`` is where the fault lies, ``fix`` the sentence that says what to do; ``str()`` is both.
    ``choices``: the instants in UTC it could be, where it names none or two, as ``fix`` has them.
    """

    def __init__(
        self,
        what: str,
        fix: str,
        *,
        code: str,
        field: Field = "publish_at",
        choices: tuple[datetime, ...] = (),
    ) -> None:
        super().__init__(f"{what} {fix}".rstrip())
        self.choices = choices
        self.code = code
        self.what = what
        self.fix = fix
        self.field = field


@dataclass(frozen=True, slots=True)
class Moment:
    """An instant in UTC, and the zone it is shown in; ``is_now`` when the word was written."""

    at: datetime
    zone: str
    is_now: bool = False


def read(written: str, zone: str, *, now: datetime, useful_for: timedelta) -> Moment:
    """Read one publishing time.

    ``written`` is a local time, a time with an offset, or ``now``; ``zone`` an IANA name or
    empty. With an offset the zone may be empty, and must agree where it is not. ``now`` is the
    database's clock. A time that has passed is accepted while it is younger than ``useful_for``.

    Raises ``TimeRefused``, whose code is one of ``time-missing``, ``time-unreadable``,
    ``zone-missing``, ``zone-unknown``, ``time-not-real``, ``time-twice``, ``zone-contradicts``,
    ``time-past`` and ``time-too-far``.
    """
    written, zone = written.strip(), zone.strip()
    useful_for = min(useful_for, _CENTURY)
    if not written:
        what = "There is no time to publish at."
        raise TimeRefused(what, _EXAMPLE, code="time-missing")
    place = _zone(zone) if zone else None
    if written.casefold() == NOW:
        return Moment(now, zone or "UTC", is_now=True)
    wall, offset = _parse(written.translate(_DIGITS))
    _check_year(wall, now - useful_for, now)
    if offset is None:
        if place is None:
            what = f"{quoted(written)} names no zone."
            fix = f"Fill in zone, such as Asia/Ho_Chi_Minh, or write {_minute(wall)}+07:00."
            raise TimeRefused(what, fix, code="zone-missing", field="zone")
        at = _instant(wall, place)
    else:
        at = wall.replace(tzinfo=timezone(offset)).astimezone(UTC)
        if place is not None and at.astimezone(place).replace(tzinfo=None) != wall:
            raise _contradiction(wall, offset, at, place)
    _check_useful(at, place, now=now, useful_for=useful_for)
    return Moment(at, zone or "UTC")


@cache
def zones() -> frozenset[str]:
    """Every IANA zone this machine knows, from its own files or the package ``tzdata``."""
    return frozenset(zoneinfo.available_timezones() - {"Factory", "localtime"})


def _zone(name: str) -> zoneinfo.ZoneInfo:
    if name in zones():
        return zoneinfo.ZoneInfo(name)
    if not zones():
        what = "This machine knows no time zones."
        raise TimeRefused(what, "Install the package tzdata.", code="zone-unknown", field="zone")
    by_word = {known.rpartition("/")[2]: known for known in sorted(zones())}
    by_word |= {known: known for known in zones()}
    guesses = near(name.replace(" ", "_"), by_word, most=1, alike=_SURE)
    fix = "Give an IANA name such as Asia/Ho_Chi_Minh, or an offset in publish_at."
    if guesses:
        fix = f'Did you mean "{by_word[guesses[0]]}"?'
    what = f"Zone {quoted(name)} is unknown."
    raise TimeRefused(what, fix, code="zone-unknown", field="zone")


def _parse(written: str) -> tuple[datetime, timedelta | None]:
    match = _WRITTEN.fullmatch(written)
    if match is None:
        what = f"{quoted(written)} is not a time we can read."
        if _DATE_ONLY.fullmatch(written):
            what = f"{quoted(written)} has no time of day."
        raise TimeRefused(what, _EXAMPLE, code="time-unreadable")
    *numbers, fraction, offset = match.groups()
    year, month, day, hour, minute, second = (int(number or 0) for number in numbers)
    try:
        wall = datetime(  # noqa: DTZ001 - what a clock on the wall shows; its zone comes after
            year, month, day, hour, minute, second, int((fraction or "0").ljust(6, "0"))
        )
    except ValueError as error:
        what = f"{quoted(written)} is no date and time: {error}."
        raise TimeRefused(what, _EXAMPLE, code="time-unreadable") from None
    return wall, None if offset is None else _offset(offset)


def _offset(written: str) -> timedelta:
    if written in ("Z", "z"):
        return timedelta(0)
    digits = written[1:].replace(":", "").ljust(4, "0")
    size = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    if size > _FARTHEST_OFFSET or digits[2:] > "59":
        what = f"{quoted(written)} is no offset from UTC."
        raise TimeRefused(what, "Offsets go from -12:00 to +14:00.", code="time-unreadable")
    return -size if written[0] == "-" else size


def _check_year(wall: datetime, oldest: datetime, now: datetime) -> None:
    """Leave out years where zones have no rules, and typing errors, before anything is added."""
    if wall.year in _SOLAR_HIJRI:
        what = f"{wall.year} looks like a Solar Hijri year."
        raise TimeRefused(what, "Write the Gregorian date.", code="time-past")
    if wall.year < oldest.year - 1:
        what = f"{_minute(wall)} is already past."
        raise TimeRefused(what, "Give a later time, or the word now.", code="time-past")
    if wall.year > now.year + _YEARS_AHEAD:
        what = f"{_minute(wall)} is more than {_YEARS_AHEAD} years ahead."
        raise TimeRefused(what, "Check the year.", code="time-too-far")


def _instant(wall: datetime, place: zoneinfo.ZoneInfo) -> datetime:
    """The one instant at which a clock in ``place`` shows ``wall``; PEP 495 tells how many are."""
    first, second = wall.replace(tzinfo=place), wall.replace(tzinfo=place, fold=1)
    if first.utcoffset() == second.utcoffset():
        return first.astimezone(UTC)
    if first.astimezone(UTC).astimezone(place).replace(tzinfo=None) == wall:
        raise _twice(wall, first, second)
    raise _not_real(wall, first, second)


def _not_real(wall: datetime, first: datetime, second: datetime) -> TimeRefused:
    """In a gap, ``fold=0`` counts with the offset before the jump and ``fold=1`` after it."""
    place = _place(first)
    later, earlier = (side.astimezone(UTC).astimezone(place) for side in (first, second))
    jump = _jump(earlier.astimezone(UTC), later.astimezone(UTC), place)
    before = (jump + _utcoffset(first)).replace(tzinfo=None)
    after = (jump + _utcoffset(second)).replace(tzinfo=None)
    same_day = earlier.date() == later.date() == wall.date() == before.date() == after.date()
    clock = _hour if same_day else _minute
    choice = "{:%H:%M}" if same_day else "{:%Y-%m-%d %H:%M}"
    what = (
        f"{wall:%H:%M} does not exist on {_day(wall)} in {city(place.key)}; "
        f"clocks jump from {clock(before)} to {clock(after)}."
    )
    fix = f"Choose {choice.format(later)} or {choice.format(earlier)}."
    choices = (later.astimezone(UTC), earlier.astimezone(UTC))
    return TimeRefused(what, fix, code="time-not-real", choices=choices)


def _twice(wall: datetime, first: datetime, second: datetime) -> TimeRefused:
    place = _place(first)
    jump = _jump(first.astimezone(UTC), second.astimezone(UTC), place)
    before = (jump + _utcoffset(first)).replace(tzinfo=None)
    after = (jump + _utcoffset(second)).replace(tzinfo=None)
    clock = _hour if before.date() == after.date() == wall.date() else _minute
    what = (
        f"{wall:%H:%M} happens twice on {_day(wall)} in {city(place.key)}; "
        f"clocks go back from {clock(before)} to {clock(after)}."
    )
    fix = f"Choose {_with_offset(first)} (the first) or {_with_offset(second)} (the second)."
    choices = (first.astimezone(UTC), second.astimezone(UTC))
    return TimeRefused(what, fix, code="time-twice", choices=choices)


def _jump(low: datetime, high: datetime, place: zoneinfo.ZoneInfo) -> datetime:
    """The second in (low, high], both UTC, from which the offset in ``place`` is the later one."""
    start = low.replace(microsecond=0) - timedelta(seconds=1)
    offset = _utcoffset(start.astimezone(place))
    below, above = 0, int((high - start).total_seconds()) + 1
    while above - below > 1:
        middle = (below + above) // 2
        at = start + timedelta(seconds=middle)
        if _utcoffset(at.astimezone(place)) == offset:
            below = middle
        else:
            above = middle
    return start + timedelta(seconds=above)


def _contradiction(
    wall: datetime, offset: timedelta, at: datetime, place: zoneinfo.ZoneInfo
) -> TimeRefused:
    written = wall.replace(tzinfo=timezone(offset))
    there = at.astimezone(place)
    what = (
        f"{_with_offset(written)} and zone {place.key} contradict each other: "
        f"at that instant it is {there:%H:%M} in {city(place.key)}."
    )
    fix = f"Write {_with_offset(there)}, or leave zone or the offset out."
    return TimeRefused(what, fix, code="zone-contradicts", field="zone")


def _check_useful(
    at: datetime, place: zoneinfo.ZoneInfo | None, *, now: datetime, useful_for: timedelta
) -> None:
    if at + useful_for > now:
        return
    local = at.astimezone(place or UTC)
    until = (at + useful_for).astimezone(place or UTC)
    where = city(place.key) if place is not None else "UTC"
    what = f"{_minute(local)} {where} is already past; it was useful until {_minute(until)}."
    raise TimeRefused(what, "Give a later time, or the word now.", code="time-past")


def _place(at: datetime) -> zoneinfo.ZoneInfo:
    assert isinstance(at.tzinfo, zoneinfo.ZoneInfo)  # noqa: S101 - for the type checker
    return at.tzinfo


def _utcoffset(at: datetime) -> timedelta:
    offset = at.utcoffset()
    assert offset is not None  # noqa: S101 - for the type checker
    return offset


def _day(at: datetime) -> str:
    return f"{at.day} {at:%B}"


def _hour(at: datetime) -> str:
    """A clock as people say it, ``2:00``."""
    return f"{at.hour}:{at:%M}"


def _minute(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M}"


def _with_offset(at: datetime) -> str:
    """``2026-11-01 01:30-04:00``; seconds only where there are any."""
    return at.isoformat(sep=" ", timespec="minutes" if at.second == 0 else "seconds")
