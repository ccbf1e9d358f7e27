"""A channel's posting times, weekly and local, and the next one that is free.

Local means the workspace's zone. A posting time that does not exist on some date moves forward by
the gap; one that exists twice is the first. So no date is without it, and none has it twice.

Whoever asks for the next free time takes it: ``taken_times`` holds it for a while, and refuses by
an exclusion constraint whatever lies within the channel's spacing of it. The unique open job would
not do, for two posts at one time are two jobs and equally open; nor would a lock, which is gone
before a draft is approved and its job is there. A post that is scheduled at a time a person chose
is not held against it: what they mean is theirs to say.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from psycopg import errors as pg
from sqlalchemy import Connection, DateTime, bindparam, delete, func, select, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import OperationalError

from publisher.editorial import channel_events, clock
from publisher.editorial.channel_events import Event
from publisher.editorial.schema import post_channels, posting_times, taken_times
from publisher.editorial.spelling import quoted
from publisher.engine import queries
from publisher.engine.errors import Conflict, NotFound, PublisherError
from publisher.engine.job import State
from publisher.engine.schema import gates, jobs

AHEAD: Final = timedelta(weeks=8)
"""No free time is looked for beyond."""
KEPT_FOR: Final = timedelta(hours=1)
_DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_SEVERAL: Final = {"daily": range(1, 8), "weekdays": range(1, 6), "weekend": range(6, 8)}
_WRITTEN: Final = re.compile(r"([a-z]+) +(\d{1,2}):(\d{2})", re.ASCII)
_DIGITS: Final = str.maketrans("۰۱۲۳۴۵۶۷۸۹٠١٢٣٤٥٦٧٨٩", "01234567890123456789")
_FIX: Final = "Write it as mon 09:00, or with daily, weekdays or weekend in place of the day."


class PostingTimeRefused(PublisherError):
    """What was written is no posting time."""

    code = "posting-time-unreadable"


class NoFreeTime(PublisherError):
    """A channel has no posting times, or none that is free."""

    def __init__(self, message: str, *, code: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True, order=True)
class PostingTime:
    """A weekday, 1 is Monday, and what a clock in the workspace shows then."""

    weekday: int
    at: time

    def __str__(self) -> str:
        return f"{clock.weekday(self.weekday)} {self.at:%H:%M}"


@dataclass(frozen=True, slots=True)
class Taken:
    """A posting time that is this asker's until ``lapses_at``; a job there outlasts that."""

    at: datetime
    lapses_at: datetime


def read(written: str) -> tuple[PostingTime, ...]:
    """Read ``mon 09:00`` or ``weekdays 12:30``. Raises ``PostingTimeRefused``."""
    match = _WRITTEN.fullmatch(written.strip().lower().translate(_DIGITS))
    name = match[1] if match else ""
    days: Iterable[int] = _SEVERAL.get(name, ())
    if name[:3] in _DAYS and _is_day(name):
        days = (_DAYS.index(name[:3]) + 1,)
    if match is None or not days:
        message = f"{quoted(written)} is no posting time. {_FIX}"
        raise PostingTimeRefused(message)
    try:
        at = time(int(match[2]), int(match[3]))
    except ValueError:
        message = f"{quoted(written)} is no time of day. {_FIX}"
        raise PostingTimeRefused(message) from None
    return tuple(PostingTime(number, at) for number in days)


def occurrences(
    times: Sequence[PostingTime], zone: ZoneInfo, since: datetime, until: datetime
) -> Iterator[datetime]:
    """Their instants in UTC after ``since``, up to and with ``until``, in order, each once."""
    date = since.astimezone(zone).date() - timedelta(days=1)
    last: datetime | None = None
    waiting: list[datetime] = []
    while date <= until.astimezone(zone).date() + timedelta(days=1):
        waiting.extend(
            instant(datetime.combine(date, each.at), zone)
            for each in times
            if each.weekday == date.isoweekday()
        )
        # What a gap moved may come after the next date's first.
        settled = instant(datetime.combine(date, time()), zone)
        ready, waiting = _parted(sorted(waiting), settled)
        for at in ready:
            if since < at <= until and at != last:
                last = at
                yield at
        date += timedelta(days=1)


def instant(wall: datetime, zone: ZoneInfo) -> datetime:
    """The instant of a local time that is always to have one.

    PEP 495: with ``fold=0`` one that does not exist is counted with the offset before the gap, so
    it moves forward by it, and one that exists twice is the first.
    """
    return wall.replace(tzinfo=zone, fold=0).astimezone(UTC)


def add(conn: Connection, channel_id: int, times: Iterable[PostingTime], *, who: str) -> int:
    """Add posting times; returns how many were new."""
    rows = [
        {"channel_id": channel_id, "weekday": each.weekday, "at": each.at, "added_by": who}
        for each in dict.fromkeys(times)
    ]
    if not rows:
        return 0
    added = conn.execute(
        insert(posting_times)
        .values(rows)
        .on_conflict_do_nothing()
        .returning(posting_times.c.weekday, posting_times.c.at)
    ).all()
    new = sorted(PostingTime(row.weekday, row.at) for row in added)
    _tell(conn, channel_id, Event.POSTING_TIMES_ADDED, new, who)
    return len(new)


def remove(conn: Connection, channel_id: int, times: Iterable[PostingTime], *, who: str) -> int:
    """Remove posting times; returns how many were there. What is scheduled stays."""
    removed: list[PostingTime] = []
    for each in dict.fromkeys(times):
        gone = conn.execute(
            delete(posting_times).where(
                posting_times.c.channel_id == channel_id,
                posting_times.c.weekday == each.weekday,
                posting_times.c.at == each.at,
            )
        )
        removed.extend([each] * gone.rowcount)
    _tell(conn, channel_id, Event.POSTING_TIMES_REMOVED, sorted(removed), who)
    return len(removed)


def of_channel(conn: Connection, channel_id: int) -> tuple[PostingTime, ...]:
    """A channel's posting times, from Monday on."""
    rows = conn.execute(
        select(posting_times.c.weekday, posting_times.c.at)
        .where(posting_times.c.channel_id == channel_id)
        .order_by(posting_times.c.weekday, posting_times.c.at)
    )
    return tuple(PostingTime(row.weekday, row.at) for row in rows)


def zone_of(conn: Connection, channel_id: int) -> ZoneInfo:
    """The zone of the workspace that a channel is in. Raises ``NotFound``."""
    name = conn.scalar(text(_ZONE), {"channel": channel_id})
    if name is None:
        message = f"There is no channel {channel_id}."
        raise NotFound(message)
    return ZoneInfo(name)


def free(
    conn: Connection, channel_id: int, *, after: datetime | None = None, at_most: int = 1
) -> tuple[datetime, ...]:
    """The next free posting times, the soonest first; none of them is taken by asking.

    Free is what no post is due at within the channel's spacing, be it scheduled, being sent, live
    or maybe live, what nobody has taken, and what the platform does not keep us from.
    ``after``: later than that, and later than now.
    """
    found: list[datetime] = []
    for at in _candidates(conn, channel_id, after):
        found.append(at)
        if len(found) == at_most:
            break
    return tuple(found)


def take(
    conn: Connection,
    channel_id: int,
    *,
    who: str,
    after: datetime | None = None,
    keep_for: timedelta = KEPT_FOR,
) -> Taken:
    """Take the next free posting time for ``keep_for``, within the transaction of ``conn``.

    Of two who ask at once the second waits for the first to commit, and gets the next. Raises
    ``NoFreeTime`` (``no-posting-times``, ``no-free-time``), and ``Conflict`` (``times-busy``) when
    that wait is over first; the transaction is still usable.
    """
    conn.execute(
        delete(taken_times).where(
            taken_times.c.channel_id == channel_id,
            taken_times.c.lapses_at <= func.clock_timestamp(),
        )
    )
    spacing = conn.scalar(select(gates.c.spacing).where(gates.c.channel_id == channel_id))
    for at in _candidates(conn, channel_id, after):
        values = {"channel": channel_id, "at": at, "spacing": spacing, "who": who}
        try:
            with conn.begin_nested():
                lapses_at = conn.scalar(text(_TAKE), {**values, "keep_for": keep_for})
        except OperationalError as error:
            if not isinstance(error.orig, pg.LockNotAvailable):
                raise
            message = "Somebody is taking a time of this channel just now. Ask again."
            raise Conflict(message, code="times-busy") from error
        if lapses_at is not None:
            return Taken(at, lapses_at)
    if not of_channel(conn, channel_id):
        message = (
            "This channel has no posting times. "
            f"Add one: publisher channels posting-times {channel_id} add mon 09:00"
        )
        raise NoFreeTime(message, code="no-posting-times")
    message = f"No posting time of this channel is free within {AHEAD.days // 7} weeks."
    raise NoFreeTime(message, code="no-free-time")


def give_back(conn: Connection, channel_id: int, at: datetime) -> bool:
    """Let go of a time that was taken, for it is not needed; returns whether it was."""
    given = conn.execute(
        delete(taken_times).where(
            taken_times.c.channel_id == channel_id, func.lower(taken_times.c.during) == at
        )
    )
    return given.rowcount > 0


_ZONE: Final = """
SELECT w.zone FROM publisher.channels c JOIN publisher.workspaces w ON w.id = c.workspace_id
 WHERE c.id = :channel
"""
_TAKE: Final = """
INSERT INTO publisher.taken_times (channel_id, during, taken_by, lapses_at)
VALUES (:channel,
        CASE WHEN CAST(:spacing AS interval) > '0'
             THEN tstzrange(CAST(:at AS timestamptz),
                            CAST(:at AS timestamptz) + CAST(:spacing AS interval))
             ELSE tstzrange(CAST(:at AS timestamptz), CAST(:at AS timestamptz), '[]') END,
        :who, clock_timestamp() + CAST(:keep_for AS interval))
ON CONFLICT DO NOTHING
RETURNING lapses_at
"""


def _candidates(conn: Connection, channel_id: int, after: datetime | None) -> Iterator[datetime]:
    times = of_channel(conn, channel_id)
    if not times:
        return
    now = queries.clock(conn)
    gate = conn.execute(
        select(gates.c.spacing, gates.c.not_before).where(gates.c.channel_id == channel_id)
    ).one()
    since = max(now, after or now)
    until = now + AHEAD
    busy = _busy(conn, channel_id, since - gate.spacing, until + gate.spacing)
    for at in occurrences(times, zone_of(conn, channel_id), since, until):
        if gate.not_before is not None and at < gate.not_before:
            continue
        if all(at != other and abs(at - other) >= gate.spacing for other in busy):
            yield at


def _busy(conn: Connection, channel_id: int, since: datetime, until: datetime) -> set[datetime]:
    """When something of this channel is due or is sent, or a time of it is taken."""
    planned = (
        select(jobs.c.due_at)
        .join(
            post_channels,
            (post_channels.c.post_id == jobs.c.post_id)
            & (post_channels.c.channel_id == jobs.c.channel_id),
        )
        .where(
            post_channels.c.channel_id == channel_id,
            post_channels.c.publish_at.between(since, until),
            jobs.c.state == State.PUBLISHED,
        )
    )
    begin = func.lower(taken_times.c.during, type_=DateTime(timezone=True))
    taken = select(begin).where(
        taken_times.c.channel_id == channel_id,
        begin.between(bindparam("since", since), bindparam("until", until)),
        taken_times.c.lapses_at > func.clock_timestamp(),
    )
    open_ones = queries.under_way(conn, channel_id, since, until)
    return {*open_ones, *conn.scalars(planned), *conn.scalars(taken)}


def _parted(times: list[datetime], at: datetime) -> tuple[list[datetime], list[datetime]]:
    """Those up to ``at``, and those after it."""
    return [one for one in times if one <= at], [one for one in times if one > at]


def _is_day(name: str) -> bool:
    """Whether this is a weekday's name or the beginning of it."""
    full = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
    return any(day.startswith(name) for day in full)


def _tell(
    conn: Connection, channel_id: int, event: Event, times: Sequence[PostingTime], who: str
) -> None:
    if times:
        said = [f"{_DAYS[each.weekday - 1]} {each.at:%H:%M}" for each in times]
        channel_events.tell(conn, channel_id, event, who=who, times=said)
