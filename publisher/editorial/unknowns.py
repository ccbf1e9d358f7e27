"""What people do about a post that may be live: look, decide, take it, hand it over, put it off.

A person decides about one doubt as they saw it (``Seen``), and the ledger holds them to that: an
old page cannot judge a new attempt, and the first verdict wins. What they name is read from the
platform with no transaction open, then recorded in one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import psycopg
import structlog

from publisher.engine import ledger, queries
from publisher.engine.adapter import Capabilities
from publisher.engine.errors import Conflict, PublisherError
from publisher.engine.evidence import Candidate, Mismatch, NotThisPost
from publisher.engine.job import Channel, JobId, State, public_id
from publisher.engine.ledger import Doubt, Judged
from publisher.engine.ledger.driver import driver_of
from publisher.engine.queries import DoubtRow, JobDetail, LookDetail, OrphanRow
from publisher.engine.registry import Registry
from publisher.words import _

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

_log = structlog.get_logger(__name__)
_LOCK_SECONDS: Final = 10
"""How long a verdict waits for others that are being recorded on the same job."""


class NotConfirmed(PublisherError):
    """What had to be typed was not, or something is missing that a verdict needs."""

    def __init__(self, message: str, *, code: str) -> None:
        super().__init__(message)
        self.code = code


class Unreadable(PublisherError):
    """The platform does not show the post just now, which proves nothing; nothing was recorded."""

    code = "cannot-be-read"
    exit_code = 3


@dataclass(frozen=True, slots=True)
class Signed:
    """Who decides, and why; the journal keeps both.

    ``keep``: called with what was decided, in the transaction that records it, which does not
    stand if that raises.
    """

    who: str
    reason: str
    keep: Callable[[Connection, Decision], None] | None = None


@dataclass(frozen=True, slots=True)
class Again:
    """To be sent again, at once or ``at`` a time.

    ``confirm``: the channel's name as the person typed it. ``useful_until``: a new one, where the
    old one is too near.
    """

    confirm: str
    at: datetime | None = None
    useful_until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Seen:
    """One doubt as a person sees it; what they decide is about exactly this.

    ``looked``: the last look at the attempt in question; ``candidates``: what it showed that
    could be the post. ``locked``: why it may not be sent again, or given up, yet.
    """

    doubt: Doubt
    detail: JobDetail
    channel: Channel
    can: Capabilities | None
    looked: LookDetail | None
    candidates: tuple[Candidate, ...]
    locked: str | None

    @property
    def can_look(self) -> bool:
        """Whether the platform shows what is on the page."""
        return self.can is not None and self.can.can_look


@dataclass(frozen=True, slots=True)
class Decision:
    """What was recorded.

    ``post`` is what the job was bound to, ``also`` a second copy. ``was_read``: the platform
    showed it to us; otherwise it rests on the person's word. ``forced``: it was decided against
    what the last look showed.
    """

    job_id: JobId
    state: State
    post: Candidate | None = None
    also: Candidate | None = None
    was_read: bool = True
    forced: bool = False
    send_at: datetime | None = None


def listing(conn: Connection) -> list[DoubtRow]:
    """Every post that may be live, those that need a person first."""
    return queries.doubt_rows(conn)


def orphans(conn: Connection) -> list[OrphanRow]:
    """Every send that the database has no record of, and no job for."""
    return queries.orphan_rows(conn)


def see(
    conn: Connection,
    registry: Registry,
    job_id: JobId,
    *,
    horizon: timedelta,
    latest: int | None = None,
) -> Seen:
    """Read one doubt with its evidence.

    ``latest``: how many sends had begun when the person looked; ``Conflict`` (``look-is-old``) if
    there was another since. Raises ``Conflict`` (``already-decided``) for a job that is none.
    """
    doubt = next(iter(ledger.doubts(conn, [job_id])), None)
    if doubt is None:
        raise ledger.why_settled(conn, job_id)
    if latest is not None and latest != doubt.latest:
        message = _("Job {id} was sent again since you looked. Look again, then decide.")
        raise Conflict(
            message.format(id=public_id(job_id)), code="look-is-old", state=State.UNKNOWN
        )
    detail = queries.job_detail(conn, job_id)
    about = [look for look in detail.looks if look.attempt == doubt.attempt]
    looked = about[-1] if about else None
    channel = ledger.channels(driver_of(conn), [doubt.channel_id])[doubt.channel_id]
    return Seen(
        doubt=doubt,
        detail=detail,
        channel=channel,
        can=_capabilities(registry, doubt, channel),
        looked=looked,
        candidates=() if looked is None else candidates_in(looked.evidence),
        locked=ledger.why_locked(doubt, doubt.now, horizon),
    )


def decide_live(
    engine: Engine,
    registry: Registry,
    seen: Seen,
    given: str,
    signed: Signed,
    *,
    horizon: timedelta,
    also: str = "",
) -> Decision:
    """It is live, as the post that ``given`` names: checked on the platform, then bound.

    ``also``: a second copy, which no other job may take for its own from then on. Raises
    ``Conflict`` (``not-this-post``) with the reason, ``Unreadable``, ``AlreadyDecided``.
    """
    reason = _reason(signed)
    post = _identified(engine, registry, seen, given, horizon)
    other = _identified(engine, registry, seen, also, horizon) if also.strip() else None
    if other is not None and other.remote_id == post.remote_id:
        message = _("Both links name the same post, {id}. Nothing was recorded. Give one of them.")
        raise NotConfirmed(message.format(id=post.remote_id), code="same-post")
    was_read = seen.can_look
    return _record(
        engine,
        seen,
        signed,
        lambda conn: ledger.confirm_published(
            conn,
            seen.doubt,
            remote_id=post.remote_id,
            permalink=post.permalink,
            who=signed.who,
            reason=reason,
            also=[] if other is None else [(other.remote_id, other.permalink)],
            detail={} if was_read else {"checked": "the link alone: nobody can read the post"},
        ),
        lambda judged: Decision(judged.job_id, judged.state, post, other, was_read=was_read),
    )


def decide_attested(engine: Engine, seen: Seen, signed: Signed) -> Decision:
    """It is live: a person saw it and has no link. Raises ``AlreadyDecided``."""
    reason = _reason(signed)
    return _record(
        engine,
        seen,
        signed,
        lambda conn: ledger.confirm_published(
            conn, seen.doubt, remote_id=None, permalink=None, who=signed.who, reason=reason
        ),
        lambda judged: Decision(judged.job_id, judged.state, was_read=False),
    )


def decide_absent(
    engine: Engine, seen: Seen, again: Again | None, signed: Signed, *, horizon: timedelta
) -> Decision:
    """It is not live: send it ``again``, or, with None, give it up.

    Against candidates that the last look showed, the send is *forced*: then only a post found
    beyond doubt stops it. Raises ``NotConfirmed``; ``Conflict``: ``sender-may-be-alive`` with
    what unlocks it, ``too-late``; ``AlreadyDecided``.
    """
    reason = _reason(signed)
    if again is not None and again.confirm.strip() != seen.channel.name:
        if seen.locked is not None:
            # Said before anybody has to type a name for it.
            raise Conflict(seen.locked, code="sender-may-be-alive", state=State.UNKNOWN)
        message = _(
            "To send it again, confirm with the channel's name, {name}. Nothing was changed."
        )
        raise NotConfirmed(message.format(name=seen.channel.name), code="not-confirmed")
    forced = again is not None and bool(seen.candidates)
    send_at = None if again is None else again.at
    return _record(
        engine,
        seen,
        signed,
        lambda conn: ledger.confirm_absent(
            conn,
            seen.doubt,
            send=again is not None,
            send_at=send_at,
            useful_until=None if again is None else again.useful_until,
            who=signed.who,
            reason=reason,
            horizon=horizon,
            forced=forced,
        ),
        lambda judged: Decision(judged.job_id, judged.state, forced=forced, send_at=send_at),
    )


def drop(engine: Engine, seen: Seen, signed: Signed) -> Decision:
    """Follow it no longer; it may be on the page. Raises ``AlreadyDecided``."""
    reason = _reason(signed)
    return _record(
        engine,
        seen,
        signed,
        lambda conn: ledger.drop(conn, seen.doubt, who=signed.who, reason=reason),
        lambda judged: Decision(judged.job_id, judged.state),
    )


def look_now(conn: Connection, seen: Seen, *, who: str) -> None:
    """Have the reconciler look at once, also after its own looks ended."""
    _require_doubt(conn, seen, done=ledger.look_now(conn, seen.doubt.job_id))
    _tell(conn, seen, "look_now", who, {})


def take(conn: Connection, seen: Seen, *, who: str) -> None:
    """Say that ``who`` looks after it. Raises ``Conflict`` (``taken``) if somebody else does."""
    taken = ledger.take(conn, seen.doubt.job_id, who=who, from_anyone=False)
    if not taken and (now := next(iter(ledger.doubts(conn, [seen.doubt.job_id])), None)):
        message = _(
            "{who} has taken job {id} already. Nothing was changed. Ask them, or hand it over."
        )
        raise Conflict(
            message.format(who=now.taken_by, id=public_id(now.job_id)),
            code="taken",
            state=State.UNKNOWN,
        )
    _require_doubt(conn, seen, done=taken)
    _tell(conn, seen, "take", who, {})


def hand_over(conn: Connection, seen: Seen, *, to: str, note: str, who: str) -> None:
    """Let ``to`` look after it from now on, whoever did before, with a note for them."""
    if not to.strip():
        raise NotConfirmed(_("Say to whom it is handed over."), code="name-missing")
    _require_doubt(conn, seen, done=ledger.take(conn, seen.doubt.job_id, who=to.strip()))
    _tell(conn, seen, "hand_over", who, {"to": to.strip(), "note": note})


def snooze(conn: Connection, seen: Seen, *, until: datetime, who: str) -> None:
    """Let it raise no alert until then. Looks go on, and nothing is sent."""
    _require_doubt(conn, seen, done=ledger.snooze(conn, seen.doubt.job_id, until=until))
    _tell(conn, seen, "snooze", who, {"until": until.isoformat()})


def candidates_in(evidence: Mapping[str, Any]) -> tuple[Candidate, ...]:
    """What a look showed that could be the post, from the JSON it is kept as."""
    listed = evidence.get("candidates")
    return tuple(_candidate(item) for item in listed) if isinstance(listed, list) else ()


def _candidate(item: Mapping[str, Any]) -> Candidate:
    return Candidate(
        remote_id=str(item["remote_id"]),
        text=str(item["text"]),
        created_at=datetime.fromisoformat(str(item["created_at"])),
        permalink=item.get("permalink"),
        ours=item.get("ours"),
    )


def _identified(
    engine: Engine, registry: Registry, seen: Seen, given: str, horizon: timedelta
) -> Candidate:
    """The post that was named, read from the platform. No transaction is open meanwhile."""
    doubt, channel = seen.doubt, seen.channel
    with engine.begin() as conn:
        since = doubt.live_since or doubt.since
        bound = ledger.bound_elsewhere(driver_of(conn), channel.id, doubt.job_id, since)
    query = doubt.query(channel, bound, horizon)
    found = registry.adapter(channel.platform).identify(query, given)
    if isinstance(found, Candidate):
        return found
    raise _refused(found)


def _refused(found: NotThisPost) -> PublisherError:
    if found.code is Mismatch.UNREADABLE:
        return Unreadable(found.message)
    return Conflict(found.message, code="not-this-post", state=State.UNKNOWN)


def _capabilities(registry: Registry, doubt: Doubt, channel: Channel) -> Capabilities | None:
    """What the platform can do; None for one that this release has no adapter for."""
    try:
        return registry.adapter(channel.platform).capabilities(doubt.content, doubt.progress)
    except PublisherError:
        return None


def _record(
    engine: Engine,
    seen: Seen,
    signed: Signed,
    verdict: Callable[[Connection], Judged],
    told: Callable[[Judged], Decision],
) -> Decision:
    """Record a verdict in a transaction of its own. Raises ``Conflict``, also for ``busy``."""
    try:
        with engine.begin() as conn:
            conn.exec_driver_sql(f"SET LOCAL lock_timeout = '{_LOCK_SECONDS}s'")
            decision = told(verdict(conn))
            if signed.keep is not None:
                signed.keep(conn, decision)
        _log.info("doubt.decided", job=seen.doubt.key, who=signed.who, state=decision.state)
    except psycopg.errors.LockNotAvailable:
        pass
    else:
        return decision
    message = _("Job {id} is being changed by somebody else. Nothing was changed. Ask again.")
    name = public_id(seen.doubt.job_id)
    raise Conflict(message.format(id=name), code="busy", state=State.UNKNOWN)


def _reason(signed: Signed) -> str:
    if not signed.reason.strip():
        message = _("A decision needs a reason, which the journal keeps. Nothing was changed.")
        raise NotConfirmed(message, code="reason-missing")
    return signed.reason.strip()


def _require_doubt(conn: Connection, seen: Seen, *, done: bool) -> None:
    if not done:
        raise ledger.why_settled(conn, seen.doubt.job_id)


def _tell(conn: Connection, seen: Seen, event: str, who: str, detail: Mapping[str, object]) -> None:
    doubt = seen.doubt
    ledger.tell(conn, doubt.job_id, event, who=who, attempt=doubt.attempt, detail=detail)
