"""Telegram's closed list: which row decides, what it proves, and of which calls, by hand."""

from __future__ import annotations

import json
from itertools import product

import pytest

from publisher.adapters.telegram.bot import Method
from publisher.adapters.telegram.formats import (
    CAPTION_LIMIT,
    PHOTO_TYPES,
    TEXT_LIMIT,
    Format,
    capabilities,
)
from publisher.adapters.telegram.refusals import classify
from publisher.engine.adapter import Promise
from publisher.engine.content import Media, Post
from publisher.engine.outcome import Answer, Deferred, Proof, Reason, Rejected, Unauthorized
from publisher.transport import Reply

SINGLE = {Method.MESSAGE, Method.PHOTO}
EVERY = {Method.MESSAGE, Method.PHOTO, Method.ALBUM}
CODES = (400, 401, 403, 404, 413, 429)
ACCESS, RIGHTS = Reason.NEEDS_RECONNECTING, Reason.MISSING_PERMISSION
CONTENT, MEDIA = Reason.CONTENT_REFUSED, Reason.MEDIA_REFUSED
Shown = tuple[str, type, Reason, bool]

# code, row, what it proves, why, the calls that store nothing before it, its words.
ROWS: list[tuple[int, str, type, Reason, set[Method], tuple[str, ...]]] = [
    (401, "401", Unauthorized, ACCESS, SINGLE, ("unauthorized",)),
    (400, "chat-not-found", Unauthorized, ACCESS, EVERY, ("chat not found",)),
    (400, "upgraded", Unauthorized, ACCESS, EVERY, ("upgraded to a supergroup",)),
    (400, "no-rights", Unauthorized, RIGHTS, SINGLE,
     ("not enough rights", "need administrator rights", "have no rights", "chat_write_forbidden",
      "chat_admin_required", "chat_restricted")),
    (403, "403", Unauthorized, RIGHTS, SINGLE,
     ("bot is not a member", "bot was kicked", "bot was blocked", "user is deactivated",
      "bot can't initiate", "bot can't send")),
    (400, "text", Rejected, CONTENT, SINGLE,
     ("message is too long", "message text is empty", "text must be non-empty",
      "caption is too long", "can't parse entities", "encoded in utf-8")),
    (400, "album-unread", Rejected, MEDIA, EVERY,
     ("can't parse media json", "can't parse inputmedia", "expected an array of inputmedia",
      "media not found")),
    (413, "too-large", Rejected, MEDIA, EVERY, ("request entity too large",)),
    (400, "photo", Rejected, MEDIA, SINGLE,
     ("wrong http url specified", "failed to get http url content",
      "wrong type of the web page content", "wrong file identifier",
      "wrong remote file identifier", "can't upload file by url", "file must be non-empty",
      "file is too big", "photo_invalid_dimensions", "photo_ext_invalid",
      "photo_save_file_invalid", "image_process_failed")),
]  # fmt: skip
WORDS = [(words, row) for row in ROWS for words in row[-1]]


def said(method: Method, code: int, words: str, **more: object) -> Shown | None:
    """What is made of an answer."""
    parts = {"ok": False, "error_code": code, "description": f"Said: {words.upper()} (it said)"}
    body = json.dumps(parts | more).encode()
    outcome = classify(method, Reply(code, {}, body, Answer(code, {}, body.decode())))
    if outcome is None:
        return None
    return outcome.row, type(outcome), outcome.reason, outcome.validated_before_storing


@pytest.mark.parametrize(("words", "row"), WORDS, ids=[words for words, _ in WORDS])
def test_words_are_believed_under_their_code_alone(
    words: str, row: tuple[int, str, type, Reason, set[Method], tuple[str, ...]]
) -> None:
    code, name, kind, reason, validated, _ = row
    for method, other in product(sorted(EVERY), CODES):
        shown = said(method, other, words)
        if other == code:
            assert shown == (f"telegram/{name}", kind, reason, method in validated)
        else:
            assert shown is None


@pytest.mark.parametrize("method", sorted(EVERY))
def test_a_limit_is_one_where_it_names_its_seconds(method: Method) -> None:
    limit = ("telegram/429", Deferred, Reason.RATE_LIMITED, method is not Method.ALBUM)
    assert said(method, 429, "whatever", parameters={"retry_after": 3}) == limit
    for seconds in (0, -3, "3", True, None, 3.5):
        assert said(method, 429, "too many", parameters={"retry_after": seconds}) is None
    assert said(method, 429, "too many requests: retry after 3") is None
    assert said(method, 400, "whatever", parameters={"retry_after": 3}) is None


def test_a_limit_rests_the_channel_for_a_day_at_most() -> None:
    for asked, kept in ((35, 35.0), (86_400, 86_400.0), (86_401, 86_400.0)):
        parts = {"ok": False, "error_code": 429, "description": "Too Many Requests",
                 "parameters": {"retry_after": asked}}  # fmt: skip
        body = json.dumps(parts).encode()
        outcome = classify(Method.MESSAGE, Reply(429, {}, body, Answer(429, {}, body.decode())))
        assert isinstance(outcome, Deferred)
        assert (outcome.retry_after, outcome.rest_channel) == (kept, True)
        assert outcome.proof is Proof.REFUSED


def photo(name: str) -> Media:
    return Media(kind="image", type="image/jpeg", url=f"https://photos.example/{name}.jpg")


@pytest.mark.parametrize(
    ("post", "kind"),
    [
        (Post("Text"), Format.TEXT),
        (Post("Text", link="https://example.org"), Format.LINK),
        (Post("Text", media=(photo("a"),)), Format.PHOTO),
        (Post("Text", media=(photo("a"), photo("b"))), Format.ALBUM),
    ],
    ids=str,
)
def test_no_format_can_be_looked_at_and_photos_have_captions(post: Post, kind: Format) -> None:
    can = capabilities(post.to_json())
    assert (can.format, can.promise) == (kind, Promise.AT_MOST_ONCE_WITHOUT_EVIDENCE)
    assert (can.can_look, can.listing_is_exhaustive, can.repeat_for) == (False, False, None)
    with_photos = kind in {Format.PHOTO, Format.ALBUM}
    assert can.text_limit == (CAPTION_LIMIT if with_photos else TEXT_LIMIT)
    assert can.media_limit == (10 if with_photos else 0)
    assert can.media_types == (PHOTO_TYPES if with_photos else ())
