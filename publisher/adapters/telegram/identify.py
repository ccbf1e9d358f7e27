"""From what a person pasted to the message it names. No bot may read a channel's message.

So what can be checked is whose channel a link names, and no more: that the message is there and
is this post rests on the person's word. Their link is taken all the same, since it says more than
"I saw it": no other job can claim that message afterwards, and whoever deletes it knows which.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from publisher.adapters.telegram.bot import Bot, Method
from publisher.adapters.telegram.refusals import Complaint, hidden
from publisher.engine.adapter import LookQuery
from publisher.engine.evidence import Candidate, NotThisPost
from publisher.engine.recognition import another, no_link, unreadable
from publisher.transport import Failed, Transport
from publisher.words import _

_NAME = r"[A-Za-z][A-Za-z0-9_]{3,40}"
_MESSAGE = r"[1-9][0-9]{0,14}"
_BARE = re.compile(rf"(?:(@{_NAME}|-100[0-9]{{1,15}})/)?({_MESSAGE})")
_PUBLIC = re.compile(rf"/(?:s/)?({_NAME})/(?:[0-9]+/)?({_MESSAGE})/?")
_PRIVATE = re.compile(rf"/c/([0-9]{{1,15}})/(?:[0-9]+/)?({_MESSAGE})/?")
_HOSTS = ("t.me", "telegram.me", "www.t.me")
_EXAMPLE = "https://t.me/NAME/NUMBER"


def identify(
    transport: Transport, bot: Bot, query: LookQuery, given: str
) -> Candidate | NotThisPost:
    """Check that the link leads to the bot's channel; the candidate holds no text."""
    named = _named(given.strip())
    if named is None:
        return no_link(given.strip(), "Telegram", _EXAMPLE)
    reply = transport.read(bot.get(Method.CHAT, {"chat_id": bot.chat}))
    if isinstance(reply, Failed):
        return unreadable(bot.hide(reply.detail))
    body = reply.json()
    chat = body.get("result") if isinstance(body, dict) and body.get("ok") is True else None
    number = chat.get("id") if isinstance(chat, dict) else None
    if not isinstance(chat, dict) or isinstance(number, bool) or not isinstance(number, int):
        complaint = Complaint.read(reply)
        words = f"HTTP {reply.status}" if complaint is None else complaint.description
        return unreadable(hidden(words, bot.secrets))
    name = chat.get("username")
    public = f"@{name}" if isinstance(name, str) and re.fullmatch(_NAME, name) else None
    whose, message = named
    if whose is not None and whose.casefold() not in (str(number), (public or "").casefold()):
        return another(_("another channel ({name})").format(name=whose))
    return Candidate(
        remote_id=f"{number}/{message}",
        text="",
        created_at=query.began_at,
        permalink=None if public is None else f"https://t.me/{public[1:]}/{message}",
    )


def _named(given: str) -> tuple[str | None, str] | None:
    """The channel, as ``@name`` or a number, and the message; None where a link names neither."""
    if bare := _BARE.fullmatch(given):
        return bare[1], bare[2]
    try:
        url = urlsplit(given if "://" in given else f"https://{given}")
    except ValueError:
        return None
    if url.scheme not in ("http", "https") or (url.hostname or "").casefold() not in _HOSTS:
        return None
    if private := _PRIVATE.fullmatch(url.path):
        return f"-100{private[1]}", private[2]
    if public := _PUBLIC.fullmatch(url.path):
        return f"@{public[1]}", public[2]
    return None
