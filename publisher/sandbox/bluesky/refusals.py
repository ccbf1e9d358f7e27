"""XRPC's errors: a name and a message. Source: https://atproto.com/specs/xrpc."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from publisher.sandbox.dialect import Refusal
from publisher.sandbox.wire import Answer

if TYPE_CHECKING:
    from collections.abc import Mapping

RATE_LIMIT, RATE_WINDOW = 5000, 3600
"""Points an account has each hour."""


class XrpcRefusal(Refusal):
    """A call is refused, and nothing was stored."""

    def __init__(self, name: str, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.name = name
        self.status = status

    def answer(
        self,
        request: str,  # noqa: ARG002  XRPC's answers name no request
        error: Mapping[str, Any] | None = None,
    ) -> Answer:
        """Return the answer; ``error`` replaces parts of it, ``status`` too."""
        body = {"error": self.name, "message": str(self)} | dict(error or {})
        status = int(body.pop("status", self.status))
        return Answer(status, json.dumps(body, ensure_ascii=False).encode())


def invalid_request(message: str) -> XrpcRefusal:
    """A parameter or the record is amiss."""
    return XrpcRefusal("InvalidRequest", message)


def invalid_swap(cid: str) -> XrpcRefusal:
    """There is a record where there should be none, or another one."""
    return XrpcRefusal("InvalidSwap", f"Record was at {cid}")


def record_not_found(uri: str) -> XrpcRefusal:
    """Nothing there of that key."""
    return XrpcRefusal("RecordNotFound", f"Could not locate record: {uri}")


def repository_not_found(repo: str) -> XrpcRefusal:
    """No account of that did or handle."""
    return XrpcRefusal("RepoNotFound", f"Could not find repo: {repo}")


def blob_not_found(cid: str) -> XrpcRefusal:
    """A record names a blob that was not uploaded."""
    return XrpcRefusal("BlobNotFound", f"Could not find blob: {cid}")


def auth_missing() -> XrpcRefusal:
    """No token was given."""
    return XrpcRefusal("AuthMissing", "Authentication Required", 401)


def not_yours() -> XrpcRefusal:
    """The repository is another account's."""
    return XrpcRefusal("AuthenticationRequired", "Authentication Required", 401)


def wrong_password() -> XrpcRefusal:
    """No such account, or not its password."""
    return XrpcRefusal("AuthenticationRequired", "Invalid identifier or password", 401)


def expired_token() -> XrpcRefusal:
    """A token was good once. Told with HTTP 400, not 401."""
    return XrpcRefusal("ExpiredToken", "Token has expired")


def revoked_token() -> XrpcRefusal:
    """A session was ended, or its refresh token used before."""
    return XrpcRefusal("ExpiredToken", "Token has been revoked")


def invalid_token() -> XrpcRefusal:
    """A token was never good."""
    return XrpcRefusal("InvalidToken", "Token could not be verified")


def wrong_scope() -> XrpcRefusal:
    """A refresh token where an access token belongs, or the other way round."""
    return XrpcRefusal("InvalidToken", "Bad token scope")


def too_large() -> XrpcRefusal:
    """A blob is larger than the server takes."""
    return XrpcRefusal("PayloadTooLarge", "request entity too large", 413)


def no_such_method() -> XrpcRefusal:
    """No method of that name, or not with that HTTP method."""
    return XrpcRefusal("MethodNotImplemented", "Method Not Implemented", 501)


def blob_differs(kind: str | None, size: int) -> XrpcRefusal:
    """A record says something else of a blob than what was uploaded."""
    return XrpcRefusal(
        "InvalidMimeType", f"Referenced type or size does not match stored blob: {kind}, {size}"
    )


def blob_too_large(size: int, most: int) -> XrpcRefusal:
    """A blob is larger than the record may have it."""
    reason = f"This file is too large. It is {size} but the maximum size is {most}."
    return XrpcRefusal("BlobTooLarge", reason)


def limited() -> XrpcRefusal:
    """Too many points used."""
    return XrpcRefusal("RateLimitExceeded", "Rate Limit Exceeded", 429)


def internal() -> XrpcRefusal:
    """Something went wrong, and nothing more is said; also for a record key that exists."""
    return XrpcRefusal("InternalServerError", "Internal Server Error", 500)


def limit_headers(remaining: int, seconds: float) -> dict[str, str]:
    """Return the rate limit's headers; the reset is in unix seconds."""
    return {
        "ratelimit-limit": str(RATE_LIMIT),
        "ratelimit-remaining": str(remaining),
        "ratelimit-reset": str(round(time.time() + seconds)),
        "ratelimit-policy": f"{RATE_LIMIT};w={RATE_WINDOW}",
    }
