"""Raises alerts: a job for each mail and webhook that people are told by, in one transaction.

One message per incident, whoever sees it: each alert has its key. Incidents of one kind on one
channel are one message while that has not left, and the next comes after a pause. An alert that
cannot be delivered raises none itself, or one broken relay would go on for ever; it stands among
the unknowns like any other job.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Protocol

import structlog

from publisher.engine.adapter import Adapter
from publisher.engine.alert import (
    KEY_PREFIX,
    Alert,
    Incident,
    Matter,
    Message,
    Urgency,
    Wording,
    channel_name,
)
from publisher.engine.content import Happening, Letter
from publisher.engine.errors import NotFound
from publisher.engine.job import JobId, NewJob, congruence, public_id
from publisher.engine.ledger import Conn, DatabaseTrouble, Doubt, enqueue
from publisher.engine.ledger import alerts as ledger
from publisher.engine.registry import Registry
from publisher.words import _

log = structlog.get_logger(__name__)

_USEFUL_FOR = timedelta(days=1)
_DELIVERIES = frozenset({"mail", "webhook"})
_WAKING_PAUSE = 60.0
"""Seconds between two messages on one channel that wake somebody."""


@dataclass(frozen=True, slots=True)
class Copy:
    """One copy of a message: its channel, and whom a mail is to."""

    channel_id: int
    adapter: Adapter
    queue: str
    to: str | None


class Alarm(Protocol):
    """Who tells people. Called in the transaction of what it tells of, where there is one."""

    def __call__(self, conn: Conn, alert: Alert) -> None:
        """Tell them, once. Raises only when the connection is lost."""
        ...


def by_log(conn: Conn, alert: Alert) -> None:  # noqa: ARG001 - the port's
    """Tell the log alone."""
    log.error(
        "alert",
        incident=alert.incident,
        job=None if alert.job_id is None else public_id(alert.job_id),
        channel_id=alert.channel_id,
        worker_run=alert.run,
        detail=alert.detail,
        alert=True,
    )


@dataclass(slots=True)
class Alerts:
    """Tells people by mail and webhook, as the settings name them; by the log without any.

    ``channels``: by name or id. ``to``: whom mail channels write to. ``gather``: seconds for which
    a message waits for others like it; ``pause``: seconds between two of a kind on one channel.
    """

    registry: Registry
    channels: Sequence[str] = ()
    to: Sequence[str] = ()
    wording: Wording = field(default_factory=Wording)
    gather: float = 10.0
    pause: float = 900.0
    silent_for: timedelta = timedelta(seconds=75)
    who: str = "alerts"
    _logged: set[str] = field(default_factory=set)

    def __call__(self, conn: Conn, alert: Alert) -> None:
        """See ``Alarm``. What goes wrong here undoes nothing of what is told of."""
        try:
            with conn.transaction():
                self._raise(conn, alert)
        except Exception as error:
            if conn.closed or conn.broken:
                raise
            log.error(  # noqa: TRY400 - a traceback may hold what was to be written
                "alert.not_raised",
                kind=type(error).__name__,
                incident=alert.incident,
                alert=True,
            )
            by_log(conn, alert)

    def asked(self, conn: Conn, doubt: Doubt, reason: str) -> None:
        """Tell that a person must decide a doubt."""
        self(
            conn,
            Alert(Incident.DOUBT, doubt.since, doubt.job_id, doubt.latest, detail=reason),
        )

    def sweep(self, conn: Conn) -> None:
        """Tell of what stands in the rows and nobody was told of."""
        try:
            standing = ledger.standing_incidents(conn, silent_for=self.silent_for)
        except DatabaseTrouble as error:
            if conn.closed or conn.broken:
                raise
            log.error("alert.sweep_failed", kind=type(error).__name__, alert=True)  # noqa: TRY400
            return
        for alert in standing:
            self(conn, alert)

    def _raise(self, conn: Conn, alert: Alert) -> None:
        copies = self._copies(conn)
        if alert.incident is Incident.BLOCKED and alert.channel_id is not None:
            blocked_at = ledger.blocked_at(conn, alert.channel_id)
            if blocked_at is None:
                return  # reconnected meanwhile
            alert = replace(alert, at=blocked_at)
            # What is blocked itself would bring the news when it is none any more.
            copies = [copy for copy in copies if copy.channel_id != alert.channel_id]
        at = _instant(alert.at)
        subject = None
        if copies and alert.job_id is not None:
            subject = next(iter(ledger.subjects(conn, [alert.job_id])), None)
        channel_id = alert.channel_id if subject is None else subject.channel_id
        group = _group(alert, channel_id)
        base = _base(alert, group, at)
        if not copies:
            self._log_once(conn, alert, base)
            return
        ledger.queue_for(conn, group)
        if self._is_told(conn, alert, base, at, subject):
            return
        if subject is not None and subject.is_alert:
            by_log(conn, alert)
            ledger.keep_told(conn, alert, at, "the log", self.who)
            return
        jobs = () if subject is None else (subject.id,)
        matter = self._matter(conn, alert, channel_id, jobs)
        base = self._send(conn, group, base, matter, copies)
        if subject is not None:
            ledger.keep_told(conn, alert, at, base, self.who)
        log.warning("alert.raised", incident=alert.incident, key=base, detail=alert.detail)

    def _is_told(
        self, conn: Conn, alert: Alert, base: str, at: str, subject: ledger.Subject | None
    ) -> bool:
        if subject is None:
            return ledger.has_alert(conn, base)
        return ledger.is_told(conn, subject.id, alert.incident, at)

    def _send(
        self, conn: Conn, group: str, base: str, matter: Matter, copies: Sequence[Copy]
    ) -> str:
        """Add to the newest message of its group, or make one; returns that one's key."""
        message = self.wording.message(matter)
        wakes = message.urgency is Urgency.WAKE
        run_at = matter.now + timedelta(seconds=self.gather)
        newest = ledger.newest_of(conn, group) if matter.jobs else None
        if newest is not None:
            key, due_at = newest
            rest = timedelta(seconds=min(self.pause, _WAKING_PAUSE) if wakes else self.pause)
            is_soon = not wakes or due_at <= run_at + rest
            opened = ledger.open_copies(conn, _base_of(key)) if is_soon else []
            if opened:
                self._add(conn, matter, opened)
                return _base_of(key)
            if is_soon:
                run_at = max(run_at, due_at + rest)
        new = self._jobs(copies, base, matter, message, run_at)
        enqueue(conn, list(new), existing="keep")
        return base

    def _add(self, conn: Conn, matter: Matter, opened: Sequence[ledger.Sent]) -> None:
        """Let a message that has not left tell of more."""
        for sent in opened:
            before = json.loads(sent.content)
            to = before.get("to")
            told = before["data" if to is None else "about"]["jobs"]
            jobs = [JobId(rule[0]) for name in told if (rule := congruence(name)) is not None]
            together = self._about(
                conn, matter.incident, matter.channel_id, dict.fromkeys([*jobs, *matter.jobs])
            )
            message = self.wording.message(together)
            wakes = message.urgency is Urgency.WAKE
            ledger.rewrite(
                conn,
                sent.job_id,
                _content(to, together, message),
                who=self.who,
                run_at=together.now + timedelta(seconds=self.gather) if wakes else None,
            )

    def _matter(
        self, conn: Conn, alert: Alert, channel_id: int | None, jobs: Sequence[JobId]
    ) -> Matter:
        """The facts of a message, read anew."""
        if alert.run is not None and (run := ledger.run(conn, alert.run)) is not None:
            where = f"{run.host}, run {run.id}"
            return Matter(
                alert.incident, where, run.now, run.seen_at, run=run.id, waiting=run.others
            )
        return self._about(conn, alert.incident, channel_id, jobs, alert)

    def _about(
        self,
        conn: Conn,
        incident: Incident,
        channel_id: int | None,
        jobs: Iterable[JobId],
        alert: Alert | None = None,
    ) -> Matter:
        """The facts about a channel and some of its jobs."""
        place = None if channel_id is None else ledger.place(conn, channel_id)
        if place is None:
            now = datetime.now(UTC)
            mark, at = ("", None) if alert is None else (alert.mark, alert.at)
            return Matter(incident, mark or _("an unknown job"), now, at or now)
        subjects = ledger.subjects(conn, list(jobs))
        is_blocked = incident is Incident.BLOCKED
        useful = [one.useful_until for one in subjects if one.useful_until is not None]
        since = min((one.since for one in subjects), default=place.now)
        return Matter(
            incident,
            channel_name(place.platform, place.name, place.remote_id),
            place.now,
            (place.blocked_at or since) if is_blocked else since,
            tuple(one.id for one in subjects),
            channel_id=channel_id,
            waiting=place.waiting,
            useful_until=place.useful_until if is_blocked else min(useful, default=None),
            are_posts=not subjects or any(one.kind not in _DELIVERIES for one in subjects),
        )

    def _copies(self, conn: Conn) -> list[Copy]:
        """Whom a message goes to: a channel with its queue, and for mail each address."""
        copies: list[Copy] = []
        found = ledger.addressees(conn, self.channels) if self.channels else []
        if len(found) < len(set(self.channels)):
            log.error("alert.no_such_channel", channels=list(self.channels), found=len(found))
        for one in found:
            try:
                adapter = self.registry.adapter(one.platform)
            except NotFound:
                log.error("alert.no_adapter", channel_id=one.channel_id)  # noqa: TRY400
                continue
            queue = adapter.capabilities("").queue
            if queue == "mail" and not self.to:
                log.error("alert.mail_to_nobody", channel_id=one.channel_id)
            elif queue == "mail":
                copies += [Copy(one.channel_id, adapter, queue, to) for to in self.to]
            elif queue == "webhook":
                copies.append(Copy(one.channel_id, adapter, queue, None))
            else:
                log.error("alert.channel_takes_none", channel_id=one.channel_id)
        return copies

    def _jobs(
        self,
        copies: Sequence[Copy],
        base: str,
        matter: Matter,
        message: Message,
        run_at: datetime,
    ) -> Iterator[NewJob]:
        for copy in copies:
            key = f"{base}/to:{copy.channel_id}" + (f"/{copy.to}" if copy.to else "")
            yield NewJob(
                key=key,
                kind=copy.queue,
                queue=copy.queue,
                channel_id=copy.channel_id,
                content=_content(copy.to, matter, message),
                run_at=run_at,
                useful_until=run_at + _USEFUL_FOR,
                platform_key=copy.adapter.platform_key(key, run_at),
            )

    def _log_once(self, conn: Conn, alert: Alert, base: str) -> None:
        if base not in self._logged:
            self._logged.add(base)
            by_log(conn, alert)


def _group(alert: Alert, channel_id: int | None) -> str:
    """What is told in one message begins so."""
    if alert.run is not None:
        return f"{KEY_PREFIX}{alert.incident}/run:{alert.run}/"
    if channel_id is None:
        return f"{KEY_PREFIX}{alert.incident}/mark:{alert.mark}/"
    return f"{KEY_PREFIX}{alert.incident}/channel:{channel_id}/"


def _base(alert: Alert, group: str, at: str) -> str:
    """The alert's key, without whom it is to: the same in every process."""
    job = "" if alert.job_id is None else f"job:{public_id(alert.job_id)}/"
    mark = f"/{alert.mark}" if alert.mark else ""
    return f"{group}{job}at:{at}{mark}"


def _base_of(key: str) -> str:
    return key.partition("/to:")[0]


def _instant(at: datetime | None) -> str:
    return "once" if at is None else f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"


def _content(to: str | None, matter: Matter, message: Message) -> str:
    """A copy as it is kept: a mail, or what a program reads. Times are instants."""
    jobs = [public_id(job) for job in matter.jobs]
    if to is not None:
        about = {"incident": str(matter.incident), "jobs": jobs}
        return Letter(to, message.subject, message.text, matter.now, about=about).to_json()
    until = matter.useful_until
    facts = {
        "channel": matter.channel_id,
        "incident": str(matter.incident),
        "jobs": jobs,
        "link": message.link,
        "since": matter.since.isoformat(),
        "text": message.text,
        "urgency": str(message.urgency),
        "useful_until": None if until is None else until.isoformat(),
        "wait_until": message.wait_until.isoformat(),
        "worker_run": matter.run,
    }
    return Happening(f"alert.{matter.incident}", matter.now, facts).to_json()
