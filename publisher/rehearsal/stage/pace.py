"""How fast time runs in a schedule: leases of a second mean nothing on a machine that is swamped.

Leases, holds and freezes are all stretched alike, so that what must outlast a lease still does.
"""

from __future__ import annotations

import os

_TIMES = {
    "poll_seconds": 0.2,
    "lease_seconds": 1.5,
    "lease_distrust_seconds": 1.0,
    "rescue_after_seconds": 2.0,
    "publish_timeout_seconds": 1.5,
    "publish_lease_seconds": 2.6,
    "settling_seconds": 0.1,
    "tcp_user_timeout_seconds": 2.0,
    "drain_seconds": 1.0,
    "retry_first_seconds": 0.1,
    "retry_max_seconds": 0.4,
    "look_first_seconds": 0.3,
    "look_max_seconds": 1.6,
}
_NEVER_STRETCHED = frozenset({
    "poll_seconds", "settling_seconds", "retry_first_seconds", "retry_max_seconds",
    "look_first_seconds", "look_max_seconds",
})  # fmt: skip
LOOK_LEASE = 2.0
"""Seconds a doubt is held for one look."""
_CALM = 8.0
_SLOWEST = 4.0
_READY_PER_CORE = 4.0


def pace() -> float:
    """How many times slower than on an idle machine, by how many processes wait for a core."""
    wait = os.getloadavg()[0] / ((os.cpu_count() or 1) * _READY_PER_CORE)
    return max(1.0, min(_SLOWEST, wait))


def times(stretch: float) -> dict[str, float]:
    """Durations for a worker's settings."""
    return {
        name: value if name in _NEVER_STRETCHED else value * stretch
        for name, value in _TIMES.items()
    }


def calm_times() -> dict[str, float]:
    """Durations for a worker that clears up: nothing of it must be hasty."""
    return times(_CALM)
