"""API tokens: how a program acts for a person, in one workspace, within the scopes it was given.

What a token may do is found at each use: its scopes, as far as its owner's role still has them. So
the token of somebody who lost a role, an account or the workspace shrinks with them at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import Connection, Row, Select, and_, func, insert, or_, select, update

from publisher.editorial.people import journal, opaque, spelled
from publisher.editorial.people.journal import Event
from publisher.editorial.people.person import COLUMNS, Person, of_row
from publisher.editorial.people.roles import PERMISSIONS, Permission, Role
from publisher.editorial.people.schema import api_tokens, memberships, users, workspaces
from publisher.editorial.spelling import did_you_mean, quoted
from publisher.engine.errors import NotFound
from publisher.words import _

KIND: Final = "pbl"
LONGEST: Final = timedelta(days=366)
"""A token that is meant for longer is made anew in time, by somebody who is still there."""

_HINT: Final = 4
_COARSE: Final = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Token:
    """An API token as its owner and admins see it; ``hint`` are its last characters."""

    id: int
    name: str
    hint: str
    owner: str
    owner_email: str
    user_id: int
    scopes: tuple[str, ...]
    effective: tuple[str, ...]
    """What of the scopes works now, by its owner's role."""
    created_at: datetime
    created_by: str
    expires_at: datetime | None
    last_used_at: datetime | None
    """To the minute."""
    revoked_at: datetime | None
    revoked_by: str | None
    is_over: bool
    """It was revoked, its time has come, or its owner may do none of it any more."""


@dataclass(frozen=True, slots=True)
class Made:
    """A new token; ``secret`` is shown now and never again."""

    id: int
    secret: str = field(repr=False)
    expires_at: datetime | None


def make(
    conn: Connection,
    owner: Person,
    *,
    name: str,
    scopes: Iterable[str],
    lasts: timedelta | None,
    who: str,
) -> Made:
    """Make a token for ``owner`` in their workspace. ``lasts``: None until it is revoked.

    Where a token asks for it, the new one has no more scopes than that one and ends no later.
    Raises ``Unusable`` for a name, scope or time that cannot be; ``Forbidden`` for a scope that
    the owner has not.
    """
    wanted = _scopes(scopes)
    for scope in wanted:
        owner.require(scope)
    if lasts is not None and not timedelta(0) < lasts <= LONGEST:
        message = _("A token lasts 1 to {n} days, or until it is revoked.")
        raise spelled.Unusable(
            message.format(n=LONGEST.days), code="lifetime-unusable", field="expires_at"
        )
    _require_no_longer(conn, owner, lasts)
    secret = opaque.mint(KIND, owner.workspace)
    row = conn.execute(
        insert(api_tokens)
        .values(
            workspace_id=owner.workspace_id,
            user_id=owner.id,
            name=spelled.name(name),
            token_sha256=opaque.digest(secret),
            hint=secret[-_HINT:],
            scopes=[scope.value for scope in wanted],
            created_by=who,
            expires_at=None if lasts is None else func.clock_timestamp() + lasts,
        )
        .returning(api_tokens.c.id, api_tokens.c.name, api_tokens.c.expires_at)
    ).one()
    journal.tell(
        conn,
        Event.TOKEN_MADE,
        who=who,
        subject=row.name,
        user_id=owner.id,
        workspace_id=owner.workspace_id,
        token=row.id,
        scopes=[scope.value for scope in wanted],
    )
    return Made(row.id, secret, row.expires_at)


def find(conn: Connection, secret: str) -> Person | None:
    """Whom a program acts for, with what is left of its scopes; None for a token that is none.

    The transaction sees every workspace: the token is what tells which one it is.
    """
    now = func.clock_timestamp()
    row = conn.execute(
        select(
            *COLUMNS,
            api_tokens.c.id.label("token_id"),
            api_tokens.c.scopes,
            or_(
                api_tokens.c.last_used_at.is_(None), api_tokens.c.last_used_at < now - _COARSE
            ).label("is_stale"),
        )
        .select_from(_joined())
        .where(
            api_tokens.c.token_sha256 == opaque.digest(secret),
            api_tokens.c.revoked_at.is_(None),
            or_(api_tokens.c.expires_at.is_(None), api_tokens.c.expires_at > now),
            users.c.disabled_at.is_(None),
        )
    ).first()
    if row is None:
        return None
    if row.is_stale:
        conn.execute(
            update(api_tokens).where(api_tokens.c.id == row.token_id).values(last_used_at=now)
        )
    held = PERMISSIONS[Role(row.role)]
    return of_row(row, held.intersection(row.scopes), token_id=row.token_id)


def listing(
    conn: Connection, *, workspace_id: int, user_id: int | None = None
) -> tuple[Token, ...]:
    """The tokens of a workspace, or of one person in it, the newest first."""
    mine = [] if user_id is None else [api_tokens.c.user_id == user_id]
    rows = conn.execute(_tokens().where(api_tokens.c.workspace_id == workspace_id, *mine))
    return tuple(map(_token, rows))


def revoke(conn: Connection, token_id: int, *, workspace_id: int, who: str,
           user_id: int | None = None) -> Token:  # fmt: skip
    """End a token of the workspace, or of ``user_id`` alone; once ended it stays so.

    Raises ``NotFound``.
    """
    mine = [] if user_id is None else [api_tokens.c.user_id == user_id]
    which = and_(api_tokens.c.id == token_id, api_tokens.c.workspace_id == workspace_id, *mine)
    revoked = conn.execute(
        update(api_tokens)
        .where(which, api_tokens.c.revoked_at.is_(None))
        .values(revoked_at=func.clock_timestamp(), revoked_by=who)
    )
    row = conn.execute(_tokens().where(which)).first()
    if row is None:
        raise NotFound(_("There is no token {id} here.").format(id=token_id))
    if revoked.rowcount:
        journal.tell(
            conn,
            Event.TOKEN_REVOKED,
            who=who,
            subject=row.name,
            user_id=row.user_id,
            workspace_id=workspace_id,
            token=token_id,
        )
    return _token(row)


def _require_no_longer(conn: Connection, owner: Person, lasts: timedelta | None) -> None:
    """A token that ends must not be able to go on as another."""
    if owner.token_id is None:
        return
    ends_at, until = conn.execute(
        select(api_tokens.c.expires_at, func.clock_timestamp() + (lasts or LONGEST)).where(
            api_tokens.c.id == owner.token_id
        )
    ).one()
    if ends_at is not None and (lasts is None or until > ends_at):
        message = _("The token that asks ends on {when}, and makes none that works for longer.")
        raise spelled.Unusable(
            message.format(when=f"{ends_at:%Y-%m-%d at %H:%M %Z}"),
            code="lifetime-unusable",
            field="expires_at",
        )


def _scopes(written: Iterable[str]) -> tuple[Permission, ...]:
    known = {*Permission}
    wanted = []
    for scope in written:
        if scope not in known:
            fix = did_you_mean(scope, known) or _("docs/people.md lists them.")
            message = _("There is no scope {given}. {fix}")
            raise spelled.Unusable(
                message.format(given=quoted(scope), fix=fix), code="scope-unknown", field="scopes"
            )
        wanted.append(Permission(scope))
    if not wanted:
        message = _("A token needs at least one scope, such as posts.read.")
        raise spelled.Unusable(message, code="scopes-missing", field="scopes")
    return tuple(sorted({*wanted}))


def _joined() -> Any:  # noqa: ANN401 - SQLAlchemy's own Join, which is not generic
    return (
        api_tokens.join(users, users.c.id == api_tokens.c.user_id)
        .join(
            memberships,
            and_(
                memberships.c.user_id == api_tokens.c.user_id,
                memberships.c.workspace_id == api_tokens.c.workspace_id,
            ),
        )
        .join(workspaces, workspaces.c.id == api_tokens.c.workspace_id)
    )


def _tokens() -> Select[Any]:
    """Tokens with their owners; one whose owner has left the workspace is listed all the same."""
    here = and_(
        memberships.c.user_id == api_tokens.c.user_id,
        memberships.c.workspace_id == api_tokens.c.workspace_id,
    )
    return (
        select(
            *api_tokens.c,
            users.c.name.label("owner"),
            users.c.email.label("owner_email"),
            users.c.disabled_at,
            memberships.c.role,
            (api_tokens.c.expires_at <= func.clock_timestamp()).label("is_expired"),
        )
        .select_from(
            api_tokens.join(users, users.c.id == api_tokens.c.user_id).outerjoin(memberships, here)
        )
        .order_by(api_tokens.c.id.desc())
    )


def _token(row: Row[Any]) -> Token:
    held: frozenset[str] = frozenset()
    if row.role is not None and row.disabled_at is None:
        held = frozenset(PERMISSIONS[Role(row.role)])
    effective = tuple(scope for scope in row.scopes if scope in held)
    return Token(
        id=row.id,
        name=row.name,
        hint=row.hint,
        owner=row.owner,
        owner_email=row.owner_email,
        user_id=row.user_id,
        scopes=tuple(row.scopes),
        effective=effective,
        created_at=row.created_at,
        created_by=row.created_by,
        expires_at=row.expires_at,
        last_used_at=row.last_used_at,
        revoked_at=row.revoked_at,
        revoked_by=row.revoked_by,
        is_over=row.revoked_at is not None or bool(row.is_expired) or not effective,
    )
