"""What kind of server it is: what it calls itself, what it takes, what a key does there."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class Keys(StrEnum):
    """What an ``Idempotency-Key`` does."""

    HONOURED = "honoured"
    """A repeat gets the first status, also while the first is still being made."""
    IGNORED = "ignored"
    """Every request makes a status."""
    UNLOCKED = "unlocked"
    """Looked up first, stored at the end: requests side by side each make a status."""
    LATE = "late"
    """Known only some time after the status was made: a quick repeat makes another."""
    REPLAY_500 = "replay-500"
    """A repeat makes nothing and is answered HTTP 500 (mastodon#40399)."""
    CACHED = "cached"
    """Pleroma's: the whole answer is kept, errors too, for whoever sends the key."""


class Quirk(StrEnum):
    """What compatible servers were seen to do (``platforms.md`` section 4h), each by itself."""

    LINK_LOSES_ONE = "link-loses-one"
    """``Link: rel=next`` leaves one status out at each page; ``max_id`` does not."""
    SINCE_ID_IGNORED = "since-id-ignored"
    OWN_PRIVATE_HIDDEN = "own-private-hidden"
    """The author's own private and direct statuses are not in the account's timeline."""
    APPLICATION_HIDDEN = "application-hidden"
    LANGUAGE_DROPPED = "language-dropped"
    VISIBILITY_FALLS_BACK = "visibility-falls-back"
    """An unknown visibility becomes public."""
    UNKNOWN_MEDIA_DROPPED = "unknown-media-dropped"
    """Media that are not there, or on another status, are left out without a word."""
    MEDIA_MOVES = "media-moves"
    """Media that are on a status can be put on another one."""
    FORM_EMPTIES = "form-empties"
    """A status sent as a form is posted, empty."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How a server behaves; times are in seconds."""

    server: str = "mastodon"
    version: str = "4.5.0"
    source_url: str = "https://github.com/mastodon/mastodon"
    max_characters: int = 500
    max_media_attachments: int = 4
    characters_reserved_per_url: int = 23
    keys: Keys = Keys.HONOURED
    keys_for: float = 3600.0
    late_by: float = 2.0
    race_for: float = 0.2
    processing_for: float | None = None
    """How long an upload is processed. None: a picture not at all, anything else 0.3 s."""
    quirks: frozenset[Quirk] = frozenset()

    def to_json(self) -> dict[str, Any]:
        """Show the settings."""
        return asdict(self) | {"quirks": sorted(self.quirks)}


_SERVERS: dict[str, dict[str, Any]] = {
    "mastodon": {"version": "4.5.0", "max_characters": 500, "keys": Keys.HONOURED},
    "pleroma": {
        "version": "2.7.2 (compatible; Pleroma 2.7.0)", "source_url": "", "max_characters": 5000,
        "keys": Keys.CACHED, "keys_for": 6 * 3600.0,
    },
    "akkoma": {
        "version": "2.7.2 (compatible; Akkoma 3.13.2)", "source_url": "", "max_characters": 5000,
        "keys": Keys.CACHED, "keys_for": 6 * 3600.0,
    },
    "gotosocial": {
        "version": "0.19.1+git-57cb4fe", "max_characters": 5000, "max_media_attachments": 6,
        "source_url": "https://github.com/superseriousbusiness/gotosocial",
        "characters_reserved_per_url": 25, "keys": Keys.IGNORED,
    },
    "hollo": {
        "version": "0.6.0", "max_characters": 10_000,
        "source_url": "https://github.com/fedify-dev/hollo",
        "keys": Keys.UNLOCKED,
    },
    "takahe": {
        "version": "takahe/0.11.0", "source_url": "", "max_characters": 800,
        "keys": Keys.IGNORED,
    },
    "pixelfed": {
        "version": "3.5.3 (compatible; Pixelfed 0.12.5)", "source_url": "", "max_characters": 2000,
        "keys": Keys.IGNORED,
    },
}  # fmt: skip


class SettingsByPage:
    """Settings of every account; one that has none of its own has those of the server."""

    def __init__(self) -> None:
        self._settings: defaultdict[str | None, Settings] = defaultdict(Settings)

    def of(self, page: str | None) -> Settings:
        """Return what holds for an account; None: for who is not signed in."""
        return self._settings[page if page in self._settings else None]

    def change(self, page: str | None, given: Mapping[str, Any]) -> Settings:
        """Change what holds. Raises ``ValueError``, also for a name that is none."""
        settings = self.of(page)
        if "server" in given:
            name = given["server"]
            if name not in _SERVERS:
                reason = f"There is no server {name!r}. There are: {', '.join(_SERVERS)}."
                raise ValueError(reason)
            # A known kind of server starts from nothing, so that nothing of the last is left.
            settings = Settings(server=name, **_SERVERS[name])
        if unknown := sorted(set(given) - set(_READ)):
            reason = f"There is no setting {unknown[0]!r}. There are: {', '.join(_READ)}."
            raise ValueError(reason)
        changes = {name: _READ[name](value) for name, value in given.items()}
        self._settings[page] = replace(settings, **changes)
        return self._settings[page]


_READ: dict[str, Callable[[Any], Any]] = {
    "server": str, "version": str, "source_url": str, "max_characters": int,
    "max_media_attachments": int,
    "characters_reserved_per_url": int, "keys": Keys, "keys_for": float, "late_by": float,
    "race_for": float, "processing_for": lambda value: None if value is None else float(value),
    "quirks": lambda names: frozenset(map(Quirk, names)),
}  # fmt: skip
