"""``s3://bucket/key?endpoint=https://…&region=…`` taken apart; no credential may stand in it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

_BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_REGION: Final = re.compile(r"[A-Za-z0-9-]{1,64}")


class NoBucket(ValueError):
    """The address means no bucket; the message is the end of a sentence about the setting."""


@dataclass(frozen=True, slots=True)
class BucketAddress:
    """A key, or what keys begin with, in a bucket; without ``endpoint`` it is Amazon's."""

    bucket: str
    key: str
    endpoint: str | None
    region: str | None


def parse(parts: SplitResult) -> BucketAddress:
    """Take an address apart. Raises ``NoBucket``."""
    _require(bool(_BUCKET.fullmatch(parts.netloc)), "names no bucket")
    _require(not parts.fragment, "names no object in the bucket")
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
    key = unquote(parts.path).removeprefix("/")
    return BucketAddress(parts.netloc, key, endpoint, region)


def _is_endpoint(text: str) -> bool:
    try:
        parts = urlsplit(text)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    more = parts.username is not None or parts.query or parts.fragment
    return usable and not more and text.isprintable() and " " not in text


def _require(holds: bool, wrong: str) -> None:  # noqa: FBT001 - reads as a sentence
    if not holds:
        raise NoBucket(wrong)
