"""Workspaces: teams that see nothing of each other, each with its zone and its rules."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal

from sqlalchemy import Connection, Row, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from publisher.editorial.people import journal, spelled
from publisher.editorial.people.journal import Event
from publisher.editorial.people.schema import memberships, workspaces
from publisher.editorial.spelling import did_you_mean, quoted
from publisher.editorial.walls import WorkspaceUnnamed
from publisher.engine.errors import Conflict, NotFound
from publisher.words import _

EditRule = Literal["hold", "keep"]
"""What becomes of an approved post that is edited: it waits for approval, or the approved stays."""
EDIT_RULES: Final[tuple[EditRule, ...]] = ("hold", "keep")


@dataclass(frozen=True, slots=True)
class Workspace:
    """A team's room."""

    id: int
    slug: str
    name: str
    zone: str
    """Name of the IANA zone that its rules and times are in."""
    approval_by_other: bool
    """Whether a version is approved only by somebody who did not write it."""
    edit_rule: EditRule
    created_at: datetime
    people: int = 0


def add(conn: Connection, *, slug: str, name: str, zone: str, who: str) -> Workspace:
    """Open a workspace. The transaction sees every workspace.

    Raises ``Unusable``; ``Conflict`` where the slug is taken.
    """
    values = {
        "slug": spelled.slug(slug),
        "name": spelled.name(name),
        "zone": spelled.zone(zone),
    }
    try:
        with conn.begin_nested():
            added = insert(workspaces).values(**values).returning(*workspaces.c)
            row = conn.execute(added).one()
    except IntegrityError as error:
        message = _('There is a workspace "{slug}" already. Nothing was added. Choose another.')
        raise Conflict(message.format(slug=values["slug"]), code="slug-taken") from error
    journal.tell(
        conn,
        Event.WORKSPACE_ADDED,
        who=who,
        subject=row.slug,
        workspace_id=row.id,
        name=row.name,
        zone=row.zone,
    )
    return _workspace(row)


def listing(conn: Connection) -> tuple[Workspace, ...]:
    """Every workspace that the transaction sees, by slug, with how many people are in it."""
    people = (
        select(func.count())
        .select_from(memberships)
        .where(memberships.c.workspace_id == workspaces.c.id)
        .scalar_subquery()
    )
    rows = conn.execute(select(*workspaces.c, people.label("people")).order_by(workspaces.c.slug))
    return tuple(_workspace(row, row.people) for row in rows)


def find(conn: Connection, slug: str) -> Workspace:
    """The workspace with that slug. Raises ``NotFound``."""
    wanted = slug.strip()
    if spelled.is_slug(wanted):
        row = conn.execute(select(*workspaces.c).where(workspaces.c.slug == wanted)).first()
        if row is not None:
            return _workspace(row)
    known = list(conn.scalars(select(workspaces.c.slug).order_by(workspaces.c.slug)))
    fix = did_you_mean(slug, known) or _("There is: {names}.").format(names=", ".join(known))
    message = _("There is no workspace {given}. {fix}")
    raise NotFound(message.format(given=quoted(slug), fix=fix))


def named(conn: Connection, slug: str) -> Workspace:
    """The workspace with that slug; where none is given, the only one there is.

    Raises ``NotFound``, ``WorkspaceUnnamed``.
    """
    if slug:
        return find(conn, slug)
    rows = conn.execute(select(*workspaces.c).order_by(workspaces.c.slug)).all()
    if len(rows) == 1:
        return _workspace(rows[0])
    names = ", ".join(row.slug for row in rows)
    message = _("Nobody said which workspace. Give --workspace, one of: {names}.")
    raise WorkspaceUnnamed(message.format(names=names))


def change(
    conn: Connection,
    workspace: Workspace,
    *,
    name: str | None = None,
    zone: str | None = None,
    approval_by_other: bool | None = None,
    edit_rule: str | None = None,
    who: str,
) -> Workspace:
    """Change what is given; what stays the same is not told to the journal. Raises ``Unusable``."""
    wanted: dict[str, Any] = {
        "name": None if name is None else spelled.name(name),
        "zone": None if zone is None else spelled.zone(zone),
        "approval_by_other": approval_by_other,
        "edit_rule": None if edit_rule is None else _edit_rule(edit_rule),
    }
    current = select(*workspaces.c).where(workspaces.c.id == workspace.id).with_for_update()
    before = conn.execute(current).mappings().one()
    changed = {
        field: value
        for field, value in wanted.items()
        if value is not None and value != before[field]
    }
    if changed:
        conn.execute(update(workspaces).where(workspaces.c.id == workspace.id).values(**changed))
        journal.tell(
            conn,
            Event.WORKSPACE_CHANGED,
            who=who,
            subject=workspace.slug,
            workspace_id=workspace.id,
            before={field: before[field] for field in changed},
            after=changed,
        )
    return _workspace(conn.execute(current).one())


def _edit_rule(written: str) -> str:
    if written not in EDIT_RULES:
        message = _("{given} is no rule for edits. Give hold or keep.")
        raise spelled.Unusable(
            message.format(given=quoted(written)), code="edit-rule-unknown", field="edit_rule"
        )
    return written


def _workspace(row: Row[*tuple[Any, ...]], people: int = 0) -> Workspace:
    return Workspace(
        id=row.id,
        slug=row.slug,
        name=row.name,
        zone=row.zone,
        approval_by_other=row.approval_by_other,
        edit_rule=row.edit_rule,
        created_at=row.created_at,
        people=people,
    )
