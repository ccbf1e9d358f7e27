"""One-time links: how somebody comes in for the first time, and after forgetting their password.

Who opens the address only sees whom it is for; it is used up by the password that is chosen, so
that a mail filter which follows links does no harm.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from sqlalchemy import Connection, delete, func, insert, select, update

from publisher.editorial.people import journal, opaque
from publisher.editorial.people.journal import Event
from publisher.editorial.people.schema import user_links, users
from publisher.engine.errors import Conflict, NotFound, PublisherError
from publisher.words import _

_KIND: Final = "pbi"


class Purpose(StrEnum):
    """What a link is for."""

    INVITE = "invite"
    RESET = "reset"


LASTS: Final = {Purpose.INVITE: timedelta(days=7), Purpose.RESET: timedelta(hours=1)}


class LinkUnusable(PublisherError):
    """It was used, is over, or never was one. Which of them is not told."""

    code = "link-unusable"
    exit_code = 4

    def __init__(self) -> None:
        super().__init__(
            _("This link does not work: it was used, or its time is over. Ask for a new one.")
        )


@dataclass(frozen=True, slots=True)
class Link:
    """A fresh link. ``token`` is shown now and never again."""

    token: str = field(repr=False)
    purpose: Purpose
    expires_at: datetime

    def address(self, base: str) -> str:
        """What is sent to the person; ``base``: where the pages are."""
        return f"{base.rstrip('/')}/start/{self.token}"


@dataclass(frozen=True, slots=True)
class Invited:
    """Whom a link is for."""

    user_id: int
    name: str
    email: str
    purpose: Purpose


def make(conn: Connection, user_id: int, *, who: str) -> Link:
    """A link for that person, to choose a password by; earlier ones work no more.

    An invitation until the first password was chosen, a reset after. Raises ``Conflict`` for an
    account that is disabled, ``NotFound``.
    """
    row = conn.execute(
        select(users.c.email, users.c.password_hash.is_(None).label("is_new"), users.c.disabled_at)
        .where(users.c.id == user_id)
        .with_for_update()
    ).first()
    if row is None:
        raise NotFound(_("There is no such account."))
    if row.disabled_at is not None:
        message = _("{email} is disabled, so a link would let nobody in. Enable the account first.")
        raise Conflict(message.format(email=row.email), code="user-disabled")
    purpose = Purpose.INVITE if row.is_new else Purpose.RESET
    withdraw(conn, user_id)
    token = opaque.mint(_KIND)
    expires_at = conn.execute(
        insert(user_links)
        .values(
            token_sha256=opaque.digest(token),
            user_id=user_id,
            purpose=purpose.value,
            expires_at=func.clock_timestamp() + LASTS[purpose],
        )
        .returning(user_links.c.expires_at)
    ).scalar_one()
    journal.tell(
        conn,
        Event.LINK_MADE,
        who=who,
        subject=row.email,
        user_id=user_id,
        purpose=purpose.value,
        until=expires_at.isoformat(),
    )
    return Link(token, purpose, expires_at)


def withdraw(conn: Connection, user_id: int) -> None:
    """Have no link of theirs work any more."""
    conn.execute(
        delete(user_links).where(user_links.c.user_id == user_id, user_links.c.used_at.is_(None))
    )


def look(conn: Connection, token: str) -> Invited:
    """Whom the link is for; it is not used up. Raises ``LinkUnusable``."""
    row = conn.execute(
        select(users.c.id, users.c.name, users.c.email, user_links.c.purpose)
        .join(users, users.c.id == user_links.c.user_id)
        .where(
            user_links.c.token_sha256 == opaque.digest(token),
            user_links.c.used_at.is_(None),
            user_links.c.expires_at > func.clock_timestamp(),
            users.c.disabled_at.is_(None),
        )
    ).first()
    if row is None:
        raise LinkUnusable
    return Invited(row.id, row.name, row.email, Purpose(row.purpose))


def use(conn: Connection, token: str) -> Invited:
    """Use the link up, in the transaction of what it lets one do. Raises ``LinkUnusable``."""
    invited = look(conn, token)
    used = conn.execute(
        update(user_links)
        .where(
            user_links.c.token_sha256 == opaque.digest(token),
            user_links.c.used_at.is_(None),
            user_links.c.expires_at > func.clock_timestamp(),
        )
        .values(used_at=func.clock_timestamp())
    )
    if used.rowcount != 1:
        raise LinkUnusable
    journal.tell(
        conn,
        Event.LINK_USED,
        who=invited.name,
        subject=invited.email,
        user_id=invited.user_id,
        purpose=invited.purpose.value,
    )
    return invited
