"""Reads Graph's usage headers: how near a limit we are, and when we may come back.

https://developers.facebook.com/docs/graph-api/overview/rate-limiting/
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping

NEARLY_FULL = 95.0
"""Per cent of a limit from which the channel is given a rest before Graph takes one."""
REST_SECONDS = 300.0
"""A rest where Graph names none: the count is over a rolling hour, so some of it falls away."""
LONGEST_SECONDS = 86_400.0
"""No header makes us wait longer; a limit is a matter of hours, a wrong number is not."""

_SHARES = ("call_count", "total_cputime", "total_time")


def seconds_to_wait(headers: Mapping[str, str]) -> float | None:
    """Seconds until Graph takes calls again, or None when the headers do not say.

    ``estimated_time_to_regain_access`` is in minutes, ``Retry-After`` in seconds.
    """
    waits = [60 * minutes for minutes in _numbers(headers, ("estimated_time_to_regain_access",))]
    waits.append(_number(headers.get("retry-after", "")))
    longest = max(waits)
    return min(longest, LONGEST_SECONDS) if longest > 0 else None


def seconds_to_rest(headers: Mapping[str, str]) -> float | None:
    """Seconds a channel should rest after a success, or None while there is room."""
    if max(_numbers(headers, _SHARES), default=0.0) < NEARLY_FULL:
        return None
    return seconds_to_wait(headers) or REST_SECONDS


def _numbers(headers: Mapping[str, str], names: tuple[str, ...]) -> Iterator[float]:
    for name in ("x-app-usage", "x-page-usage", "x-business-use-case-usage"):
        for usage in _usages(headers.get(name, "")):
            yield from (_number(usage.get(key)) for key in names)


def _usages(header: str) -> Iterator[Mapping[str, object]]:
    """Yield each object with numbers in it: the header's own, or those listed under a business."""
    try:
        parsed = json.loads(header)
    except (ValueError, RecursionError):
        return
    if not isinstance(parsed, dict):
        return
    yield parsed
    for listed in parsed.values():
        if isinstance(listed, list):
            yield from (usage for usage in listed if isinstance(usage, dict))


def _number(value: object) -> float:
    """A finite, positive number, or 0."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return 0.0
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return 0.0
    return number if math.isfinite(number) and number > 0 else 0.0
