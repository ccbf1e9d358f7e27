"""Mastodon's errors: one sentence in ``error``."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from publisher.sandbox.dialect import Refusal
from publisher.sandbox.wire import Answer

if TYPE_CHECKING:
    from collections.abc import Mapping

RATE_LIMIT, RATE_WINDOW = 300, 300
"""Requests an account has in so many seconds."""
_HTML = (
    "<!DOCTYPE html><html lang='en'><head><title>We're sorry, but something went wrong</title>"
    "</head><body><h1>We're sorry, but something went wrong on our end.</h1></body></html>"
)


class MastodonRefusal(Refusal):
    """A call is refused, and nothing was stored."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status

    def answer(
        self,
        request: str,  # noqa: ARG002  Mastodon's answers name no request
        error: Mapping[str, Any] | None = None,
    ) -> Answer:
        """Return the answer; ``error`` replaces parts of it, ``status`` too."""
        body: dict[str, Any] = {"error": str(self)} | dict(error or {})
        status = int(body.pop("status", self.status))
        return Answer(status, json.dumps(body, ensure_ascii=False).encode())


def invalid(what: str) -> MastodonRefusal:
    """The status or the upload is amiss."""
    return MastodonRefusal(f"Validation failed: {what}", 422)


def unprocessable(what: str) -> MastodonRefusal:
    """It cannot be done with what is there."""
    return MastodonRefusal(what, 422)


def not_found() -> MastodonRefusal:
    """Nothing there of that id, or not for this token."""
    return MastodonRefusal("Record not found", 404)


def no_such_path() -> MastodonRefusal:
    """No such method."""
    return MastodonRefusal("The page you are looking for isn't here.", 404)


def no_token() -> MastodonRefusal:
    """No token was given."""
    return MastodonRefusal("This method requires an authenticated user", 401)


def bad_token() -> MastodonRefusal:
    """The token was never good."""
    return MastodonRefusal("The access token is invalid", 401)


def revoked_token() -> MastodonRefusal:
    """The token no longer is good."""
    return MastodonRefusal("The access token was revoked", 401)


def not_yours() -> MastodonRefusal:
    """The status is another account's."""
    return MastodonRefusal("This action is not allowed", 403)


def limited() -> MastodonRefusal:
    """Too many requests."""
    return MastodonRefusal("Too many requests", 429)


def broken(accept: str, error: Mapping[str, Any]) -> Answer:
    """Return what Rails says when something broke: HTML, unless only JSON was asked for."""
    if error or "application/json" in accept:
        body: dict[str, Any] = {"status": 500, "error": "Internal Server Error"} | dict(error)
        status = int(body["status"])
        return Answer(status, json.dumps(body, ensure_ascii=False).encode())
    return Answer(500, _HTML.encode(), "text/html; charset=UTF-8")


def limit_headers(remaining: int, seconds: float) -> dict[str, str]:
    """Return the rate limit's headers; the reset is a time with microseconds, in UTC."""
    reset = datetime.fromtimestamp(time.time() + seconds, UTC)
    return {
        "X-RateLimit-Limit": str(RATE_LIMIT),
        "X-RateLimit-Remaining": str(remaining),
        "X-RateLimit-Reset": reset.isoformat(timespec="microseconds").replace("+00:00", "Z"),
    }
