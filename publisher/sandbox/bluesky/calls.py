"""A call under ``/xrpc/``: which method, by whom, with what."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from publisher.sandbox import forms
from publisher.sandbox.behaviours import Endpoint
from publisher.sandbox.bluesky import sessions
from publisher.sandbox.bluesky.refusals import XrpcRefusal
from publisher.sandbox.dialect import Asked
from publisher.sandbox.forms import Form

if TYPE_CHECKING:
    from publisher.sandbox.pages import Page, Pages
    from publisher.sandbox.wire import Head

POSTS = "app.bsky.feed.post"
"""The only collection the sandbox has."""
_PREFIX = "/xrpc/"
_SERVER, _REPO = "com.atproto.server.", "com.atproto.repo."
_ENDPOINTS = {
    _SERVER + "createSession": Endpoint.SESSION,
    _SERVER + "refreshSession": Endpoint.SESSION,
    _SERVER + "getSession": Endpoint.ACCOUNT,
    _SERVER + "describeServer": Endpoint.ACCOUNT,
    "com.atproto.identity.resolveHandle": Endpoint.ACCOUNT,
    _REPO + "uploadBlob": Endpoint.MEDIA,
    _REPO + "createRecord": Endpoint.POST,
    _REPO + "putRecord": Endpoint.POST,
    _REPO + "getRecord": Endpoint.READ,
    _REPO + "listRecords": Endpoint.LIST,
    _REPO + "deleteRecord": Endpoint.DELETE,
}


@dataclass(frozen=True, slots=True)
class Call:
    """One call, read whole."""

    request: str
    asked: Asked
    nsid: str
    form: Form
    body: bytes
    content_type: str
    token: str

    def name(self, name: str) -> str:
        """Return a parameter that is text, empty when it is none."""
        value = self.form.params.get(name)
        return value if isinstance(value, str) else ""

    def method_of(self) -> str:
        """Return HTTP's method and XRPC's, as one word to match."""
        return f"{self.asked.method} {self.nsid}"

    @property
    def record(self) -> dict[str, Any]:
        """The record of a write; empty when there is none."""
        return _record(self.form)


def route(head: Head, state: Pages) -> Asked | None:
    """Return what a path under ``/xrpc/`` asks for, None when it is not one."""
    if not head.path.startswith(_PREFIX):
        return None
    nsid = head.path.removeprefix(_PREFIX)
    page = _bearer(head, state)
    return Asked(
        head.method, head.path, page.id if page else None, _ENDPOINTS.get(nsid, Endpoint.ANY)
    )


def read(request: str, asked: Asked, head: Head, body: bytes, state: Pages) -> Call:
    """Read a whole call. Raises ``UnreadableForm``."""
    is_blob = asked.endpoint is Endpoint.MEDIA
    form = forms.read(head, b"" if is_blob else body)
    content_type = head.headers.get("content-type", "")
    nsid = asked.path.removeprefix(_PREFIX)
    page = asked.page or _named(form, state)
    record = _record(form)
    rkey = form.params.get("rkey")
    whole = replace(
        asked,
        page=page,
        publishes=asked.endpoint is Endpoint.POST,
        message=_text(record.get("text")),
        link=_external(record),
        media=tuple(blob["ref"]["$link"] for blob in blobs(record)),
        client_mutation_id=rkey if isinstance(rkey, str) else None,
    )
    return Call(request, whole, nsid, form, body, content_type, head.bearer)


def blobs(record: Any) -> list[dict[str, Any]]:  # noqa: ANN401  JSON
    """Return every blob a record refers to, in the order of the record."""
    match record:
        case {"$type": "blob", "ref": {"$link": str()}}:
            return [record]
        case dict():
            return [blob for value in record.values() for blob in blobs(value)]
        case list():
            return [blob for value in record for blob in blobs(value)]
        case _:
            return []


def find(identifier: str, state: Pages) -> Page | None:
    """Return the account of a did or a handle."""
    page = state.pages.get(identifier)
    if page is not None and page.platform == "bluesky":
        return page
    name = identifier.removeprefix("@").lower()
    return next((page for page in state.of("bluesky") if page.details["handle"] == name), None)


def _record(form: Form) -> dict[str, Any]:
    record = form.params.get("record")
    return record if isinstance(record, dict) else {}


def _named(form: Form, state: Pages) -> str | None:
    names = (form.params.get(name) for name in ("repo", "identifier", "did"))
    found = (find(name, state) for name in names if isinstance(name, str))
    page = next((page for page in found if page is not None), None)
    return page.id if page else None


def _bearer(head: Head, state: Pages) -> Page | None:
    try:
        claims = sessions.read(head.bearer)
    except XrpcRefusal:
        return None
    return state.pages.get(claims["sub"])


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _external(record: dict[str, Any]) -> str | None:
    match record.get("embed"):
        case {"external": {"uri": str() as uri}}:
            return uri
        case _:
            return None
