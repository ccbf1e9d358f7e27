"""The durations a worker lives by, in seconds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Timing:
    """See the settings of the same names; ``publish_lease`` covers ``publish_timeout``."""

    lease: float = 60.0
    distrust: float = 50.0
    rescue_after: float = 75.0
    publish_timeout: float = 300.0
    publish_lease: float = 360.0
    poll: float = 1.0
    drain: float = 30.0

    @property
    def grace(self) -> float:
        """How long after its end a lease is taken away."""
        return self.rescue_after - self.lease

    @property
    def beat_every(self) -> float:
        """How often a worker says that it lives, looks for the dead, and reads the clock."""
        return min(5.0, self.distrust / 5)
