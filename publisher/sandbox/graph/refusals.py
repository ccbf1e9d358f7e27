"""Graph's errors: their bodies, and the ones the sandbox answers with."""

from __future__ import annotations

import json
import math
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from publisher.sandbox.dialect import Refusal
from publisher.sandbox.wire import Answer

if TYPE_CHECKING:
    from collections.abc import Mapping

TEXT_LIMIT = 63_206
"""Characters in a post's text."""
PHOTO_LIMIT = 10 * 1024 * 1024
"""Bytes of a photo, as the page-photos reference says."""


class GraphRefusal(Refusal):
    """A call is refused, and nothing was stored."""

    def __init__(
        self, message: str, code: int, *, status: int = 400, subcode: int | None = None,
        type_: str = "OAuthException", is_transient: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(message)
        self.code = code
        self.status = status
        self.subcode = subcode
        self.type_ = type_
        self.is_transient = is_transient

    def answer(
        self, request: str, error: Mapping[str, Any] | None = None, **headers: str
    ) -> Answer:
        """Return the answer Graph would give; ``error`` replaces parts of it, ``status`` too."""
        changes = dict(error or {})
        status = int(changes.pop("status", self.status))
        body: dict[str, Any] = {"message": str(self), "type": self.type_, "code": self.code}
        if self.subcode is not None:
            body["error_subcode"] = self.subcode
        body |= {"is_transient": self.is_transient, "fbtrace_id": request} | changes
        data = json.dumps({"error": body}, ensure_ascii=False).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if status == HTTPStatus.UNAUTHORIZED:
            named["WWW-Authenticate"] = f'OAuth "Facebook Platform" "invalid_token" "{self}"'
        return Answer(status, data, headers=named, code=int(body["code"]))


def unknown_object(node: str, method: str) -> GraphRefusal:
    """Nothing there of that id, or not for this token."""
    return GraphRefusal(
        f"Unsupported {method.lower()} request. Object with ID '{node}' does not exist, cannot be"
        " loaded due to missing permissions, or does not support this operation.",
        100, subcode=33, type_="GraphMethodException",
    )  # fmt: skip


def invalid_parameter(what: str, subcode: int | None = None) -> GraphRefusal:
    """A parameter is missing or wrong."""
    return GraphRefusal(f"(#100) {what}", 100, subcode=subcode)


def bad_token(subcode: int | None = None) -> GraphRefusal:
    """The token was never good, or no longer is."""
    message = "Error validating access token: the token is not valid for this application."
    return GraphRefusal(message, 190, status=401, subcode=subcode)


def no_token() -> GraphRefusal:
    """No token was given."""
    return GraphRefusal("An access token is required to request this resource.", 104)


def no_permission() -> GraphRefusal:
    """The token is another page's, or the post another application's."""
    return GraphRefusal(
        "(#200) The application may not do this with this page or post.", 200, status=403
    )


def photo_unusable() -> GraphRefusal:
    """A photo is too large, or none of the formats."""
    return invalid_parameter(
        "Your photos couldn't be uploaded. Photos should be smaller than 10 MB and saved as JPG,"
        " PNG, GIF, WebP, TIFF or HEIF files.", 1366046,
    )  # fmt: skip


def video_unusable() -> GraphRefusal:
    """A video is of no format known."""
    return invalid_parameter("The video file you selected is in a format we don't support.", 352)


def nothing_uploaded() -> GraphRefusal:
    """Neither a file nor an address came with the call."""
    return GraphRefusal("(#324) Missing or invalid image file", 324)


def bad_address() -> GraphRefusal:
    """A link, or the address of a photo, is none."""
    return invalid_parameter("The url you supplied is invalid", 2061006)


def limit_reached() -> GraphRefusal:
    """The application's rate limit; Graph says so with HTTP 400."""
    return GraphRefusal("(#4) Application request limit reached", 4, is_transient=True)


def duplicate() -> GraphRefusal:
    """The same text twice in a row."""
    return GraphRefusal("(#506) Duplicate status message", 506)


def unknown_error() -> GraphRefusal:
    """Graph's error that says nothing: seven copies were published behind it once."""
    message = "An unexpected error has occurred. Please retry your request later."
    return GraphRefusal(message, 2, status=500, is_transient=True)


def usage_headers(page: str | None, percent: int, regain_seconds: float = 0) -> dict[str, str]:
    """Return the headers that tell how much of the rate limit is used.

    ``estimated_time_to_regain_access`` is in minutes, as Graph gives it.
    """
    used = {"call_count": percent, "total_cputime": percent, "total_time": percent}
    minutes = {"estimated_time_to_regain_access": math.ceil(regain_seconds / 60)}
    business = {page or "0": [{"type": "pages", **used, **minutes}]}
    return {
        "X-App-Usage": json.dumps(used),
        "X-Business-Use-Case-Usage": json.dumps(business),
    }
