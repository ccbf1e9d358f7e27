"""Takes a post down: ``deleteMessage`` for each of its messages.

An album is as many messages as it has photos, and its remote id names only the first; the others
stand before its answer, as ``answer`` keeps it. A bot that may post in a channel may delete what it
posted there (python-telegram-bot, ``Bot.delete_message``).
"""

from __future__ import annotations

import re
from typing import Final

from publisher.adapters.telegram.answer import numbers_in
from publisher.adapters.telegram.bot import Bot, Method
from publisher.adapters.telegram.refusals import Complaint, classify, hidden
from publisher.engine.adapter import LivePost
from publisher.engine.content import ContentError, Post
from publisher.engine.outcome import (
    AlreadyGone,
    CannotWithdraw,
    NotWithdrawn,
    Withdrawal,
    Withdrawn,
    cannot_withdraw,
)
from publisher.transport import Failed, Transport

_ID = re.compile(r"(-?[0-9]{1,20})/([1-9][0-9]{0,14})")
_GONE: Final = "message to delete not found"


def withdraw(transport: Transport, bot: Bot, post: LivePost) -> Withdrawal:
    """Delete every message of a post."""
    named = _ID.fullmatch(post.remote_id)
    if named is None or (not bot.chat.startswith("@") and named[1] != bot.chat):
        return CannotWithdraw(NotWithdrawn.REFUSED, "Its id is not that of a post of this channel.")
    first = int(named[2])
    numbers = numbers_in(post.answer) or [first]
    if first not in numbers or len(numbers) < _messages(post.content):
        # Half an album is worse than a whole one.
        detail = "It is an album, and the numbers of all its messages are not known."
        return CannotWithdraw(NotWithdrawn.UNSUPPORTED, detail)
    ends = [_delete(transport, bot, named[1], number) for number in numbers]
    stuck = next((end for end in ends if isinstance(end, CannotWithdraw)), None)
    if stuck is not None:
        return stuck
    return Withdrawn() if Withdrawn() in ends else AlreadyGone()


def _messages(content: str) -> int:
    try:
        return max(1, len(Post.from_json(content).media))
    except ContentError:
        return 1


def _delete(transport: Transport, bot: Bot, chat: str, number: int) -> Withdrawal:
    """By the chat's number: a name may be another channel's by now."""
    reply = transport.step(bot.post(Method.DELETE, {"chat_id": chat, "message_id": number}))
    if isinstance(reply, Failed):
        return CannotWithdraw(NotWithdrawn.UNCLEAR, bot.hide(reply.detail))
    body, complaint = reply.json(), Complaint.read(reply)
    if isinstance(body, dict) and body.get("ok") is True and body.get("result") is True:
        return Withdrawn()
    if complaint is None:
        detail = f"Telegram answered HTTP {reply.status}, and not whether the post was deleted."
        return CannotWithdraw(NotWithdrawn.UNCLEAR, detail)
    if _GONE in complaint.description.casefold():
        return AlreadyGone()
    refused = classify(Method.MESSAGE, reply, secrets=bot.secrets)
    if refused is not None:
        return cannot_withdraw(refused)
    clear = 400 <= complaint.code < 500  # noqa: PLR2004 - HTTP's client errors
    reason = NotWithdrawn.REFUSED if clear else NotWithdrawn.UNCLEAR
    return CannotWithdraw(reason, hidden(complaint.description, bot.secrets))
