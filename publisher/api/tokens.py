"""``/tokens`` and ``/me/tokens``: what programs act by.

A token is made for whoever asks, and never with more than they have themselves. It is in the answer
once: what is kept under the Idempotency-Key is that answer without it.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Request, Response
from pydantic import Field

from publisher.api.calls import Answer, Caller, Here, OptionalKey, RequiredKey, answered, once
from publisher.api.operations import operation
from publisher.api.strict import Body, Instant, LongNumber, Told
from publisher.editorial.people import tokens
from publisher.editorial.people.roles import Permission
from publisher.editorial.people.tokens import LONGEST, Token

if TYPE_CHECKING:
    from sqlalchemy import Connection

router = APIRouter(tags=["tokens"])


class NewToken(Body):
    """A token to make."""

    name: Annotated[str, Field(max_length=1_000, description="What uses it.", examples=["cms"])]
    scopes: Annotated[list[Annotated[str, Field(max_length=100)]], Field(max_length=100)] = Field(
        description="What it may do: names of permissions that you have yourself.",
        examples=[["posts.read", "posts.write"]],
    )
    days: Annotated[int, Field(ge=1, le=LONGEST.days)] | None = Field(
        default=None, description="How long it works; null: until it is revoked."
    )


class TokenTold(Told):
    """A token, without what opens a door."""

    id: int
    name: str
    hint: str = Field(description="Its last characters.")
    owner: str
    scopes: list[str]
    effective: list[str] = Field(description="What of the scopes its owner's role still has.")
    created_at: Instant
    created_by: str
    expires_at: Instant | None
    last_used_at: Instant | None = Field(description="To the minute.")
    revoked_at: Instant | None
    revoked_by: str | None
    over: bool = Field(description="It opens nothing any more.")


class TokenMade(TokenTold):
    """A token that was made just now."""

    token: str | None = Field(
        description="The token itself: shown now and never again. Null where the request is"
        " repeated with its Idempotency-Key: revoke this one, and make another."
    )


class TokenPage(Told):
    """Tokens, the newest first."""

    tokens: list[TokenTold]


@operation(router, "GET", "/me/tokens", Permission.TOKENS_OWN, TokenPage)
def list_my_tokens(here: Here) -> Response:
    """List your tokens of this workspace, those that are over, too."""
    return _listed(here, here.person.id)


@operation(
    router,
    "POST",
    "/me/tokens",
    Permission.TOKENS_OWN,
    TokenMade,
    status=201,
    example={"name": "cms", "scopes": ["posts.read"], "days": 90},
)
def make_token(here: Here, request: Request, body: NewToken, key: RequiredKey) -> Response:
    """Make a token that acts for you in this workspace; it is shown once.

    It has no more scopes than the token that asks, and ends no later.
    """

    def make(conn: Connection) -> Answer:
        made = tokens.make(
            conn,
            here.person,
            name=body.name,
            scopes=body.scopes,
            lasts=None if body.days is None else timedelta(days=body.days),
            who=here.who,
        )
        told = _parts(next(one for one in _mine(conn, here) if one.id == made.id))
        whole = TokenMade(**told, token=made.secret)
        return Answer(TokenMade(**told, token=None), status=201, shown_once=whole)

    return once(here, request, key, make)


@operation(router, "POST", "/me/tokens/{token}/revoke", Permission.TOKENS_OWN, TokenTold)
def revoke_my_token(
    token: LongNumber, here: Here, request: Request, key: OptionalKey = None
) -> Response:
    """End a token of yours. It opens nothing from now on."""
    return _revoked(here, request, token, key, here.person.id)


@operation(router, "GET", "/tokens", Permission.TOKENS_MANAGE, TokenPage)
def list_tokens(here: Here) -> Response:
    """List everybody's tokens of this workspace, those that are over, too."""
    return _listed(here, None)


@operation(router, "POST", "/tokens/{token}/revoke", Permission.TOKENS_MANAGE, TokenTold)
def revoke_token(
    token: LongNumber, here: Here, request: Request, key: OptionalKey = None
) -> Response:
    """End anybody's token of this workspace. It opens nothing from now on."""
    return _revoked(here, request, token, key, None)


def _listed(here: Caller, user_id: int | None) -> Response:
    with here.transaction() as conn:
        listed = tokens.listing(conn, workspace_id=here.person.workspace_id, user_id=user_id)
    return answered(TokenPage(tokens=[TokenTold(**_parts(one)) for one in listed]))


def _revoked(
    here: Caller, request: Request, token: int, key: str | None, user_id: int | None
) -> Response:
    def revoke(conn: Connection) -> Answer:
        ended = tokens.revoke(
            conn, token, workspace_id=here.person.workspace_id, who=here.who, user_id=user_id
        )
        return Answer(TokenTold(**_parts(ended)))

    return once(here, request, key, revoke)


def _mine(conn: Connection, here: Caller) -> tuple[Token, ...]:
    return tokens.listing(conn, workspace_id=here.person.workspace_id, user_id=here.person.id)


def _parts(one: Token) -> dict[str, Any]:
    return {
        "id": one.id,
        "name": one.name,
        "hint": one.hint,
        "owner": one.owner,
        "scopes": list(one.scopes),
        "effective": list(one.effective),
        "created_at": one.created_at,
        "created_by": one.created_by,
        "expires_at": one.expires_at,
        "last_used_at": one.last_used_at,
        "revoked_at": one.revoked_at,
        "revoked_by": one.revoked_by,
        "over": one.is_over,
    }
