"""What this process did, counted: for whoever asks, such as the metrics endpoint."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from threading import Lock
from typing import Final

LATENESS_BOUNDS: Final = (1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0, 14400.0, 86400.0)
"""Seconds; one more bucket holds whatever is later."""


class Count(StrEnum):
    """What is counted, each with the labels it is counted by."""

    OUTCOMES = "outcomes"
    """Ends of attempts and claims, by outcome, reason and platform."""
    LOOKS = "looks"
    """Looks at a platform, by what they found."""
    RESCUES = "rescues"
    """Jobs taken from worker runs that were gone, by the state they went to."""
    LATE_ANSWERS = "late answers"
    """Answers that came after their job was taken away, by what became of them."""
    BROKEN = "broken"
    """Invariants that an hourly audit found broken, by id and severity."""


@dataclass(frozen=True, slots=True)
class Lateness:
    """From the due time to the platform's yes: jobs per bucket, not added up, and all seconds."""

    buckets: tuple[int, ...]
    seconds: float


@dataclass(slots=True)
class Tally:
    """Safe to share between threads. Counts only go up, from 0 when the process starts."""

    _counts: Counter[tuple[Count, tuple[str, ...]]] = field(default_factory=Counter)
    _lateness: dict[str, list[int]] = field(default_factory=dict)
    _seconds: dict[str, float] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def count(self, what: Count, *labels: str, by: int = 1) -> None:
        """Count ``by`` more, under these labels."""
        with self._lock:
            self._counts[what, labels] += by

    def late(self, seconds: float, platform: str) -> None:
        """Note how late one post went live."""
        with self._lock:
            buckets = self._lateness.setdefault(platform, [0] * (len(LATENESS_BOUNDS) + 1))
            buckets[bisect_left(LATENESS_BOUNDS, seconds)] += 1
            self._seconds[platform] = self._seconds.get(platform, 0.0) + max(0.0, seconds)

    def counts(self, what: Count) -> dict[tuple[str, ...], int]:
        """How many, by labels."""
        with self._lock:
            return {labels: n for (counted, labels), n in self._counts.items() if counted is what}

    def lateness(self) -> dict[str, Lateness]:
        """How late posts went live, by platform."""
        with self._lock:
            return {
                platform: Lateness(tuple(buckets), self._seconds[platform])
                for platform, buckets in self._lateness.items()
            }
