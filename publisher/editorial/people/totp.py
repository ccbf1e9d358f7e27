"""A second factor by an app on the phone: TOTP (RFC 6238), and recovery codes for its loss.

The secret is sealed by the vault for one person, and counts once a first code showed that the app
has it. A code works once: the step it belongs to is kept, and only moves on.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from dataclasses import dataclass, field
from typing import Final, Protocol

import pyotp
from sqlalchemy import Connection, and_, delete, func, insert, or_, select, update

from publisher.editorial.people import journal, throttle
from publisher.editorial.people.journal import Event
from publisher.editorial.people.schema import recovery_codes, users
from publisher.engine.errors import Conflict, NotFound, PublisherError
from publisher.words import _

ISSUER: Final = "Publisher"
STEP: Final = 30
"""Seconds; what authenticator apps assume."""
DRIFT: Final = 1
"""So many steps a phone's clock may be off, either way."""
RECOVERY_CODES: Final = 10

_CODE: Final = re.compile(r"[0-9]{6}", re.ASCII)
_RECOVERY: Final = re.compile(r"[a-z2-7]{24}", re.ASCII)
_ALPHABET: Final = "abcdefghijklmnopqrstuvwxyz234567"
_RECOVERY_CHARACTERS: Final = 24


class CodeRefused(PublisherError):
    """The code is wrong, too old, or was used before. Which of them is not told."""

    code = "code-wrong"
    exit_code = 4

    def __init__(self) -> None:
        super().__init__(
            _("That code does not work. Wait for the next one in your app, or use a recovery code.")
        )
        self.field = "code"


class Sealer(Protocol):
    """What seals a secret for one person: the vault."""

    def seal_for_user(self, secret: str, *, user_id: int) -> bytes:
        """Encrypt ``secret`` so that it opens for this person only."""
        ...

    def open_for_user(self, sealed: bytes, *, user_id: int) -> str:
        """Decrypt it."""
        ...


@dataclass(frozen=True, slots=True)
class Offer:
    """A secret for the app, shown once. ``address`` is what its QR code says."""

    secret: str = field(repr=False)
    address: str = field(repr=False)


def offer(conn: Connection, sealer: Sealer, user_id: int) -> Offer:
    """Make a secret; it counts once ``confirm`` was given a first code.

    Raises ``Conflict`` where a second factor is on already, ``NotFound``.
    """
    row = conn.execute(
        select(users.c.email, users.c.totp_confirmed_at)
        .where(users.c.id == user_id, users.c.disabled_at.is_(None))
        .with_for_update()
    ).first()
    if row is None:
        raise NotFound(_("There is no such account."))
    if row.totp_confirmed_at is not None:
        message = _("A second factor is on already. Turn it off first. Nothing was changed.")
        raise Conflict(message, code="totp-on")
    secret = pyotp.random_base32()
    conn.execute(
        update(users)
        .where(users.c.id == user_id)
        .values(totp_sealed=sealer.seal_for_user(secret, user_id=user_id), totp_step=None)
    )
    address = pyotp.TOTP(secret).provisioning_uri(name=row.email, issuer_name=ISSUER)
    return Offer(secret, address)


def confirm(
    conn: Connection, sealer: Sealer, user_id: int, code: str, *, who: str
) -> tuple[str, ...]:
    """Turn it on by a first code; returns the recovery codes, shown once.

    Raises ``CodeRefused``, ``Conflict`` where it is on already or nothing was offered,
    ``VaultError``. A try is to be counted at ``throttle.second_factor`` before.
    """
    row = _sealed(conn, user_id)
    if row is None or row.totp_confirmed_at is not None:
        message = _("There is no second factor to confirm. Begin again.")
        raise Conflict(message, code="totp-not-offered")
    secret = sealer.open_for_user(row.totp_sealed, user_id=user_id)
    step = matching_step(secret, code, row.at)
    if step is None:
        raise CodeRefused
    conn.execute(
        update(users)
        .where(users.c.id == user_id)
        .values(totp_confirmed_at=func.clock_timestamp(), totp_step=step)
    )
    throttle.forget(conn, throttle.second_factor(user_id))
    journal.tell(conn, Event.TOTP_ON, who=who, subject=row.email, user_id=user_id)
    return new_recovery_codes(conn, user_id, who=who, subject=row.email)


def check(conn: Connection, sealer: Sealer, user_id: int, given: str, *, who: str) -> None:
    """Use up a code of the app, or a recovery code.

    Raises ``CodeRefused`` for what is wrong or was used; ``VaultError``. A try is to be counted at
    ``throttle.second_factor`` before.
    """
    typed = re.sub(r"[\s-]", "", given).lower()
    if _RECOVERY.fullmatch(typed):
        _use_recovery_code(conn, user_id, typed, who=who)
        return
    row = _sealed(conn, user_id)
    if row is None or row.totp_confirmed_at is None:
        raise CodeRefused
    secret = sealer.open_for_user(row.totp_sealed, user_id=user_id)
    step = matching_step(secret, typed, row.at)
    if step is None:
        raise CodeRefused
    used = conn.execute(
        update(users)
        .where(
            users.c.id == user_id,
            users.c.totp_sealed == row.totp_sealed,
            or_(users.c.totp_step.is_(None), users.c.totp_step < step),
        )
        .values(totp_step=step)
    )
    if used.rowcount != 1:
        raise CodeRefused


def turn_off(conn: Connection, user_id: int, *, who: str) -> bool:
    """Ask that person for the password alone; False where nothing else was asked for."""
    row = conn.execute(
        update(users)
        .where(and_(users.c.id == user_id, users.c.totp_sealed.is_not(None)))
        .values(totp_sealed=None, totp_confirmed_at=None, totp_step=None)
        .returning(users.c.email)
    ).first()
    if row is None:
        return False
    conn.execute(delete(recovery_codes).where(recovery_codes.c.user_id == user_id))
    journal.tell(conn, Event.TOTP_OFF, who=who, subject=row.email, user_id=user_id)
    return True


def reseal(conn: Connection, old: Sealer | None, fresh: Sealer) -> int:
    """Seal every secret anew, for a deployment that becomes another; returns how many.

    One that ``old`` cannot open stays as it is: its person comes in by a recovery code, or once
    ``publisher users forget-totp`` was run. Turning it off unasked would let a password do.
    """
    sealed = conn.execute(
        select(users.c.id, users.c.totp_sealed).where(users.c.totp_sealed.is_not(None))
    ).all()
    done = 0
    for row in sealed:
        try:
            secret = None if old is None else old.open_for_user(row.totp_sealed, user_id=row.id)
        except PublisherError:
            secret = None
        if secret is not None:
            anew = fresh.seal_for_user(secret, user_id=row.id)
            conn.execute(update(users).where(users.c.id == row.id).values(totp_sealed=anew))
            done += 1
    return done


def new_recovery_codes(
    conn: Connection, user_id: int, *, who: str, subject: str
) -> tuple[str, ...]:
    """Ten fresh ones, each for one use; earlier ones work no more.

    They have 120 random bits, so that a plain hash keeps them (NIST SP 800-63B, section 5.1.2.2).
    """
    codes = ["".join(map(secrets.choice, [_ALPHABET] * _RECOVERY_CHARACTERS))
             for _code in range(RECOVERY_CODES)]  # fmt: skip
    conn.execute(delete(recovery_codes).where(recovery_codes.c.user_id == user_id))
    conn.execute(
        insert(recovery_codes),
        [{"user_id": user_id, "code_sha256": _digest(code)} for code in codes],
    )
    journal.tell(conn, Event.RECOVERY_CODES_MADE, who=who, subject=subject, user_id=user_id)
    return tuple("-".join(code[at : at + 6] for at in range(0, len(code), 6)) for code in codes)


def recovery_codes_left(conn: Connection, user_id: int) -> int:
    """How many still work."""
    left = select(func.count()).where(
        recovery_codes.c.user_id == user_id, recovery_codes.c.used_at.is_(None)
    )
    return conn.execute(left).scalar_one()


def matching_step(secret: str, code: str, at: float) -> int | None:
    """The step whose code this is, near ``at`` (seconds since 1970); None where it is none's."""
    typed = re.sub(r"\s", "", code)
    if not _CODE.fullmatch(typed):
        return None
    app, found = pyotp.TOTP(secret, interval=STEP), None
    now = int(at) // STEP
    for step in range(now - DRIFT, now + DRIFT + 1):
        # All are compared, so that the time does not tell which one it was.
        if secrets.compare_digest(app.generate_otp(step), typed):
            found = step
    return found


def _sealed(conn: Connection, user_id: int) -> _Sealed | None:
    row = conn.execute(
        select(
            users.c.email,
            users.c.totp_sealed,
            users.c.totp_confirmed_at,
            func.extract("epoch", func.clock_timestamp()).label("at"),
        )
        .where(users.c.id == user_id, users.c.totp_sealed.is_not(None))
        .with_for_update()
    ).first()
    if row is None:
        return None
    return _Sealed(row.email, row.totp_sealed, row.totp_confirmed_at, float(row.at))


@dataclass(frozen=True, slots=True)
class _Sealed:
    email: str
    totp_sealed: bytes = field(repr=False)
    totp_confirmed_at: object
    at: float


def _use_recovery_code(conn: Connection, user_id: int, code: str, *, who: str) -> None:
    used = conn.execute(
        update(recovery_codes)
        .where(
            recovery_codes.c.user_id == user_id,
            recovery_codes.c.code_sha256 == _digest(code),
            recovery_codes.c.used_at.is_(None),
        )
        .values(used_at=func.clock_timestamp())
    )
    if used.rowcount != 1:
        raise CodeRefused
    left = recovery_codes_left(conn, user_id)
    email = conn.execute(select(users.c.email).where(users.c.id == user_id)).scalar_one()
    journal.tell(conn, Event.RECOVERY_CODE_USED, who=who, subject=email, user_id=user_id, left=left)


def _digest(code: str) -> bytes:
    return hashlib.sha256(code.encode()).digest()
