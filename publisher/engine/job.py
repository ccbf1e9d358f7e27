"""A publish job: its states, its stable key, and the short id people type."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final, NewType
from uuid import UUID

JobId = NewType("JobId", int)
Token = NewType("Token", UUID)
"""Made afresh by each claim. Whoever does not hold the job's present token may not move it."""


class State(StrEnum):
    """Where a job stands. ``published`` has no exit; see ``transitions`` for the table."""

    SCHEDULED = "scheduled"
    CLAIMED = "claimed"
    SENDING = "sending"
    PUBLISHED = "published"
    FAILED = "failed"
    UNKNOWN = "unknown"
    MISSED = "missed"
    CANCELLED = "cancelled"
    DROPPED = "dropped"


DELETE: Final = "delete"
"""The kind of a job that takes a post down again; ``removal`` says how."""
OPEN = frozenset({State.SCHEDULED, State.CLAIMED, State.SENDING, State.UNKNOWN})
"""States of a job whose end is not known yet; one such job per kind, post and channel."""


class Hold(StrEnum):
    """Why a scheduled job is not claimed although it may be due."""

    PERSON = "held by a person"
    APPROVAL = "approval withdrawn"
    EDITED = "changed after approval"
    LIVE = "the post stands there already"
    QUARANTINE = "quarantine"
    PARKED = "parked: its record could not be written"
    BACKLOG = "late after a standstill, waits its turn"
    REPLACED = "what it replaces may be live"


class Backlog(StrEnum):
    """What a channel does with posts that were due long before a standstill ended."""

    SEND = "send"
    """As if nothing had been: by their times, and fresh ones after them."""
    RELEASE = "release"
    """Fresh ones first; the late ones follow in order, one at a time."""
    MISS = "miss"
    """They end as missed."""


@dataclass(frozen=True, slots=True)
class Channel:
    """Where to send: one page or account, with its sealed credential.

    ``generation`` rises with each new credential, so that a cached one is known to be old.
    ``trusted``: whoever runs this machine gave the address; any other is checked before it is
    connected to.
    """

    id: int
    platform: str
    name: str
    remote_id: str
    base_url: str | None
    sealed: bytes | None = field(repr=False)
    generation: int
    trusted: bool = False


@dataclass(frozen=True, slots=True)
class NewJob:
    """What ``enqueue`` is given. ``content`` is the canonical JSON text that will be sent from.

    ``unique_for``: no second job with the same kind, queue and content for that long, or until
    this one is published. ``removes``: of kind ``delete``, the published job whose post is taken
    down.
    """

    key: str
    kind: str
    queue: str
    channel_id: int
    content: str
    run_at: datetime
    useful_until: datetime | None = None
    post_id: int | None = None
    version_id: int | None = None
    version: int | None = None
    platform_key: str | None = None
    replaces: int | None = None
    repeats: int | None = None
    unique_for: timedelta | None = None
    removes: int | None = None


def post_key(post_id: int, channel_id: int, at: datetime) -> str:
    """Name the job that puts one post on one channel at its first scheduled instant, for ever."""
    instant = at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return f"post:{post_id}/channel:{channel_id}/at:{instant}"


def removal_key(job_id: int, channel_id: int, at: datetime) -> str:
    """Name the job that takes down the post of job ``job_id``, asked for at that instant."""
    instant = at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return f"{DELETE}:{public_id(job_id)}/channel:{channel_id}/at:{instant}"


REHEARSAL: Final = "rehearsal"
"""First word of a rehearsal's keys, and the queue of its jobs, which only its own workers serve."""
_REHEARSED = re.compile(rf"{REHEARSAL}:([A-Za-z0-9_.-]+):([0-9]+)/.*")


def rehearsal_key(run: str, number: int, channel_id: int, at: datetime) -> str:
    """Name the ``number``-th job of rehearsal ``run`` (letters, digits, ``_.-``) on a channel."""
    instant = at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return f"{REHEARSAL}:{run}:{number}/channel:{channel_id}/at:{instant}"


def rehearsed(key: str) -> tuple[str, int] | None:
    """The run and number that a rehearsal's key names; None for every other job's."""
    found = _REHEARSED.fullmatch(key)
    return None if found is None else (found[1], int(found[2]))


# The id people see is the row's number, turned so that its *first* hex digits differ from job to
# job: four digits tell 65,536 consecutive jobs apart. An odd multiplier is a bijection modulo a
# power of two, and the low digits of a product depend on the low digits of its factors alone, so
# a typed prefix is a congruence on the number: no second column, no second index.
_DIGITS = 10
_MODULUS = 16**_DIGITS
_TURN = 0x9E3779B97F & (_MODULUS - 1) | 1
_TURN_BACK = pow(_TURN, -1, _MODULUS)


def public_id(job_id: int) -> str:
    """Ten hex digits for a job's row number (1 to 2**40 - 1)."""
    return f"{job_id * _TURN % _MODULUS:0{_DIGITS}x}"[::-1]


def of_public_id(name: str) -> JobId | None:
    """The row number that a whole public id stands for; None for what is no such id."""
    rule = congruence(name) if len(name) == _DIGITS else None
    return None if rule is None or rule[0] == 0 else JobId(rule[0])


def congruence(prefix: str) -> tuple[int, int] | None:
    """Row numbers whose public id starts with ``prefix``: those equal to ``r`` modulo ``m``.

    Returns ``(r, m)``, or None when ``prefix`` is not one to ten hex digits.
    """
    digits = prefix.lower()
    if not 1 <= len(digits) <= _DIGITS or any(c not in "0123456789abcdef" for c in digits):
        return None
    modulus = 16 ** len(digits)
    return int(digits[::-1], 16) * _TURN_BACK % modulus, modulus
