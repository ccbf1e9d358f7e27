"""``/users``: who is in the workspace, as what; invite people, give roles, let nobody in any more.

An account is the deployment's, and may be in several workspaces; of the others nothing is told.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Literal

from fastapi import APIRouter, Request, Response
from pydantic import Field

from publisher.api.calls import Answer, Caller, Here, OptionalKey, RequiredKey, answered, once
from publisher.api.operations import operation
from publisher.api.strict import Body, Instant, Number, Told
from publisher.editorial.people import links, reach, users, workspaces
from publisher.editorial.people.links import Link
from publisher.editorial.people.roles import Permission, Role
from publisher.editorial.people.users import User

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from publisher.editorial.people.workspaces import Workspace

router = APIRouter(tags=["people"])
RoleWord = Literal["viewer", "editor", "approver", "operator", "admin"]


class NewUser(Body):
    """Somebody to bring in."""

    email: Annotated[str, Field(max_length=1_000, examples=["ann@example.org"])]
    name: Annotated[str, Field(max_length=1_000, description="What others read.")]
    role: RoleWord


class RoleGiven(Body):
    """Another role."""

    role: RoleWord


class UserTold(Told):
    """Somebody who is in this workspace."""

    id: int
    email: str
    name: str
    role: RoleWord = Field(description="In this workspace.")
    state: Literal["invited", "active", "disabled"]
    second_factor: bool
    created_at: Instant
    seen_at: Instant | None = Field(description="When they last used the pages.")
    url: str


class UserPage(Told):
    """Everybody, by name."""

    users: list[UserTold]


class LinkTold(Told):
    """A one-time link, by which its person chooses a password."""

    url: str | None = Field(
        description="Hand it to them: shown now and never again. Null where the request is repeated"
        " with its Idempotency-Key: make another link. It is a path where the deployment has no"
        " PUBLISHER_PUBLIC_URL."
    )
    purpose: Literal["invite", "reset"]
    expires_at: Instant


class Invited(Told):
    """Somebody who was brought in."""

    user: UserTold
    link: LinkTold | None = Field(description="Null: they sign in as they do elsewhere.")


class UserGone(Told):
    """Somebody who is not in the workspace any more."""

    id: int
    email: str


@operation(router, "GET", "/users", Permission.USERS_READ, UserPage)
def list_users(here: Here) -> Response:
    """List who is in the workspace."""
    with here.transaction() as conn:
        listed = users.listing(conn, workspace_id=here.person.workspace_id)
    return answered(UserPage(users=[told(here, user) for user in listed]))


@operation(
    router,
    "POST",
    "/users",
    Permission.USERS_MANAGE,
    Invited,
    status=201,
    headers={"Location": "The person's address."},
    example={"email": "ann@example.org", "name": "Ann", "role": "editor"},
)
def invite_user(here: Here, request: Request, body: NewUser, key: RequiredKey) -> Response:
    """Bring somebody into the workspace; a new account gets a one-time link, shown once.

    A token gives only a role of which it may do everything itself.
    """
    role = Role(body.role)
    reach.require_all_of(here.person, role)

    def invite(conn: Connection) -> Answer:
        added = users.add(
            conn, _workspace(conn, here), email=body.email, name=body.name, role=role, who=here.who
        )
        user = told(here, added.user)
        shown, kept = _link(here, added.link)
        return Answer(
            Invited(user=user, link=kept),
            status=201,
            headers={"Location": user.url},
            shown_once=Invited(user=user, link=shown),
        )

    return once(here, request, key, invite, everywhere=True)


@operation(router, "GET", "/users/{user}", Permission.USERS_READ, UserTold)
def show_user(user: Number, here: Here) -> Response:
    """Show one person of the workspace."""
    with here.transaction() as conn:
        found = users.in_workspace(conn, user, here.person.workspace_id)
    return answered(told(here, found))


@operation(
    router,
    "PUT",
    "/users/{user}/role",
    Permission.USERS_MANAGE,
    UserTold,
    example={"role": "approver"},
)
def give_role(
    user: Number, here: Here, request: Request, body: RoleGiven, key: OptionalKey = None
) -> Response:
    """Give somebody another role here. What their tokens may do changes with it at once.

    A token gives only a role of which it may do everything itself.
    """

    def give(conn: Connection) -> Answer:
        found = users.in_workspace(conn, user, here.person.workspace_id)
        role = Role(body.role)
        reach.require_all_of(here.person, role)
        users.give_role(conn, found, _workspace(conn, here), role, who=here.who)
        return Answer(told(here, users.get(conn, user)))

    return once(here, request, key, give)


@operation(router, "POST", "/users/{user}/remove", Permission.USERS_MANAGE, UserGone)
def remove_user(user: Number, here: Here, request: Request, key: OptionalKey = None) -> Response:
    """Take somebody out of the workspace. Their account stays, and what they did stays theirs."""

    def remove(conn: Connection) -> Answer:
        found = users.in_workspace(conn, user, here.person.workspace_id)
        users.take_role(conn, found, _workspace(conn, here), who=here.who)
        return Answer(UserGone(id=found.id, email=found.email))

    return once(here, request, key, remove)


@operation(router, "POST", "/users/{user}/disable", Permission.USERS_MANAGE, UserTold)
def disable_user(user: Number, here: Here, request: Request, key: OptionalKey = None) -> Response:
    """Let somebody in no more: their sessions end, their links and tokens work no longer."""
    return _change(
        here, request, user, key, lambda conn, found: users.disable(conn, found, who=here.who)
    )


@operation(router, "POST", "/users/{user}/enable", Permission.USERS_MANAGE, UserTold)
def enable_user(user: Number, here: Here, request: Request, key: OptionalKey = None) -> Response:
    """Let somebody in again, with the password they had."""
    return _change(
        here, request, user, key, lambda conn, found: users.enable(conn, found, who=here.who)
    )


@operation(router, "POST", "/users/{user}/link", Permission.USERS_MANAGE, LinkTold, status=201)
def make_link(user: Number, here: Here, request: Request, key: RequiredKey) -> Response:
    """Make a one-time link for a new password, shown once; earlier ones work no more.

    A token makes one only for somebody whose role it may do everything of.
    """

    def make(conn: Connection) -> Answer:
        found = reach.require(conn, here.person, user)
        reach.require_all_of(here.person, found.roles[here.person.workspace])
        shown, kept = _link(here, links.make(conn, user, who=here.who))
        if shown is None or kept is None:  # pragma: no cover - one was made
            raise AssertionError
        return Answer(kept, status=201, shown_once=shown)

    return once(here, request, key, make, everywhere=True)


def told(here: Caller, user: User) -> UserTold:
    """Somebody of the caller's workspace, as answers have them."""
    state: Literal["invited", "active", "disabled"] = "active"
    if user.disabled_at is not None:
        state = "disabled"
    elif not user.has_password and not user.has_identity:
        state = "invited"
    return UserTold(
        id=user.id,
        email=user.email,
        name=user.name,
        role=user.roles[here.person.workspace].value,
        state=state,
        second_factor=user.has_totp,
        created_at=user.created_at,
        seen_at=user.seen_at,
        url=f"/api/v1/users/{user.id}",
    )


def _change(
    here: Caller,
    request: Request,
    user: int,
    key: str | None,
    act: Callable[[Connection, User], object],
) -> Response:
    def change(conn: Connection) -> Answer:
        act(conn, reach.require(conn, here.person, user))
        return Answer(told(here, users.get(conn, user)))

    return once(here, request, key, change, everywhere=True)


def _workspace(conn: Connection, here: Caller) -> Workspace:
    return workspaces.find(conn, here.person.workspace)


def _link(here: Caller, link: Link | None) -> tuple[LinkTold | None, LinkTold | None]:
    """As it is shown once, and as it is kept."""
    if link is None:
        return None, None
    address = link.address(here.desk.settings.public_url or "")
    kept = LinkTold(url=None, purpose=link.purpose.value, expires_at=link.expires_at)
    return kept.model_copy(update={"url": address}), kept
