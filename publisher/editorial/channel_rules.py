"""A channel's rules: spacing, how long posts are useful, what becomes of a backlog, alt texts."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from sqlalchemy import Connection, select, update
from sqlalchemy.exc import IntegrityError

from publisher.editorial import channel_events
from publisher.editorial.channel_events import Event
from publisher.editorial.spelling import did_you_mean, quoted
from publisher.engine import ledger
from publisher.engine.errors import NotFound, PublisherError
from publisher.engine.job import Backlog, Channel
from publisher.engine.schema import channels, gates

_UNITS: Final = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400, "w": 604_800}
_SPAN: Final = re.compile(r"(\d{1,6}) *(s|m|min|h|d|w)", re.ASCII)
# What a constraint of the table says, by its name.
_BOUNDS: Final = {
    "gates_spaced_one_at_a_time": (
        "spacing",
        "Channels that send several at once, as mail and webhooks do, have no spacing.",
    ),
    "gates_spaced_for_a_day_at_most": ("spacing", "The spacing is at most 1d."),
    "gates_spacing_check": ("spacing", "The spacing is 0 or more."),
    "gates_useful_for_a_while": ("useful_for", "Posts are useful for 366d at most."),
    "gates_overdue_after_minutes": ("overdue_after", "Posts are late after 5m to 7d."),
    "gates_release_every_while": ("release_every", "Late posts go out 1s to 1d apart."),
}


class RuleRefused(PublisherError):
    """A rule that a channel cannot have; ``field`` names which."""

    def __init__(self, message: str, *, code: str, field: str) -> None:
        super().__init__(message)
        self.code = code
        self.field = field


@dataclass(frozen=True, slots=True)
class Rules:
    """How a channel goes about time, and whether it wants alt texts.

    ``spacing``: from the end of one post to the begin of the next, at least. ``useful_for``: how
    long after its time a post is still sent where it says nothing itself; None: as the settings
    have it. ``overdue_after``: what a standstill kept for longer is its backlog; ``release_every``:
    how far apart that is let go. ``alt_text``: whether a post is approved only with one for each
    picture and video, where its platform shows them.
    """

    spacing: timedelta
    useful_for: timedelta | None
    backlog: Backlog
    overdue_after: timedelta
    release_every: timedelta
    alt_text: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """What is to be otherwise; None stays as it is. A ``useful_for`` of zero: as the settings."""

    spacing: timedelta | None = None
    useful_for: timedelta | None = None
    backlog: Backlog | None = None
    overdue_after: timedelta | None = None
    release_every: timedelta | None = None
    alt_text: bool | None = None


def of_channel(conn: Connection, channel_id: int) -> Rules:
    """The rules of one channel. Raises ``NotFound``."""
    row = conn.execute(
        select(gates, channels.c.alt_text_wanted)
        .join(channels, channels.c.id == gates.c.channel_id)
        .where(gates.c.channel_id == channel_id)
    ).one_or_none()
    if row is None:
        message = f"There is no channel {channel_id}."
        raise NotFound(message)
    return Rules(
        spacing=row.spacing,
        useful_for=row.useful_for,
        backlog=Backlog(row.backlog),
        overdue_after=row.overdue_after,
        release_every=row.release_every,
        alt_text=row.alt_text_wanted,
    )


def useful_for(conn: Connection, channel_ids: Collection[int]) -> dict[int, timedelta]:
    """How long posts are useful on those of these channels that say so."""
    rows = conn.execute(
        select(gates.c.channel_id, gates.c.useful_for).where(
            gates.c.channel_id.in_(channel_ids), gates.c.useful_for.is_not(None)
        )
    )
    return {row.channel_id: row.useful_for for row in rows}


def wanting_alt_texts(conn: Connection, channel_ids: Collection[int]) -> frozenset[int]:
    """Which of these channels want an alt text for every picture and video."""
    wanted = select(channels.c.id).where(channels.c.id.in_(channel_ids), channels.c.alt_text_wanted)
    return frozenset(conn.scalars(wanted))


def change(conn: Connection, channel: Channel, to: Change, *, who: str) -> Rules:
    """Change the rules of a channel, and keep in its journal what they were.

    What is scheduled keeps its useful-until, and what is approved its approval. Raises
    ``RuleRefused``; nothing was changed then.
    """
    before = of_channel(conn, channel.id)
    try:
        with conn.begin_nested():
            ledger.set_rules(
                conn,
                channel.id,
                spacing=to.spacing,
                useful_for=to.useful_for,
                backlog=to.backlog,
                overdue_after=to.overdue_after,
                release_every=to.release_every,
            )
    except IntegrityError as error:
        name = getattr(getattr(error.orig, "diag", None), "constraint_name", None)
        if name not in _BOUNDS:
            raise
        field, fix = _BOUNDS[name]
        message = f"{channel.name} cannot have that. {fix} Nothing was changed."
        raise RuleRefused(message, code="rule-out-of-bounds", field=field) from error
    if to.alt_text is not None:
        wanted = update(channels).where(channels.c.id == channel.id)
        conn.execute(wanted.values(alt_text_wanted=to.alt_text))
    after = of_channel(conn, channel.id)
    changed = {
        name: [_plain(getattr(before, name)), _plain(getattr(after, name))]
        for name in Rules.__slots__
        if getattr(before, name) != getattr(after, name)
    }
    if changed:
        channel_events.tell(conn, channel.id, Event.RULES_CHANGED, who=who, **changed)
    return after


def read_span(written: str, field: str) -> timedelta:
    """Read ``30m``, ``2h``, ``1d`` or ``0``. Raises ``RuleRefused`` about ``field``."""
    given = written.strip().lower()
    if given == "0":
        return timedelta(0)
    match = _SPAN.fullmatch(given)
    if match is None:
        message = f"{quoted(written)} is no length of time. Write it as 90s, 30m, 2h, 1d or 0."
        raise RuleRefused(message, code="span-unreadable", field=field)
    return timedelta(seconds=int(match[1]) * _UNITS[match[2]])


def read_backlog(written: str) -> Backlog:
    """Read the rule of a backlog. Raises ``RuleRefused``."""
    try:
        return Backlog(written.strip().lower())
    except ValueError:
        hint = did_you_mean(written, [*Backlog])
        message = f"{quoted(written)} is no rule. {hint} There are: {', '.join(Backlog)}."
        said = " ".join(message.split())
        raise RuleRefused(said, code="rule-unknown", field="backlog") from None


def span(of: timedelta) -> str:
    """A length of time as it is written: ``30m``, ``1d12h``, ``0``."""
    left = round(of.total_seconds())
    parts: list[str] = []
    for unit in ("d", "h", "m", "s"):
        number, left = divmod(left, _UNITS[unit])
        if number:
            parts.append(f"{number}{unit}")
    return "".join(parts) or "0"


def _plain(value: object) -> object:
    return span(value) if isinstance(value, timedelta) else value
