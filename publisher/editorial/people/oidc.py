"""Signing in by another party: away to the provider, and back once, in the same browser.

The browser keeps one random token while it is away, and everything that the sign-in is recognised
by is derived from it: state, nonce and PKCE verifier. The database has the token's hash, so that a
copy of it completes nobody's sign-in, and no link from elsewhere signs a victim in as somebody.
"""

from __future__ import annotations

import base64
import hmac
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from sqlalchemy import Connection, Engine, delete, func, insert, select, update

from publisher.editorial.people import journal, links, opaque, sessions, sign_in
from publisher.editorial.people.journal import Event
from publisher.editorial.people.provider import Provider, ProviderRefused, Secrets, Vouched
from publisher.editorial.people.schema import identities, memberships, oidc_departures, users
from publisher.editorial.people.sessions import Begun, Method
from publisher.engine.errors import PublisherError
from publisher.words import _

WITHIN: Final = timedelta(minutes=10)
"""So long may somebody be away."""
_KIND: Final = "pbo"
_SWEPT: Final = 50
_LONGEST_CODE: Final = 4_000
_ERROR: Final = re.compile(r"[a-z_]{1,40}", re.ASCII)


class ReturnRefused(PublisherError):
    """Whoever came back did not leave from here, was too long away, or came back before. 401."""

    code = "sign-in-over"
    exit_code = 4

    def __init__(self) -> None:
        super().__init__(_("This sign-in is over, or began in another browser. Begin again."))


class NotInvited(PublisherError):
    """The provider vouches for somebody whom nobody invited. 403."""

    code = "not-invited"
    exit_code = 4

    def __init__(self) -> None:
        super().__init__(
            _(
                "Nobody has invited you here under that account. Ask an admin for an invitation to"
                " the address that your sign-in service has."
            )
        )


@dataclass(frozen=True, slots=True)
class Departure:
    """Where the browser goes, and what it keeps in a cookie meanwhile."""

    url: str = field(repr=False)
    token: str = field(repr=False)


def depart(
    engine: Engine, provider: Provider, *, redirect_uri: str, anew: bool = False
) -> Departure:
    """Begin a sign-in. ``anew``: to show once more who one is; the provider asks again.

    Raises ``ProviderRefused``.
    """
    token = opaque.mint(_KIND)
    url = provider.door(redirect_uri, _secrets(token), anew=anew)
    with engine.begin() as conn:
        conn.execute(
            insert(oidc_departures).values(
                token_sha256=opaque.digest(token), expires_at=func.clock_timestamp() + WITHIN
            )
        )
        _sweep(conn)
    return Departure(url, token)


def arrive(
    engine: Engine,
    provider: Provider,
    *,
    token: str,
    given: Mapping[str, str],
    redirect_uri: str,
    address: str | None = None,
    agent: str | None = None,
) -> Begun:
    """Come back: ``token`` from the cookie, ``given`` the query of the address.

    The session awaits a code where the account has a second factor here. Nothing is open while the
    provider is asked. Raises ``ReturnRefused``, ``ProviderRefused``, ``NotInvited``.
    """
    secrets = _secrets(token)
    state = given.get("state", "").encode(errors="replace")
    if not hmac.compare_digest(state, secrets.state.encode()):
        raise ReturnRefused
    with engine.begin() as conn:
        _return_once(conn, token)
    _require_issuer(provider, given)
    code = given.get("code", "")
    if not code.isascii() or not 0 < len(code) <= _LONGEST_CODE:
        told = given.get("error", "")
        why = told if _ERROR.fullmatch(told) else "it sent no code"
        message = _("The sign-in service let nobody in. Begin again.")
        raise ProviderRefused(message, code="provider-refused", why=why)
    vouched = provider.vouched(code, redirect_uri, secrets)
    with engine.begin() as conn:
        user_id = _known(conn, vouched)
        if user_id is None:
            user_id = _link(conn, vouched)
        return sign_in.begin_for(
            conn,
            user_id,
            Method.OIDC,
            is_fresh=_is_recent(vouched),
            address=address,
            agent=agent,
        )


def _secrets(token: str) -> Secrets:
    def derived(label: bytes) -> str:
        mac = hmac.digest(token.encode(errors="replace"), label, "sha256")
        return base64.urlsafe_b64encode(mac).rstrip(b"=").decode()

    return Secrets(derived(b"state"), derived(b"nonce"), derived(b"verifier"))


def _return_once(conn: Connection, token: str) -> None:
    returned = conn.execute(
        update(oidc_departures)
        .where(
            oidc_departures.c.token_sha256 == opaque.digest(token),
            oidc_departures.c.used_at.is_(None),
            oidc_departures.c.expires_at > func.clock_timestamp(),
        )
        .values(used_at=func.clock_timestamp())
    )
    if returned.rowcount != 1:
        raise ReturnRefused


def _require_issuer(provider: Provider, given: Mapping[str, str]) -> None:
    """Where the provider says who it is (RFC 9207), it must be the one that was gone to."""
    if given.get("iss", provider.issuer) != provider.issuer:
        raise ReturnRefused


def _known(conn: Connection, vouched: Vouched) -> int | None:
    found: int | None = conn.scalar(
        select(identities.c.user_id).where(
            identities.c.issuer == vouched.issuer, identities.c.subject == vouched.subject
        )
    )
    return found


def _link(conn: Connection, vouched: Vouched) -> int:
    """Let an address that the provider vouches for accept the invitation that was sent to it.

    Only an invitation: an account that is in use is not handed to whoever has its address by now.
    Raises ``NotInvited``.
    """
    if vouched.email is None or "\x00" in vouched.email or "\x00" in vouched.subject:
        raise NotInvited
    belongs = select(memberships.c.user_id).where(memberships.c.user_id == users.c.id).exists()
    row = conn.execute(
        select(users.c.id, users.c.name, users.c.email)
        .where(
            func.lower(users.c.email) == func.lower(vouched.email),
            users.c.password_hash.is_(None),
            users.c.disabled_at.is_(None),
            belongs,
        )
        .with_for_update()
    ).first()
    # Asked once the row is held: another may have come back for the same invitation just now.
    if row is None or _has_identity(conn, row.id):
        raise NotInvited
    conn.execute(
        insert(identities).values(issuer=vouched.issuer, subject=vouched.subject, user_id=row.id)
    )
    links.withdraw(conn, row.id)
    journal.tell(
        conn,
        Event.IDENTITY_LINKED,
        who=row.name,
        subject=row.email,
        user_id=row.id,
        issuer=vouched.issuer,
    )
    return int(row.id)


def _has_identity(conn: Connection, user_id: int) -> bool:
    linked = select(identities.c.user_id).where(identities.c.user_id == user_id).limit(1)
    return conn.scalar(linked) is not None


def _is_recent(vouched: Vouched) -> bool:
    at = vouched.authenticated_at
    return at is not None and time.time() - at <= sessions.RECENT.total_seconds()


def _sweep(conn: Connection) -> None:
    over = (
        select(oidc_departures.c.token_sha256)
        .where(oidc_departures.c.expires_at < func.clock_timestamp())
        .limit(_SWEPT)
        .with_for_update(skip_locked=True)
    )
    conn.execute(
        delete(oidc_departures).where(oidc_departures.c.token_sha256.in_(over.scalar_subquery()))
    )
