"""Whether Python, the system and PostgreSQL know the same time zones.

A post's local time is turned into an instant by Python. Where another machine, or the database,
has older rules, the same post is said to be due at another time.
"""

from __future__ import annotations

import zoneinfo
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from importlib import resources
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from sqlalchemy import Connection, text

from publisher.doctor.finding import Finding, Severity, error
from publisher.doctor.ward import Ward
from publisher.editorial import zones
from publisher.words import _

_SAMPLE: Final = (
    "America/New_York",
    "America/Santiago",
    "Africa/Cairo",
    "Africa/Casablanca",
    "Asia/Gaza",
    "Asia/Ho_Chi_Minh",
    "Asia/Tehran",
    "Australia/Lord_Howe",
    "Europe/Berlin",
    "Europe/Kyiv",
)
"""Zones whose rules changed of late, or may."""
_SYSTEM: Final = Path("/usr/share/zoneinfo")
_DAYS: Final = 730
_FOLLOWED: Final = 200
"""No more zones than this are compared; what is in use comes first."""

Offsets = Mapping[str, tuple[int, ...] | None]
"""Seconds east of UTC at each instant, by zone; None where there is no such zone."""


def rules(ward: Ward) -> Iterator[Finding]:
    """Compare the offsets of the next two years, day by day."""
    with ward.reading() as conn:
        used = zones.in_use(conn) | {ward.settings.alert_zone}
        names = [*sorted(used), *(name for name in _SAMPLE if name not in used)][:_FOLLOWED]
        now = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
        instants = [now + timedelta(days=n) for n in range(_DAYS)]
        theirs = _in_database(conn, names, instants)
    ours = _offsets(names, instants, ZoneInfo)
    for name in sorted(used):
        if ours.get(name) is None:
            yield error(
                "zone_unknown",
                _("Python on this machine does not know the zone {zone}, which is in use.").format(
                    zone=name
                ),
                _("Install the package tzdata, and look at PYTHONTZPATH."),
            )
    others = {
        _("PostgreSQL"): theirs,
        _("the package tzdata"): _offsets(names, instants, _packaged),
    }
    if _SYSTEM.is_dir():
        others[_("the system")] = _offsets(names, instants, _installed)
    for whose, offsets in others.items():
        yield from _differences(whose, ours, offsets, instants, used)


def _differences(
    whose: str,
    ours: Offsets,
    theirs: Offsets,
    instants: list[datetime],
    used: Collection[str],
) -> Iterator[Finding]:
    """One finding for all zones of one database; those in use are a warning, others a note."""
    for severity, wanted in ((Severity.WARNING, True), (Severity.NOTE, False)):
        apart = {}
        for name, mine in ours.items():
            other = theirs.get(name)
            if mine is None or other == mine or (name in used) is not wanted:
                continue
            first = None
            if other is not None:
                first = next(at for at, a, b in zip(instants, mine, other, strict=True) if a != b)
            apart[name] = _("missing") if first is None else f"{first:%Y-%m-%d}"
        if apart:
            listed = ", ".join(f"{name} ({at})" for name, at in sorted(apart.items()))
            yield Finding(
                severity,
                "zones_differ" if wanted else "zones_age",
                _("Python and {whose} differ about {zones}.").format(whose=whose, zones=listed),
                _("Bring the older of the two up to date; Python reads {path} first.").format(
                    path=next((path for path in zoneinfo.TZPATH if Path(path).is_dir()), "tzdata")
                ),
            )


def _offsets(
    names: Collection[str], instants: list[datetime], load: Callable[[str], tzinfo]
) -> dict[str, tuple[int, ...] | None]:
    found: dict[str, tuple[int, ...] | None] = {}
    for name in names:
        try:
            zone = load(name)
        except (ZoneInfoNotFoundError, ValueError, OSError, ModuleNotFoundError):
            found[name] = None
            continue
        found[name] = tuple(_seconds(at.astimezone(zone)) for at in instants)
    return found


def _seconds(at: datetime) -> int:
    return int((at.utcoffset() or timedelta()).total_seconds())


def _installed(name: str) -> tzinfo:
    with (_SYSTEM / name).open("rb") as file:
        return ZoneInfo.from_file(file)


def _packaged(name: str) -> tzinfo:
    with resources.files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file)


# Known to the database by exactly this name: it would take "Foo/Bar" for a POSIX rule, or fail.
_KNOWN = text("SELECT name FROM pg_timezone_names WHERE name = ANY(:names)")
_THEIRS = text("""
SELECT z.name, array_agg(extract(epoch FROM (i.at AT TIME ZONE z.name) - (i.at AT TIME ZONE 'UTC'))
                         ORDER BY i.at)
  FROM unnest(CAST(:names AS text[])) AS z(name)
 CROSS JOIN unnest(CAST(:instants AS timestamptz[])) AS i(at)
 GROUP BY z.name
""")


def _in_database(
    conn: Connection, names: list[str], instants: list[datetime]
) -> dict[str, tuple[int, ...] | None]:
    known = list(conn.execute(_KNOWN, {"names": names}).scalars())
    rows = conn.execute(_THEIRS, {"names": known, "instants": instants})
    found = {name: tuple(int(one) for one in offsets) for name, offsets in rows}
    return {name: found.get(name) for name in names}
