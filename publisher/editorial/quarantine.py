"""What people do about a database that may lack sends: see, release, bind, or say so in advance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from publisher.editorial import channels
from publisher.editorial.unknowns import NotConfirmed, Signed, Unreadable
from publisher.engine import ledger, queries
from publisher.engine.errors import Conflict
from publisher.engine.evidence import Candidate, Mismatch
from publisher.engine.job import Channel, JobId
from publisher.engine.ledger.driver import driver_of
from publisher.engine.queries import QuarantineRow, SuspectRow
from publisher.engine.registry import Registry
from publisher.words import _

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Standing:
    """The quarantines that hold something, and what they hold."""

    quarantines: tuple[QuarantineRow, ...]
    jobs: tuple[SuspectRow, ...]


def standing(conn: Connection) -> Standing:
    """How it stands: an empty one holds nothing back."""
    rows = tuple(row for row in queries.quarantine_rows(conn) if row.held)
    return Standing(rows, tuple(queries.suspect_rows(conn)))


def release(conn: Connection, channel: str, signed: Signed, *, confirm: str) -> list[JobId]:
    """Let a channel's jobs go on: a person looked, and they are not on its page.

    ``confirm``: the channel's name as the person typed it. Returns the jobs; none where the
    channel has none in quarantine. Raises ``NotFound``, ``NotConfirmed``; ``Conflict``
    (``sender-may-be-alive``) with the time from which it may be said.
    """
    found = channels.find(conn, channel)
    held = queries.suspect_rows(conn, channel_id=found.id)
    if not held:
        return []
    reason = _reason(signed)
    _require_landed(held)
    if confirm.strip() != found.name:
        message = _(
            "They are sent when they are released. Confirm with the channel's name, {name}."
            " Nothing was changed."
        )
        raise NotConfirmed(message.format(name=found.name), code="not-confirmed")
    freed = ledger.release_suspects(conn, [row.id for row in held], who=signed.who, reason=reason)
    _log.info("quarantine.released", channel_id=found.id, jobs=len(freed), who=signed.who)
    return freed


def bind(
    engine: Engine, registry: Registry, job_id: JobId, given: str, signed: Signed
) -> Candidate | None:
    """A job in quarantine is live: as the post that ``given`` names, or seen, where it is empty.

    What is named is read from the platform with no transaction open. Returns it. Raises
    ``Conflict`` (``not-this-post`` with the reason, ``not-in-quarantine``), ``Unreadable``,
    ``NotConfirmed``.
    """
    reason = _reason(signed)
    with engine.begin() as conn:
        suspect = next(iter(ledger.suspects(conn, [job_id])), None)
        if suspect is None:
            raise ledger.not_in_quarantine(conn, job_id)
        channel = ledger.channels(driver_of(conn), [suspect.channel_id])[suspect.channel_id]
    post = _identified(engine, registry, suspect, channel, given) if given.strip() else None
    with engine.begin() as conn:
        ledger.found_live(
            conn,
            job_id,
            remote_id=None if post is None else post.remote_id,
            permalink=None if post is None else post.permalink,
            who=signed.who,
            reason=reason,
        )
    _log.info("quarantine.bound", job=suspect.key, who=signed.who, attested=post is None)
    return post


def _identified(
    engine: Engine, registry: Registry, suspect: ledger.Suspect, channel: Channel, given: str
) -> Candidate:
    with engine.begin() as conn:
        driver = driver_of(conn)
        bound = ledger.bound_elsewhere(driver, channel.id, suspect.job_id, suspect.since)
    query = suspect.query(channel, bound)
    found = registry.adapter(channel.platform).identify(query, given)
    if isinstance(found, Candidate):
        return found
    if found.code is Mismatch.UNREADABLE:
        raise Unreadable(found.message)
    raise Conflict(found.message, code="not-this-post")


def job_in(conn: Connection, key: str) -> JobId:
    """The job that ``key`` names, if it is in quarantine. Raises ``NotFound``, ``Conflict``."""
    job_id = queries.find_job(conn, key)
    if not ledger.suspects(conn, [job_id]):
        raise ledger.not_in_quarantine(conn, job_id)
    return job_id


def _require_landed(held: Sequence[SuspectRow]) -> None:
    latest = max(held, key=lambda row: row.absent_after)
    if latest.absent_after > latest.now:
        message = _(
            "Locked until {when}: what was sent before the loss may still arrive. Nothing was"
            " changed. What is found meanwhile is bound by itself."
        )
        raise Conflict(
            message.format(when=f"{latest.absent_after:%H:%M:%S %Z}"), code="sender-may-be-alive"
        )


def _reason(signed: Signed) -> str:
    if not signed.reason.strip():
        message = _("A decision needs a reason, which the journal keeps. Nothing was changed.")
        raise NotConfirmed(message, code="reason-missing")
    return signed.reason.strip()
