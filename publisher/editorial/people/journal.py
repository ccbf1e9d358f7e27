"""The journal of people: who did what to whom, and when.

It is only added to, in the transaction of what it tells of; the database refuses the rest. It
holds no secret: a token is named, never quoted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, and_, insert, or_, select

from publisher.editorial.people.schema import memberships, people_events


class Event(StrEnum):
    """What may happen to a person, a token or a workspace."""

    WORKSPACE_ADDED = "workspace_added"
    WORKSPACE_CHANGED = "workspace_changed"
    USER_ADDED = "user_added"
    USER_DISABLED = "user_disabled"
    USER_ENABLED = "user_enabled"
    ROLE_GIVEN = "role_given"
    ROLE_TAKEN = "role_taken"
    LINK_MADE = "link_made"
    LINK_USED = "link_used"
    PASSWORD_SET = "password_set"  # noqa: S105 - the name of an event
    SIGNED_IN = "signed_in"
    SESSION_ENDED = "session_ended"
    REAUTHENTICATED = "reauthenticated"
    TOTP_ON = "totp_on"
    TOTP_OFF = "totp_off"
    RECOVERY_CODES_MADE = "recovery_codes_made"
    RECOVERY_CODE_USED = "recovery_code_used"
    IDENTITY_LINKED = "identity_linked"
    TOKEN_MADE = "token_made"  # noqa: S105 - the name of an event
    TOKEN_REVOKED = "token_revoked"  # noqa: S105 - the name of an event


@dataclass(frozen=True, slots=True)
class PeopleEvent:
    """One line. ``event`` is a value of ``Event``, or a newer release's word."""

    id: int
    at: datetime
    who: str
    event: str
    subject: str
    """Whom or what it was done to, as people call it."""
    user_id: int | None
    workspace_id: int | None
    """None: it concerns the account, wherever the person works."""
    detail: Mapping[str, Any]


def tell(
    conn: Connection,
    event: Event,
    *,
    who: str,
    subject: str,
    user_id: int | None = None,
    workspace_id: int | None = None,
    **detail: object,
) -> None:
    """Add one line; ``detail`` is what plain JSON can hold, and no secret."""
    conn.execute(
        insert(people_events).values(
            event=event.value,
            who=who,
            subject=subject,
            user_id=user_id,
            workspace_id=workspace_id,
            detail=detail,
        )
    )


def of_workspace(
    conn: Connection, workspace_id: int, *, before: int | None = None, limit: int = 100
) -> tuple[PeopleEvent, ...]:
    """The newest lines of a workspace, the newest first; ``before``: older than that id.

    What happened to an account counts where its person is a member. The transaction sees every
    workspace, or lines about accounts stay out.
    """
    members = select(memberships.c.user_id).where(memberships.c.workspace_id == workspace_id)
    rows = conn.execute(
        select(people_events)
        .where(
            or_(
                people_events.c.workspace_id == workspace_id,
                and_(people_events.c.workspace_id.is_(None), people_events.c.user_id.in_(members)),
            ),
            *([] if before is None else [people_events.c.id < before]),
        )
        .order_by(people_events.c.id.desc())
        .limit(limit)
    )
    return tuple(
        PeopleEvent(
            id=row.id,
            at=row.at,
            who=row.who,
            event=row.event,
            subject=row.subject,
            user_id=row.user_id,
            workspace_id=row.workspace_id,
            detail=row.detail,
        )
        for row in rows
    )
