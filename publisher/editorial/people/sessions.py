"""Sessions: who is signed in from where, kept on the server, seen and ended by their owner.

A browser holds a random token and the database its hash. A session ends by itself when it was not
used for ``IDLE``, and ``LASTS`` after it began whatever happens; and with it all that a changed
password or a disabled account makes doubtful.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Row, Select, delete, func, insert, select, update

from publisher.editorial.people import journal, opaque
from publisher.editorial.people.journal import Event
from publisher.editorial.people.schema import sessions, users
from publisher.engine.errors import NotFound, PublisherError
from publisher.words import _

IDLE: Final = timedelta(hours=12)
LASTS: Final = timedelta(days=14)
CODE_WITHIN: Final = timedelta(minutes=10)
"""After the password, the second factor is awaited for so long."""
RECENT: Final = timedelta(minutes=10)
"""Before what could do most harm, the password must have been given within this."""

_KIND: Final = "pbs"
_COARSE: Final = timedelta(minutes=1)
_KEPT: Final = timedelta(days=30)
_SWEPT: Final = 50
_LONGEST: Final = 300


class Method(StrEnum):
    """How somebody signed in."""

    PASSWORD = "password"  # noqa: S105 - the name of a way
    LINK = "link"
    OIDC = "oidc"


class End(StrEnum):
    """Why a session ended before its time."""

    SIGNED_OUT = "signed_out"
    ENDED_ELSEWHERE = "ended_elsewhere"
    PASSWORD_CHANGED = "password_changed"  # noqa: S105 - the name of a reason
    DISABLED = "disabled"
    CODE_GIVEN = "code_given"
    """The half of a session that awaited its code became a whole one, under a new token."""


class ReauthenticationNeeded(PublisherError):
    """What is wanted needs the password once more. 403."""

    code = "reauthenticate"
    exit_code = 4

    def __init__(self) -> None:
        super().__init__(
            _("Give your password once more for this. Nothing was done yet; it is done after.")
        )


@dataclass(frozen=True, slots=True)
class Session:
    """One session, as its owner sees it in the list."""

    id: int
    user_id: int
    method: Method
    awaits_code: bool
    """The password was right and the second factor is still asked for: it opens nothing."""
    created_at: datetime
    seen_at: datetime
    expires_at: datetime
    reauthenticated_at: datetime | None
    address: str | None
    agent: str | None
    now: datetime
    """The database's clock when this was read."""

    def require_recent(self, within: timedelta = RECENT) -> None:
        """Raise ``ReauthenticationNeeded`` unless the password was given in the last minutes."""
        given_at = self.reauthenticated_at
        if given_at is None or self.now - given_at > within:
            raise ReauthenticationNeeded


@dataclass(frozen=True, slots=True)
class Begun:
    """A new session. ``token`` is the browser's cookie and is never shown again."""

    token: str = field(repr=False)
    session: Session


def begin(
    conn: Connection,
    user_id: int,
    method: Method,
    *,
    awaits_code: bool = False,
    is_fresh: bool = True,
    address: str | None = None,
    agent: str | None = None,
) -> Begun:
    """Begin one under a new token, so that whoever planted an earlier one gains nothing.

    ``is_fresh``: the person has just shown who they are, as re-authentication would have it.
    """
    token = opaque.mint(_KIND)
    now = func.clock_timestamp()
    conn.execute(
        insert(sessions).values(
            token_sha256=opaque.digest(token),
            user_id=user_id,
            method=method.value,
            awaits_code=awaits_code,
            expires_at=now + (CODE_WITHIN if awaits_code else LASTS),
            reauthenticated_at=now if is_fresh and not awaits_code else None,
            address=_storable(address),
            agent=_storable(agent),
        )
    )
    _sweep(conn)
    session = _first(conn, sessions.c.token_sha256 == opaque.digest(token))
    if session is None:
        raise AssertionError
    return Begun(token, session)


def find(conn: Connection, token: str, *, awaiting_code: bool = False) -> Session | None:
    """The living session with this token, and note that it is used; None where there is none.

    ``awaiting_code``: one whose second factor is still asked for, and no other.
    """
    session = _first(
        conn,
        sessions.c.token_sha256 == opaque.digest(token),
        sessions.c.awaits_code.is_(awaiting_code),
    )
    if session is not None and session.now - session.seen_at > _COARSE:
        conn.execute(
            update(sessions)
            .where(sessions.c.id == session.id, sessions.c.ended_at.is_(None))
            .values(seen_at=func.clock_timestamp())
        )
    return session


def of_user(conn: Connection, user_id: int) -> tuple[Session, ...]:
    """Their living sessions, the last used first."""
    rows = conn.execute(
        _living().where(sessions.c.user_id == user_id).order_by(sessions.c.seen_at.desc())
    )
    return tuple(_session(row) for row in rows)


def end(
    conn: Connection, user_id: int, session_id: int, reason: End, *, who: str, subject: str
) -> None:
    """End one of theirs. Raises ``NotFound`` for a session that is none, or is over."""
    if not _end(conn, reason, sessions.c.user_id == user_id, sessions.c.id == session_id):
        raise NotFound(_("That session is over already."))
    journal.tell(
        conn,
        Event.SESSION_ENDED,
        who=who,
        subject=subject,
        user_id=user_id,
        session=session_id,
        reason=reason.value,
    )


def end_all(
    conn: Connection,
    user_id: int,
    reason: End,
    *,
    who: str,
    subject: str,
    but: int | None = None,
) -> int:
    """End all of theirs, ``but`` for one; returns how many."""
    kept = [] if but is None else [sessions.c.id != but]
    ended = _end(conn, reason, sessions.c.user_id == user_id, *kept)
    if ended:
        journal.tell(
            conn,
            Event.SESSION_ENDED,
            who=who,
            subject=subject,
            user_id=user_id,
            sessions=ended,
            reason=reason.value,
        )
    return ended


def hand_over(conn: Connection, session_id: int) -> bool:
    """End the half session whose code was right; False where another was quicker."""
    return _end(conn, End.CODE_GIVEN, sessions.c.id == session_id) == 1


def freshen(conn: Connection, session_id: int) -> bool:
    """Note that its owner has just shown again who they are."""
    noted = conn.execute(
        update(sessions)
        .where(sessions.c.id == session_id, sessions.c.ended_at.is_(None))
        .values(reauthenticated_at=func.clock_timestamp())
    )
    return noted.rowcount == 1


def _end(conn: Connection, reason: End, *which: ColumnElement[bool]) -> int:
    ended = conn.execute(
        update(sessions)
        .where(*which, sessions.c.ended_at.is_(None))
        .values(ended_at=func.clock_timestamp(), end_reason=reason.value)
    )
    return ended.rowcount


def _living() -> Select[Any]:
    now = func.clock_timestamp()
    return (
        select(*sessions.c, now.label("now"))
        .join(users, users.c.id == sessions.c.user_id)
        .where(
            sessions.c.ended_at.is_(None),
            sessions.c.expires_at > now,
            sessions.c.seen_at > now - IDLE,
            users.c.disabled_at.is_(None),
        )
    )


def _first(conn: Connection, *which: ColumnElement[bool]) -> Session | None:
    row = conn.execute(_living().where(*which)).first()
    return None if row is None else _session(row)


def _storable(given: str | None) -> str | None:
    """What a browser said of itself, short, and without what the database cannot hold."""
    if given is None:
        return None
    return given[:_LONGEST].replace("\x00", "").encode(errors="replace").decode()


def _sweep(conn: Connection) -> None:
    """Drop a few that are long over; the journal keeps who signed in when."""
    over = (
        select(sessions.c.id)
        .where(sessions.c.expires_at < func.clock_timestamp() - _KEPT)
        .limit(_SWEPT)
        .with_for_update(skip_locked=True)
    )
    conn.execute(delete(sessions).where(sessions.c.id.in_(over.scalar_subquery())))


def _session(row: Row[Any]) -> Session:
    return Session(
        id=row.id,
        user_id=row.user_id,
        method=Method(row.method),
        awaits_code=row.awaits_code,
        created_at=row.created_at,
        seen_at=row.seen_at,
        expires_at=row.expires_at,
        reauthenticated_at=row.reauthenticated_at,
        address=row.address,
        agent=row.agent,
        now=row.now,
    )
