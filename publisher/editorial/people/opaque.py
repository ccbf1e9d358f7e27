"""Random tokens that open a door. The database keeps their hash, so that a copy opens nothing."""

from __future__ import annotations

import hashlib
import re
import secrets
from typing import Final

_BYTES: Final = 32
_LONGEST: Final = 200
SHAPE: Final = re.compile(r"pb[a-z]_(?:[a-z0-9-]{1,40}_)?[0-9a-f]{64}", re.ASCII)
"""What every token of ours looks like, so that scanners and our own logs know one."""


def mint(kind: str, hint: str = "") -> str:
    """A fresh token of 256 random bits, such as ``pbl_main_…``.

    ``kind`` is its first three letters, ``hint`` a slug that tells a person where it belongs.
    """
    random = secrets.token_hex(_BYTES)
    return f"{kind}_{hint}_{random}" if hint else f"{kind}_{random}"


def digest(token: str) -> bytes:
    """What is kept of a token: SHA-256.

    It needs no salt and no slow hash, for what is hashed has 256 random bits. Any text has one,
    also what is no token of ours.
    """
    return hashlib.sha256(token[:_LONGEST].encode(errors="surrogatepass")).digest()
