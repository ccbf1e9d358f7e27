"""How far an admin's hand reaches: to accounts that have no say where the admin has none.

An account is the deployment's, and whoever may hand out a new password for it is let into every
workspace it is in. Bringing somebody in must not be a way to their other rooms.
"""

from __future__ import annotations

from sqlalchemy import Connection, select

from publisher.editorial.people import users as people
from publisher.editorial.people.person import Person
from publisher.editorial.people.roles import PERMISSIONS, Permission, Role, allows
from publisher.editorial.people.schema import users
from publisher.editorial.people.users import User
from publisher.engine.errors import Conflict
from publisher.words import _


class Elsewhere(Conflict):
    """The account belongs to workspaces, too, in which the actor has no say."""

    def __init__(self, email: str) -> None:
        message = _(
            "{email} is in other workspaces too, so this concerns more than yours. Nothing was"
            " changed. Take them out of your workspace, or ask whoever runs this deployment."
        )
        super().__init__(message.format(email=email), code="account-elsewhere")


def require_all_of(actor: Person, role: Role) -> None:
    """Raise ``Forbidden`` where ``actor`` may not do everything that ``role`` may.

    Whoever is let into a role, by an invitation or by a link for a new password, has all of it: a
    token that has less would be given it so.
    """
    for permission in sorted(PERMISSIONS[role]):
        actor.require(permission)


def require(conn: Connection, actor: Person, user_id: int) -> User:
    """The account, where ``actor`` may do what concerns it everywhere.

    That is: links, disabling, sessions, the second factor; the actor must manage people in each of
    its workspaces. The transaction sees every workspace, and until it ends the account joins no
    other one.

    Raises ``NotFound`` for somebody who is not in the actor's workspace, ``Elsewhere``.
    """
    conn.execute(select(users.c.id).where(users.c.id == user_id).with_for_update())
    user = people.in_workspace(conn, user_id, actor.workspace_id)
    theirs = people.get(conn, actor.id).roles
    for slug in user.roles:
        role = theirs.get(slug)
        if role is None or not allows(role, Permission.USERS_MANAGE):
            raise Elsewhere(user.email)
    return user
