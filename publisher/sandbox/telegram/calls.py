"""A call under ``/bot<token>/``: which method, in which channel, with what."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from publisher.sandbox import forms
from publisher.sandbox.behaviours import Endpoint
from publisher.sandbox.dialect import Asked
from publisher.sandbox.forms import Form, UnreadableForm
from publisher.sandbox.telegram import refusals

if TYPE_CHECKING:
    from publisher.sandbox.pages import Page, Pages
    from publisher.sandbox.wire import Head

_PATH = re.compile(r"^/bot([^/]+)/(?:test/)?([A-Za-z]+)/?$")
_ENDPOINTS = {
    "sendmessage": Endpoint.POST,
    "sendphoto": Endpoint.POST,
    "sendmediagroup": Endpoint.POST,
    "deletemessage": Endpoint.DELETE,
    "getme": Endpoint.ACCOUNT,
    "getchat": Endpoint.ACCOUNT,
    "getchatmember": Endpoint.ACCOUNT,
    "getupdates": Endpoint.ACCOUNT,
}


@dataclass(frozen=True, slots=True)
class Call:
    """One call, read whole."""

    request: str
    asked: Asked
    name: str
    """The method in lower case: the Bot API does not mind."""
    form: Form
    token: str

    def media(self) -> list[dict[str, Any]]:
        """Return the items of an album. Raises ``BotRefusal``."""
        return _media(self.form)


def route(head: Head, state: Pages) -> Asked | None:
    """Return what a path under ``/bot<token>/`` asks for, None when it is not one."""
    match = _PATH.match(head.path)
    if match is None:
        return None
    channels = state.holders(match[1], "telegram")
    # Which of a bot's channels it is about stands in the body; with one channel it is clear.
    page = channels[0].id if len(channels) == 1 else None
    endpoint = _ENDPOINTS.get(match[2].lower(), Endpoint.ANY)
    return Asked(head.method, f"/bot<token>/{match[2]}", page, endpoint)


def read(request: str, asked: Asked, head: Head, body: bytes, state: Pages) -> Call:
    """Read a whole call. Raises ``UnreadableForm``."""
    match = _PATH.match(head.path)
    token, name = (match[1], match[2].lower()) if match else ("", "")
    form = forms.read(head, body)
    channel = find(form.text("chat_id"), state)
    asked = replace(asked, page=channel.id if channel else asked.page)
    if asked.endpoint is Endpoint.POST:
        asked = replace(asked, publishes=True, message=_message(name, form), media=_names(form))
    return Call(request, asked, name, form, token)


def find(chat: str, state: Pages) -> Page | None:
    """Return the channel of an id (-100…) or a name (@name)."""
    if chat.startswith("@"):
        name = chat.removeprefix("@").lower()
        channels = state.of("telegram")
        return next((it for it in channels if it.details["username"].lower() == name), None)
    page = state.pages.get(chat)
    return page if page is not None and page.platform == "telegram" else None


def bot(call: Call, state: Pages) -> list[Page]:
    """Return the channels of the bot whose token the call carries. Raises ``BotRefusal``."""
    channels = state.holders(call.token, "telegram")
    if not channels or any(page.revoked_subcode is not None for page in channels):
        raise refusals.unauthorized()
    return channels


def channel(call: Call, state: Pages) -> Page:
    """Return the channel a call names, which its bot can see. Raises ``BotRefusal``."""
    own = bot(call, state)
    text = call.form.text("chat_id")
    if not text:
        reason = "chat_id is empty"
        raise refusals.bad_request(reason)
    page = find(text, state)
    if page is None:
        raise refusals.chat_not_found()
    status = page.details["status"]
    if page not in own or status == "left":
        raise refusals.not_a_member()
    if status == "kicked":
        raise refusals.kicked()
    return page


def _message(name: str, form: Form) -> str:
    """Return the text of a message; of an album, its first caption."""
    if name == "sendmediagroup":
        try:
            captions = [str(item.get("caption") or "") for item in _media(form)]
        except refusals.BotRefusal:
            return ""
        return next((caption for caption in captions if caption), "")
    return form.text("text" if name == "sendmessage" else "caption")


def _names(form: Form) -> tuple[str, ...]:
    photo = form.text("photo")
    try:
        items = [str(item.get("media")) for item in _media(form)]
    except refusals.BotRefusal:
        items = []
    return (photo,) if photo else tuple(items)


def _media(form: Form) -> list[dict[str, Any]]:
    try:
        items = form.items("media")
    except UnreadableForm:
        reason = "can't parse media JSON object"
        raise refusals.bad_request(reason) from None
    if not all(isinstance(item, dict) for item in items):
        reason = "can't parse InputMedia: expected an Object"
        raise refusals.bad_request(reason)
    return items
