"""What rows of a file are like: posts of their channel, and rows before them. Only notes."""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import replace
from datetime import date
from typing import Final
from zoneinfo import ZoneInfo

from sqlalchemy import Connection

from publisher.editorial import checks, posting_times
from publisher.editorial.checks import Alike
from publisher.editorial.imports.candidate import Candidate, as_fault
from publisher.editorial.imports.fault import Fault
from publisher.editorial.imports.pile import Pile
from publisher.engine.job import JobId, State
from publisher.engine.queries import AROUND, Neighbour

ROWS_BEFORE: Final = 100
"""Rows of one channel that each row is compared with, so that a long file takes no square."""


def note(conn: Connection, pile: Pile) -> None:
    """Put a note on every fresh row of ``pile`` that is like something on its channel.

    What stands there is read once for each day: within a day a window of a month is the same.
    """
    near: dict[tuple[int, date], tuple[Neighbour, ...]] = {}
    zones: dict[int, ZoneInfo] = {}
    before: defaultdict[int, deque[Neighbour]] = defaultdict(lambda: deque(maxlen=ROWS_BEFORE))
    for row in list(pile.fresh.values()):
        channel, at = row.channel.id, row.moment.at
        day = (channel, at.date())
        if day not in near:
            near[day] = checks.near(conn, channel, at)
        if channel not in zones:
            zones[channel] = posting_times.zone_of(conn, channel)
        rows = [one for one in before[channel] if abs(one.at - at) <= AROUND]
        found = checks.resembling(row.post, [*near[day], *rows], at, of=zones[channel])
        if found:
            notes = (*row.notes, *(_told(one) for one in found))
            pile.fresh[row.ref] = replace(row, notes=notes)
        before[channel].append(_as_neighbour(row))


def _as_neighbour(row: Candidate) -> Neighbour:
    """A row as what it would be; its line, below zero, stands for the job it has not got."""
    return Neighbour(JobId(-row.line), None, State.SCHEDULED, row.moment.at, row.content)


def _told(one: Alike) -> Fault:
    told = as_fault(one.problem)
    if one.job_id > 0:
        return told
    return replace(told, message=f"{told.message.rstrip('.')} (line {-one.job_id}).")
