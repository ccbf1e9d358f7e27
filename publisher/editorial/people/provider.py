"""An OpenID provider: where its doors are, which keys it signs with, and what it says of somebody.

OpenID Connect Core 1.0 and Discovery 1.0, the code flow with PKCE (RFC 7636). Authlib judges the
claims, its JOSE part the signature, and our own transport makes every call: one request over one
connection, whose secrets are cut out of whatever is kept.
"""

from __future__ import annotations

import base64
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Final, NoReturn
from urllib.parse import quote, urlsplit

import structlog
from authlib.oauth2.rfc6749.parameters import prepare_grant_uri
from authlib.oauth2.rfc7636 import create_s256_code_challenge
from authlib.oidc.core import CodeIDToken
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from publisher.config import Settings
from publisher.engine.errors import PublisherError
from publisher.transport import Reply, Request, Transport
from publisher.words import _

ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "ES256", "ES384")
"""Signatures by a key that only the provider has; ``none`` and HMAC are not among them."""
LEEWAY: Final = 60
"""Seconds that the provider's clock may be off."""
_OLDEST: Final = 600
"""Seconds since an ID token was made: it is for the sign-in that is under way."""
_KEPT: Final = 3600.0
_ASKED_AGAIN: Final = 60.0
_OK: Final = 200
_KEY_TYPES: Final = frozenset({"RSA", "EC"})
_ERROR: Final = re.compile(r"[a-z_]{1,40}", re.ASCII)
_LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})
_log = structlog.get_logger(__name__)


class ProviderRefused(PublisherError):
    """The provider, or what it said, cannot be relied on; nobody is signed in. 401."""

    exit_code = 4

    def __init__(self, message: str, *, code: str, why: str) -> None:
        super().__init__(message)
        self.code = code
        self.why = why
        """For the log: no secret, and nothing for whoever tries."""


@dataclass(frozen=True, slots=True)
class Vouched:
    """Whom the provider vouches for, checked."""

    issuer: str
    subject: str
    email: str | None
    """Only where the provider says that it is theirs."""
    authenticated_at: int | None
    """Seconds since 1970: when they last gave the provider their password."""


@dataclass(frozen=True, slots=True)
class Secrets:
    """What one sign-in is recognised by; all of it belongs to one browser."""

    state: str = field(repr=False)
    nonce: str = field(repr=False)
    verifier: str = field(repr=False)


class Provider:
    """One OpenID provider. Its document and keys are asked for once an hour; safe to share."""

    def __init__(
        self, transport: Transport, *, issuer: str, client_id: str, client_secret: str
    ) -> None:
        self.issuer = issuer
        self._transport = transport
        self._client_id = client_id
        self._client_secret = client_secret
        self._lock = Lock()
        self._kept: dict[str, tuple[float, Mapping[str, Any]]] = {}

    @classmethod
    def from_settings(cls, settings: Settings, transport: Transport) -> Provider | None:
        """The one that is configured; None where none is."""
        issuer, client, secret = (
            settings.oidc_issuer, settings.oidc_client_id, settings.oidc_client_secret
        )  # fmt: skip
        if issuer is None or client is None or secret is None:
            return None
        return cls(
            transport, issuer=issuer, client_id=client, client_secret=secret.get_secret_value()
        )

    def door(self, redirect_uri: str, secrets: Secrets, *, anew: bool) -> str:
        """Where the browser is sent. ``anew``: the password is to be given there once more.

        Raises ``ProviderRefused``.
        """
        more = {"max_age": "0", "prompt": "login"} if anew else {}
        return str(
            prepare_grant_uri(
                self._endpoint("authorization_endpoint"),
                self._client_id,
                "code",
                redirect_uri,
                "openid email profile",
                secrets.state,
                nonce=secrets.nonce,
                code_challenge=create_s256_code_challenge(secrets.verifier),
                code_challenge_method="S256",
                **more,
            )
        )

    def vouched(self, code: str, redirect_uri: str, secrets: Secrets) -> Vouched:
        """Whom ``code`` stands for. It works once, so it is never asked for again.

        Raises ``ProviderRefused``.
        """
        said = self._exchanged(code, redirect_uri, secrets)
        claims = self._claims(said, secrets)
        subject, email = claims.get("sub"), claims.get("email")
        if not isinstance(subject, str) or not 0 < len(subject) <= 255:  # noqa: PLR2004 - Core 1.0, section 2
            _untrue("the subject is none")
        is_theirs = claims.get("email_verified") is True and isinstance(email, str)
        at = claims.get("auth_time")
        return Vouched(
            issuer=self.issuer,
            subject=subject,
            email=email if is_theirs else None,
            authenticated_at=int(at) if isinstance(at, int | float) else None,
        )

    def _exchanged(self, code: str, redirect_uri: str, secrets: Secrets) -> Mapping[str, Any]:
        form = [
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", redirect_uri),
            ("code_verifier", secrets.verifier),
        ]
        headers, proof = {"Accept": "application/json"}, []
        ways = self._document().get("token_endpoint_auth_methods_supported")
        if isinstance(ways, list) and "client_secret_basic" not in ways:
            form += [("client_id", self._client_id), ("client_secret", self._client_secret)]
        else:
            # RFC 6749, section 2.3.1: each is encoded as a form is, then both as Basic has it.
            pair = f"{quote(self._client_id, safe='')}:{quote(self._client_secret, safe='')}"
            proof = [base64.b64encode(pair.encode()).decode()]
            headers["Authorization"] = f"Basic {proof[0]}"
        reply = self._transport.step(
            Request(
                "POST",
                self._endpoint("token_endpoint"),
                headers=headers,
                form=form,
                secrets=(code, secrets.verifier, self._client_secret, *proof),
            )
        )
        said = _object(reply)
        if said is None:
            _unreachable("the code could not be exchanged")
        if not isinstance(reply, Reply) or reply.status != _OK:
            error = said.get("error")
            told = error if isinstance(error, str) and _ERROR.fullmatch(error) else "no reason"
            _untrue(f"the code was refused: {told}")
        return said

    def _claims(self, said: Mapping[str, Any], secrets: Secrets) -> Mapping[str, Any]:
        token = said.get("id_token")
        if not isinstance(token, str):
            _untrue("there is no ID token")
        try:
            signed = self._signed(token)
            claims: Any = CodeIDToken(
                signed.claims,
                signed.header,
                options={
                    "iss": {"essential": True, "value": self.issuer},
                    "aud": {"essential": True, "value": self._client_id},
                    "nonce": {"essential": True, "value": secrets.nonce},
                },
                params={
                    "nonce": secrets.nonce,
                    "client_id": self._client_id,
                    "access_token": said.get("access_token"),
                },
            )
            claims.validate(leeway=LEEWAY)
        except (JoseError, ValueError, TypeError) as error:
            _untrue(f"the ID token is not good: {type(error).__name__}")
        if not time.time() - _OLDEST <= claims["iat"]:
            _untrue("the ID token is old")
        return dict(claims)

    def _signed(self, token: str) -> jwt.Token:
        try:
            return jwt.decode(token, self._keys(_KEPT), algorithms=[*ALGORITHMS])
        except (JoseError, ValueError):
            # Its keys may have changed since; a token nobody signed makes us ask once a minute.
            return jwt.decode(token, self._keys(_ASKED_AGAIN), algorithms=[*ALGORITHMS])

    def _keys(self, kept_for: float) -> KeySet:
        listed = self._read(self._endpoint("jwks_uri"), kept_for).get("keys")
        usable = [
            key
            for key in (listed if isinstance(listed, list) else [])
            if isinstance(key, dict)
            and key.get("kty") in _KEY_TYPES
            and key.get("use", "sig") == "sig"
        ]
        if not usable:
            _unreachable("it shows no keys")
        return KeySet.import_key_set({"keys": usable})

    def _document(self) -> Mapping[str, Any]:
        url = f"{self.issuer.rstrip('/')}/.well-known/openid-configuration"
        document = self._read(url, _KEPT)
        if document.get("issuer") != self.issuer:
            _unreachable("its document names another issuer")
        return document

    def _endpoint(self, name: str) -> str:
        url = self._document().get(name)
        if not isinstance(url, str) or not is_safe(url):
            _unreachable(f"its {name} is no https:// address")
        return url

    def _read(self, url: str, kept_for: float) -> Mapping[str, Any]:
        now = time.monotonic()
        with self._lock:
            kept = self._kept.get(url)
        if kept is not None and now - kept[0] < kept_for:
            return kept[1]
        reply = self._transport.read(Request("GET", url, headers={"Accept": "application/json"}))
        said = _object(reply)
        if said is None or not isinstance(reply, Reply) or reply.status != _OK:
            _unreachable("it does not answer as it should")
        with self._lock:
            self._kept[url] = (now, said)
        return said


def is_safe(url: str) -> bool:
    """Whether what is sent there can be read on the way: https, or this machine itself."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return bool(parts.hostname) and (
        parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)
    )


def _object(reply: object) -> dict[str, Any] | None:
    said = reply.json() if isinstance(reply, Reply) else None
    return said if isinstance(said, dict) else None


def _unreachable(why: str) -> NoReturn:
    _log.warning("people.provider_unreachable", why=why)
    message = _("The sign-in service cannot be used just now. Try again, or use your password.")
    raise ProviderRefused(message, code="provider-unreachable", why=why) from None


def _untrue(why: str) -> NoReturn:
    _log.warning("people.provider_untrue", why=why)
    message = _("The sign-in service did not vouch for you. Begin again.")
    raise ProviderRefused(message, code="provider-refused", why=why) from None
