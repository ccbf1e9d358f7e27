"""Which server software this is, what it may be trusted with, and its limits.

One API, many programs: some ignore ``Idempotency-Key``, some leave posts out of a listing. What is
not known to be kept is not promised; a program we do not know is given the least.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from publisher.engine.adapter import Progress

TEXT_LIMIT = 500
"""Mastodon's default; a server's own is in ``configuration.statuses.max_characters``."""
URL_LENGTH = 23
MEDIA_LIMIT = 4

REPEAT_FOR = 3600.0 - 600.0
"""Seconds after the first byte for which a repeat is safe where the key is honoured at all. The
key lives an hour from when the post is made, which is never before that byte; ten minutes are for
a repeat that is under way."""

_KEY = "server"
_MASTODON_VERSION = re.compile(r"[4-9]\.\d+\.\d+(?:[-+].*)?")
_COMPATIBLE = re.compile(r"\(compatible; ([a-z]+)")


class ServerKind(StrEnum):
    """The program behind the API, as ``version`` and ``source_url`` of the instance name it."""

    MASTODON = "Mastodon"
    PLEROMA = "Pleroma"
    AKKOMA = "Akkoma"
    HOLLO = "Hollo"
    GOTOSOCIAL = "GoToSocial"
    TAKAHE = "Takahe"
    PIXELFED = "Pixelfed"
    OTHER = "another server"


@dataclass(frozen=True, slots=True)
class Conduct:
    """What a program does. ``repeat_for``: seconds its key makes a repeat safe, None: never.

    ``listing_is_exhaustive``: its listing of an account's own posts leaves nothing out.
    """

    repeat_for: float | None
    listing_is_exhaustive: bool
    source: str


CONDUCT: dict[ServerKind, Conduct] = {
    ServerKind.MASTODON: Conduct(
        REPEAT_FOR,
        True,
        "app/services/post_status_service.rb: Redis, 3,600 s, written after the post; "
        "app/models/account_statuses_filter.rb: to its author an account lists every status",
    ),
    # Its cache is in memory and filled just before the answer, so a restart loses the key; an
    # hour's repeat still needs a look, and the listing was not seen to be whole.
    ServerKind.PLEROMA: Conduct(
        REPEAT_FOR, False, "lib/pleroma/web/plugs/idempotency_plug.ex: 6 h, errors included"
    ),
    ServerKind.HOLLO: Conduct(
        REPEAT_FOR, False, "fedify-dev/hollo@640cd42 src/api/v1/statuses.ts: 1 h, without a lock"
    ),
    ServerKind.AKKOMA: Conduct(None, False, "a fork of Pleroma; its key was never seen to work"),
    ServerKind.GOTOSOCIAL: Conduct(None, False, "gotosocial#2723: the key is not read"),
    ServerKind.TAKAHE: Conduct(None, False, "jointakahe/takahe@d45f22c: the key is not read"),
    ServerKind.PIXELFED: Conduct(None, False, "pixelfed/docs#91: the key deviates"),
    ServerKind.OTHER: Conduct(None, False, "nothing is known"),
}


@dataclass(frozen=True, slots=True)
class Server:
    """One server: its program and the limits it gave. ``characters`` counts a URL as ``url``."""

    kind: ServerKind
    version: str
    characters: int = TEXT_LIMIT
    url: int = URL_LENGTH
    media: int = MEDIA_LIMIT

    @property
    def conduct(self) -> Conduct:
        """What it may be trusted with."""
        return CONDUCT[self.kind]

    @classmethod
    def read(cls, instance: Mapping[str, object]) -> Self:
        """Read ``GET /api/v2/instance``, or ``v1``. Never fails: what is odd has the default."""
        version = _text(instance.get("version"))[:100]
        source = _text(instance.get("source_url"))
        statuses = _object(_object(instance.get("configuration")).get("statuses"))
        old = instance.get("max_toot_chars")
        return cls(
            kind=kind_of(version, source),
            version=version,
            characters=_count(statuses.get("max_characters", old), TEXT_LIMIT),
            url=_count(statuses.get("characters_reserved_per_url"), URL_LENGTH),
            media=_count(statuses.get("max_media_attachments"), MEDIA_LIMIT),
        )

    @classmethod
    def kept(cls, progress: Progress) -> Self | None:
        """The server as it stands in ``progress``, or None when it was not read yet."""
        kept = progress.get(_KEY)
        if not isinstance(kept, Mapping):
            return None
        try:
            kind = ServerKind(_text(kept.get("kind")))
        except ValueError:
            return None
        return cls(
            kind=kind,
            version=_text(kept.get("version")),
            characters=_count(kept.get("characters"), TEXT_LIMIT),
            url=_count(kept.get("url"), URL_LENGTH),
            media=_count(kept.get("media"), MEDIA_LIMIT),
        )

    def keep(self, progress: Progress) -> Progress:
        """``progress`` with this server in it."""
        kept = {
            "kind": str(self.kind),
            "version": self.version,
            "characters": self.characters,
            "url": self.url,
            "media": self.media,
        }
        return {**progress, _KEY: kept}


def kind_of(version: str, source_url: str) -> ServerKind:
    """The program, from what it says of itself.

    A bare ``4.5.1`` is Mastodon's only where the source is a ``mastodon`` too: Hollo and
    GoToSocial give a bare version of their own, and others borrow Mastodon's to please clients.
    """
    said = version.casefold()
    known = {kind.casefold(): kind for kind in ServerKind if kind is not ServerKind.OTHER}
    if "akkoma" in said:
        return ServerKind.AKKOMA
    if (compatible := _COMPATIBLE.search(said)) is not None:
        return known.get(compatible[1], ServerKind.OTHER)
    if said.startswith("takahe"):
        return ServerKind.TAKAHE
    source = source_url.casefold().rstrip("/").removesuffix(".git").rpartition("/")[2]
    kind = known.get(source, ServerKind.OTHER)
    if kind is ServerKind.MASTODON and not _MASTODON_VERSION.fullmatch(said):
        return ServerKind.OTHER
    return kind


def _count(value: object, default: int) -> int:
    """A limit that can be one; anything else is the default."""
    good = isinstance(value, int) and not isinstance(value, bool) and 0 < value <= 10_000_000  # noqa: PLR2004
    return value if good and isinstance(value, int) else default


def _object(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
