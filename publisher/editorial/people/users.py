"""People: invited, given a role in a workspace, disabled and enabled again.

Nobody is ever deleted, for the journal names them; a role can be taken.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, delete, func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import IntegrityError

from publisher.editorial.people import journal, links, sessions, spelled, totp
from publisher.editorial.people.journal import Event
from publisher.editorial.people.links import Link
from publisher.editorial.people.roles import Role
from publisher.editorial.people.schema import identities, memberships, users, workspaces
from publisher.editorial.people.schema import sessions as sessions_table
from publisher.editorial.people.sessions import End
from publisher.editorial.people.workspaces import Workspace
from publisher.editorial.spelling import did_you_mean, quoted
from publisher.engine.errors import Conflict, NotFound
from publisher.words import _


@dataclass(frozen=True, slots=True)
class User:
    """An account with its roles."""

    id: int
    email: str
    name: str
    roles: Mapping[str, Role]
    """By the workspace's slug."""
    has_password: bool
    has_identity: bool
    """Another party vouches for them when they sign in."""
    has_totp: bool
    disabled_at: datetime | None
    created_at: datetime
    seen_at: datetime | None
    """When a session of theirs was last used."""


@dataclass(frozen=True, slots=True)
class Added:
    """Somebody who was added; ``link`` is for choosing a password, None where they have one."""

    user: User
    link: Link | None


class LastAdmin(Conflict):
    """Without this person the workspace would have no admin."""

    def __init__(self, slug: str) -> None:
        message = _(
            'Workspace "{slug}" would be left without an admin. Nothing was changed. Make somebody'
            " else an admin first."
        )
        super().__init__(message.format(slug=slug), code="last-admin")


def add(
    conn: Connection, workspace: Workspace, *, email: str, name: str, role: Role, who: str
) -> Added:
    """Bring somebody into the workspace; who has no account yet gets one, and a one-time link.

    The transaction sees every workspace, for whoever is in another one has an account already.
    Raises ``Unusable``; ``Conflict`` for somebody who is in the workspace.
    """
    address = spelled.email(email)
    given = spelled.name(name)
    user_id = _id_of(conn, address)
    if user_id is None:
        user_id = _create(conn, address, given, who)
    added = conn.execute(
        insert(memberships)
        .values(workspace_id=workspace.id, user_id=user_id, role=role.value)
        .on_conflict_do_nothing()
        .returning(memberships.c.user_id)
    ).first()
    if added is None:
        message = _(
            '{email} is in workspace "{slug}" already. Nothing was added. For another role:'
            " publisher users role {email} ROLE. For a new link: publisher users link {email}."
        )
        raise Conflict(message.format(email=address, slug=workspace.slug), code="user-exists")
    user = get(conn, user_id)
    _tell_role(conn, user, workspace, role, who)
    # A link that another workspace handed out must not open this one as well.
    links.withdraw(conn, user_id)
    is_new = not user.has_password and not user.has_identity and user.disabled_at is None
    return Added(user, links.make(conn, user_id, who=who) if is_new else None)


def listing(conn: Connection, *, workspace_id: int | None = None) -> tuple[User, ...]:
    """Everybody, or who is in that workspace, by name."""
    return _some(conn, *([] if workspace_id is None else [_is_in(workspace_id)]))


def find(conn: Connection, email: str) -> User:
    """The account with that address, whatever its case. Raises ``NotFound``."""
    address = spelled.email(email)
    user_id = _id_of(conn, address)
    if user_id is not None:
        return get(conn, user_id)
    known = conn.scalars(select(users.c.email)).all()
    fix = did_you_mean(address, known) or _("See: publisher users list.")
    message = _("There is no account {given}. {fix}")
    raise NotFound(message.format(given=quoted(address), fix=fix))


def get(conn: Connection, user_id: int) -> User:
    """The account with that id. Raises ``NotFound``."""
    for user in _some(conn, users.c.id == user_id):
        return user
    raise NotFound(_("There is no such account."))


def in_workspace(conn: Connection, user_id: int, workspace_id: int) -> User:
    """The account with that id, where it is in the workspace. Raises ``NotFound``."""
    for user in _some(conn, users.c.id == user_id, _is_in(workspace_id)):
        return user
    raise NotFound(_("There is no such account."))


def give_role(
    conn: Connection,
    user: User,
    workspace: Workspace,
    role: Role,
    *,
    who: str,
    last_admin_may_go: bool = False,
) -> None:
    """Give a role, in place of the one they had there.

    Raises ``LastAdmin`` unless the last admin may go.
    """
    before = _role(conn, user, workspace)
    if before == role:
        return
    if before is Role.ADMIN and not last_admin_may_go:
        _require_another_admin(conn, workspace.id, user.id)
    conn.execute(
        insert(memberships)
        .values(workspace_id=workspace.id, user_id=user.id, role=role.value)
        .on_conflict_do_update(
            index_elements=[memberships.c.workspace_id, memberships.c.user_id],
            set_={"role": role.value},
        )
    )
    _tell_role(conn, user, workspace, role, who, before=before)


def take_role(
    conn: Connection,
    user: User,
    workspace: Workspace,
    *,
    who: str,
    last_admin_may_go: bool = False,
) -> None:
    """Take somebody out of the workspace; what their tokens may do there ends with it.

    Raises ``NotFound`` where they are not in it; ``LastAdmin`` unless the last admin may go.
    """
    before = _role(conn, user, workspace)
    if before is None:
        message = _('{email} is not in workspace "{slug}".')
        raise NotFound(message.format(email=user.email, slug=workspace.slug))
    if before is Role.ADMIN and not last_admin_may_go:
        _require_another_admin(conn, workspace.id, user.id)
    conn.execute(
        delete(memberships).where(
            memberships.c.workspace_id == workspace.id, memberships.c.user_id == user.id
        )
    )
    journal.tell(
        conn,
        Event.ROLE_TAKEN,
        who=who,
        subject=user.email,
        user_id=user.id,
        workspace_id=workspace.id,
        before=before.value,
    )


def disable(conn: Connection, user: User, *, who: str, last_admin_may_go: bool = False) -> bool:
    """Let somebody in no more: their sessions end, their links and tokens work no longer.

    False where they were disabled already. The transaction sees every workspace. Raises
    ``LastAdmin`` unless the last admin may go.
    """
    if not last_admin_may_go:
        for workspace_id in _administered(conn, user.id):
            _require_another_admin(conn, workspace_id, user.id)
    disabled = conn.execute(
        update(users)
        .where(users.c.id == user.id, users.c.disabled_at.is_(None))
        .values(disabled_at=func.clock_timestamp())
    )
    if disabled.rowcount == 0:
        return False
    journal.tell(conn, Event.USER_DISABLED, who=who, subject=user.email, user_id=user.id)
    sessions.end_all(conn, user.id, End.DISABLED, who=who, subject=user.email)
    links.withdraw(conn, user.id)
    return True


def enable(conn: Connection, user: User, *, who: str) -> bool:
    """Let somebody in again, with the password they had; False where they were let in already."""
    enabled = conn.execute(
        update(users)
        .where(users.c.id == user.id, users.c.disabled_at.is_not(None))
        .values(disabled_at=None)
    )
    if enabled.rowcount == 0:
        return False
    journal.tell(conn, Event.USER_ENABLED, who=who, subject=user.email, user_id=user.id)
    return True


def end_sessions(conn: Connection, user: User, *, who: str) -> int:
    """Sign somebody out everywhere; returns how many sessions ended."""
    return sessions.end_all(conn, user.id, End.ENDED_ELSEWHERE, who=who, subject=user.email)


def forget_totp(conn: Connection, user: User, *, who: str) -> bool:
    """Turn the second factor of somebody off who lost phone and recovery codes."""
    return totp.turn_off(conn, user.id, who=who)


def _create(conn: Connection, email: str, name: str, who: str) -> int:
    try:
        with conn.begin_nested():
            user_id = conn.execute(
                insert(users).values(email=email, name=name).returning(users.c.id)
            ).scalar_one()
    except IntegrityError:
        # Somebody else has just added them.
        found = _id_of(conn, email)
        if found is None:
            raise
        return found
    journal.tell(conn, Event.USER_ADDED, who=who, subject=email, user_id=user_id, name=name)
    return int(user_id)


def _id_of(conn: Connection, email: str) -> int | None:
    found: int | None = conn.scalar(
        select(users.c.id).where(func.lower(users.c.email) == func.lower(email))
    )
    return found


def _role(conn: Connection, user: User, workspace: Workspace) -> Role | None:
    found = conn.scalar(
        select(memberships.c.role)
        .where(memberships.c.workspace_id == workspace.id, memberships.c.user_id == user.id)
        .with_for_update()
    )
    return None if found is None else Role(found)


def _administered(conn: Connection, user_id: int) -> list[int]:
    return list(
        conn.scalars(
            select(memberships.c.workspace_id)
            .where(memberships.c.user_id == user_id, memberships.c.role == Role.ADMIN.value)
            .order_by(memberships.c.workspace_id)
        )
    )


def _require_another_admin(conn: Connection, workspace_id: int, user_id: int) -> None:
    """One at a time: two admins who take each other's role must not both succeed."""
    slug = conn.scalar(
        select(workspaces.c.slug)
        .where(workspaces.c.id == workspace_id)
        .with_for_update(key_share=True)
    )
    another = conn.scalar(
        select(memberships.c.user_id)
        .join(users, users.c.id == memberships.c.user_id)
        .where(
            memberships.c.workspace_id == workspace_id,
            memberships.c.role == Role.ADMIN.value,
            memberships.c.user_id != user_id,
            users.c.disabled_at.is_(None),
        )
        .limit(1)
    )
    if another is None:
        raise LastAdmin(str(slug))


def _tell_role(
    conn: Connection,
    user: User,
    workspace: Workspace,
    role: Role,
    who: str,
    before: Role | None = None,
) -> None:
    journal.tell(
        conn,
        Event.ROLE_GIVEN,
        who=who,
        subject=user.email,
        user_id=user.id,
        workspace_id=workspace.id,
        role=role.value,
        before=None if before is None else before.value,
    )


def _some(conn: Connection, *which: ColumnElement[bool]) -> tuple[User, ...]:
    rows = conn.execute(_users().where(*which).order_by(func.lower(users.c.name), users.c.id))
    return tuple(map(_user, rows))


def _is_in(workspace_id: int) -> ColumnElement[bool]:
    here = select(memberships.c.user_id).where(memberships.c.workspace_id == workspace_id)
    return users.c.id.in_(here)


def _users() -> Select[Any]:
    roles = (
        select(func.jsonb_object_agg(workspaces.c.slug, memberships.c.role))
        .join(workspaces, workspaces.c.id == memberships.c.workspace_id)
        .where(memberships.c.user_id == users.c.id)
        .scalar_subquery()
    )
    seen = (
        select(func.max(sessions_table.c.seen_at))
        .where(sessions_table.c.user_id == users.c.id)
        .scalar_subquery()
    )
    identity = select(identities.c.user_id).where(identities.c.user_id == users.c.id).exists()
    return select(
        users.c.id,
        users.c.email,
        users.c.name,
        users.c.disabled_at,
        users.c.created_at,
        users.c.password_hash.is_not(None).label("has_password"),
        users.c.totp_confirmed_at.is_not(None).label("has_totp"),
        identity.label("has_identity"),
        roles.label("roles"),
        seen.label("seen_at"),
    )


def _user(row: Row[Any]) -> User:
    return User(
        id=row.id,
        email=row.email,
        name=row.name,
        roles={slug: Role(role) for slug, role in sorted((row.roles or {}).items())},
        has_password=row.has_password,
        has_identity=row.has_identity,
        has_totp=row.has_totp,
        disabled_at=row.disabled_at,
        created_at=row.created_at,
        seen_at=row.seen_at,
    )
