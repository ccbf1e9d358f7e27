"""What a success is worth: the messages must be in our channel, as many as were sent.

A post is named ``chat/message``, with the channel's number, which it keeps when it is renamed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

from publisher.adapters.telegram.bot import Bot
from publisher.engine.matching import resembles
from publisher.engine.outcome import Answer, Published, Reason, Unknown
from publisher.transport import Reply

Message = Mapping[str, object]

_NUMBERS = re.compile(r"\[messages ([0-9]{1,15}(?:, [0-9]{1,15})*)\]")
_ID_IN_PIECES = re.compile(r'"message_id"\s*:\s*([0-9]{1,15})\b')


def published(bot: Bot, text: str, count: int, reply: Reply) -> Published | Unknown:
    """Judge a 2xx answer to a post of ``text`` that makes ``count`` messages."""
    messages = _messages(reply)
    named = [(chat, number) for m in messages if (chat := _chat_id(m)) and (number := _number(m))]
    if not named or len(named) < len(messages):
        detail = "Telegram answered without the id of a message."
        return Unknown(Reason.NO_ID, detail, answer=reply.answer)
    first = f"{named[0][0]}/{named[0][1]}"
    answer = _with_numbers(reply.answer, [number for _, number in named])
    if not all(_is_in(bot, message) for message in messages):
        detail = "Telegram answered with a message of another channel."
        return Unknown(Reason.NO_ID, detail, first, answer)
    if len(named) != count:
        detail = f"Telegram answered with {len(named)} messages; this post makes {count}."
        return Unknown(Reason.NO_ID, detail, first, answer)
    shown = _text(messages[0])
    if text.strip() and not (shown and resembles(text, shown)):
        detail = "Telegram answered with a message whose text differs."
        return Unknown(Reason.NO_ID, detail, first, answer)
    return Published(first, _permalink(messages[0]), _at(messages[0]), answer)


def handle_in(chat: str, lost: Unknown) -> str | None:
    """The id in what came of an answer that was cut; a clue, and no more than that."""
    if lost.answer is None or (lost.answer.status or 0) // 100 != 2:  # noqa: PLR2004 - successes
        return None
    found = _ID_IN_PIECES.search(lost.answer.body)
    return None if found is None else f"{chat}/{found[1]}"


def _messages(reply: Reply) -> list[Message]:
    body = reply.json()
    if not isinstance(body, dict) or body.get("ok") is not True:
        return []
    result = body.get("result")
    items = result if isinstance(result, list) else [result]
    messages: list[Message] = [item for item in items if isinstance(item, dict)]
    return messages if len(messages) == len(items) else []


def _chat(message: Message) -> Mapping[str, object]:
    chat = message.get("chat")
    return chat if isinstance(chat, dict) else {}


def _chat_id(message: Message) -> int | None:
    return _whole(_chat(message).get("id"))


def _number(message: Message) -> int | None:
    number = _whole(message.get("message_id"))
    return number if number is not None and number > 0 else None


def _is_in(bot: Bot, message: Message) -> bool:
    """Whether a message is in the bot's channel, by number or by name (which ignores case)."""
    if not bot.chat.startswith("@"):
        return str(_chat_id(message)) == bot.chat
    name = _chat(message).get("username")
    return isinstance(name, str) and f"@{name}".casefold() == bot.chat.casefold()


def _text(message: Message) -> str:
    value = message.get("text", message.get("caption"))
    return value if isinstance(value, str) else ""


def _permalink(message: Message) -> str | None:
    """The public address of a message; a channel without a name has none."""
    name = _chat(message).get("username")
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9_]{1,64}", name):
        return None
    return f"https://t.me/{name}/{_number(message)}"


def _at(message: Message) -> datetime | None:
    seconds = _whole(message.get("date"))
    good = seconds is not None and 0 < seconds < 1 << 40
    return datetime.fromtimestamp(seconds, UTC) if good and seconds is not None else None


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _with_numbers(answer: Answer, numbers: list[int]) -> Answer:
    """The answer of an album with all its message numbers before the rest.

    Its last ones would be cut away with the end of a long body, and whoever deletes the album
    needs them all.
    """
    if len(numbers) == 1:
        return answer
    listed = ", ".join(str(number) for number in numbers)
    return replace(answer, body=f"[messages {listed}] {answer.body}")


def numbers_in(answer: str) -> list[int]:
    """The message numbers that an album's kept answer begins with; none where it has none."""
    found = _NUMBERS.match(answer)
    return [] if found is None else [int(number) for number in found[1].split(", ")]
