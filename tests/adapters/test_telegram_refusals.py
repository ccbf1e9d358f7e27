"""Telegram: the closed list against a table written by hand."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from publisher.adapters.telegram.refusals import CLOSED_LIST
from publisher.engine.adapter import Ready
from publisher.engine.content import Post
from publisher.engine.outcome import (
    Deferred,
    Outcome,
    Proof,
    Reason,
    Rejected,
    Unauthorized,
    Unknown,
)
from publisher.sandbox.process import SandboxProcess
from publisher.transport import Transport
from tests.adapters.liar import Liar, Said
from tests.adapters.stand import make_permit, make_task, photo_post, text_post
from tests.adapters.telegram_stand import TelegramStand

NEEDS, RIGHTS = Reason.NEEDS_RECONNECTING, Reason.MISSING_PERMISSION
TEXT, MEDIA = Reason.CONTENT_REFUSED, Reason.MEDIA_REFUSED

# code, description: outcome, reason, row, whether it holds for an album too.
REFUSALS: list[tuple[int, str, type, Reason, str, bool]] = [
    (429, "Too Many Requests: retry after 35", Deferred, Reason.RATE_LIMITED, "telegram/429",
     False),
    (401, "Unauthorized", Unauthorized, NEEDS, "telegram/401", False),
    (401, "Unauthorized: invalid token specified", Unauthorized, NEEDS, "telegram/401", False),
    (400, "Bad Request: chat not found", Unauthorized, NEEDS, "telegram/chat-not-found", True),
    (400, "Bad Request: group chat was upgraded to a supergroup chat", Unauthorized, NEEDS,
     "telegram/upgraded", True),
    (400, "Bad Request: need administrator rights in the channel chat", Unauthorized, RIGHTS,
     "telegram/no-rights", False),
    (400, "Bad Request: not enough rights to send photos to the chat", Unauthorized, RIGHTS,
     "telegram/no-rights", False),
    (400, "Bad Request: CHAT_WRITE_FORBIDDEN", Unauthorized, RIGHTS, "telegram/no-rights", False),
    (403, "Forbidden: bot is not a member of the channel chat", Unauthorized, RIGHTS,
     "telegram/403", False),
    (403, "Forbidden: bot was kicked from the channel chat", Unauthorized, RIGHTS,
     "telegram/403", False),
    (400, "Bad Request: message is too long", Rejected, TEXT, "telegram/text", False),
    (400, "Bad Request: message text is empty", Rejected, TEXT, "telegram/text", False),
    (400, "Bad Request: message caption is too long", Rejected, TEXT, "telegram/text", False),
    (400, "Bad Request: can't parse entities: no end", Rejected, TEXT, "telegram/text", False),
    (400, "Bad Request: can't parse media JSON object", Rejected, MEDIA, "telegram/album-unread",
     True),
    (400, "Bad Request: can't parse InputMedia: media not found", Rejected, MEDIA,
     "telegram/album-unread", True),
    (413, "Request Entity Too Large", Rejected, MEDIA, "telegram/too-large", True),
    (400, "Bad Request: wrong HTTP URL specified", Rejected, MEDIA, "telegram/photo", False),
    (400, "Bad Request: failed to get HTTP URL content", Rejected, MEDIA, "telegram/photo", False),
    (400, "Bad Request: PHOTO_INVALID_DIMENSIONS", Rejected, MEDIA, "telegram/photo", False),
    (400, "Bad Request: IMAGE_PROCESS_FAILED", Rejected, MEDIA, "telegram/photo", False),
]  # fmt: skip

NO_ROWS: list[tuple[int, object]] = [
    (400, {"ok": False, "error_code": 400, "description": "Bad Request"}),
    (400, {"ok": False, "error_code": 400, "description": "Bad Request: group send failed"}),
    (400, {"ok": False, "error_code": 400, "description": "Bad Request: whatever else"}),
    (400, {"ok": False, "error_code": 401, "description": "Unauthorized"}),
    (400, {"ok": False, "error_code": True, "description": "Bad Request: chat not found"}),
    (400, {"ok": True, "error_code": 400, "description": "Bad Request: chat not found"}),
    (400, {"error_code": 400, "description": "Bad Request: chat not found"}),
    (400, {"ok": False, "error_code": 400, "description": None}),
    (403, {"ok": False, "error_code": 403, "description": "Forbidden"}),
    (404, {"ok": False, "error_code": 404, "description": "Not Found: method not found"}),
    (409, {"ok": False, "error_code": 409, "description": "Conflict"}),
    (429, {"ok": False, "error_code": 429, "description": "Too Many Requests"}),
    (429, {"ok": False, "error_code": 429, "description": "Too Many Requests",
           "parameters": {"retry_after": 0}}),
    (429, {"ok": False, "error_code": 429, "description": "Too Many Requests",
           "parameters": {"retry_after": "35"}}),
    (429, b""),
    (401, b"<html>401</html>"),
    (413, b"<html>413 Request Entity Too Large</html>"),
]  # fmt: skip


@pytest.fixture
def telegram(
    sandbox: SandboxProcess, transport: Transport, caplog: pytest.LogCaptureFixture
) -> Iterator[TelegramStand]:
    """A channel; at its end nothing may hold the bot's token."""
    caplog.set_level("DEBUG")
    stand = TelegramStand(sandbox, transport)
    yield stand
    assert stand.seen
    assert stand.secret not in repr(stand.seen)
    assert stand.secret not in caplog.text


def publish(telegram: TelegramStand, post: Post, status: int, body: object) -> Outcome:
    with Liar(lambda _: Said(body, status)) as liar:
        task = make_task(telegram.channel, post)
        adapter = telegram.adapter_at(liar.url)
        outcome = adapter.publish(task, Ready({}), make_permit(task))
        assert len(liar.asked) == 1
    telegram.seen.append(outcome)
    return outcome


def refusal(code: int, description: str) -> dict[str, object]:
    body: dict[str, object] = {"ok": False, "error_code": code, "description": description}
    return body | ({"parameters": {"retry_after": 35}} if code == 429 else {})


@pytest.mark.parametrize(("code", "description", "kind", "reason", "row", "of_albums"), REFUSALS)
def test_row(
    telegram: TelegramStand,
    code: int,
    description: str,
    kind: type,
    reason: Reason,
    row: str,
    *,
    of_albums: bool,
) -> None:
    for post, validated in (
        (text_post("Text"), True),
        (photo_post("Photo", "a"), True),
        (photo_post("Album", "a", "b"), of_albums),
    ):
        outcome = publish(telegram, post, code, refusal(code, description))
        assert isinstance(outcome, kind)
        assert isinstance(outcome, Rejected | Deferred | Unauthorized)
        assert (outcome.reason, outcome.row) == (reason, row)
        assert outcome.validated_before_storing is validated
        if isinstance(outcome, Deferred):
            assert outcome.proof is Proof.REFUSED
            assert outcome.retry_after == 35.0
            assert outcome.rest_channel


def test_the_table_above_meets_every_row() -> None:
    assert {row.name for row in CLOSED_LIST} == {met[4] for met in REFUSALS}
    assert all(row.source for row in CLOSED_LIST)


@pytest.mark.parametrize(("status", "body"), NO_ROWS)
def test_anything_else_is_unknown(telegram: TelegramStand, status: int, body: object) -> None:
    outcome = publish(telegram, text_post("Text"), status, body)
    assert isinstance(outcome, Unknown)
    assert outcome.reason is Reason.UNLISTED_REFUSAL


@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_server_errors_are_unknown_whatever_they_say(telegram: TelegramStand, status: int) -> None:
    body = refusal(status, "Internal Server Error: restart")
    outcome = publish(telegram, text_post("Text"), status, body)
    assert isinstance(outcome, Unknown)
    assert outcome.reason is Reason.SERVER_ERROR
