"""Which storage is meant: ``PUBLISHER_MEDIA`` taken apart, and refused where it means none."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, assert_never
from urllib.parse import SplitResult, unquote, urlsplit

from publisher.buckets import address as buckets
from publisher.buckets.address import BucketAddress, NoBucket
from publisher.config import Settings
from publisher.editorial.media.database import InDatabase
from publisher.editorial.media.folder import InFolder
from publisher.editorial.media.storage import Storage
from publisher.engine.errors import PublisherError
from publisher.words import _

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_PREFIX: Final = re.compile(r"[A-Za-z0-9!_.*'()-]+(/[A-Za-z0-9!_.*'()-]+)*")
_PREFIX_CHARACTERS: Final = 512


class MediaStorageUnusable(PublisherError):
    """The setting names no place where media can be kept. It never repeats the value."""

    code = "media-storage-unusable"

    def __init__(self, wrong: str) -> None:
        forms = _(
            "Leave it unset for the database, or give a folder such as /srv/media, or"
            " s3://bucket/prefix?endpoint=https://…&region=…."
        )
        super().__init__(f"PUBLISHER_MEDIA {wrong}. {forms}")


class MediaExtraMissing(PublisherError):
    """An object store is named, and what speaks to it is not installed."""

    code = "media-extra-missing"

    def __init__(self) -> None:
        super().__init__(
            _(
                "PUBLISHER_MEDIA names an S3 store, which needs an extra package."
                " Run: pip install 'publisher[s3]'"
            )
        )


@dataclass(frozen=True, slots=True)
class FolderAt:
    """A folder, on this machine's disk or on a volume that machines share."""

    path: Path


def storage(settings: Settings) -> Storage:
    """The storage that ``settings`` name; unset, the database. Nothing is connected to yet.

    Raises ``MediaStorageUnusable``, ``MediaExtraMissing``, ``MediaUnreachable``.
    """
    if settings.media is None:
        return InDatabase()
    match parse(settings.media):
        case FolderAt(path):
            return InFolder(path)
        case BucketAddress() as at:
            try:
                from publisher.editorial.media.bucket import InBucket  # noqa: PLC0415 - an extra
            except ImportError:
                raise MediaExtraMissing from None
            return InBucket(at, settings)
        case never:
            assert_never(never)


def parse(text: str) -> FolderAt | BucketAddress:
    """Take ``PUBLISHER_MEDIA`` apart. Raises ``MediaStorageUnusable``."""
    text = text.strip()
    _require(bool(text) and text.isprintable(), _("is empty or holds what no address has"))
    scheme = _SCHEME.match(text)
    if scheme is None:
        return _folder(text)
    try:
        parts = urlsplit(text)
    except ValueError:
        parts = urlsplit("")
    # Not a word of it is said: it may be a password.
    _require("@" not in parts.netloc, _("holds a user; credentials come from the environment"))
    match scheme[1].lower():
        case "file":
            alone = parts.netloc in ("", "localhost") and not parts.query and not parts.fragment
            _require(alone, _("names no folder of this machine"))
            return _folder(unquote(parts.path))
        case "s3":
            return _bucket(parts)
    raise MediaStorageUnusable(_("begins with a scheme that is not known"))


def _folder(text: str) -> FolderAt:
    path = Path(text).expanduser()
    # A worker and a command started elsewhere would mean two places by one relative path.
    _require(path.is_absolute(), _("names no absolute path"))
    return FolderAt(path)


def _bucket(parts: SplitResult) -> BucketAddress:
    try:
        at = buckets.parse(parts)
    except NoBucket as wrong:
        raise MediaStorageUnusable(str(wrong)) from None
    prefix = at.key.strip("/")
    usable = not prefix or (_PREFIX.fullmatch(prefix) and len(prefix) <= _PREFIX_CHARACTERS)
    _require(bool(usable), _("names no usable prefix in the bucket"))
    return replace(at, key=prefix)


def _require(holds: bool, wrong: str) -> None:  # noqa: FBT001 - reads as a sentence
    if not holds:
        raise MediaStorageUnusable(wrong)
