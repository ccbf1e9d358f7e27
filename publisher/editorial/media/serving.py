"""Addresses at which a platform fetches one picture or video: for a while, without signing in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import chain
from typing import Final

from sqlalchemy import Connection

from publisher.editorial.media.library import Kept, Library
from publisher.editorial.media.signing import LONGEST, sign
from publisher.engine import queries
from publisher.engine.errors import PublisherError
from publisher.words import _

PREFIX: Final = "/media"
SHORTEST: Final = timedelta(seconds=1)


class LifetimeRefused(PublisherError):
    """An address that would work for no time, or for too long."""

    code = "media-url-lifetime"
    field = "seconds"


@dataclass(frozen=True, slots=True)
class Address:
    """``path``: with its query; whoever has it may fetch that one object until ``expires_at``."""

    path: str = field(repr=False)
    expires_at: datetime


def path_of(workspace_id: int, sha256: str) -> str:
    """Where it is served. The workspace is part of it: what is not there is not served."""
    return f"{PREFIX}/{workspace_id}/{sha256}"


def address(
    conn: Connection, key: bytes, kept: Kept, *, workspace_id: int, lasts: timedelta
) -> Address:
    """Mint one that works for ``lasts``. Raises ``LifetimeRefused`` for more than seven days."""
    if not SHORTEST <= lasts <= LONGEST:
        message = _("An address works for one second to {n} days.").format(n=LONGEST.days)
        raise LifetimeRefused(message)
    path = path_of(workspace_id, kept.sha256)
    now = queries.clock(conn)
    # Whole seconds, as the address has them.
    expires_at = (now + lasts).replace(microsecond=0)
    if expires_at <= now:
        expires_at += SHORTEST
    query = sign(key, method="GET", path=path, expires_at=expires_at, now=now)
    return Address(f"{path}?{query}", expires_at)


def opened(library: Library, kept: Kept) -> Iterator[bytes]:
    """Its bytes, of which some were read: what is lost or out of reach raises here.

    Raises ``MediaLost``, ``MediaUnreachable``.
    """
    chunks = library.read(kept.sha256)
    return chain([next(chunks)], chunks)
