"""Telegram as one of the sandbox's dialects. No method lists a channel's messages: that is so."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from publisher.sandbox.behaviours import Behaviour
from publisher.sandbox.dialect import Asked, Complaint
from publisher.sandbox.pages import Page, token_hash
from publisher.sandbox.telegram import calls, messages, refusals, shown
from publisher.sandbox.wire import Answer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from publisher.sandbox.pages import Pages, Post
    from publisher.sandbox.plan import Treatment
    from publisher.sandbox.platform import Platform
    from publisher.sandbox.telegram.calls import Call
    from publisher.sandbox.wire import Head

_FIRST_CHANNEL, _FIRST_BOT = 1_001_000_000_000, 7_000_000_000
_TOKEN = re.compile(r"^(\d+):[\w-]{35}$")
_STATUSES = ("administrator", "left", "kicked")
_SENDS = {
    "sendmessage": messages.send_message,
    "sendphoto": messages.send_photo,
    "sendmediagroup": messages.send_album,
}


class Telegram:
    """The Bot API, with channels and the bots that are administrators there."""

    name = "telegram"
    noun = "Telegram channels"
    refuses_duplicates = False

    def route(self, head: Head, state: Pages) -> Asked | None:
        """See ``Dialect``: ``/bot<token>/{method}``."""
        return calls.route(head, state)

    def read(self, request: str, asked: Asked, head: Head, body: bytes, state: Pages) -> Call:
        """See ``Dialect``."""
        return calls.read(request, asked, head, body, state)

    def perform(self, call: Call, done: Treatment, platform: Platform) -> Answer:
        """See ``Dialect``."""
        result = self._do(call, done, platform)
        return Answer.of_json({"ok": True, "result": result})

    def complain(self, complaint: Complaint, _call: Call, done: Treatment) -> Answer:
        """See ``Dialect``."""
        seconds = None if done.behaviour is Behaviour.REFUSE_429 else done.seconds
        refusal = {
            Complaint.BROKEN: refusals.broken(),
            Complaint.LIMITED: refusals.limited(seconds),
            Complaint.INVALID: refusals.bad_request("message text is empty"),
            Complaint.TOKEN: refusals.unauthorized(),
            Complaint.DUPLICATE: refusals.bad_request("message text is empty"),
        }[complaint]
        return refusal.answer("", done.error)

    def unreadable(self, request: str, reason: str) -> Answer:
        """See ``Dialect``."""
        return refusals.bad_request(reason).answer(request)

    def without_id(self) -> Answer:
        """See ``Dialect``."""
        return Answer.of_json({"ok": True, "result": True})

    def older(self, call: Call, post: Post, platform: Platform) -> Answer:
        """See ``Dialect``."""
        with platform.lock:
            found = shown.messages(post, platform.state)
        result = found if call.name == "sendmediagroup" else found[0]
        return Answer.of_json({"ok": True, "result": result})

    def finish(self, _answer: Answer, _call: Call, _platform: Platform) -> None:
        """See ``Dialect``: nothing is added."""

    def default_account(self, number: int) -> tuple[Page, str]:
        """See ``Dialect``: @sandbox_channel_1 is -1001000000001, with a bot of its own."""
        return self.account({}, number)

    def account(self, given: Mapping[str, Any], number: int) -> tuple[Page, str]:
        """See ``Dialect``: ``id`` (-100…), ``username``, ``token``, ``name``, the bot's rights."""
        chat = str(given.get("id") or -_FIRST_CHANNEL - number)
        name = str(given.get("username") or f"sandbox_channel_{number}").removeprefix("@")
        token = str(given.get("token") or f"{_FIRST_BOT + number}:{'sandbox-bot-token':A<35}")
        found = _TOKEN.match(token)
        status = str(given.get("status") or "administrator")
        if not re.match(r"^-100\d+$", chat) or found is None or status not in _STATUSES:
            reason = (
                "A Telegram channel has an id -100…, a bot's token <digits>:<35 letters>, and a"
                f" status out of {', '.join(_STATUSES)}."
            )
            raise ValueError(reason)
        details = {
            "username": name, "bot": found[1], "status": status,
            "can_post_messages": bool(given.get("can_post_messages", True)),
            "can_delete_messages": bool(given.get("can_delete_messages", True)),
        }  # fmt: skip
        title = str(given.get("name") or f"@{name}")
        page = Page(chat, title, token_hash(token), platform=self.name, details=details)
        return page, token

    def configure(self, _page: str | None, given: Mapping[str, Any]) -> dict[str, Any]:
        """See ``Dialect``."""
        if given:
            reason = "Telegram has no settings; change the account."
            raise ValueError(reason)
        return {}

    def identify(self, post: Post, state: Pages) -> Post:
        """See ``Dialect``."""
        return messages.identify(post, state)

    def land(self, post: Post, state: Pages) -> Post | None:
        """See ``Dialect``: nothing tells two messages apart; a late one has the next number."""
        return messages.identify(post, state)

    def locate(self, path: str, state: Pages) -> Page | Post | None:
        """See ``Dialect``: ``/{name}``, ``/s/{name}``, ``/{name}/{id}``, ``/c/{number}/{id}``."""
        match path.strip("/").split("/"):
            case [name] | ["s", name]:
                return calls.find(f"@{name}", state)
            case ["c", number, message] if message.isdecimal():
                page = calls.find(f"-100{number}", state)
                return page and messages.find(page, int(message), state)
            case [name, message] if message.isdecimal():
                page = calls.find(f"@{name}", state)
                return page and messages.find(page, int(message), state)
            case _:
                return None

    def address(self, post: Post, state: Pages) -> str:
        """See ``Dialect``."""
        name = state.pages[post.page].details["username"]
        return f"/{name}/{post.data['messages'][0]['message_id']}"

    def _do(self, call: Call, done: Treatment, platform: Platform) -> Any:  # noqa: ANN401  JSON
        state = platform.state
        if send := _SENDS.get(call.name):
            page = calls.channel(call, state)
            if page.details["status"] != "administrator" or not page.details["can_post_messages"]:
                raise refusals.no_rights()
            return send(call, page, done, platform)
        match call.name:
            case "getme":
                return shown.me(calls.bot(call, state)[0])
            case "getupdates":
                # A bot never gets what it posted itself, and nobody else's posts are made here.
                calls.bot(call, state)
                return []
            case "getchat":
                return shown.full_chat(calls.channel(call, state))
            case "getchatmember":
                return _member(call, state)
            case "deletemessage":
                page = calls.channel(call, state)
                return messages.delete(call, page, platform)
            case _:
                raise refusals.no_such_method()


def _member(call: Call, state: Pages) -> dict[str, Any]:
    calls.bot(call, state)
    page = calls.find(call.form.text("chat_id"), state)
    if page is None:
        raise refusals.chat_not_found()
    if call.form.text("user_id") != page.details["bot"]:
        reason = "user not found"
        raise refusals.bad_request(reason)
    return shown.member(page)
