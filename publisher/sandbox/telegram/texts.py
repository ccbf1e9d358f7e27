"""Text as Telegram counts and marks it: in UTF-16 units."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from publisher.sandbox.forms import UnreadableForm
from publisher.sandbox.telegram import refusals

if TYPE_CHECKING:
    from publisher.sandbox.telegram.calls import Call

TEXT, CAPTION = 4096, 1024
_AUTOMATIC = (
    ("url", re.compile(r"https?://[^\s<>\"]+[^\s<>\".,:;!?'’)\]]")),
    ("hashtag", re.compile(r"(?<![\w#])#\w*[^\W\d]\w*")),
    ("mention", re.compile(r"(?<![\w@])@[A-Za-z]\w{3,31}")),
)


def units(text: str) -> int:
    """Return how many UTF-16 units a text has."""
    return len(text.encode("utf-16-le")) // 2


def message(call: Call, text: str) -> str:
    """Return the text of a message as it is stored. Raises ``BotRefusal``."""
    stored = text.strip()
    if not stored:
        reason = "message text is empty"
        raise refusals.bad_request(reason)
    if units(stored) > TEXT:
        reason = "message is too long"
        raise refusals.bad_request(reason)
    _check_parse_mode(call.form.text("parse_mode"))
    return stored


def caption(text: str, parse_mode: str) -> str:
    """Return a caption as it is stored, which may be empty. Raises ``BotRefusal``."""
    stored = text.strip()
    if units(stored) > CAPTION:
        reason = "message caption is too long"
        raise refusals.bad_request(reason)
    _check_parse_mode(parse_mode)
    return stored


def entities(call: Call, text: str, name: str) -> list[dict[str, Any]]:
    """Return the entities given under ``name``, or else those found in the text.

    Raises ``BotRefusal`` for one that does not lie inside the text.
    """
    try:
        given = call.form.items(name)
    except UnreadableForm:
        reason = "can't parse entities JSON object"
        raise refusals.bad_request(reason) from None
    for entity in given:
        match entity:
            case {"type": str(), "offset": int() as offset, "length": int() as length} if (
                offset >= 0 and length > 0 and offset + length <= units(text)
            ):
                pass
            case _:
                reason = "can't parse MessageEntity: it does not lie inside the text"
                raise refusals.bad_request(reason)
    return given or _found(text)


def _found(text: str) -> list[dict[str, Any]]:
    found = [
        {"offset": units(text[: it.start()]), "length": units(it[0]), "type": kind}
        for kind, pattern in _AUTOMATIC
        for it in pattern.finditer(text)
    ]
    return sorted(found, key=lambda entity: int(str(entity["offset"])))


def _check_parse_mode(parse_mode: str) -> None:
    if parse_mode:
        reason = f"unsupported parse_mode: the sandbox reads no {parse_mode}, send entities"
        raise refusals.bad_request(reason)
