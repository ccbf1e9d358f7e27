"""The Bot API's errors. Source: ``telegram-bot-api/Client.cpp`` of tdlib/telegram-bot-api."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from publisher.sandbox.dialect import Refusal
from publisher.sandbox.wire import Answer

if TYPE_CHECKING:
    from collections.abc import Mapping


class BotRefusal(Refusal):
    """A call is refused, and nothing was stored."""

    def __init__(self, code: int, what: str = "", **parameters: int) -> None:
        phrase = HTTPStatus(code).phrase
        super().__init__(f"{phrase}: {what}" if what else phrase)
        self.code = code
        self.parameters = parameters

    def answer(
        self,
        request: str,  # noqa: ARG002  the Bot API's answers name no request
        error: Mapping[str, Any] | None = None,
    ) -> Answer:
        """Return the answer; ``error`` replaces parts of it, ``status`` too."""
        body: dict[str, Any] = {"ok": False, "error_code": self.code, "description": str(self)}
        if self.parameters:
            body["parameters"] = self.parameters
        changes = dict(error or {})
        # The code in the body and the status of the answer are the same, unless told otherwise.
        status = int(changes.pop("status", changes.get("error_code", self.code)))
        body |= {"error_code": status} | changes
        data = json.dumps(body, ensure_ascii=False).encode()
        headers = {}
        if "retry_after" in self.parameters:
            headers["Retry-After"] = str(self.parameters["retry_after"])
        return Answer(status, data, headers=headers, code=int(body["error_code"]))


def bad_request(what: str) -> BotRefusal:
    """A parameter is missing or wrong."""
    return BotRefusal(400, what)


def chat_not_found() -> BotRefusal:
    """No channel of that id or name."""
    return BotRefusal(400, "chat not found")


def no_such_message() -> BotRefusal:
    """No message of that id in the channel."""
    return BotRefusal(400, "message to delete not found")


def no_rights() -> BotRefusal:
    """The bot is in the channel, but may not do this there."""
    return BotRefusal(400, "need administrator rights in the channel chat")


def not_a_member() -> BotRefusal:
    """The bot is not in the channel, or no longer."""
    return BotRefusal(403, "bot is not a member of the channel chat")


def kicked() -> BotRefusal:
    """The bot was thrown out."""
    return BotRefusal(403, "bot was kicked from the channel chat")


def unauthorized() -> BotRefusal:
    """The token was never good, or was revoked."""
    return BotRefusal(401)


def no_such_method() -> BotRefusal:
    """No method of that name."""
    return BotRefusal(404, "method not found")


def limited(seconds: float | None) -> BotRefusal:
    """Too many messages; ``retry_after`` in whole seconds, unless None."""
    if seconds is None:
        return BotRefusal(429)
    wait = max(1, round(seconds))
    return BotRefusal(429, f"retry after {wait}", retry_after=wait)


def broken() -> BotRefusal:
    """Something went wrong."""
    return BotRefusal(500)
