"""Where the witness is: ``PUBLISHER_WITNESS`` taken apart, and refused where it cannot be meant."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from publisher.engine.errors import PublisherError

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_LABEL: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_REGION: Final = re.compile(r"[A-Za-z0-9-]{1,64}")
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


@dataclass(frozen=True, slots=True)
class ObjectAt:
    """An object of an S3-compatible store; without ``endpoint`` it is Amazon's."""

    bucket: str
    key: str
    endpoint: str | None
    region: str | None


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
    key = unquote(parts.path).removeprefix("/")
    _require(bool(_BUCKET.fullmatch(parts.netloc)), "names no bucket")
    is_key = bool(key) and not key.endswith("/") and len(key.encode()) <= _KEY_BYTES
    _require(is_key and not parts.fragment, "names no object in the bucket")
    given = parse_qsl(parts.query, keep_blank_values=True)
    options = dict(given)
    known = options.keys() <= {"endpoint", "region"} and len(options) == len(given)
    _require(known, "has an option that is not known, or one twice")
    endpoint, region = options.get("endpoint"), options.get("region")
    _require(
        endpoint is None or _is_endpoint(endpoint),
        "has an endpoint that is not like https://host:port",
    )
    _require(region is None or bool(_REGION.fullmatch(region)), "has a region that is none")
    return ObjectAt(parts.netloc, key, endpoint, region)


def _is_endpoint(text: str) -> bool:
    try:
        parts = urlsplit(text)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    more = parts.username is not None or parts.query or parts.fragment
    return usable and not more and text.isprintable() and " " not in text


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
