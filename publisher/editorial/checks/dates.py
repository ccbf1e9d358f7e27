"""Days and moments as a check writes them."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

from publisher.editorial import clock
from publisher.words import _


def day(at: datetime, of: tzinfo, beside: datetime) -> str:
    """``30 Nov`` in the zone; with its year where ``beside`` is in another."""
    local = _local(at, of)
    year = "" if local.year == _local(beside, of).year else f" {local.year}"
    return f"{local.day} {_month(local)}{year}"


def moment(at: datetime, of: tzinfo) -> str:
    """``Tue 8 Dec 2026, 08:00 Ho Chi Minh City``."""
    local = _local(at, of)
    weekdays = [_("Mon"), _("Tue"), _("Wed"), _("Thu"), _("Fri"), _("Sat"), _("Sun")]
    city = clock.city(of) if isinstance(of, ZoneInfo) else local.tzname() or "UTC"
    date = f"{weekdays[local.weekday()]} {local.day} {_month(local)} {local.year}"
    return f"{date}, {local:%H:%M} {city}"


def _local(at: datetime, of: tzinfo) -> datetime:
    """In the zone; in UTC where that would leave the years there are."""
    try:
        return at.astimezone(of)
    except OverflowError:
        return at.astimezone(UTC)


def _month(at: datetime) -> str:
    months = [
        _("Jan"), _("Feb"), _("Mar"), _("Apr"), _("May"), _("Jun"),
        _("Jul"), _("Aug"), _("Sep"), _("Oct"), _("Nov"), _("Dec"),
    ]  # fmt: skip
    return months[at.month - 1]
