"""Record keys: one job has one, for ever, and whoever mints it again gets the same.

A post's key must be a TID: 53 bits of microseconds since 1970 and 10 bits that tell clocks apart,
in thirteen sortable characters (https://atproto.com/specs/tid).

The whole seconds are those of the job's scheduled instant. Everything below is a hash of the job's
key: posts are scheduled for round minutes, so the instant's own microseconds are nearly always
zero, and ten bits alone would give twenty posts of one account at nine o'clock an even chance of
about one in six that two of them share a key. With twenty bits more it is one in five million. Two
that share one are not published twice: the second is refused, and a person is asked.
"""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime, timedelta

_DIGITS = "234567abcdefghijklmnopqrstuvwxyz"
_LENGTH = 13
_CLOCK_BITS = 10
_SECOND = 1_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_VALID = re.compile(r"[234567abcdefghij][234567abcdefghijklmnopqrstuvwxyz]{12}")
_INSTANT = re.compile(r"/at:(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6})Z$")

_UNDATED_FROM = datetime(2024, 1, 1, tzinfo=UTC)
_UNDATED_SECONDS = 366 * 86_400


def mint(key: str, at: datetime) -> str:
    """The record key of the job ``key``, first scheduled for ``at`` (aware, 1970 to 2255). Pure."""
    seconds = (at - _EPOCH) // timedelta(seconds=1)
    bits = int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big")
    microseconds = seconds * _SECOND + (bits >> _CLOCK_BITS) % _SECOND
    clock = bits & ((1 << _CLOCK_BITS) - 1)
    return _encoded(microseconds << _CLOCK_BITS | clock)


def of_key(key: str) -> str:
    """The record key of a job that was stored without one. Pure.

    A post's key ends with its instant, so this is what ``mint`` made or would have made. Another
    key has none: then the hash chooses a second of 2024, a wrong date, but the same every time.
    """
    if found := _INSTANT.search(key):
        return mint(key, datetime.fromisoformat(f"{found[1]}+00:00"))
    bits = int.from_bytes(hashlib.sha256(key.encode()).digest()[8:16], "big")
    return mint(key, _UNDATED_FROM + timedelta(seconds=bits % _UNDATED_SECONDS))


def is_valid(text: str) -> bool:
    """Whether ``text`` can stand as a TID."""
    return _VALID.fullmatch(text) is not None


def instant(tid: str) -> datetime:
    """The instant a TID holds. Raises ``ValueError`` when it is none."""
    if not is_valid(tid):
        message = f"{tid!r} is no TID"
        raise ValueError(message)
    number = 0
    for digit in tid:
        number = number << 5 | _DIGITS.index(digit)
    return _EPOCH + timedelta(microseconds=number >> _CLOCK_BITS)


def _encoded(number: int) -> str:
    digits = [_DIGITS[number >> 5 * place & 31] for place in reversed(range(_LENGTH))]
    return "".join(digits)
