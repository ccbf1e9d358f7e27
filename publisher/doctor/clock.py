"""Whether this host and the database agree what time it is.

The database's clock alone decides what is due. A host that is off shows people wrong times and
signs with wrong ones.
"""

from __future__ import annotations

from collections.abc import Iterator

from publisher.doctor.finding import Finding, error, warning
from publisher.doctor.ward import Ward
from publisher.words import _

_TRIES = 5


def skew(ward: Ward) -> Iterator[Finding]:
    """Compare the clocks as closely as the quickest of a few round trips allows."""
    off, doubt = min((_measure(ward) for _n in range(_TRIES)), key=lambda pair: pair[1])
    surely = abs(off) - doubt
    if surely <= ward.limits.skew_warning:
        return
    make = error if surely > ward.limits.skew_error else warning
    way = _("ahead of") if off > 0 else _("behind")
    yield make(
        "clock_skew",
        _("The clock of this host is {n:.1f} s {way} the database's.").format(n=abs(off), way=way),
        _("Have both kept by the same time service (chrony, systemd-timesyncd)."),
    )


def _measure(ward: Ward) -> tuple[float, float]:
    """Seconds this host is ahead, and by how many that may be wrong."""
    with ward.reading() as conn:
        before = ward.wall()
        there = float(
            conn.exec_driver_sql("SELECT extract(epoch FROM clock_timestamp())").scalar_one()
        )
        after = ward.wall()
    return (before + after) / 2 - there, (after - before) / 2
