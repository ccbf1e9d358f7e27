"""What a check found: how bad, what it is, what to do next."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """An ``error`` endangers a promise or stops work, a ``warning`` will; a ``note`` is neither."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Finding:
    """``code`` is stable; ``what`` and ``remedy`` are a sentence each, for a person."""

    severity: Severity
    code: str
    what: str
    remedy: str


def error(code: str, what: str, remedy: str) -> Finding:
    """Something that must be put right now."""
    return Finding(Severity.ERROR, code, what, remedy)


def warning(code: str, what: str, remedy: str) -> Finding:
    """Something that goes wrong if it stays so."""
    return Finding(Severity.WARNING, code, what, remedy)


def note(code: str, what: str, remedy: str) -> Finding:
    """Something to know; it changes no exit code."""
    return Finding(Severity.NOTE, code, what, remedy)
