"""``/me/sessions`` and ``/users/{user}/sessions``: who is signed in from where; ended from here."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from fastapi import APIRouter, Request, Response
from pydantic import Field

from publisher.api.calls import Answer, Caller, Here, OptionalKey, answered, once
from publisher.api.operations import operation
from publisher.api.strict import Instant, LongNumber, Number, Told
from publisher.editorial.people import reach, sessions, users
from publisher.editorial.people.roles import Permission
from publisher.editorial.people.sessions import End, Session
from publisher.editorial.people.users import User

if TYPE_CHECKING:
    from sqlalchemy import Connection

router = APIRouter(tags=["people"])
_Find = Callable[["Connection"], User]


class SessionTold(Told):
    """One browser that is signed in."""

    id: int
    method: Literal["password", "link", "oidc"]
    awaits_code: bool = Field(description="The second factor is still asked for: it opens nothing.")
    created_at: Instant
    seen_at: Instant = Field(description="To the minute.")
    expires_at: Instant
    address: str | None
    agent: str | None


class SessionPage(Told):
    """Sessions that are not over, the last used first."""

    sessions: list[SessionTold]


class Ended(Told):
    """How many ended."""

    ended: int


@operation(router, "GET", "/me/sessions", Permission.TOKENS_OWN, SessionPage)
def list_my_sessions(here: Here) -> Response:
    """List where you are signed in."""
    return _listed(here, _myself(here))


@operation(router, "POST", "/me/sessions/end", Permission.TOKENS_OWN, Ended)
def end_my_sessions(here: Here, request: Request, key: OptionalKey = None) -> Response:
    """Sign yourself out everywhere. Tokens go on."""
    return _ended(here, request, key, _myself(here))


@operation(router, "POST", "/me/sessions/{session}/end", Permission.TOKENS_OWN, Ended)
def end_my_session(
    session: LongNumber, here: Here, request: Request, key: OptionalKey = None
) -> Response:
    """End one session of yours."""
    return _ended(here, request, key, _myself(here), session)


@operation(router, "GET", "/users/{user}/sessions", Permission.USERS_MANAGE, SessionPage)
def list_sessions(user: Number, here: Here) -> Response:
    """List where somebody is signed in, whom nobody else has a say about."""
    return _listed(here, _theirs(here, user))


@operation(router, "POST", "/users/{user}/sessions/end", Permission.USERS_MANAGE, Ended)
def end_sessions(user: Number, here: Here, request: Request, key: OptionalKey = None) -> Response:
    """Sign somebody out everywhere. Their tokens go on: disable them to end those, too."""
    return _ended(here, request, key, _theirs(here, user))


@operation(router, "POST", "/users/{user}/sessions/{session}/end", Permission.USERS_MANAGE, Ended)
def end_session(
    user: Number, session: LongNumber, here: Here, request: Request, key: OptionalKey = None
) -> Response:
    """End one session of somebody's."""
    return _ended(here, request, key, _theirs(here, user), session)


def _myself(here: Caller) -> _Find:
    return lambda conn: users.get(conn, here.person.id)


def _theirs(here: Caller, user: int) -> _Find:
    return lambda conn: reach.require(conn, here.person, user)


def _listed(here: Caller, find: _Find) -> Response:
    with here.transaction(everywhere=True) as conn:
        listed = sessions.of_user(conn, find(conn).id)
    return answered(SessionPage(sessions=[_told(one) for one in listed]))


def _ended(
    here: Caller, request: Request, key: str | None, find: _Find, session: int | None = None
) -> Response:
    def end(conn: Connection) -> Answer:
        user = find(conn)
        if session is None:
            return Answer(Ended(ended=users.end_sessions(conn, user, who=here.who)))
        sessions.end(conn, user.id, session, End.ENDED_ELSEWHERE, who=here.who, subject=user.email)
        return Answer(Ended(ended=1))

    return once(here, request, key, end, everywhere=True)


def _told(one: Session) -> SessionTold:
    return SessionTold(
        id=one.id,
        method=one.method.value,
        awaits_code=one.awaits_code,
        created_at=one.created_at,
        seen_at=one.seen_at,
        expires_at=one.expires_at,
        address=one.address,
        agent=one.agent,
    )
