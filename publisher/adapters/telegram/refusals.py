"""The closed list: which of Telegram's answers prove that a post was not published.

Nobody can look at a channel by program, so what is believed here is never checked again. A row
counts as *validated before storing* only where the server refuses before a message exists:

- ``sendMessage`` and ``sendPhoto`` make one message by one call to Telegram, whose refusal the
  Bot API server hands on: ``Client.cpp``, ``fail_query_with_error``. That holds for its limits
  too: 429 with ``retry_after`` is a call that Telegram did not carry out. (What is delivered over
  quota is answered with a time-out, python-telegram-bot#1045; a time-out is on no list.)
- ``sendMediaGroup`` makes one message per photo and answers the first error even though others of
  them were sent: ``Client.cpp``, ``on_message_send_succeeded`` and ``on_message_send_failed``. So
  of an album only what is refused while the request is read proves that nothing is there.

A row that is not validated still says what happened; the engine makes *unknown* of it here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import assert_never

from publisher.adapters.telegram.bot import Method
from publisher.engine.outcome import Deferred, Proof, Reason, Rejected, Unauthorized
from publisher.transport import Reply
from publisher.transport.redaction import Redaction

_DETAIL_LIMIT = 300
_LONGEST_SECONDS = 86_400.0


class Meaning(StrEnum):
    """What a row proves."""

    REJECTED = "rejected"
    DEFERRED = "deferred"
    UNAUTHORIZED = "unauthorized"


@dataclass(frozen=True, slots=True)
class Complaint:
    """What Telegram says is wrong. ``retry_after``: seconds, where it names them."""

    code: int
    description: str
    retry_after: int | None = None

    @classmethod
    def read(cls, reply: Reply) -> Complaint | None:
        """The error in a reply, or None when its body is not one that the Bot API writes.

        The code in the body and the status are one number there; a body that differs is not its.
        """
        body = reply.json()
        if not isinstance(body, dict) or body.get("ok") is not False:
            return None
        code, description = body.get("error_code"), body.get("description")
        if code != reply.status or isinstance(code, bool) or not isinstance(description, str):
            return None
        parameters = body.get("parameters")
        wait = parameters.get("retry_after") if isinstance(parameters, dict) else None
        seconds = wait if isinstance(wait, int) and not isinstance(wait, bool) else None
        return cls(reply.status, " ".join(description.split()), seconds)


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the list. The first that fits decides.

    ``says``: words (lower case) of which one must be there; empty only where ``retry_after`` is
    asked for. ``validated``: the calls for which it holds before anything is stored.
    """

    name: str
    code: int
    meaning: Meaning
    reason: Reason
    source: str
    says: tuple[str, ...] = ()
    with_retry_after: bool = False
    validated: frozenset[Method] = frozenset()

    def fits(self, complaint: Complaint) -> bool:
        """Whether the row is about this answer."""
        if self.code != complaint.code:
            return False
        if self.with_retry_after:
            return complaint.retry_after is not None and complaint.retry_after > 0
        words = complaint.description.casefold()
        return any(part in words for part in self.says)


SINGLE = frozenset({Method.MESSAGE, Method.PHOTO})
EVERY = SINGLE | {Method.ALBUM}

_CLIENT = "tdlib/telegram-bot-api Client.cpp"
_ERRORS = f"{_CLIENT} fail_query_with_error"

CLOSED_LIST: tuple[Row, ...] = (
    Row("telegram/429", 429, Meaning.DEFERRED, Reason.RATE_LIMITED,
        f"{_ERRORS}: a 429 without a number of seconds is turned into a 500",
        with_retry_after=True, validated=SINGLE),
    # The access. A session that ends in the middle of a send is answered with 401 as well.
    Row("telegram/401", 401, Meaning.UNAUTHORIZED, Reason.NEEDS_RECONNECTING,
        "ClientManager.cpp: the token is looked up first", says=("unauthorized",),
        validated=SINGLE),
    Row("telegram/chat-not-found", 400, Meaning.UNAUTHORIZED, Reason.NEEDS_RECONNECTING,
        f"{_CLIENT} check_chat: before the request is carried out", says=("chat not found",),
        validated=EVERY),
    Row("telegram/upgraded", 400, Meaning.UNAUTHORIZED, Reason.NEEDS_RECONNECTING,
        f"{_CLIENT} check_chat", says=("upgraded to a supergroup",), validated=EVERY),
    Row("telegram/no-rights", 400, Meaning.UNAUTHORIZED, Reason.MISSING_PERMISSION,
        f"{_CLIENT} check_chat_access",
        says=("not enough rights", "need administrator rights", "have no rights",
              "chat_write_forbidden", "chat_admin_required", "chat_restricted"),
        validated=SINGLE),
    Row("telegram/403", 403, Meaning.UNAUTHORIZED, Reason.MISSING_PERMISSION,
        f"{_CLIENT} check_chat_access",
        says=("bot is not a member", "bot was kicked", "bot was blocked", "user is deactivated",
              "bot can't initiate", "bot can't send"),
        validated=SINGLE),
    # What the post holds.
    Row("telegram/text", 400, Meaning.REJECTED, Reason.CONTENT_REFUSED, _ERRORS,
        says=("message is too long", "message text is empty", "text must be non-empty",
              "caption is too long", "can't parse entities", "encoded in utf-8"),
        validated=SINGLE),
    Row("telegram/album-unread", 400, Meaning.REJECTED, Reason.MEDIA_REFUSED,
        f"{_CLIENT} get_input_message_contents: while the request is read",
        says=("can't parse media json", "can't parse inputmedia", "expected an array of inputmedia",
              "media not found"),
        validated=EVERY),
    Row("telegram/too-large", 413, Meaning.REJECTED, Reason.MEDIA_REFUSED,
        "td/net HttpReader: before the request is read", says=("request entity too large",),
        validated=EVERY),
    Row("telegram/photo", 400, Meaning.REJECTED, Reason.MEDIA_REFUSED, _ERRORS,
        says=("wrong http url specified", "failed to get http url content",
              "wrong type of the web page content", "wrong file identifier",
              "wrong remote file identifier", "can't upload file by url", "file must be non-empty",
              "file is too big", "photo_invalid_dimensions", "photo_ext_invalid",
              "photo_save_file_invalid", "image_process_failed"),
        validated=SINGLE),
)  # fmt: skip


def classify(
    method: Method, reply: Reply, *, secrets: tuple[str, ...] = ()
) -> Rejected | Deferred | Unauthorized | None:
    """What a 4xx answer to the publishing call proves; None: nothing, the post may be live."""
    complaint = Complaint.read(reply)
    row = None if complaint is None else row_for(complaint)
    if complaint is None or row is None:
        return None
    detail = hidden(complaint.description, secrets)
    validated = method in row.validated
    match row.meaning:
        case Meaning.REJECTED:
            return Rejected(row.reason, detail, row.name, validated, reply.answer)
        case Meaning.UNAUTHORIZED:
            return Unauthorized(row.reason, detail, row.name, validated, reply.answer)
        case Meaning.DEFERRED:
            wait = min(float(complaint.retry_after or 0), _LONGEST_SECONDS)
            limited = Deferred(row.reason, detail, Proof.REFUSED, row.name, wait)
            return replace(
                limited,
                rest_channel=True,
                validated_before_storing=validated,
                answer=reply.answer,
            )
        case _:
            assert_never(row.meaning)


def row_for(complaint: Complaint) -> Row | None:
    """The row that decides, or None where the list has none."""
    return next((row for row in CLOSED_LIST if row.fits(complaint)), None)


def hidden(text: str, secrets: tuple[str, ...]) -> str:
    """Take secrets out of Telegram's words, and cut them to a line."""
    return Redaction(secrets)(text, _DETAIL_LIMIT)
