"""Times as people read them: absolute with the zone's city, then relative."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from publisher.words import _, many

_MINUTE: Final = 60
_HOUR: Final = 3600
_DAY: Final = 86_400


def zone(name: str | None) -> tzinfo:
    """The zone called ``name``; UTC where it is empty or none we know."""
    if not name:
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return UTC


def city(of: tzinfo) -> str:
    """``Ho Chi Minh City`` for ``Asia/Ho_Chi_Minh``: the last part of the zone's name."""
    if isinstance(of, ZoneInfo):
        return of.key.rsplit("/", 1)[-1].replace("_", " ")
    return "UTC"


def day(at: datetime) -> str:
    """``Mon 7 Dec 2026``."""
    weekdays = [_("Mon"), _("Tue"), _("Wed"), _("Thu"), _("Fri"), _("Sat"), _("Sun")]
    return f"{weekdays[at.weekday()]} {at.day} {_month(at)} {at.year}"


def long(at: datetime, of: tzinfo, now: datetime) -> str:
    """``Mon 7 Dec 2026 02:00 Ho Chi Minh City (Sun 19:00 UTC) · in 2 h``."""
    local, utc = at.astimezone(of), at.astimezone(UTC)
    text = f"{day(local)} {local:%H:%M} {city(of)}"
    if local.utcoffset() != timedelta(0):
        text += f" ({day(utc).split()[0]} {utc:%H:%M} UTC)"
    return f"{text} · {relative(at, now)}"


def short(at: datetime, now: datetime) -> str:
    """``7 Dec 19:00 UTC · in 2 h``, for a table."""
    utc = at.astimezone(UTC)
    year = f" {utc.year}" if utc.year != now.astimezone(UTC).year else ""
    return f"{utc.day} {_month(utc)}{year} {utc:%H:%M} UTC · {relative(at, now)}"


def clock(at: datetime, of: tzinfo) -> str:
    """``02:00:00.912``: the instants of one attempt lie close together."""
    return f"{at.astimezone(of):%H:%M:%S.%f}"[:-3]


def relative(at: datetime, now: datetime) -> str:
    """``in 2 h`` or ``41 min ago``, in the largest unit that fits."""
    seconds = (at - now).total_seconds()
    if abs(seconds) < 1:
        return _("now")
    span = duration(abs(seconds))
    return _("in {span}").format(span=span) if seconds > 0 else _("{span} ago").format(span=span)


def duration(seconds: float) -> str:
    """``17 s``, ``41 min``, ``2 h`` or ``3 days``."""
    if seconds < _MINUTE:
        return f"{seconds:.0f} s"
    if seconds < _HOUR:
        return f"{seconds / _MINUTE:.0f} min"
    if seconds < 2 * _DAY:
        return f"{seconds / _HOUR:.0f} h"
    return many("{n} day", "{n} days", round(seconds / _DAY))


def iso(at: datetime | None) -> str | None:
    """ISO 8601 in UTC with a Z, microseconds and all: what ``--json`` has."""
    if at is None:
        return None
    return at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _month(at: datetime) -> str:
    months = [
        _("Jan"), _("Feb"), _("Mar"), _("Apr"), _("May"), _("Jun"),
        _("Jul"), _("Aug"), _("Sep"), _("Oct"), _("Nov"), _("Dec"),
    ]  # fmt: skip
    return months[at.month - 1]
