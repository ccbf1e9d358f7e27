"""Signing in: a password or a one-time link, then the second factor where there is one.

Each try is counted and committed before it is made, and nothing is open while a password is
hashed. Every engine here must see every workspace: who somebody is comes before where they are.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import structlog
from sqlalchemy import Connection, Engine, Row, Select, func, select, update

from publisher.editorial.people import journal, links, passwords, sessions, throttle, totp
from publisher.editorial.people.journal import Event
from publisher.editorial.people.schema import users
from publisher.editorial.people.sessions import Begun, End, Method, Session
from publisher.editorial.people.throttle import Counted, Door
from publisher.editorial.people.totp import Sealer
from publisher.engine.errors import PublisherError
from publisher.words import _

_NOBODY: Final = 0
_log = structlog.get_logger(__name__)


class SignInRefused(PublisherError):
    """The address or the password is wrong, or the account is disabled. Which is not told. 401."""

    code = "sign-in-wrong"
    exit_code = 4

    def __init__(self) -> None:
        super().__init__(
            _(
                "That address and password do not go together. Try again, or ask an admin for a"
                " one-time link."
            )
        )


class SessionOver(PublisherError):
    """The session ended, or never was. 401."""

    code = "session-over"
    exit_code = 4

    def __init__(self) -> None:
        super().__init__(_("You are signed out. Sign in again."))


@dataclass(frozen=True, slots=True)
class _Account:
    id: int
    name: str
    email: str
    compared: str
    """The address as the database compares it, whether there is an account or not."""
    kept: str | None
    has_totp: bool


def with_password(
    engine: Engine,
    *,
    email: str,
    password: str,
    address: str | None = None,
    agent: str | None = None,
) -> Begun:
    """Begin a session for whoever has that password.

    It awaits a code where the account has a second factor: give it to ``with_code`` then.
    Raises ``Throttled``, ``SignInRefused``.
    """
    with engine.begin() as conn:
        found = _by_email(conn, email)
    counted = _count(engine, (throttle.account(found.compared), *throttle.address(address)))
    _require_password(found, password, address)
    anew = _anew(found, password)
    with engine.begin() as conn:
        _still(conn, found)
        if anew is not None:
            conn.execute(update(users).where(users.c.id == found.id).values(password_hash=anew))
        throttle.take_back(conn, counted)
        return _begin(conn, found, Method.PASSWORD, address, agent)


def with_code(
    engine: Engine,
    sealer: Sealer,
    *,
    token: str,
    code: str,
    address: str | None = None,
    agent: str | None = None,
) -> Begun:
    """Make a whole session of one that awaits its code, under a new token.

    ``code`` is the app's, or a recovery code. Raises ``SessionOver``, ``Throttled``,
    ``CodeRefused``, ``VaultError``.
    """
    with engine.begin() as conn:
        half = sessions.find(conn, token, awaiting_code=True)
        if half is None:
            raise SessionOver
    counted = _count(engine, (throttle.second_factor(half.user_id), *throttle.address(address)))
    with engine.begin() as conn:
        found = _by_id(conn, half.user_id)
        if not sessions.hand_over(conn, half.id):
            raise SessionOver
        totp.check(conn, sealer, found.id, code, who=found.name)
        throttle.take_back(conn, counted)
        return _whole(conn, found, half.method, address, agent)


def by_link(
    engine: Engine,
    *,
    token: str,
    password: str,
    address: str | None = None,
    agent: str | None = None,
) -> Begun:
    """Choose a password by a one-time link, which is used up, and sign in with it.

    Every earlier session ends. A password that may not be chosen leaves the link as it was.
    Raises ``LinkUnusable``, ``PasswordRefused``.
    """
    with engine.begin() as conn:
        invited = links.look(conn, token)
    kept = passwords.hashed(passwords.chosen(password, email=invited.email, name=invited.name))
    with engine.begin() as conn:
        found = _by_id(conn, invited.user_id)
        links.use(conn, token)
        _keep(conn, found, kept, who=found.name)
        return _begin(conn, found, Method.LINK, address, agent)


def change_password(
    engine: Engine, session: Session, *, current: str, password: str, address: str | None = None
) -> None:
    """Choose another password; every other session of theirs ends.

    Raises ``Throttled``, ``SignInRefused`` where ``current`` is wrong, ``PasswordRefused``.
    """
    found, counted = _proved(engine, session, current, address)
    chosen = passwords.chosen(password, email=found.email, name=found.name)
    kept = passwords.hashed(chosen)
    with engine.begin() as conn:
        _still(conn, found)
        throttle.take_back(conn, counted)
        _keep(conn, found, kept, who=found.name, but=session.id)
        sessions.freshen(conn, session.id)


def again(
    engine: Engine,
    session: Session,
    *,
    password: str,
    address: str | None = None,
) -> None:
    """Show once more who one is, before what could do most harm.

    Raises ``Throttled``, ``SignInRefused``, ``SessionOver``.
    """
    found, counted = _proved(engine, session, password, address)
    with engine.begin() as conn:
        _still(conn, found)
        throttle.take_back(conn, counted)
        if not sessions.freshen(conn, session.id):
            raise SessionOver
        journal.tell(
            conn, Event.REAUTHENTICATED, who=found.name, subject=found.email, user_id=found.id
        )


def again_with_code(
    engine: Engine, sealer: Sealer, session: Session, *, code: str, address: str | None = None
) -> None:
    """The same by a code of the app, for who has no password here.

    Raises ``Throttled``, ``CodeRefused``, ``SessionOver``, ``VaultError``.
    """
    counted = _count(engine, (throttle.second_factor(session.user_id), *throttle.address(address)))
    with engine.begin() as conn:
        found = _by_id(conn, session.user_id)
        totp.check(conn, sealer, found.id, code, who=found.name)
        throttle.take_back(conn, counted)
        if not sessions.freshen(conn, session.id):
            raise SessionOver
        journal.tell(
            conn, Event.REAUTHENTICATED, who=found.name, subject=found.email, user_id=found.id
        )


def confirm_totp(engine: Engine, sealer: Sealer, session: Session, *, code: str) -> tuple[str, ...]:
    """Turn the second factor on by its first code; returns the recovery codes, shown once.

    Every other session ends, for none of them was asked for it. Raises ``Throttled``,
    ``CodeRefused``, ``Conflict``, ``VaultError``.
    """
    _count(engine, (throttle.second_factor(session.user_id),))
    with engine.begin() as conn:
        found = _by_id(conn, session.user_id)
        codes = totp.confirm(conn, sealer, found.id, code, who=found.name)
        sessions.end_all(
            conn,
            found.id,
            End.ENDED_ELSEWHERE,
            who=found.name,
            subject=found.email,
            but=session.id,
        )
        return codes


def begin_for(
    conn: Connection,
    user_id: int,
    method: Method,
    *,
    is_fresh: bool,
    address: str | None = None,
    agent: str | None = None,
) -> Begun:
    """Begin a session for somebody whom another party vouched for.

    Raises ``SignInRefused`` for an account that is disabled.
    """
    return _begin(conn, _by_id(conn, user_id), method, address, agent, is_fresh=is_fresh)


def _begin(
    conn: Connection,
    found: _Account,
    method: Method,
    address: str | None,
    agent: str | None,
    *,
    is_fresh: bool = True,
) -> Begun:
    if found.has_totp:
        return sessions.begin(
            conn, found.id, method, awaits_code=True, address=address, agent=agent
        )
    return _whole(conn, found, method, address, agent, is_fresh=is_fresh)


def _whole(
    conn: Connection,
    found: _Account,
    method: Method,
    address: str | None,
    agent: str | None,
    *,
    is_fresh: bool = True,
) -> Begun:
    begun = sessions.begin(conn, found.id, method, is_fresh=is_fresh, address=address, agent=agent)
    journal.tell(
        conn,
        Event.SIGNED_IN,
        who=found.name,
        subject=found.email,
        user_id=found.id,
        session=begun.session.id,
        method=method.value,
        address=begun.session.address,
    )
    _log.info("people.signed_in", user_id=found.id, method=method.value)
    return begun


def _proved(
    engine: Engine, session: Session, password: str, address: str | None
) -> tuple[_Account, tuple[Counted, ...]]:
    with engine.begin() as conn:
        found = _by_id(conn, session.user_id)
    counted = _count(engine, (throttle.account(found.compared), *throttle.address(address)))
    _require_password(found, password, address)
    return found, counted


def _count(engine: Engine, doors: Iterable[Door]) -> tuple[Counted, ...]:
    with engine.begin() as conn:
        counted = throttle.count(conn, doors)
        throttle.sweep(conn)
    return counted


def _require_password(found: _Account, password: str, address: str | None) -> None:
    if not passwords.matches(found.kept, password):
        _log.warning("people.sign_in_refused", user_id=found.id or None, address=address)
        raise SignInRefused


def _anew(found: _Account, password: str) -> str | None:
    if found.kept is None or not passwords.is_dated(found.kept):
        return None
    return passwords.hashed_anew(password)


def _still(conn: Connection, found: _Account) -> None:
    """What was checked may have changed while the password was hashed: hold the row and see."""
    row = conn.execute(
        select(users.c.password_hash)
        .where(users.c.id == found.id, users.c.disabled_at.is_(None))
        .with_for_update()
    ).first()
    if row is None or row.password_hash != found.kept:
        raise SignInRefused


def _keep(
    conn: Connection, found: _Account, kept: str, *, who: str, but: int | None = None
) -> None:
    conn.execute(
        update(users)
        .where(users.c.id == found.id)
        .values(password_hash=kept, password_changed_at=func.clock_timestamp())
    )
    throttle.forget(conn, throttle.account(found.compared))
    journal.tell(conn, Event.PASSWORD_SET, who=who, subject=found.email, user_id=found.id)
    sessions.end_all(conn, found.id, End.PASSWORD_CHANGED, who=who, subject=found.email, but=but)


def _by_email(conn: Connection, email: str) -> _Account:
    """The account, or one of nobody, whose password is never right."""
    compared = conn.execute(select(func.lower(_storable(email)))).scalar_one()
    row = conn.execute(_accounts().where(func.lower(users.c.email) == compared)).first()
    if row is None:
        return _Account(_NOBODY, "", "", compared, None, has_totp=False)
    return _account(row)


def _by_id(conn: Connection, user_id: int) -> _Account:
    """The account, held: what is done with it waits for who changes or disables it."""
    row = conn.execute(_accounts().where(users.c.id == user_id).with_for_update()).first()
    if row is None:
        raise SignInRefused
    return _account(row)


def _account(row: Row[Any]) -> _Account:
    return _Account(
        row.id, row.name, row.email, row.compared, row.password_hash, has_totp=row.has_totp
    )


def _accounts() -> Select[Any]:
    return select(
        users.c.id,
        users.c.name,
        users.c.email,
        func.lower(users.c.email).label("compared"),
        users.c.password_hash,
        users.c.totp_confirmed_at.is_not(None).label("has_totp"),
    ).where(users.c.disabled_at.is_(None))


def _storable(email: str) -> str:
    """What the database can compare: no NUL and no half of a surrogate pair."""
    text = email.strip()
    return text.replace("\x00", "").encode(errors="replace").decode()
