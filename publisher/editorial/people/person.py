"""Who is acting: a person in one workspace, with what their role, or their token, lets them do."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection, Row, Select, select

from publisher.editorial.people import spelled
from publisher.editorial.people.roles import MEANING, PERMISSIONS, Permission, Role
from publisher.editorial.people.schema import memberships, users, workspaces
from publisher.engine.errors import NotFound, PublisherError
from publisher.words import _


class Forbidden(PublisherError):
    """The role, or the token's scopes, do not include that. 403."""

    code = "not-allowed"
    exit_code = 4

    def __init__(self, permission: Permission, role: Role, *, by_token: bool) -> None:
        needed = _(MEANING[permission])
        if by_token:
            message = _(
                'This token may not do that: it needs the scope {permission} ("{needed}"), and its'
                " owner a role that has it. Nothing was done."
            )
        else:
            message = _(
                'As {role} you may not do that: it needs {permission} ("{needed}"). Nothing was'
                " done. Ask an admin of this workspace."
            )
        super().__init__(message.format(role=role, permission=permission, needed=needed))
        self.permission = permission


@dataclass(frozen=True, slots=True)
class Person:
    """A person as they act in one workspace; as text, the name that the journal keeps."""

    id: int
    name: str
    email: str = field(repr=False)
    role: Role
    workspace_id: int
    workspace: str
    """Its slug."""
    permissions: frozenset[Permission] = field(repr=False)
    zone: str | None = None
    calendar: str | None = None
    locale: str | None = None
    token_id: int | None = None
    """Set where a program acts, by a token of this person's."""

    def __str__(self) -> str:
        return self.name

    def may(self, permission: Permission) -> bool:
        """Whether the role, and the token where one acts, allow it."""
        return permission in self.permissions

    def require(self, permission: Permission) -> None:
        """Raise ``Forbidden`` where they do not."""
        if not self.may(permission):
            raise Forbidden(permission, self.role, by_token=self.token_id is not None)


COLUMNS: Final = (
    users.c.id,
    users.c.name,
    users.c.email,
    users.c.zone,
    users.c.calendar,
    users.c.locale,
    memberships.c.role,
    memberships.c.workspace_id,
    workspaces.c.slug,
)
"""What ``of_row`` needs of users, memberships and workspaces joined."""


@dataclass(frozen=True, slots=True)
class Workplace:
    """A workspace that somebody belongs to."""

    id: int
    slug: str
    name: str
    zone: str
    role: Role
    since: datetime


def in_workspace(conn: Connection, user_id: int, slug: str) -> Person:
    """The person in the workspace with that slug.

    Raises ``NotFound`` where there is none, and just so where they do not belong to it.
    """
    row = None
    if spelled.is_slug(slug):
        here = _people().where(users.c.id == user_id, workspaces.c.slug == slug)
        row = conn.execute(here).first()
    if row is None:
        raise NotFound(_("There is no such workspace, or you are not in it."))
    return of_row(row, PERMISSIONS[Role(row.role)])


def workplaces(conn: Connection, user_id: int) -> tuple[Workplace, ...]:
    """Every workspace they belong to, by name. The transaction sees every workspace."""
    rows = conn.execute(
        select(
            workspaces.c.id,
            workspaces.c.slug,
            workspaces.c.name,
            workspaces.c.zone,
            memberships.c.role,
            memberships.c.created_at,
        )
        .join(memberships, memberships.c.workspace_id == workspaces.c.id)
        .join(users, users.c.id == memberships.c.user_id)
        .where(users.c.id == user_id, users.c.disabled_at.is_(None))
        .order_by(workspaces.c.name, workspaces.c.id)
    )
    return tuple(
        Workplace(row.id, row.slug, row.name, row.zone, Role(row.role), row.created_at)
        for row in rows
    )


def of_row(
    row: Row[*tuple[Any, ...]], permissions: frozenset[Permission], *, token_id: int | None = None
) -> Person:
    """The person that a row of ``COLUMNS`` tells of."""
    return Person(
        id=row.id,
        name=row.name,
        email=row.email,
        role=Role(row.role),
        workspace_id=row.workspace_id,
        workspace=row.slug,
        permissions=permissions,
        zone=row.zone,
        calendar=row.calendar,
        locale=row.locale,
        token_id=token_id,
    )


def _people() -> Select[Any]:
    return (
        select(*COLUMNS)
        .join(memberships, memberships.c.user_id == users.c.id)
        .join(workspaces, workspaces.c.id == memberships.c.workspace_id)
        .where(users.c.disabled_at.is_(None))
    )
