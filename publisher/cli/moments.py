"""Times as a terminal has them: absolute with the zone's city, then relative."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo

from publisher.editorial.clock import city, day, duration, month, relative, zone

__all__ = ["city", "clock", "day", "duration", "iso", "long", "relative", "short", "zone"]


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
    return f"{utc.day} {month(utc.month)}{year} {utc:%H:%M} UTC · {relative(at, now)}"


def clock(at: datetime, of: tzinfo) -> str:
    """``02:00:00.912``: the instants of one attempt lie close together."""
    return f"{at.astimezone(of):%H:%M:%S.%f}"[:-3]


def iso(at: datetime | None) -> str | None:
    """ISO 8601 in UTC with a Z, microseconds and all: what ``--json`` has."""
    if at is None:
        return None
    return at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
