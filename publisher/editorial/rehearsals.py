"""Consent to rehearse on a real page, and what must not be going on there meanwhile.

A rehearsal publishes a few marked posts and deletes them again. Whoever reads the page sees them
for that long, so somebody has to allow it first, page by page; and it keeps away from a page that
has posts of its own to publish.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

import psycopg
import structlog
from sqlalchemy import func, null, select, update
from sqlalchemy.exc import OperationalError

from publisher.editorial import channel_events
from publisher.editorial.channel_events import Event
from publisher.engine import queries
from publisher.engine.errors import Conflict, NotFound
from publisher.engine.job import Channel, public_id
from publisher.engine.queries import JobRow
from publisher.engine.registry import Registry
from publisher.engine.schema import channels
from publisher.words import _

if TYPE_CHECKING:
    from sqlalchemy import Connection

KEPT_FREE: Final = timedelta(hours=1)
"""A page with a post of its own due that soon is not rehearsed on."""
_NAMED: Final = 3
_LOCK_SECONDS: Final = 5
"""How long is waited for whoever is adding posts to the channel."""
_PUBLISHES: Final = "publish"
_log = structlog.get_logger(__name__)


class RealPostsDue(Conflict):
    """The page has posts of its own to publish; nothing was changed. ``jobs``: which."""

    def __init__(self, channel: Channel, jobs: Sequence[JobRow]) -> None:
        listed = "; ".join(_named(job) for job in jobs[:_NAMED])
        more = len(jobs) - _NAMED
        if more > 0:
            listed += _(" and {n} more").format(n=more)
        message = _(
            "{name} has posts of its own to publish: {listed}. Nothing was changed. Wait until"
            " they are settled, or move them: publisher jobs reschedule {first} --at TIME"
        )
        super().__init__(
            message.format(name=channel.name, listed=listed, first=public_id(jobs[0].id)),
            code="real-posts-due",
        )
        self.jobs = tuple(jobs)


@dataclass(frozen=True, slots=True)
class Consent:
    """Since when, and by whose word, a channel may be rehearsed on."""

    at: datetime
    who: str


def allow(conn: Connection, registry: Registry, channel: Channel, *, who: str) -> Consent:
    """Let rehearsals publish on ``channel``, within the transaction of ``conn``.

    A consent that is there stays as it was given. Raises ``RealPostsDue``; ``Conflict``
    (``no-page``) for a channel that is none, such as a mailbox.
    """
    if registry.adapter(channel.platform).capabilities("").queue != _PUBLISHES:
        message = _(
            "{name} is no page: its platform is {platform}. Nothing was changed. Give a channel"
            " that takes posts."
        )
        words = message.format(name=channel.name, platform=channel.platform)
        raise Conflict(words, code="no-page")
    given = _held(conn, channel)
    require_free(conn, channel)
    if given is not None:
        return given
    row = conn.execute(
        update(channels)
        .where(channels.c.id == channel.id)
        .values(rehearsal_allowed_at=func.clock_timestamp(), rehearsal_allowed_by=who)
        .returning(channels.c.rehearsal_allowed_at, channels.c.rehearsal_allowed_by)
    ).one()
    channel_events.tell(conn, channel.id, Event.REHEARSAL_ALLOWED, who=who)
    _log.info("channel.rehearsal_allowed", channel_id=channel.id, who=who)
    return Consent(row.rehearsal_allowed_at, row.rehearsal_allowed_by)


def forbid(conn: Connection, channel: Channel, *, who: str) -> bool:
    """Let no rehearsal begin on ``channel`` any more; False where none was allowed."""
    if _held(conn, channel) is None:
        return False
    conn.execute(
        update(channels)
        .where(channels.c.id == channel.id)
        .values(rehearsal_allowed_at=null(), rehearsal_allowed_by=null())
    )
    channel_events.tell(conn, channel.id, Event.REHEARSAL_FORBIDDEN, who=who)
    _log.info("channel.rehearsal_forbidden", channel_id=channel.id, who=who)
    return True


def admit(conn: Connection, channel: Channel) -> Consent:
    """Make sure that a rehearsal may publish on ``channel`` now, until ``conn`` commits.

    Whoever adds a job to the channel waits so long, and what they added before is seen. Raises
    ``Conflict`` (``rehearsal-not-allowed``), ``RealPostsDue``.
    """
    given = _held(conn, channel)
    if given is None:
        message = _(
            "Nobody has allowed rehearsals on {name}. Nothing was published. Allow them:"
            " publisher channels allow-rehearsal {id}"
        )
        raise Conflict(
            message.format(name=channel.name, id=channel.id), code="rehearsal-not-allowed"
        )
    require_free(conn, channel)
    return given


def require_free(conn: Connection, channel: Channel) -> None:
    """Raise ``RealPostsDue`` while a post of the page's own is due within the hour, or doubted."""
    in_the_way = queries.jobs_in_the_way(conn, channel.id, within=KEPT_FREE)
    if in_the_way:
        raise RealPostsDue(channel, in_the_way)


def _held(conn: Connection, channel: Channel) -> Consent | None:
    """The channel's consent, its row held: to add a job, anybody needs a share of that row."""
    consent = (
        select(channels.c.rehearsal_allowed_at, channels.c.rehearsal_allowed_by)
        .where(channels.c.id == channel.id)
        .with_for_update()
    )
    try:
        conn.exec_driver_sql(f"SET LOCAL lock_timeout = '{_LOCK_SECONDS}s'")
        row = conn.execute(consent).one_or_none()
    except OperationalError as error:
        if not isinstance(error.orig, psycopg.errors.LockNotAvailable):
            raise
        message = _("Posts are being added to {name} just now. Nothing was changed. Ask again.")
        raise Conflict(message.format(name=channel.name), code="busy") from error
    if row is None:
        message = _("There is no channel {id}.")
        raise NotFound(message.format(id=channel.id))
    if row.rehearsal_allowed_at is None:
        return None
    return Consent(row.rehearsal_allowed_at, row.rehearsal_allowed_by)


def _named(job: JobRow) -> str:
    name = f"{public_id(job.id)} {job.ref or ''}".rstrip()
    return _("{job}, {state}, due {when}").format(
        job=name, state=job.state, when=f"{job.run_at:%d %b %H:%M %Z}"
    )
