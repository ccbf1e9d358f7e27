"""What a person must be told, in which words, and whether it may wait. Pure.

The first line says what is the matter, where and since when; the second what happens by itself;
the third whether to get up, and where to go.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, time, timedelta
from enum import StrEnum
from typing import assert_never
from zoneinfo import ZoneInfo

from publisher.engine.job import JobId, public_id
from publisher.words import _, many

KEY_PREFIX = "alert:"


class Incident(StrEnum):
    """What happened. The word is part of the alert's key, for ever."""

    DOUBT = "doubt"
    """A post may be live, and no machine can decide it."""
    BLOCKED = "blocked"
    """A channel no longer accepts our access."""
    LIVE = "live"
    """A post is live although it was ended here, or while another send of it is under way."""
    REPLACED = "replaced"
    """A post waits for a person: the one whose place it takes may be live."""
    ORPHAN = "orphan"
    """A send that the database holds no record of."""
    PARKED = "parked"
    """The end of a send could not be written."""
    SILENT = "silent"
    """A worker run gives no sign of life and is not proved to be over."""
    QUARANTINE = "quarantine"
    """The database may lack sends that were made, as one that was restored does."""
    AUDIT = "audit"
    """An invariant of the journal does not hold."""


class Urgency(StrEnum):
    """Whether to get up for it."""

    CAN_WAIT = "CAN WAIT"
    WAKE = "WAKE"


@dataclass(frozen=True, slots=True)
class Alert:
    """One incident, once. What it is about: a job, a channel or a worker run.

    ``at`` and ``mark`` tell it from the next one of its kind; every process that sees the same
    incident gives the same. ``detail``: for the log.
    """

    incident: Incident
    at: datetime | None = None
    job_id: JobId | None = None
    attempt: int = 0
    channel_id: int | None = None
    run: int | None = None
    mark: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Matter:
    """One message's facts, as the database has them.

    ``jobs``: those it tells of. ``waiting``: jobs that wait for a blocked channel, or live workers
    beside a silent one. ``useful_until``: when the first of them stops being useful.
    """

    incident: Incident
    where: str
    now: datetime
    since: datetime
    jobs: tuple[JobId, ...] = ()
    channel_id: int | None = None
    run: int | None = None
    waiting: int = 0
    useful_until: datetime | None = None
    are_posts: bool = True


@dataclass(frozen=True, slots=True)
class Message:
    """An alert in words, and how urgent it is. ``link``: an address, or a command."""

    urgency: Urgency
    subject: str
    text: str
    link: str
    wait_until: datetime


@dataclass(frozen=True, slots=True)
class Wording:
    """How this deployment's people are told: their zone, their hours, their address.

    ``rate``: so many posts in one message are worth waking somebody for.
    """

    zone: str = "UTC"
    handover_hour: int = 8
    rate: int = 10
    public_url: str | None = None

    def message(self, of: Matter) -> Message:
        """Put an incident into words."""
        handover = self.handover_after(of.now)
        urgency, why = self._urgency(of, handover)
        link = self._link(of)
        head = self._head(of)
        lines = (head, self._by_itself(of), f"{why}   {link}", self._city())
        return Message(urgency, f"{urgency}: {head}", "\n".join(lines) + "\n", link, handover)

    def handover_after(self, now: datetime) -> datetime:
        """When the next person comes on duty."""
        zone = ZoneInfo(self.zone)
        local = now.astimezone(zone)
        today = datetime.combine(local.date(), time(self.handover_hour), zone)
        if today > local:
            return today
        return datetime.combine(local.date() + timedelta(days=1), time(self.handover_hour), zone)

    def _urgency(self, of: Matter, handover: datetime) -> tuple[Urgency, str]:
        """WAKE only when usefulness ends before the hand-over, or for a rate of them."""
        until = of.useful_until
        at_once = self._at_once(of)
        if at_once is not None:
            return Urgency.WAKE, at_once
        if until is not None and of.now < until < handover:
            words = _("WAKE: useful until {until}, before the hand-over at {handover}")
            return Urgency.WAKE, words.format(
                until=self._clock(until, of.now), handover=self._clock(handover, of.now)
            )
        words = _("CAN WAIT until {handover}").format(handover=self._clock(handover, of.now))
        if until is None:
            return Urgency.CAN_WAIT, words
        tail = _("useful until {until}") if until > of.now else _("useful until {until}, now over")
        return Urgency.CAN_WAIT, f"{words} ({tail.format(until=self._clock(until, of.now))})"

    def _at_once(self, of: Matter) -> str | None:
        """Why somebody is woken whatever the hour, if so."""
        if of.incident is Incident.SILENT and of.waiting == 0:
            return _("WAKE: nothing is sent until a worker runs")
        if of.incident is Incident.QUARANTINE:
            return _("WAKE: what was due waits for it")
        if of.incident is Incident.AUDIT and of.where.startswith("D"):
            return _("WAKE: something may be sent twice")
        if len(of.jobs) >= self.rate:
            return _("WAKE: {n} in one message").format(n=len(of.jobs))
        return None

    def _head(self, of: Matter) -> str:
        return " · ".join((self._what(of), of.where, self._since(of)))

    def _what(self, of: Matter) -> str:  # noqa: C901, PLR0911 - a phrase for each
        number = len(of.jobs)
        match of.incident:
            case Incident.DOUBT if not of.are_posts:
                return many("{n} may have been delivered", "{n} may have been delivered", number)
            case Incident.DOUBT:
                return many("{n} post may be live", "{n} posts may be live", number)
            case Incident.LIVE:
                return many(
                    "{n} post is live against our record",
                    "{n} posts are live against our record",
                    number,
                )
            case Incident.REPLACED:
                return many(
                    "{n} post waits, for the one before it may be live",
                    "{n} posts wait, for the ones before them may be live",
                    number,
                )
            case Incident.ORPHAN:
                return _("A send that the database does not know")
            case Incident.PARKED:
                return many(
                    "The end of {n} post could not be recorded",
                    "The ends of {n} posts could not be recorded",
                    number,
                )
            case Incident.BLOCKED:
                return _("Needs reconnecting")
            case Incident.SILENT:
                return _("A worker is silent")
            case Incident.QUARANTINE:
                return _("The database may lack posts that were sent")
            case Incident.AUDIT:
                return _("The journal contradicts itself")
            case _:
                assert_never(of.incident)

    def _by_itself(self, of: Matter) -> str:  # noqa: C901, PLR0911 - a sentence for each
        match of.incident:
            case Incident.DOUBT:
                return _("Nothing will be sent by itself. Other posts there go on.")
            case Incident.LIVE:
                return _("The platform took it all the same. Look whether it is there only once.")
            case Incident.REPLACED:
                return _(
                    "Nothing will be sent by itself. Look at the page for the earlier text. Not"
                    " there: release it. There: cancel it."
                )
            case Incident.ORPHAN:
                return _(
                    "It was under way when the database lost its record. Nothing will be sent by"
                    " itself."
                )
            case Incident.PARKED:
                return _(
                    "Nothing will be sent by itself. What the platform said is in the log and in"
                    " the second record on disk."
                )
            case Incident.BLOCKED:
                return self._waits(of)
            case Incident.SILENT if of.waiting:
                return many(
                    "What it was sending stays locked until it is proved stopped. {n} other worker"
                    " goes on.",
                    "What it was sending stays locked until it is proved stopped. {n} other workers"
                    " go on.",
                    of.waiting,
                )
            case Incident.SILENT:
                return _("What it was sending stays locked. No other worker runs.")
            case Incident.QUARANTINE:
                return _(
                    "What was due is looked for on its page before it is sent. What can neither be"
                    " found nor ruled out waits for you."
                )
            case Incident.AUDIT:
                return _("Nothing was changed. The audit names the rows and says what to do.")
            case _:
                assert_never(of.incident)

    def _waits(self, of: Matter) -> str:
        if of.waiting == 0:
            return _("Nothing waits for it at present.")
        words = many(
            "{n} post waits and was not sent", "{n} posts wait and were not sent", of.waiting
        )
        if of.useful_until is None:
            return f"{words}."
        first = _("the first is missed at {until}")
        return f"{words}; {first.format(until=self._clock(of.useful_until, of.now))}."

    def _since(self, of: Matter) -> str:
        ago = _ago(of.now - of.since)
        return _("since {at} ({ago})").format(at=self._clock(of.since, of.now), ago=ago)

    def _clock(self, at: datetime, now: datetime) -> str:
        """The time of day; with the day where that is another one."""
        zone = ZoneInfo(self.zone)
        local, today = at.astimezone(zone), now.astimezone(zone)
        near = local.date() == today.date() or timedelta(0) <= at - now < timedelta(hours=20)
        if near:
            return f"{local:%H:%M}"
        return f"{local:%a} {local.day} {local:%b %H:%M}"

    def _city(self) -> str:
        city = self.zone.rpartition("/")[2].replace("_", " ")
        return _("Times: {city}").format(city=city)

    def _link(self, of: Matter) -> str:
        path, command = _place(of)
        if self.public_url is None:
            return command
        return f"{self.public_url.rstrip('/')}/{path}"


def _place(of: Matter) -> tuple[str, str]:  # noqa: PLR0911 - a place for each
    """Where to go: a page's path, and the command that shows the same."""
    match of.incident:
        case Incident.BLOCKED:
            return f"channels/{of.channel_id}", f"publisher channels reconnect {of.channel_id}"
        case Incident.SILENT:
            return "workers", "publisher workers list"
        case Incident.QUARANTINE:
            return "quarantine", "publisher quarantine status"
        case Incident.AUDIT:
            return "audit", "publisher audit"
        case Incident.REPLACED if len(of.jobs) > 1:
            return "jobs", "publisher jobs list"
        case _ if len(of.jobs) == 1:
            name = public_id(of.jobs[0])
            is_doubt = of.incident in {Incident.DOUBT, Incident.ORPHAN}
            show = f"publisher {'unknowns' if is_doubt else 'jobs'} show {name}"
            return f"jobs/{name}", show
        case _:
            return "unknowns", "publisher unknowns list"


def _ago(span: timedelta) -> str:
    minutes = max(0, int(span.total_seconds())) // 60
    if minutes < 60:  # noqa: PLR2004 - an hour's
        return _("{n} min").format(n=minutes)
    hours = minutes // 60
    if hours < 48:  # noqa: PLR2004 - two days'
        return _("{n} h").format(n=hours)
    return _("{n} days").format(n=hours // 24)


def channel_name(platform: str, name: str, remote_id: str) -> str:
    """A channel as an alert names it: platform, name, and the platform's own id."""
    shown = remote_id if len(remote_id) <= 24 else f"…{remote_id[-6:]}"  # noqa: PLR2004 - one line
    return f'{platform.partition("_")[0].title()} "{name}" ({shown})'
