"""``/journal``: who did what to whom in the workspace, and when."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from publisher.api.calls import Here, answered
from publisher.api.operations import operation
from publisher.api.strict import Cursor, Instant, Limit, Told, numbered
from publisher.editorial.people import journal
from publisher.editorial.people.roles import Permission

router = APIRouter(tags=["people"])
_OF_THE_ACCOUNT: Final = "account"


class JournalLine(Told):
    """One line; lines are only added."""

    id: int
    at: Instant
    who: str
    event: str = Field(description="Such as role_given; more may come.")
    subject: str = Field(description="Whom or what it was done to, as people call it.")
    user: int | None = Field(description="Whose account it is about.")
    about: str = Field(
        description="`workspace`, or `account`: it holds wherever that person works."
    )
    detail: dict[str, Any]


class JournalPage(Told):
    """Lines, the newest first."""

    lines: list[JournalLine]
    next_cursor: str | None = Field(description="For the next page; null at the end.")


class JournalQuery(BaseModel):
    """Which lines."""

    model_config = ConfigDict(extra="forbid")

    limit: Limit = 50
    cursor: Cursor = None


@operation(router, "GET", "/journal", Permission.JOURNAL_READ, JournalPage)
def read_journal(query: Annotated[JournalQuery, Query()], here: Here) -> Response:
    """Read the journal of people: invitations, roles, sign-ins, tokens, the newest first.

    What people did with a post or a channel is told with that post or channel.
    """
    before = numbered(query.cursor)
    with here.transaction(everywhere=True) as conn:
        lines = journal.of_workspace(
            conn, here.person.workspace_id, before=before, limit=query.limit + 1
        )
    shown = lines[: query.limit]
    more = str(shown[-1].id) if len(lines) > query.limit else None
    told = [
        JournalLine(
            id=one.id,
            at=one.at,
            who=one.who,
            event=one.event,
            subject=one.subject,
            user=one.user_id,
            about="workspace" if one.workspace_id is not None else _OF_THE_ACCOUNT,
            detail=dict(one.detail),
        )
        for one in shown
    ]
    return answered(JournalPage(lines=told, next_cursor=more))
