"""Signed addresses that expire, for platforms that fetch a picture instead of being sent it.

HMAC-SHA-256 (RFC 2104) over the method, the path and the second it expires. Pure: the key is
``Vault.key_for(PURPOSE)``, the clock is the caller's, and the route is the API's. Whoever holds the
address may fetch that one object until then, and nothing else.
"""

from __future__ import annotations

import base64
import hmac
import re
from datetime import UTC, datetime, timedelta
from typing import Final

from publisher.engine.errors import PublisherError
from publisher.words import _

PURPOSE: Final = "media url"
LONGEST: Final = timedelta(days=7)

_PATH: Final = re.compile(r"/[A-Za-z0-9._~/-]*")
_EXPIRES: Final = re.compile(r"[0-9]{1,11}")
_SIGNATURE: Final = re.compile(r"[A-Za-z0-9_-]{43}")
_LABEL: Final = b"publisher media url 1\x00"


class SignatureRefused(PublisherError):
    """An address that was not signed by this deployment, or whose time is over."""

    def __init__(self, message: str, *, code: str) -> None:
        super().__init__(message)
        self.code = code


def sign(key: bytes, *, method: str, path: str, expires_at: datetime, now: datetime) -> str:
    """The query of an address for ``method`` and ``path``: ``expires=…&signature=…``.

    It holds up to, and without, ``expires_at``, in whole seconds. ``path`` is absolute and plain:
    letters, digits, ``.``, ``_``, ``~``, ``-`` and ``/``, so that nothing between here and the
    platform spells it anew. Raises ``ValueError`` for another, for a time that is not to come, or
    one more than seven days ahead.
    """
    if not _PATH.fullmatch(path):
        message = "the path of a signed address is absolute and plain"
        raise ValueError(message)
    if not now < expires_at <= now + LONGEST:
        message = "a signed address expires within seven days, and not before now"
        raise ValueError(message)
    expires = str(int(expires_at.timestamp()))
    return f"expires={expires}&signature={_signature(key, method, path, expires)}"


def verify(
    key: bytes, *, method: str, path: str, expires: str, signature: str, now: datetime
) -> None:
    """Say whether the address is ours and its time is not over; compared in constant time.

    Everything but ``now`` comes as the request has it. HEAD is allowed where GET is: platforms
    ask before they fetch. Raises ``SignatureRefused``.
    """
    well_formed = (
        _PATH.fullmatch(path) and _EXPIRES.fullmatch(expires) and _SIGNATURE.fullmatch(signature)
    )
    if not well_formed:
        raise _forged()
    wanted = _signature(key, "GET" if method == "HEAD" else method, path, expires)
    if not hmac.compare_digest(wanted.encode(), signature.encode()):
        raise _forged()
    if now >= datetime.fromtimestamp(int(expires), UTC):
        message = _("This address has expired. Ask for a new one.")
        raise SignatureRefused(message, code="media-url-expired")


def _forged() -> SignatureRefused:
    message = _("This address is not signed by us. Ask for a new one.")
    return SignatureRefused(message, code="media-url-forged")


def _signature(key: bytes, method: str, path: str, expires: str) -> str:
    said = _LABEL + f"{method}\n{path}\n{expires}".encode()
    return base64.urlsafe_b64encode(hmac.digest(key, said, "sha256")).rstrip(b"=").decode()
