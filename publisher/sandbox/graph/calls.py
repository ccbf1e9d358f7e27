"""A call under Graph: which endpoint of which node, by whom, with what."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from publisher.sandbox import forms
from publisher.sandbox.behaviours import Endpoint
from publisher.sandbox.dialect import Asked
from publisher.sandbox.forms import Form, UnreadableForm
from publisher.sandbox.graph import refusals

if TYPE_CHECKING:
    from publisher.sandbox.pages import Page, Pages
    from publisher.sandbox.wire import Head

_PATH = re.compile(r"^(?:/(v\d+\.\d+))?/([0-9]+(?:_[0-9]+)?|me|debug_token)(?:/(\w+))?/?$")
_CREATES = {"feed": Endpoint.FEED, "photos": Endpoint.PHOTOS, "videos": Endpoint.VIDEOS}
_LISTS = ("published_posts", "feed", "posts")


@dataclass(frozen=True, slots=True)
class Route:
    """Where a request goes, as far as its head tells."""

    version: str
    node: str
    edge: str | None
    endpoint: Endpoint

    @property
    def page(self) -> str | None:
        """The page it is about; None for ``/me`` and for nodes that are not under a page."""
        page = self.node.partition("_")[0]
        return page if page.isdigit() else None


@dataclass(frozen=True, slots=True)
class Call:
    """One call, read whole."""

    request: str
    """Random id of this request, also Graph's trace id."""
    route: Route
    method: str
    path: str
    host: str
    form: Form
    token: str
    client_mutation_id: str | None

    @property
    def message(self) -> str:
        """The text: a feed post's ``message``, a photo's ``caption``, a video's ``description``."""
        names = {
            Endpoint.PHOTOS: ("caption", "message"),
            Endpoint.VIDEOS: ("description",),
        }.get(self.route.endpoint, ("message",))
        return next((text for name in names if (text := self.form.text(name))), "")

    @property
    def publishes(self) -> bool:
        """Say whether it puts a post on a page when it is accepted."""
        endpoint = self.route.endpoint
        if endpoint in (Endpoint.FEED, Endpoint.PHOTOS, Endpoint.VIDEOS):
            return self.form.flag("published", default=True)
        flips = endpoint is Endpoint.READ and self.method == "POST"
        return flips and self.form.flag("is_published", default=False)

    def media_ids(self) -> list[str]:
        """Return the ids of ``attached_media``. Raises ``Refusal``."""
        try:
            items = self.form.items("attached_media")
            return [str(item["media_fbid"]) for item in items]
        except (UnreadableForm, KeyError, TypeError):
            reason = 'Param attached_media must be an array of {"media_fbid": "…"}.'
            raise refusals.invalid_parameter(reason) from None

    @property
    def asked(self) -> Asked:
        """What it asks for, in the words of the log."""
        try:
            media = self.media_ids()
        except refusals.GraphRefusal:
            media = []
        return Asked(
            self.method, self.path, self.route.page, self.route.endpoint, self.publishes,
            self.message, self.form.text("link") or None, tuple(media), self.client_mutation_id,
        )  # fmt: skip


def route(method: str, path: str) -> Route | None:
    """Return where a path under Graph leads, or None when it is not one."""
    match = _PATH.match(path)
    if match is None:
        return None
    version, node, edge = match[1] or "v26.0", match[2], match[3]
    endpoint = Endpoint.READ
    if method == "POST" and edge in _CREATES:
        endpoint = _CREATES[edge]
    elif method == "GET" and edge in _LISTS:
        endpoint = Endpoint.LIST
    elif method == "DELETE" and edge is None:
        endpoint = Endpoint.DELETE
    return Route(version, node, edge, endpoint)


def read(request: str, where: Route, head: Head, body: bytes) -> Call:
    """Read a whole call. Raises ``UnreadableForm``."""
    form = forms.read(head, body)
    token = form.text("access_token") or head.bearer
    mutation = form.text("client_mutation_id") or head.headers.get("idempotency-key")
    host = head.headers.get("host", "127.0.0.1")
    return Call(request, where, head.method, head.path, host, form, token, mutation)


def caller(call: Call, pages: Pages) -> Page:
    """Return the page whose token the call carries. Raises ``Refusal``."""
    if not call.token:
        raise refusals.no_token()
    page = pages.holder(call.token, "graph")
    if page is None:
        raise refusals.bad_token()
    if page.revoked_subcode is not None:
        raise refusals.bad_token(page.revoked_subcode)
    return page
