"""Mastodon: what each answer to the publishing call proves, against a table written by hand."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from publisher.adapters.mastodon.refusals import CLOSED_LIST, seconds_to_wait
from publisher.engine.content import Post
from publisher.engine.outcome import (
    Answer,
    Deferred,
    Proof,
    Published,
    Reason,
    Rejected,
    Unauthorized,
    Unknown,
)
from publisher.sandbox.process import SandboxProcess
from publisher.transport import Reply, Transport
from tests.adapters.liar import Asked, Said
from tests.adapters.mastodon_stage import TEXT, Stage, said
from tests.adapters.mastodon_stand import MastodonStand
from tests.adapters.stand import photo_post

# status, error, other headers: outcome, reason, row, what a later attempt proves.
REFUSALS: list[tuple[int, str, dict[str, str], type, Reason, str, type]] = [
    (401, "The access token is invalid", {}, Unauthorized, Reason.NEEDS_RECONNECTING,
     "mastodon/401-token", Unauthorized),
    (401, "Mã truy cập không hợp lệ",
     {"WWW-Authenticate": 'Bearer realm="Doorkeeper", error="invalid_token"'},
     Unauthorized, Reason.NEEDS_RECONNECTING, "mastodon/401-token", Unauthorized),
    (401, "invalid_token", {}, Unauthorized, Reason.NEEDS_RECONNECTING,
     "mastodon/401-token", Unauthorized),
    (401, "This method requires an authenticated user", {}, Unauthorized,
     Reason.NEEDS_RECONNECTING, "mastodon/401", Unauthorized),
    (403, "This action is outside the authorized scopes", {}, Unauthorized,
     Reason.MISSING_PERMISSION, "mastodon/403-scope", Unauthorized),
    (403, "نشست پایان یافت", {"WWW-Authenticate": 'Bearer error="insufficient_scope"'},
     Unauthorized, Reason.MISSING_PERMISSION, "mastodon/403-scope", Unauthorized),
    (403, "Your login is currently disabled", {}, Unauthorized, Reason.NEEDS_RECONNECTING,
     "mastodon/403", Unauthorized),
    (422, "Validation failed: Text can't be blank", {}, Rejected, Reason.CONTENT_REFUSED,
     "mastodon/422-text", Unknown),
    (422, "Validation failed: Text character limit of 500 exceeded", {}, Rejected,
     Reason.CONTENT_REFUSED, "mastodon/422-text", Unknown),
    (422, "Cannot attach more than 4 files", {}, Rejected, Reason.MEDIA_REFUSED,
     "mastodon/422-media", Unknown),
    (422, "Media 7 not found or already attached to another post", {}, Rejected,
     Reason.MEDIA_REFUSED, "mastodon/422-media", Unknown),
    (422, "Cannot attach files that have not finished processing. Try again in a moment!", {},
     Deferred, Reason.BUSY, "mastodon/422-not-processed", Unknown),
    (422, "Xác thực thất bại: Nội dung không được để trống", {}, Rejected,
     Reason.CONTENT_REFUSED, "mastodon/422", Unknown),
    (429, "Too many requests", {}, Deferred, Reason.RATE_LIMITED, "mastodon/429", Deferred),
]  # fmt: skip

NOT_ITS_WORDS: list[object] = [
    b"",
    b"<html>no</html>",
    [],
    {},
    "no",
    {"error": None},
    {"error": " "},
    {"error": {"code": 5}},
    {"message": "no"},
]
NO_ROWS: list[tuple[int, object]] = [
    *[(status, {"error": "Record not found"}) for status in (400, 402, 404, 409, 410, 413, 418)],
    *itertools.product((400, 401, 403, 404, 410, 422, 429), NOT_ITS_WORDS),
]


@pytest.fixture
def stage(
    sandbox: SandboxProcess, transport: Transport, caplog: pytest.LogCaptureFixture
) -> Iterator[Stage]:
    """A stage; at its end nothing may hold the token."""
    caplog.set_level("DEBUG")
    stand = MastodonStand(sandbox, transport)
    yield Stage(stand, transport)
    assert stand.seen
    assert stand.secret not in repr(stand.seen)
    assert stand.secret not in caplog.text


class TestClosedList:
    """A refusal is a proof only where the list has it; on a later attempt fewer are."""

    @pytest.mark.parametrize(
        ("status", "error", "headers", "kind", "reason", "row", "later"), REFUSALS
    )
    def test_row(
        self,
        stage: Stage,
        status: int,
        error: str,
        headers: dict[str, str],
        kind: type,
        reason: Reason,
        row: str,
        later: type,
    ) -> None:
        script = said({"error": error}, status, headers=headers)
        outcome = stage.publish(script)
        assert isinstance(outcome, kind)
        assert getattr(outcome, "reason", None) is reason
        assert getattr(outcome, "row", None) == row
        assert not isinstance(outcome, Deferred) or outcome.proof is Proof.REFUSED
        assert isinstance(stage.publish(script, attempts=1), later)

    def test_the_table_above_meets_every_row(self) -> None:
        assert {row.name for row in CLOSED_LIST} == {met[5] for met in REFUSALS}
        assert all(row.source for row in CLOSED_LIST)

    @pytest.mark.parametrize(("status", "body"), NO_ROWS)
    def test_anything_else_is_unknown(self, stage: Stage, status: int, body: object) -> None:
        outcome = stage.publish(said(body, status))
        assert isinstance(outcome, Unknown)
        assert outcome.reason is Reason.UNLISTED_REFUSAL

    @pytest.mark.parametrize("status", [500, 501, 502, 503, 504])
    def test_server_errors_are_unknown_whatever_they_say(self, stage: Stage, status: int) -> None:
        outcome = stage.publish(said({"error": "The access token is invalid"}, status))
        assert isinstance(outcome, Unknown)
        assert outcome.reason is Reason.SERVER_ERROR

    @pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
    def test_no_redirect_is_followed(self, stage: Stage, status: int) -> None:
        outcome = stage.publish(said(b"", status, headers={"Location": "/api/v1/statuses"}))
        assert isinstance(outcome, Unknown)
        assert len(stage.asked) == 1

    def test_an_echo_proves_nothing_on_a_later_attempt(self, stage: Stage) -> None:
        for status, error in ((401, "The access token is invalid"), (429, "Too many requests")):
            script = said({"error": error}, status, headers={"Idempotent-Replayed": "true"})
            assert isinstance(stage.publish(script, attempts=2), Unknown)

    def test_an_echoed_token_is_cut_out(self, stage: Stage) -> None:
        def echo(asked: Asked) -> Said:
            token = asked.headers["authorization"]
            return Said({"error": f"The access token {token} is bad"}, 401, {"X-Echo": token})

        assert isinstance(stage.publish(echo), Unauthorized)


class TestWaiting:
    """How long to wait is the server's word, held against its own clock."""

    DATE = "Mon, 07 Dec 2026 02:00:00 GMT"

    @pytest.mark.parametrize(
        ("headers", "seconds"),
        [
            ({"x-ratelimit-reset": "2026-12-07T02:04:00.000000Z"}, 240.0),
            ({"x-ratelimit-reset": "2026-12-07T02:04:00"}, 240.0),
            ({"x-ratelimit-reset": "1796608890"}, 90.0),
            ({"retry-after": "17"}, 17.0),
            ({"retry-after": "17", "x-ratelimit-reset": "2026-12-07T02:01:00Z"}, 60.0),
            ({"x-ratelimit-reset": "2036-12-07T02:04:00Z"}, 86_400.0),
            ({"x-ratelimit-reset": "2026-12-07T01:00:00Z"}, None),
            ({"x-ratelimit-reset": "soon", "retry-after": "Mon"}, None),
            ({"x-ratelimit-reset": "", "retry-after": "-5"}, None),
            ({}, None),
        ],
    )
    def test_until_the_reset(self, headers: dict[str, str], seconds: float | None) -> None:
        reply = Reply(429, {"date": self.DATE, **headers}, b"", Answer())
        assert seconds_to_wait(reply) == seconds

    def test_without_a_date_our_clock_has_to_do(self) -> None:
        reset = datetime.now(UTC) + timedelta(seconds=60)
        for date in ({}, {"date": "yesterday"}):
            reply = Reply(429, {"x-ratelimit-reset": reset.isoformat(), **date}, b"", Answer())
            assert seconds_to_wait(reply) == pytest.approx(60, abs=5)

    @pytest.mark.parametrize(("headers", "seconds"), [({}, 300.0), ({"Retry-After": "17"}, 17.0)])
    def test_a_limit_without_an_end_has_the_documented_window(
        self, stage: Stage, headers: dict[str, str], seconds: float
    ) -> None:
        outcome = stage.publish(said({"error": "Too many requests"}, 429, headers=headers))
        assert isinstance(outcome, Deferred)
        assert outcome.rest_channel
        assert outcome.retry_after == seconds

    def test_a_channel_with_nothing_left_rests(self, stage: Stage) -> None:
        for left, wanted in (("0", 30.0), ("1", None), ("", None)):
            headers = {"X-RateLimit-Remaining": left, "Retry-After": "30"}
            outcome = stage.publish(said(stage.status(), headers=headers))
            assert isinstance(outcome, Published)
            assert outcome.not_before == wanted


class TestSuccess:
    """A 200 counts only with this account's post, and this post."""

    @pytest.mark.parametrize(
        "body",
        [
            b"",
            b"<html>OK</html>",
            b'{"id":"1"',
            [],
            None,
            "1",
            {},
            {"id": None},
            {"id": 5},
            {"id": ""},
            {"id": "x" * 200},
            {"id": "3", "scheduled_at": "2026-12-07T02:00:00.000Z", "params": {"text": TEXT}},
            {"error": "in a 200"},
        ],
    )
    def test_without_a_post_it_is_unknown(self, stage: Stage, body: object) -> None:
        outcome = stage.publish(said(body))
        assert isinstance(outcome, Unknown)
        assert outcome.reason is Reason.NO_ID

    @pytest.mark.parametrize(
        "wrong",
        [
            {"account": {"id": "77"}},
            {"account": {"id": None}},
            {"account": None},
            {"content": ""},
            {"content": None},
            {"content": "<p></p>"},
            {"content": "<p>The mill is closed</p>"},
            {"visibility": "private"},
            {"visibility": "direct"},
            {"visibility": None},
            {"media_attachments": [{"id": "9"}]},
            {"in_reply_to_id": "5"},
            {"reblog": {"id": "5"}},
        ],
    )
    def test_with_another_post_it_is_unknown_with_a_clue(
        self, stage: Stage, wrong: dict[str, object]
    ) -> None:
        outcome = stage.publish(said(stage.status() | wrong))
        assert isinstance(outcome, Unknown)
        assert outcome.reason is Reason.NO_ID
        assert outcome.remote_handle == stage.status()["id"]

    @pytest.mark.parametrize(
        "fine",
        [
            {"content": f"<p>{TEXT}</p>", "visibility": "unlisted"},
            {"content": TEXT},
            {"content": "<p>the <strong>mill</strong><br>is open</p>"},
            {"application": None, "media_attachments": None, "more": 1},
        ],
    )
    def test_with_this_post_it_is_published(self, stage: Stage, fine: dict[str, object]) -> None:
        outcome = stage.publish(said(stage.status() | fine))
        assert isinstance(outcome, Published)
        assert outcome.remote_id == stage.status()["id"]
        assert outcome.permalink == "https://social.example/@user/1"
        assert outcome.at is not None

    @pytest.mark.parametrize(
        ("text", "html"),
        [
            (
                "Read https://example.org/a/long/way/down now",
                ('<p>Read <a href="https://example.org/a/long/way/down">'
                '<span class="invisible">https://</span><span class="ellipsis">example.org/a/lo'
                '</span><span class="invisible">ng/way/down</span></a> now</p>'),
            ),
            (
                "Thanks @bob@social.example for #bread",
                ('<p>Thanks <span class="h-card"><a href="https://x/@bob" class="u-url mention">@'
                '<span>bob</span></a></span> for <a href="https://x/tags/bread">#<span>bread</span>'
                "</a></p>"),
            ),
            ("' \" & < > *bold*", "<p>&#39; &quot; &amp; &lt; &gt; <em>bold</em></p>"),
            ("one\ntwo\n\nthree", "<p>one<br />two</p><p>three</p>"),
            ("👨‍👩‍👧 🇻🇳", "<p>👨‍👩‍👧 🇻🇳</p>"),
            ("می‌خواهم", "<p>می‌خواهم</p>"),
        ],
    )  # fmt: skip
    def test_html_of_the_text_is_this_post(self, stage: Stage, text: str, html: str) -> None:
        status = stage.status(content=html)
        assert isinstance(stage.publish(said(status), post=Post(text)), Published)

    def test_media_must_be_those_that_were_uploaded(self, stage: Stage) -> None:
        media = {str(i): {"id": f"m{i}", "ready": True, "tries": 1} for i in range(2)}
        post, progress = photo_post(TEXT, "a", "b"), stage.progress(media=media)
        for ids, kind in (
            (["m0", "m1"], Published),
            (["m1", "m0"], Published),
            (["m0"], Unknown),
            ([], Unknown),
            (["m0", "m1", "m2"], Unknown),
        ):
            status = stage.status(media_attachments=[{"id": id_} for id_ in ids])
            outcome = stage.publish(said(status), post=post, progress=progress)
            assert isinstance(outcome, kind), ids
            assert json.loads(stage.asked[0].body)["media_ids"] == ["m0", "m1"]

    @pytest.mark.parametrize("url", [None, 5, "javascript:alert(1)", "https://[1", ""])
    def test_an_address_that_is_none_is_left_out(self, stage: Stage, url: object) -> None:
        outcome = stage.publish(said(stage.status(url=url)))
        assert isinstance(outcome, Published)
        assert outcome.permalink is None

    def test_the_id_in_half_an_answer_is_a_clue(self, stage: Stage) -> None:
        whole = b'{"id":"116", "created_at":"2026'
        for status, body, handle in (
            (200, whole, "116"),
            (500, whole, None),
            (200, b'{"account":{"id":"116"', None),
            (200, whole[:9], None),
        ):
            outcome = stage.publish(said(body, status, missing=9))
            assert isinstance(outcome, Unknown)
            assert outcome.remote_handle == handle

    def test_a_token_in_an_answer_is_cut_out(self, stage: Stage) -> None:
        token = stage.stand.secret
        status = stage.status(url=f"https://x.org/?t={token}", more=token)
        assert isinstance(stage.publish(said(status)), Published)
        assert isinstance(stage.publish(said({"id": token})), Unknown)


class TestCheck:
    """A channel is usable when its token opens its own account."""

    @pytest.mark.parametrize(
        ("body", "status", "usable"),
        [
            ({"id": "{page}", "acct": "user"}, 200, True),
            ({"id": "{page}"}, 200, True),
            ({"id": "777", "acct": "another"}, 200, False),
            ({}, 200, False),
            ([], 200, False),
            ({"error": "The access token was revoked"}, 401, False),
            (b"<html>", 502, False),
        ],
    )
    def test_by_what_it_answers(
        self, stage: Stage, body: object, status: int, *, usable: bool
    ) -> None:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        health = stage.check(said(raw.replace(b"{page}", stage.page.encode()), status))
        assert health.usable is usable
        assert health.detail

    def test_it_says_what_a_repeat_is_worth(self, stage: Stage) -> None:
        def script(asked: Asked) -> Said:
            if "verify" in asked.path:
                return Said({"id": stage.page, "acct": "user"})
            return Said({"version": "4.5.0", "source_url": "https://x/mastodon"})

        assert "Mastodon" in stage.check(script).detail
        assert "50 minutes" in stage.check(script).detail
