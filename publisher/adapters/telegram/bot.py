"""Builds Bot API calls. The token is in the path of every address, so no address is ever kept."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from publisher.transport import FilePart, Request

DEFAULT_URL = "https://api.telegram.org"
HIDDEN = "…"

_TOKEN = re.compile(r"[0-9]{1,20}:[A-Za-z0-9_-]{1,200}")
_CHAT = re.compile(r"@[A-Za-z][A-Za-z0-9_]{3,40}|-?[0-9]{1,20}")


class Method(StrEnum):
    """Calls that publish, whose refusals are told apart; the reading of a channel, the deletion."""

    MESSAGE = "sendMessage"
    PHOTO = "sendPhoto"
    ALBUM = "sendMediaGroup"
    CHAT = "getChat"
    DELETE = "deleteMessage"


@dataclass(frozen=True, slots=True)
class Bot:
    """One bot and the channel it posts to: ``@name``, or a number such as ``-1001234``.

    ``trusted``: the address is the operator's own and not one that a page was told.
    """

    chat: str
    token: str = field(repr=False)
    base_url: str = DEFAULT_URL
    trusted: bool = True

    def get(self, method: Method, params: Mapping[str, str]) -> Request:
        """Read something."""
        return Request(
            method="GET",
            url=self._url(method),
            params=dict(params),
            secrets=self.secrets,
            trusted=self.trusted,
        )

    def post(self, method: Method, body: Mapping[str, object]) -> Request:
        """Send something that is all text."""
        return Request(
            method="POST",
            url=self._url(method),
            json={"chat_id": self.chat, **body},
            secrets=self.secrets,
            trusted=self.trusted,
        )

    def upload(
        self, method: Method, form: Sequence[tuple[str, str]], files: Sequence[FilePart]
    ) -> Request:
        """Send something with files in it."""
        return Request(
            method="POST",
            url=self._url(method),
            form=(("chat_id", self.chat), *form),
            files=tuple(files),
            secrets=self.secrets,
            trusted=self.trusted,
        )

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must never be kept: the token, and the part of it that is no number of the bot."""
        return (self.token, self.token.partition(":")[2])

    def hide(self, text: str) -> str:
        """Take the token out of something that was written by others."""
        for secret in self.secrets:
            text = text.replace(secret, HIDDEN)
        return text

    def _url(self, method: Method) -> str:
        return f"{self.base_url.rstrip('/')}/bot{self.token}/{method}"


def token_is_sendable(token: str) -> bool:
    """Whether this can be a bot's token: it becomes part of a path, so nothing else may."""
    return _TOKEN.fullmatch(token) is not None


def chat_is_sendable(chat: str) -> bool:
    """Whether this names a channel: ``@name`` or a number."""
    return _CHAT.fullmatch(chat) is not None
