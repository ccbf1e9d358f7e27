"""A small OpenID provider over HTTP on this machine, which can be told to misbehave."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, parse_qsl, quote, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey

CLIENT, SECRET = "desk", "s3cret: of the desk"


class Idp:
    """Signs whoever comes in as ``subject``; ``changes`` bend the claims of the next ID tokens."""

    def __init__(self) -> None:
        self.subject = "ann-at-idp"
        self.email: str | None = "ann@example.org"
        self.changes: dict[str, Any] = {}
        self.document_changes: dict[str, Any] = {}
        self.signer: Any = None
        self.shared_secret: bytes | None = None
        self.id_token: str | None = None
        self.basic_only = True
        self.asked: list[str] = []
        self.new_key()
        idp = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                idp._get(self)

            def do_POST(self) -> None:
                idp._post(self)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.issuer = f"http://127.0.0.1:{self._server.server_port}"
        self._codes: dict[str, dict[str, str]] = {}

    def new_key(self) -> None:
        """Sign with another key from now on, as providers do now and then."""
        self.key = RSAKey.generate_key(2048, parameters={"kid": secrets.token_hex(4), "use": "sig"})

    @contextmanager
    def serving(self) -> Iterator[None]:
        thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._server.shutdown()
            self._server.server_close()
            thread.join()

    def browse(self, url: str) -> dict[str, str]:
        """Go to the provider as a browser, sign in, and return the query one comes back with."""
        parts = urlsplit(url)
        connection = HTTPConnection(parts.netloc, timeout=30)
        connection.request("GET", f"{parts.path}?{parts.query}")
        response = connection.getresponse()
        location = response.getheader("Location")
        connection.close()
        assert (response.status, bool(location)) == (302, True), response.read()
        return dict(parse_qsl(urlsplit(str(location)).query))

    def _get(self, request: BaseHTTPRequestHandler) -> None:
        parts = urlsplit(request.path)
        self.asked.append(parts.path)
        if parts.path == "/.well-known/openid-configuration":
            self._answer(request, 200, self._document())
        elif parts.path == "/keys":
            public = self.key.as_dict(private=False)
            self._answer(request, 200, {"keys": [{"kty": "odd", "kid": "x"}, public]})
        elif parts.path == "/authorize":
            asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
            assert asked["response_type"] == "code"
            assert asked["code_challenge_method"] == "S256"
            assert "openid" in asked["scope"].split()
            code = secrets.token_hex(16)
            self._codes[code] = asked
            back = {"code": code, "state": asked["state"], "iss": self.issuer}
            request.send_response(302)
            request.send_header("Location", f"{asked['redirect_uri']}?{urlencode(back)}")
            request.send_header("Content-Length", "0")
            request.end_headers()
        else:
            self._answer(request, 404, {})

    def _post(self, request: BaseHTTPRequestHandler) -> None:
        length = int(request.headers["Content-Length"])
        form = dict(parse_qsl(request.rfile.read(length).decode()))
        self.asked.append("/token")
        asked = self._codes.pop(form.get("code", ""), None)
        if not self._is_the_client(request, form):
            self._answer(request, 401, {"error": "invalid_client"})
            return
        challenge = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        if (
            asked is None
            or form.get("redirect_uri") != asked["redirect_uri"]
            or base64.urlsafe_b64encode(challenge).rstrip(b"=").decode() != asked["code_challenge"]
        ):
            self._answer(request, 400, {"error": "invalid_grant"})
            return
        said = {"access_token": "a", "token_type": "Bearer", "id_token": self._signed(asked)}
        self._answer(request, 200, said)

    def _is_the_client(self, request: BaseHTTPRequestHandler, form: dict[str, str]) -> bool:
        if not self.basic_only:
            return (form.get("client_id"), form.get("client_secret")) == (CLIENT, SECRET)
        pair = f"{quote(CLIENT, safe='')}:{quote(SECRET, safe='')}".encode()
        wanted = f"Basic {base64.b64encode(pair).decode()}"
        return request.headers.get("Authorization") == wanted

    def _document(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
            "token_endpoint_auth_methods_supported": [
                "client_secret_basic" if self.basic_only else "client_secret_post"
            ],
            **self.document_changes,
        }

    def _signed(self, asked: dict[str, str]) -> str:
        if self.id_token is not None:
            return self.id_token
        now = int(time.time())
        claims = {
            "iss": self.issuer,
            "sub": self.subject,
            "aud": asked["client_id"],
            "iat": now,
            "exp": now + 300,
            "nonce": asked["nonce"],
            "email": self.email,
            "email_verified": True,
            **({"auth_time": now} if "max_age" in asked else {}),
            **self.changes,
        }
        claims = {name: value for name, value in claims.items() if value is not None}
        header = {"alg": "RS256", "kid": self.key.as_dict(private=False)["kid"]}
        if self.shared_secret is not None:
            return hmac_signed({**header, "alg": "HS256"}, claims, self.shared_secret)
        return jwt.encode(header, claims, self.signer or self.key, algorithms=["RS256"])

    def _answer(self, request: BaseHTTPRequestHandler, status: int, said: object) -> None:
        body = json.dumps(said).encode()
        request.send_response(status)
        request.send_header("Content-Type", "application/json")
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)


def unsigned(claims: dict[str, Any]) -> str:
    """A token that says of itself that nobody signed it."""
    return f"{_part({'alg': 'none'})}.{_part(claims)}."


def hmac_signed(header: dict[str, Any], claims: dict[str, Any], secret: bytes) -> str:
    """A token signed with a shared secret, made by hand: libraries refuse to misuse a key so."""
    signed = f"{_part(header)}.{_part(claims)}"
    mac = hmac.digest(secret, signed.encode(), "sha256")
    return f"{signed}.{base64.urlsafe_b64encode(mac).rstrip(b'=').decode()}"


def _part(said: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(said).encode()).rstrip(b"=").decode()
