"""Timestamp identifiers, the record keys of posts. Source: https://atproto.com/specs/tid."""

from __future__ import annotations

import re

_LETTERS = "234567abcdefghijklmnopqrstuvwxyz"
_TID = re.compile(f"^[234567abcdefghij][{_LETTERS}]{{12}}$")


def is_tid(text: str) -> bool:
    """Say whether ``text`` is a TID."""
    return _TID.match(text) is not None


def at(seconds: float, clock: int) -> str:
    """Return the TID of a moment in unix seconds, with a clock id from 0 to 1023."""
    number = (int(seconds * 1_000_000) << 10) | (clock & 1023)
    return "".join(_LETTERS[(number >> shift) & 31] for shift in range(60, -1, -5))
