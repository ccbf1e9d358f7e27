"""Sessions: access tokens that expire, refresh tokens that are used once.

After ``packages/pds/src/account-manager/helpers/auth.ts`` and ``auth-verifier.ts`` of
bluesky-social/atproto. Tokens are JWTs that carry everything, so they outlive a restart of the
sandbox; which refresh tokens were used does not.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import math
import secrets
import threading
import time
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from publisher.sandbox.bluesky import refusals

if TYPE_CHECKING:
    from publisher.sandbox.pages import Page, Pages

ACCESS, REFRESH = "com.atproto.appPass", "com.atproto.refresh"
_SECRET = b"nothing here is worth forging"


@dataclass(frozen=True, slots=True)
class Lives:
    """How long tokens are good for, in seconds."""

    access_for: float = 120 * 60
    refresh_for: float = 90 * 24 * 3600
    refresh_grace_for: float = 2 * 3600
    """A used refresh token is good for so much longer, as the reference server has it."""


class Sessions:
    """Makes tokens and says whose one is."""

    def __init__(self) -> None:
        self._lives: defaultdict[str | None, Lives] = defaultdict(Lives)
        self._expired_before: dict[str, float] = {}
        self._used: dict[str, float] = {}
        self._lock = threading.Lock()

    def lives(self, did: str | None) -> Lives:
        """Return how long tokens of an account live."""
        return self._lives[did if did in self._lives else None]

    def set_lives(self, did: str | None, **seconds: float) -> Lives:
        """Change how long tokens made from now on live, for one account or for all others."""
        self._lives[did] = replace(self.lives(did), **seconds)
        return self._lives[did]

    def expire(self, did: str) -> None:
        """Let every access token of an account expire now."""
        self._expired_before[did] = time.time()

    def make(self, page: Page) -> dict[str, Any]:
        """Return a new session as the API shows it."""
        lives = self.lives(page.id)
        return {
            "did": page.id,
            "handle": page.details["handle"],
            "email": f"{page.details['handle']}@sandbox.invalid",
            "emailConfirmed": True,
            "emailAuthFactor": False,
            "active": True,
            "accessJwt": _token(page.id, ACCESS, lives.access_for),
            "refreshJwt": _token(page.id, REFRESH, lives.refresh_for),
        }

    def renew(self, token: str, state: Pages) -> dict[str, Any]:
        """Return a new session for a refresh token and use the token up. Raises a refusal."""
        page, claims = self._check(token, REFRESH, state)
        with self._lock:
            used_at = self._used.setdefault(claims["jti"], time.time())
        if time.time() - used_at > self.lives(page.id).refresh_grace_for:
            raise refusals.revoked_token()
        return self.make(page)

    def holder(self, token: str, state: Pages) -> Page:
        """Return the account an access token is of. Raises ``XrpcRefusal``."""
        if not token:
            raise refusals.auth_missing()
        return self._check(token, ACCESS, state)[0]

    def _check(self, token: str, scope: str, state: Pages) -> tuple[Page, dict[str, Any]]:
        claims = read(token)
        page = state.pages.get(claims.get("sub", ""))
        if page is None:
            raise refusals.invalid_token()
        if claims["scope"] != scope:
            raise refusals.wrong_scope()
        if page.revoked_subcode is not None:
            raise refusals.revoked_token()
        cut = self._expired_before.get(page.id, 0.0) if scope == ACCESS else 0.0
        if claims["ends"] <= time.time() or claims["made"] <= cut:
            raise refusals.expired_token()
        return page, claims


def read(token: str) -> dict[str, Any]:
    """Return the claims of a token of ours, expired or not. Raises ``XrpcRefusal``."""
    signed, _, signature = token.rpartition(".")
    if not token or not hmac.compare_digest(_sign(signed).encode(), signature.encode()):
        raise refusals.invalid_token()
    body = signed.partition(".")[2]
    claims: dict[str, Any] = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    return claims


def _token(did: str, scope: str, seconds: float) -> str:
    now = time.time()
    claims = {
        "scope": scope, "sub": did, "aud": "did:web:sandbox.invalid", "jti": secrets.token_hex(8),
        "iat": int(now), "exp": math.ceil(now + seconds), "made": now, "ends": now + seconds,
    }  # fmt: skip
    kind = {"typ": "at+jwt" if scope == ACCESS else "refresh+jwt", "alg": "HS256"}
    signed = ".".join(_pack(json.dumps(part).encode()) for part in (kind, claims))
    return f"{signed}.{_sign(signed)}"


def _sign(text: str) -> str:
    return _pack(hmac.digest(_SECRET, text.encode(), hashlib.sha256))


def _pack(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")
