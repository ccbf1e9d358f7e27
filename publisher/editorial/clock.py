"""An instant as people read it: in the workspace's zone with its city, and in the reader's own.

The reader's zone is only ever shown beside the workspace's; what is typed is read in the
workspace's. Neither is this machine's: nothing here asks for ``TZ``.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from publisher.words import _, many

_MINUTE: Final = 60
_HOUR: Final = 3600
_DAY: Final = 86_400
# The last part of these zones is not what people call the place.
_CITIES: Final = {"Asia/Ho_Chi_Minh": "Ho Chi Minh City", "Asia/Saigon": "Ho Chi Minh City"}


def zone(name: str | None) -> tzinfo:
    """The zone called ``name``; UTC where it is empty or none this machine knows."""
    if not name:
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return UTC


def city(of: str | tzinfo | None) -> str:
    """A zone as people say it: ``Ho Chi Minh City`` for ``Asia/Ho_Chi_Minh``."""
    name = of if isinstance(of, str) else of.key if isinstance(of, ZoneInfo) else "UTC"
    if name in _CITIES or name.startswith("Etc/"):
        return _CITIES.get(name, name)
    return name.rpartition("/")[2].replace("_", " ")


def day(at: datetime) -> str:
    """``Mon 7 Dec 2026``, as ``at`` has it."""
    return f"{weekday(at.isoweekday())} {at.day} {month(at.month)} {at.year}"


def weekday(number: int) -> str:
    """``Mon`` for 1, as ISO 8601 counts."""
    return (_("Mon"), _("Tue"), _("Wed"), _("Thu"), _("Fri"), _("Sat"), _("Sun"))[number - 1]


def month(number: int) -> str:
    """``Jan`` for 1."""
    names = (
        _("Jan"), _("Feb"), _("Mar"), _("Apr"), _("May"), _("Jun"),
        _("Jul"), _("Aug"), _("Sep"), _("Oct"), _("Nov"), _("Dec"),
    )  # fmt: skip
    return names[number - 1]


def shown(at: datetime, workspace: tzinfo, viewer: tzinfo | None = None) -> str:
    """``Mon 7 Dec 2026 09:00 Ho Chi Minh City (05:30 for you)``.

    The viewer's time has its day where that is another one, and is left out where their clock
    shows the same. An hour that happens twice there has its offset with it, in either zone.
    """
    there = at.astimezone(workspace)
    said = f"{day(there)} {_clock(there)} {city(workspace)}"
    if viewer is None:
        return said
    here = at.astimezone(viewer)
    if here.replace(tzinfo=None) == there.replace(tzinfo=None):
        return said
    when = _clock(here)
    if here.date() != there.date():
        when = f"{weekday(here.isoweekday())} {here.day} {month(here.month)} {when}"
    return f"{said} " + _("({when} for you)").format(when=when)


def told(at: datetime, workspace: tzinfo, now: datetime, viewer: tzinfo | None = None) -> str:
    """``shown``, then how far off: ``Mon 7 Dec 2026 09:00 Ho Chi Minh City · in 2 h``."""
    return f"{shown(at, workspace, viewer)} · {relative(at, now)}"


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


def _clock(at: datetime) -> str:
    """``09:00``, with seconds where there are any, and its offset where that tells two apart."""
    text = f"{at:%H:%M:%S}" if at.second else f"{at:%H:%M}"
    if at.replace(fold=0).utcoffset() == at.replace(fold=1).utcoffset():
        return text
    offset = at.utcoffset() or timedelta(0)
    sign = "-" if offset < timedelta(0) else "+"
    minutes = abs(round(offset.total_seconds() / _MINUTE))
    return f"{text} (UTC{sign}{minutes // 60:02}:{minutes % 60:02})"
