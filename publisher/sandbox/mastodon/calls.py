"""A call under ``/api/``: which endpoint, by whom, with what."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from publisher.sandbox import forms
from publisher.sandbox.behaviours import Endpoint
from publisher.sandbox.dialect import Asked
from publisher.sandbox.forms import Form
from publisher.sandbox.mastodon import refusals

if TYPE_CHECKING:
    from publisher.sandbox.pages import Page, Pages
    from publisher.sandbox.wire import Head

_ROUTES = {
    ("POST", "statuses"): Endpoint.POST,
    ("GET", "statuses/:id"): Endpoint.READ,
    ("GET", "statuses/:id/source"): Endpoint.READ,
    ("DELETE", "statuses/:id"): Endpoint.DELETE,
    ("POST", "media"): Endpoint.MEDIA,
    ("GET", "media/:id"): Endpoint.MEDIA_STATE,
    ("PUT", "media/:id"): Endpoint.MEDIA_STATE,
    ("GET", "accounts/verify_credentials"): Endpoint.ACCOUNT,
    ("GET", "apps/verify_credentials"): Endpoint.ACCOUNT,
    ("GET", "accounts/:id"): Endpoint.ACCOUNT,
    ("GET", "accounts/:id/statuses"): Endpoint.LIST,
    ("GET", "instance"): Endpoint.ACCOUNT,
}
_PATH = re.compile(r"^/api/v[12]/(.+?)/?$")
_NUMBER = re.compile(r"(?<=/)[^/]+")


@dataclass(frozen=True, slots=True)
class Call:
    """One call, read whole."""

    request: str
    asked: Asked
    what: str
    """Method and path without version and id: ``GET statuses/:id/source``."""
    id: str
    """The id in the path."""
    form: Form
    token: str
    accept: str
    is_json: bool
    """Whether the body is JSON, or empty."""

    def media_ids(self) -> list[str]:
        """Return ``media_ids``, from JSON or as often as ``media_ids[]`` came."""
        return _media_ids(self.form)


def route(head: Head, state: Pages) -> Asked | None:
    """Return what a path under ``/api/v1`` or ``/api/v2`` asks for, None when it is not one."""
    if not _PATH.match(head.path):
        return None
    what, _ = _what(head.method, head.path)
    method, _, path = what.partition(" ")
    page = state.holder(head.bearer, "mastodon")
    endpoint = _ROUTES.get((method, path), Endpoint.ANY)
    return Asked(head.method, head.path, page.id if page else None, endpoint)


def read(request: str, asked: Asked, head: Head, body: bytes) -> Call:
    """Read a whole call. Raises ``UnreadableForm``."""
    form = forms.read(head, body)
    what, id_ = _what(head.method, head.path)
    publishes = asked.endpoint is Endpoint.POST
    if publishes:
        asked = replace(
            asked, publishes=True, message=form.text("status"), media=tuple(_media_ids(form)),
            client_mutation_id=head.headers.get("idempotency-key") or None,
        )  # fmt: skip
    elif asked.endpoint is Endpoint.LIST:
        asked = replace(asked, page=id_)
    accept = head.headers.get("accept", "*/*")
    is_json = head.headers.get("content-type", "application/json").startswith("application/json")
    return Call(request, asked, what, id_, form, head.bearer, accept, is_json)


def caller(call: Call, state: Pages) -> Page:
    """Return the account whose token the call carries. Raises ``MastodonRefusal``."""
    if not call.token:
        raise refusals.no_token()
    page = state.holder(call.token, "mastodon")
    if page is None:
        raise refusals.bad_token()
    if page.revoked_subcode is not None:
        raise refusals.revoked_token()
    return page


def _what(method: str, path: str) -> tuple[str, str]:
    match = _PATH.match(path)
    rest = match[1] if match else ""
    if (method, rest) in _ROUTES:
        return f"{method} {rest}", ""
    id_ = _NUMBER.search(rest)
    return f"{method} {_NUMBER.sub(':id', rest, count=1)}", id_[0] if id_ else ""


def _media_ids(form: Form) -> list[str]:
    given: Any = form.params.get("media_ids")
    if isinstance(given, list):
        return [str(item) for item in given]
    return form.repeated.get("media_ids", [])
