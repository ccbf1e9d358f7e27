"""``publisher users``: who may come in, as what, and from where they are signed in."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Final

import typer

from publisher.cli import moments, screen, session
from publisher.cli.screen import Column
from publisher.editorial.people import links, sessions, spelled, users, workspaces
from publisher.editorial.people.links import Link, Purpose
from publisher.editorial.people.roles import Role
from publisher.editorial.people.sessions import End, Session
from publisher.editorial.people.users import User
from publisher.words import _, many

app = typer.Typer(no_args_is_help=True)

PAGES: Final = "http://127.0.0.1:8800"
"""Where the pages are when ``PUBLISHER_PUBLIC_URL`` does not say."""

Email = Annotated[str, typer.Argument(metavar="EMAIL", show_default=False)]
Workspace = Annotated[
    str,
    typer.Option(
        metavar="SLUG", help=_("Its slug; needed where there are several."), show_default=False
    ),
]
LastAdmin = Annotated[
    bool, typer.Option("--last-admin", help=_("Even if the workspace is left without an admin."))
]
Json = Annotated[bool, typer.Option("--json", help=_("One JSON object per line."))]


@app.command(help=_("Bring somebody into a workspace; prints a one-time link for a new account."))
def add(
    email: Email,
    *,
    name: Annotated[str, typer.Option(help=_("What others read."), show_default=False)],
    role: Annotated[
        str, typer.Option(metavar="|".join(Role), help=_("See docs/people.md."), show_default=False)
    ],
    workspace: Workspace = "",
    json: Json = False,
) -> None:
    """Exit 2 for what cannot be, 4 for somebody who is in it already."""
    with session.transaction(everywhere=True) as conn:
        at = workspaces.named(conn, workspace or session.settings().workspace)
        added = users.add(
            conn, at, email=email, name=name, role=spelled.role(role), who=session.who()
        )
    if json:
        screen.emit([{**_as_json(added.user), "link": _link_as_json(added.link)}])
        return
    screen.say(
        _("Added {name} ({email}) to {slug} as {role}.").format(
            name=added.user.name,
            email=added.user.email,
            slug=at.slug,
            role=added.user.roles[at.slug],
        )
    )
    if added.user.disabled_at is not None:
        screen.say(_("Their account is disabled, so they cannot sign in yet."))
        screen.say_next(f"publisher users enable {added.user.email}")
        return
    if added.link is None:
        screen.say(_("They sign in as they do elsewhere; no link is needed."))
    else:
        _say_link(added.link)
    screen.say_next(f"publisher users list --workspace {at.slug}")


@app.command(name="list", help=_("List people, their roles and when they were last seen."))
def list_users(*, workspace: Workspace = "", json: Json = False) -> None:
    """Exit 0 whatever is listed."""
    with session.transaction(everywhere=True) as conn:
        slug = workspace or session.settings().workspace
        at = workspaces.find(conn, slug) if slug else None
        listed = users.listing(conn, workspace_id=None if at is None else at.id)
    if json:
        screen.emit(map(_as_json, listed))
        return
    if not listed:
        screen.say(_("There is nobody yet."))
        screen.say_next("publisher users add EMAIL --name N --role admin")
        return
    now = datetime.now(UTC)
    screen.show_table(
        [
            Column(_("EMAIL"), whole=True),
            Column(_("NAME")),
            Column(_("ROLES")),
            Column(_("STATE")),
            Column(_("LAST SEEN")),
        ],
        (
            [
                user.email,
                user.name,
                ", ".join(f"{slug}: {role}" for slug, role in user.roles.items()),
                _state(user),
                moments.short(user.seen_at, now) if user.seen_at else "",
            ]
            for user in listed
        ),
    )
    screen.say_next("publisher users role EMAIL ROLE", "publisher users link EMAIL")


@app.command(help=_("Give somebody another role in a workspace; none takes them out of it."))
def role(
    email: Email,
    role: Annotated[str, typer.Argument(metavar=f"{'|'.join(Role)}|none", show_default=False)],
    *,
    workspace: Workspace = "",
    last_admin: LastAdmin = False,
) -> None:
    """Exit 4 where the workspace would be left without an admin."""
    with session.transaction(everywhere=True) as conn:
        at = workspaces.named(conn, workspace or session.settings().workspace)
        user = users.find(conn, email)
        if role.strip().lower() == "none":
            users.take_role(conn, user, at, who=session.who(), last_admin_may_go=last_admin)
            said = _("{email} is not in {slug} any more, and their tokens do nothing there.")
            given = ""
        else:
            given = spelled.role(role)
            users.give_role(conn, user, at, given, who=session.who(), last_admin_may_go=last_admin)
            said = _("{email} is {role} in {slug}.")
    screen.say(said.format(email=user.email, role=given, slug=at.slug))
    screen.say_next(f"publisher users list --workspace {at.slug}")


@app.command(help=_("Print a one-time link by which somebody chooses a password."))
def link(email: Email, *, json: Json = False) -> None:
    """Exit 4 for an account that is disabled. Earlier links of theirs work no more."""
    with session.transaction(everywhere=True) as conn:
        user = users.find(conn, email)
        made = links.make(conn, user.id, who=session.who())
    if json:
        screen.emit([_link_as_json(made)])
        return
    _say_link(made)
    screen.say_next(f"publisher users sessions {user.email}")


@app.command(help=_("Let somebody in no more: sessions, links and tokens of theirs end."))
def disable(email: Email, *, last_admin: LastAdmin = False) -> None:
    """Exit 0, also when they were disabled already; 4 where an admin would be lacking."""
    with session.transaction(everywhere=True) as conn:
        user = users.find(conn, email)
        users.disable(conn, user, who=session.who(), last_admin_may_go=last_admin)
    screen.say(_("{email} is disabled and signed out everywhere.").format(email=user.email))
    screen.say_next(f"publisher users enable {user.email}")


@app.command(help=_("Let somebody in again who was disabled."))
def enable(email: Email) -> None:
    """Exit 0, also when they were let in already."""
    with session.transaction(everywhere=True) as conn:
        user = users.find(conn, email)
        users.enable(conn, user, who=session.who())
    screen.say(_("{email} may sign in again, with the password they had.").format(email=user.email))
    screen.say_next(f"publisher users link {user.email}")


@app.command(name="sessions", help=_("List where somebody is signed in; end one, or all."))
def show_sessions(
    email: Email,
    *,
    end: Annotated[
        int | None, typer.Option(metavar="ID", help=_("End this one."), show_default=False)
    ] = None,
    end_all: Annotated[bool, typer.Option("--end-all", help=_("End every one."))] = False,
    json: Json = False,
) -> None:
    """Exit 2 for a session that is over already."""
    with session.transaction(everywhere=True) as conn:
        user = users.find(conn, email)
        ended = 0
        if end is not None:
            sessions.end(
                conn, user.id, end, End.ENDED_ELSEWHERE, who=session.who(), subject=user.email
            )
            ended = 1
        elif end_all:
            ended = users.end_sessions(conn, user, who=session.who())
        listed = sessions.of_user(conn, user.id)
    if json:
        screen.emit(map(_session_as_json, listed))
        return
    if ended or end_all:
        screen.say(many("{n} session ended.", "{n} sessions ended.", ended))
    if not listed:
        screen.say(_("{email} is signed in nowhere.").format(email=user.email))
        screen.say_next(f"publisher users link {user.email}")
        return
    now = datetime.now(UTC)
    screen.show_table(
        [
            Column(_("ID"), whole=True),
            Column(_("SINCE")),
            Column(_("LAST SEEN")),
            Column(_("BY")),
            Column(_("ADDRESS")),
            Column(_("BROWSER")),
        ],
        (
            [
                str(one.id),
                moments.short(one.created_at, now),
                moments.short(one.seen_at, now),
                _("password, awaits the code") if one.awaits_code else one.method,
                one.address or "",
                screen.excerpt(one.agent or "", 60),
            ]
            for one in listed
        ),
    )
    screen.say_next(f"publisher users sessions {user.email} --end {listed[0].id}")


@app.command(
    name="forget-totp", help=_("Turn the second factor of somebody off who lost their phone.")
)
def forget_totp(email: Email) -> None:
    """Exit 0, also when there was none."""
    with session.transaction(everywhere=True) as conn:
        user = users.find(conn, email)
        users.forget_totp(conn, user, who=session.who())
    screen.say(_("{email} signs in by the password alone.").format(email=user.email))
    screen.say_next(f"publisher users link {user.email}")


def _say_link(made: Link) -> None:
    left = moments.relative(made.expires_at, datetime.now(UTC))
    said = (
        _("Hand them this link. It works once and ends {when}:")
        if made.purpose is Purpose.INVITE
        else _("Hand them this link for a new password. It works once and ends {when}:")
    )
    screen.say(said.format(when=left), f"  {_address(made)}")


def _address(made: Link) -> str:
    return made.address(session.settings().public_url or PAGES)


def _state(user: User) -> str:
    if user.disabled_at is not None:
        return _("disabled")
    if not user.has_password and not user.has_identity:
        return _("invited")
    return _("active, second factor on") if user.has_totp else _("active")


def _as_json(user: User) -> dict[str, object]:
    return {
        "id": user.id,
        "email": user.email,
        "name": user.name,
        "roles": dict(user.roles),
        "has_password": user.has_password,
        "has_identity": user.has_identity,
        "has_second_factor": user.has_totp,
        "disabled_at": moments.iso(user.disabled_at),
        "created_at": moments.iso(user.created_at),
        "seen_at": moments.iso(user.seen_at),
    }


def _link_as_json(made: Link | None) -> dict[str, object] | None:
    if made is None:
        return None
    return {
        "url": _address(made),
        "purpose": made.purpose,
        "expires_at": moments.iso(made.expires_at),
    }


def _session_as_json(one: Session) -> dict[str, object]:
    return {
        "id": one.id,
        "method": one.method,
        "awaits_code": one.awaits_code,
        "created_at": moments.iso(one.created_at),
        "seen_at": moments.iso(one.seen_at),
        "expires_at": moments.iso(one.expires_at),
        "address": one.address,
        "agent": one.agent,
    }
