"""Where the witness is: ``PUBLISHER_WITNESS`` taken apart, and refused where it cannot be meant."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

from publisher.buckets import address as buckets
from publisher.buckets.address import BucketAddress, NoBucket
from publisher.engine.errors import PublisherError

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_LABEL: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_KEY_BYTES: Final = 1024
_FORMS: Final = (
    "Give a path or file:///path, s3://bucket/key?endpoint=https://…&region=…, or"
    " configmap://namespace/name."
)


class WitnessUnusable(PublisherError):
    """The setting names no place where a witness can be kept. It never repeats the value."""

    code = "witness-unusable"

    def __init__(self, wrong: str) -> None:
        super().__init__(f"PUBLISHER_WITNESS {wrong}. {_FORMS}")


class WitnessExtraMissing(PublisherError):
    """An object store is named, and what speaks to it is not installed."""

    code = "witness-extra-missing"

    def __init__(self) -> None:
        super().__init__(
            "PUBLISHER_WITNESS names an S3 object, which needs an extra package."
            " Run: pip install 'publisher[s3]'"
        )


@dataclass(frozen=True, slots=True)
class FileAt:
    """A file, on this machine's disk or on a volume that machines share."""

    path: Path


class ObjectAt(BucketAddress):
    """An object of an S3-compatible store."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class ConfigMapAt:
    """A ConfigMap of the Kubernetes cluster we run in."""

    namespace: str
    name: str


Address = FileAt | ObjectAt | ConfigMapAt


def parse(text: str) -> Address:
    """Take ``PUBLISHER_WITNESS`` apart. Raises ``WitnessUnusable`` with the forms there are."""
    text = text.strip()
    _require(bool(text) and text.isprintable(), "is empty or holds what no address has")
    scheme = _SCHEME.match(text)
    if scheme is None:
        return _file(text)
    try:
        parts = urlsplit(text)
    except ValueError:
        parts = urlsplit("")
    # Not a word of it is said: it may be a password.
    _require("@" not in parts.netloc, "holds a user; credentials come from the environment")
    reader = _READERS.get(scheme[1].lower())
    if reader is None:
        message = "begins with a scheme that is not known"
        raise WitnessUnusable(message)
    return reader(parts)


def _file(text: str) -> FileAt:
    _require(not text.endswith("/"), "names a folder, not a file in it")
    return FileAt(Path(text).expanduser())


def _file_url(parts: SplitResult) -> FileAt:
    _require(parts.netloc in ("", "localhost"), "names a file of another host")
    path = unquote(parts.path)
    alone = not parts.query and not parts.fragment
    _require(alone and path.startswith("/") and path.isprintable(), "names no absolute path")
    return _file(path)


def _object(parts: SplitResult) -> ObjectAt:
    try:
        at = buckets.parse(parts)
    except NoBucket as wrong:
        raise WitnessUnusable(str(wrong)) from None
    is_key = bool(at.key) and not at.key.endswith("/") and len(at.key.encode()) <= _KEY_BYTES
    _require(is_key, "names no object in the bucket")
    return ObjectAt(at.bucket, at.key, at.endpoint, at.region)


def _configmap(parts: SplitResult) -> ConfigMapAt:
    name = parts.path.removeprefix("/")
    named = _LABEL.fullmatch(parts.netloc) and _SUBDOMAIN.fullmatch(name)
    alone = not parts.query and not parts.fragment
    _require(bool(named) and alone, "does not name a namespace and a ConfigMap, and those alone")
    return ConfigMapAt(parts.netloc, name)


_READERS: Final[dict[str, Callable[[SplitResult], Address]]] = {
    "file": _file_url,
    "s3": _object,
    "configmap": _configmap,
}


def _require(holds: bool, wrong: str) -> None:  # noqa: FBT001 - reads as a sentence
    if not holds:
        raise WitnessUnusable(wrong)
