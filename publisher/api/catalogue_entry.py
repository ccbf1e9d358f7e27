"""What is known of one code."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Entry:
    """``title`` says what, ``next`` what to do; both are looked up in the reader's language."""

    status: int
    title: str
    next: str
