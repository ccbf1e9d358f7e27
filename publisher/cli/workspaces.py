"""``publisher workspaces``: teams that see nothing of each other, and the journal of each."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from publisher.cli import moments, screen, session
from publisher.cli.screen import Column
from publisher.editorial.people import journal, workspaces
from publisher.editorial.people.journal import PeopleEvent
from publisher.editorial.people.workspaces import Workspace
from publisher.words import _

app = typer.Typer(no_args_is_help=True)

Slug = Annotated[str, typer.Argument(metavar="WORKSPACE", help=_("Its slug."), show_default=False)]
Json = Annotated[bool, typer.Option("--json", help=_("One JSON object per line."))]


@app.command(help=_("Open a workspace."))
def add(
    slug: Annotated[
        str, typer.Argument(help=_("Its name in addresses, such as news-desk."), show_default=False)
    ],
    *,
    name: Annotated[str, typer.Option(help=_("What people read."), show_default=False)],
    zone: Annotated[
        str, typer.Option(help=_("Its times and rules are in it."), show_default=False)
    ],
) -> None:
    """Exit 2 when it cannot be called so, 4 when the slug is taken."""
    with session.transaction(everywhere=True) as conn:
        added = workspaces.add(conn, slug=slug, name=name, zone=zone, who=session.who())
    screen.say(_("Added workspace {slug}: {name}.").format(slug=added.slug, name=added.name))
    screen.say_next(
        f"publisher users add EMAIL --name N --role admin --workspace {added.slug}",
        f"PUBLISHER_WORKSPACE={added.slug} publisher channels add PLATFORM",
    )


@app.command(name="list", help=_("List workspaces with their zones and rules."))
def list_workspaces(*, json: Json = False) -> None:
    """Exit 0 whatever is listed."""
    with session.transaction(everywhere=True) as conn:
        listed = workspaces.listing(conn)
    if json:
        screen.emit(map(_as_json, listed))
        return
    screen.show_table(
        [
            Column(_("WORKSPACE"), whole=True),
            Column(_("NAME")),
            Column(_("ZONE")),
            Column(_("APPROVED BY")),
            Column(_("AN EDIT AFTERWARDS")),
            Column(_("PEOPLE"), right=True),
        ],
        ([at.slug, at.name, at.zone, _approval(at), _edits(at), str(at.people)] for at in listed),
    )
    screen.say_next("publisher users list", "publisher workspaces set WORKSPACE")


@app.command(name="set", help=_("Change a workspace's name, zone or rules."))
def set_workspace(
    workspace: Slug,
    *,
    name: Annotated[str | None, typer.Option(help=_("What people read."))] = None,
    zone: Annotated[str | None, typer.Option(help=_("Its times and rules are in it."))] = None,
    approval_by_other: Annotated[
        bool | None,
        typer.Option(help=_("Whether another person than its author must approve a version.")),
    ] = None,
    edits: Annotated[
        str | None,
        typer.Option(
            metavar="hold|keep",
            help=_("An edit after approval: hold the post for it, or keep what was approved."),
        ),
    ] = None,
) -> None:
    """Exit 2 for what cannot be."""
    with session.transaction(everywhere=True) as conn:
        changed = workspaces.change(
            conn,
            workspaces.find(conn, workspace),
            name=name,
            zone=zone,
            approval_by_other=approval_by_other,
            edit_rule=edits,
            who=session.who(),
        )
    screen.say(
        _("{slug}: {name}, {zone}; approved by {approval}; an edit afterwards {edits}.").format(
            slug=changed.slug,
            name=changed.name,
            zone=changed.zone,
            approval=_approval(changed),
            edits=_edits(changed),
        )
    )
    screen.say_next(f"publisher workspaces journal {changed.slug}")


@app.command(name="journal", help=_("Say who did what in a workspace, and when."))
def show_journal(
    workspace: Annotated[
        str, typer.Argument(metavar="WORKSPACE", help=_("Its slug."), show_default=False)
    ] = "",
    *,
    limit: Annotated[int, typer.Option(min=1, max=1000, help=_("The newest so many."))] = 50,
    json: Json = False,
) -> None:
    """Exit 0 whatever is shown."""
    with session.transaction(everywhere=True) as conn:
        at = workspaces.named(conn, workspace or session.settings().workspace)
        lines = journal.of_workspace(conn, at.id, limit=limit)
    if json:
        screen.emit(map(_event_as_json, lines))
        return
    now = datetime.now(UTC)
    screen.show_table(
        [Column(_("WHEN")), Column(_("WHO")), Column(_("WHAT")), Column(_("WHOM OR WHAT"))],
        ([moments.short(line.at, now), line.who, line.event, line.subject] for line in lines),
    )
    screen.say_next(f"publisher users list --workspace {at.slug}")


def _approval(at: Workspace) -> str:
    return _("another person") if at.approval_by_other else _("anybody who may")


def _edits(at: Workspace) -> str:
    return _("holds it") if at.edit_rule == "hold" else _("keeps what was approved")


def _as_json(at: Workspace) -> dict[str, object]:
    return {
        "id": at.id,
        "slug": at.slug,
        "name": at.name,
        "zone": at.zone,
        "approval_by_other": at.approval_by_other,
        "edit_rule": at.edit_rule,
        "people": at.people,
        "created_at": moments.iso(at.created_at),
    }


def _event_as_json(line: PeopleEvent) -> dict[str, object]:
    return {
        "id": line.id,
        "at": moments.iso(line.at),
        "who": line.who,
        "event": line.event,
        "subject": line.subject,
        "user_id": line.user_id,
        "workspace_id": line.workspace_id,
        "detail": dict(line.detail),
    }
