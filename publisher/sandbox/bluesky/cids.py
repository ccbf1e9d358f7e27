"""Content identifiers, real ones: CIDv1, SHA-256, over raw bytes or over canonical DAG-CBOR.

The encoder knows what a record may hold. Sources: https://ipld.io/specs/codecs/dag-cbor/spec/,
https://atproto.com/specs/data-model, https://github.com/multiformats/cid.
"""

from __future__ import annotations

import base64
import hashlib
from typing import Any

_RAW, _DAG_CBOR = 0x55, 0x71
_LINK_TAG = 42
_LARGEST = 2**63
_CID_BYTES = 36


class NotARecord(ValueError):
    """Something in a record has no place in the data model: a fraction, a broken link."""


def of_bytes(content: bytes) -> str:
    """Return the CID of a blob: ``bafkrei…``."""
    return _cid(_RAW, content)


def of_record(record: dict[str, Any]) -> str:
    """Return the CID of a record: ``bafyrei…``. Raises ``NotARecord``."""
    return _cid(_DAG_CBOR, encode(record))


def encode(value: Any) -> bytes:  # noqa: ANN401, PLR0911  JSON, a line for each kind of it
    """Encode JSON as DAG-CBOR; ``{"$link": …}`` and ``{"$bytes": …}`` are what they stand for.

    Raises ``NotARecord``.
    """
    match value:
        case None:
            return b"\xf6"
        case bool():
            return b"\xf5" if value else b"\xf4"
        case int():
            return _integer(value)
        case str():
            return _head(3, len(value.encode())) + value.encode()
        case list():
            return _head(4, len(value)) + b"".join(map(encode, value))
        case {"$link": str() as link} if len(value) == 1:
            content = b"\x00" + decode_cid(link)
            return _head(6, _LINK_TAG) + _head(2, len(content)) + content
        case {"$bytes": str() as text} if len(value) == 1:
            content = base64.b64decode(text + "=" * (-len(text) % 4))
            return _head(2, len(content)) + content
        case dict():
            return _map(value)
        case _:
            reason = f"{value!r} has no place in a record."
            raise NotARecord(reason)


def decode_cid(text: str) -> bytes:
    """Return the bytes of a CID. Raises ``NotARecord`` when it is none."""
    letters = text.removeprefix("b").upper()
    try:
        content = base64.b32decode(letters + "=" * (-len(letters) % 8))
    except ValueError:
        content = b""
    if not text.startswith("b") or len(content) != _CID_BYTES or content[0] != 1:
        reason = f"{text!r} is not a CID."
        raise NotARecord(reason)
    return content


def _cid(codec: int, content: bytes) -> str:
    binary = bytes([1, codec, 0x12, 32]) + hashlib.sha256(content).digest()
    return "b" + base64.b32encode(binary).decode().rstrip("=").lower()


def _map(value: dict[str, Any]) -> bytes:
    # Canonical: shorter keys first, then by their bytes; without that, two equal records differ.
    keys = sorted((key.encode() for key in value), key=lambda key: (len(key), key))
    parts = (_head(3, len(key)) + key + encode(value[key.decode()]) for key in keys)
    return _head(5, len(keys)) + b"".join(parts)


def _integer(value: int) -> bytes:
    if not -_LARGEST <= value < _LARGEST:
        reason = f"{value} is too large for a record."
        raise NotARecord(reason)
    return _head(0, value) if value >= 0 else _head(1, -1 - value)


def _head(major: int, count: int) -> bytes:
    lead = major << 5
    if count < 24:  # noqa: PLR2004  CBOR's own numbers
        return bytes([lead | count])
    for size, extra in ((1, 24), (2, 25), (4, 26)):
        if count < 1 << (8 * size):
            return bytes([lead | extra]) + count.to_bytes(size, "big")
    return bytes([lead | 27]) + count.to_bytes(8, "big")
