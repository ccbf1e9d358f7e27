"""A deployment and its key: a copy of the database without it sends nothing.

Credentials are sealed for one deployment with a key that is not in the database, and the
deployment's row says which key that is. Whoever finds another one at hand, or none, holds a copy.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Final, Self
from uuid import uuid4

import structlog
from sqlalchemy import Connection

from publisher.config import Settings
from publisher.editorial import channel_events
from publisher.editorial.channel_events import Event
from publisher.editorial.people import totp
from publisher.engine import ledger, queries
from publisher.engine.errors import Conflict, PublisherError
from publisher.engine.ledger import deployment as row
from publisher.engine.queries import Identity
from publisher.engine.witness import Cause
from publisher.vault import Vault, VaultError

_SAMPLE: Final = 16
"""So many credentials are tried where no check of the key was kept yet: one may be damaged."""
_DROPPED: Final = "Its credential was sealed with a key that is not at hand."
_log = structlog.get_logger(__name__)


class KeyStanding(StrEnum):
    """How the key at hand stands to the deployment."""

    UNUSED = "unused"
    """Nothing was sealed yet: whichever key comes first is the deployment's."""
    MATCHES = "matches"
    MISSING = "missing"
    ANOTHER = "another"

    @property
    def is_a_copy(self) -> bool:
        """Whether this database is a copy that came without its key."""
        return self in (KeyStanding.MISSING, KeyStanding.ANOTHER)


class CloneRefused(PublisherError):
    """The database is a copy without its key; it sends nothing and opens no credential."""

    code = "clone"
    exit_code = 3

    def __init__(self, deployment_id: str, standing: KeyStanding, where: str) -> None:
        how = "with another key" if standing is KeyStanding.ANOTHER else "without its key"
        super().__init__(
            f"This is a copy of deployment {deployment_id} {how} ({where}), so it sends nothing."
            " Bring the key back; for a deliberate move, or when the key is lost for good, run:"
            " publisher deployment rebind"
        )


class NotConfirmed(PublisherError):
    """The deployment's id was not given, or is not this one's. Nothing was changed."""

    code = "not-confirmed"

    def __init__(self, deployment_id: str) -> None:
        super().__init__(
            f"Nothing was changed. To confirm, give --confirm {deployment_id}, the id of the"
            " deployment that this database is."
        )


@dataclass(frozen=True, slots=True)
class Standing:
    """The deployment a database is, the key at hand if there is one, and how the two stand."""

    identity: Identity
    key: KeyStanding
    vault: Vault | None
    where: str

    @classmethod
    def read(cls, conn: Connection, settings: Settings) -> Self:
        """Look at both; no key is made. Raises ``VaultError`` for a key that cannot be read."""
        identity = queries.identity(conn)
        vault = Vault.at_hand(settings, identity.id)
        where = key_place(settings)
        if identity.key_check is not None:
            return cls(identity, _by_check(vault, identity.key_check), vault, where)
        return cls(identity, _by_trial(conn, vault), vault, where)

    def require_own(self) -> None:
        """Raise ``CloneRefused`` where the database is a copy without its key."""
        if self.key.is_a_copy:
            raise CloneRefused(self.identity.id, self.key, self.where)


def key_place(settings: Settings) -> str:
    """Where the key is looked for."""
    return str(settings.key_file) if settings.vault_key is None else "PUBLISHER_VAULT_KEY"


def own_vault(conn: Connection, settings: Settings) -> Vault:
    """The deployment's vault; its key is made, and noted, when none was ever used.

    Raises ``CloneRefused`` on a copy without its key, ``VaultError``.
    """
    standing = Standing.read(conn, settings)
    standing.require_own()
    identity = standing.identity
    vault = standing.vault or Vault.from_settings(settings, identity.id)
    if identity.key_check is None:
        noted = row.note_key(conn, vault.check)
        if not hmac.compare_digest(noted, vault.check):
            raise CloneRefused(identity.id, KeyStanding.ANOTHER, standing.where)
    return vault


def _by_check(vault: Vault | None, check: bytes) -> KeyStanding:
    if vault is None:
        return KeyStanding.MISSING
    same = hmac.compare_digest(vault.check, check)
    return KeyStanding.MATCHES if same else KeyStanding.ANOTHER


def _by_trial(conn: Connection, vault: Vault | None) -> KeyStanding:
    """What was sealed before the check of its key was kept tells as well."""
    sealed = queries.sealed_credentials(conn, limit=_SAMPLE)
    if not sealed:
        return KeyStanding.UNUSED
    if vault is None:
        return KeyStanding.MISSING
    opened = any(_opens(vault, channel_id, one) for channel_id, one in sealed.items())
    return KeyStanding.MATCHES if opened else KeyStanding.ANOTHER


def _opens(vault: Vault, channel_id: int, sealed: bytes) -> bool:
    try:
        vault.open(sealed, channel_id=channel_id)
    except VaultError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class Rebound:
    """What a rebind came to: ``dropped`` are ids of channels that must be reconnected."""

    before: str
    id: str
    generation: int
    resealed: int
    dropped: tuple[int, ...]
    quarantined: int


def rebind(
    conn: Connection,
    standing: Standing,
    key: Callable[[], Vault],
    *,
    confirm: str,
    who: str,
    silent_for: timedelta,
    absent_after: float,
) -> Rebound:
    """Make the database a deployment of its own, within the transaction of ``conn``, an owner's.

    ``key`` gives the one to go on with, and makes it where there is none; it is asked once
    nothing is in the way. What the old key opens is sealed for the new deployment, and the rest
    is dropped. Everything that was due is looked for on its
    page before it is sent (``absent_after`` as ``ledger.open_quarantine`` has it). ``silent_for``:
    so long must every worker have been silent.

    Raises ``NotConfirmed``, and ``Conflict`` while workers run or when another was quicker.
    """
    before = row.hold_deployment(conn)
    if confirm.strip() != before:
        raise NotConfirmed(before)
    if before != standing.identity.id:
        message = "Another process has rebound this deployment just now. Nothing was changed."
        raise Conflict(message)
    _require_silence(conn, silent_for)
    old = standing.vault if standing.key is KeyStanding.MATCHES else None
    after = uuid4()
    fresh = key().for_deployment(str(after))
    resealed, dropped = _reseal(conn, old, fresh)
    totp.reseal(conn, old, fresh)
    for channel_id in dropped:
        channel_events.tell(conn, channel_id, Event.CREDENTIAL_DROPPED, who=who)
    generation = row.become(conn, after, fresh.check)
    opened = ledger.open_quarantine(
        conn,
        Cause.MOVED,
        strict=True,
        absent_after=absent_after,
        who=who,
        detail={"before": before, "after": str(after)},
    )
    rebound = Rebound(
        before, str(after), generation, resealed, dropped, opened.jobs if opened else 0
    )
    _log.warning(
        "deployment.rebound",
        before=before,
        after=rebound.id,
        generation=generation,
        resealed=resealed,
        dropped=list(dropped),
        who=who,
    )
    return rebound


def _require_silence(conn: Connection, silent_for: timedelta) -> None:
    working = [at for at in queries.worker_rows(conn) if at.now - at.seen_at < silent_for]
    if working:
        listed = ", ".join(f"{at.id} on {at.host}" for at in working)
        message = (
            f"Workers of this deployment are at work or were a moment ago (run {listed}). Nothing"
            " was changed. Stop them, wait a minute, and try again."
        )
        raise Conflict(message, code="workers-at-work")


def _reseal(conn: Connection, old: Vault | None, fresh: Vault) -> tuple[int, tuple[int, ...]]:
    resealed, dropped = 0, []
    for channel_id, sealed in queries.sealed_credentials(conn).items():
        try:
            secret = None if old is None else old.open(sealed, channel_id=channel_id)
        except VaultError:
            secret = None
        if secret is None:
            row.drop_credential(conn, channel_id, _DROPPED)
            dropped.append(channel_id)
        else:
            row.reseal(conn, channel_id, fresh.seal(secret, channel_id=channel_id))
            resealed += 1
    return resealed, tuple(dropped)
