"""``publisher tokens``: what programs act by, in one workspace, within the scopes given."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from publisher.cli import moments, screen, session
from publisher.cli.screen import Column
from publisher.cli.users import Json, Workspace
from publisher.editorial.people import person, tokens, users, workspaces
from publisher.editorial.people.tokens import Token
from publisher.words import _

app = typer.Typer(no_args_is_help=True)


@app.command(help=_("Make an API token for somebody; it is shown once."))
def add(
    name: Annotated[str, typer.Argument(help=_("What uses it."), show_default=False)],
    *,
    user: Annotated[
        str, typer.Option(metavar="EMAIL", help=_("For whom it acts."), show_default=False)
    ],
    scope: Annotated[
        list[str], typer.Option(help=_("What it may do; repeat it."), show_default=False)
    ],
    days: Annotated[
        int | None,
        typer.Option(min=1, help=_("How long it works; else until revoked."), show_default=False),
    ] = None,
    workspace: Workspace = "",
    json: Json = False,
) -> None:
    """Exit 2 for what cannot be, 4 for a scope that its owner has not."""
    with session.transaction(everywhere=True) as conn:
        at = workspaces.named(conn, workspace or session.settings().workspace)
        owner = person.in_workspace(conn, users.find(conn, user).id, at.slug)
        made = tokens.make(
            conn,
            owner,
            name=name,
            scopes=scope,
            lasts=None if days is None else timedelta(days=days),
            who=session.who(),
        )
    if json:
        screen.emit(
            [{"id": made.id, "token": made.secret, "expires_at": moments.iso(made.expires_at)}]
        )
        return
    screen.say(
        _("Token {id} acts for {name} in {slug}. It is shown now and never again:").format(
            id=made.id, name=owner.name, slug=at.slug
        ),
        f"  {made.secret}",
    )
    screen.say_next(f"publisher tokens revoke {made.id} --workspace {at.slug}")


@app.command(name="list", help=_("List the API tokens of a workspace, and what works of each."))
def list_tokens(*, workspace: Workspace = "", json: Json = False) -> None:
    """Exit 0 whatever is listed."""
    with session.transaction(everywhere=True) as conn:
        at = workspaces.named(conn, workspace or session.settings().workspace)
        listed = tokens.listing(conn, workspace_id=at.id)
    if json:
        screen.emit(map(_as_json, listed))
        return
    if not listed:
        screen.say(_("{slug} has no API tokens.").format(slug=at.slug))
        screen.say_next("publisher tokens add NAME --user EMAIL --scope posts.read")
        return
    now = datetime.now(UTC)
    screen.show_table(
        [
            Column(_("ID"), whole=True),
            Column(_("NAME")),
            Column(_("ENDS IN"), whole=True),
            Column(_("FOR")),
            Column(_("MAY")),
            Column(_("STATE")),
            Column(_("LAST USED")),
        ],
        (
            [
                str(one.id),
                one.name,
                f"…{one.hint}",
                one.owner_email,
                ", ".join(one.effective),
                _state(one, now),
                moments.short(one.last_used_at, now) if one.last_used_at else "",
            ]
            for one in listed
        ),
    )
    screen.say_next(f"publisher tokens revoke {listed[0].id} --workspace {at.slug}")


@app.command(help=_("End an API token. What it was used for stops at once."))
def revoke(
    token: Annotated[int, typer.Argument(metavar="ID", help=_("As the list has it."))],
    *,
    workspace: Workspace = "",
) -> None:
    """Exit 0, also when it was revoked already; 2 when there is none."""
    with session.transaction(everywhere=True) as conn:
        at = workspaces.named(conn, workspace or session.settings().workspace)
        revoked = tokens.revoke(conn, token, workspace_id=at.id, who=session.who())
    screen.say(_("Token {id} ({name}) works no more.").format(id=revoked.id, name=revoked.name))
    screen.say_next(f"publisher tokens list --workspace {at.slug}")


def _state(one: Token, now: datetime) -> str:
    if one.revoked_at is not None:
        return _("revoked by {who}").format(who=one.revoked_by)
    if one.expires_at is not None and one.expires_at <= now:
        return _("over")
    if one.is_over:
        return _("owner may do none of it")
    if one.expires_at is not None:
        return _("until {when}").format(when=moments.short(one.expires_at, now))
    return _("works")


def _as_json(one: Token) -> dict[str, object]:
    return {
        "id": one.id,
        "name": one.name,
        "hint": one.hint,
        "owner": one.owner_email,
        "scopes": list(one.scopes),
        "effective": list(one.effective),
        "created_at": moments.iso(one.created_at),
        "created_by": one.created_by,
        "expires_at": moments.iso(one.expires_at),
        "last_used_at": moments.iso(one.last_used_at),
        "revoked_at": moments.iso(one.revoked_at),
        "revoked_by": one.revoked_by,
        "over": one.is_over,
    }
