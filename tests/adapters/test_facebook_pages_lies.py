"""Graph as a server that lies: answers that mislead, listings that never end, tokens echoed."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from publisher.adapters.facebook_pages.listing import Bounds
from publisher.engine.content import Media, Post
from publisher.engine.evidence import Absent, Found, Inconclusive
from publisher.engine.outcome import Published, Reason, Unauthorized, Unknown
from publisher.sandbox.process import SandboxProcess
from publisher.transport import Transport
from tests.adapters.facebook_stand import FacebookStand
from tests.adapters.liar import Asked, Liar, Said
from tests.adapters.stage import TEXT, Script, Stage, listing, said
from tests.adapters.stand import photo_post, text_post


@pytest.fixture
def stage(
    sandbox: SandboxProcess, transport: Transport, caplog: pytest.LogCaptureFixture
) -> Iterator[Stage]:
    """A stage; at its end nothing may hold the token."""
    caplog.set_level("DEBUG")
    stand = FacebookStand(sandbox, transport)
    yield Stage(stand, transport)
    assert stand.seen
    assert stand.secret not in repr(stand.seen)
    assert stand.secret not in caplog.text


class TestAnswers:
    """A success is an id of this Page's; nothing else is."""

    @pytest.mark.parametrize(
        "body",
        [
            b"",
            b"<html>OK</html>",
            b'{"id"',
            [],
            None,
            "1_2",
            {},
            {"success": True},
            {"id": None},
            {"id": 5},
            {"id": ""},
            {"id": "17"},
            {"id": ["9_1"]},
            {"id": "777_1"},
            {"id": "{page}_"},
            {"id": "{page}_1x"},
            {"id": "{page}_1_2"},
            {"id": " {page}_1"},
            {"id": "{page}_1\n"},
            {"id": "{page}_" + "1" * 40},
            {"post_id": "{page}_1"},
            {"error": {"code": 190, "message": "in a 200"}},
        ],
    )
    def test_success_without_the_pages_id_is_unknown(self, stage: Stage, body: object) -> None:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        outcome = stage.publish(said(raw.replace(b"{page}", stage.page.encode())))
        assert isinstance(outcome, Unknown)
        assert outcome.reason is Reason.NO_ID

    def test_success_is_its_id(self, stage: Stage) -> None:
        outcome = stage.publish(said({"id": f"{stage.page}_55", "more": 1}, 201))
        assert isinstance(outcome, Published)
        assert outcome.remote_id == f"{stage.page}_55"

    @pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 418, 429])
    def test_a_bare_status_is_unknown(self, stage: Stage, status: int) -> None:
        for body in (b"", b"<html>no</html>", {"error": "no"}, {"error": {"code": 77}}):
            outcome = stage.publish(said(body, status))
            assert isinstance(outcome, Unknown)
            assert outcome.reason is Reason.UNLISTED_REFUSAL

    @pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
    def test_no_redirect_is_followed(self, stage: Stage, status: int) -> None:
        outcome = stage.publish(said(b"", status, Location="/v26.0/1/feed"))
        assert isinstance(outcome, Unknown)
        assert outcome.reason is Reason.REDIRECTED
        assert len(stage.asked) == 1

    def test_one_request_with_the_text_alone_in_it(self, stage: Stage) -> None:
        stage.publish(said({"id": f"{stage.page}_1"}))
        (asked,) = stage.asked
        assert (asked.method, asked.path) == ("POST", f"/v26.0/{stage.page}/feed")
        assert asked.query == {}
        assert asked.body == b"message=The+mill+is+open"
        assert asked.headers["authorization"] == f"Bearer {stage.stand.secret}"

    def test_the_id_in_half_an_answer_is_a_clue(self, stage: Stage) -> None:
        half = f'{{"id":"{stage.page}_88","post'.encode()
        for status, handle in ((200, f"{stage.page}_88"), (500, None)):
            outcome = stage.publish(said(half, status, missing=9))
            assert isinstance(outcome, Unknown)
            assert outcome.remote_handle == handle
        outcome = stage.publish(said(half[:14], missing=9))
        assert isinstance(outcome, Unknown)
        assert outcome.remote_handle is None

    def test_an_echoed_token_is_cut_out(self, stage: Stage) -> None:
        def echo(asked: Asked) -> Said:
            token = asked.headers["authorization"]
            error = {"code": 190, "error_subcode": 467, "message": f"Malformed {token}"}
            return Said({"error": error}, 401, {"X-Echo": token})

        assert isinstance(stage.publish(echo), Unauthorized)
        assert isinstance(stage.look(echo), Inconclusive)


class TestCheck:
    """A channel is usable when its token opens its own Page."""

    @pytest.mark.parametrize(
        ("body", "status", "usable"),
        [
            ({"id": "{page}", "name": "A Page"}, 200, True),
            ({"id": "{page}"}, 200, True),
            ({"id": "777", "name": "Another"}, 200, False),
            ({}, 200, False),
            ([], 200, False),
            ({"error": {"code": 190, "message": "expired"}}, 401, False),
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


class TestListings:
    """A listing is read whole, or it proves nothing."""

    def test_one_that_is_whole_is_believed(self, stage: Stage) -> None:
        assert isinstance(stage.look(listing(stage.item())), Found)
        (asked,) = stage.asked
        assert asked.path == f"/v26.0/{stage.page}/published_posts"
        assert asked.query["limit"] == "100"
        since = datetime.fromtimestamp(int(asked.query["since"]), UTC)
        assert timedelta(minutes=4) < datetime.now(UTC) - since < timedelta(minutes=6)

    @pytest.mark.parametrize(
        "body",
        [
            b"",
            b"<html>",
            b"{",
            [],
            None,
            7,
            {},
            {"data": None},
            {"data": {}},
            {"data": "posts"},
            {"data": [None]},
            {"data": ["x"]},
            {"data": [[]]},
            {"error": {"code": 1}},
        ],
    )
    def test_garbage_proves_nothing(self, stage: Stage, body: object) -> None:
        evidence = stage.look(said(body))
        assert isinstance(evidence, Inconclusive)
        assert not evidence.clean

    @pytest.mark.parametrize(
        "spoiled",
        [
            {"id": 5},
            {"id": None},
            {"created_time": None},
            {"created_time": "yesterday"},
            {"created_time": 1_760_000_000},
            {"created_time": "2026-12-07T02:00:31"},
            {"created_time": "9999-99-99T99:99:99+0000"},
        ],
    )
    def test_one_unreadable_post_spoils_the_whole(
        self, stage: Stage, spoiled: dict[str, object]
    ) -> None:
        evidence = stage.look(listing(stage.item(1), stage.item(2) | spoiled))
        assert isinstance(evidence, Inconclusive)
        assert not evidence.clean
        assert "cannot be read" in evidence.reason

    @pytest.mark.parametrize(
        "odd",
        [
            {"message": None},
            {"message": 5},
            {"permalink_url": 5},
            {"permalink_url": "javascript:alert(1)"},
            {"permalink_url": "https://[1"},
            {"application": "ours"},
            {"application": {"id": 5}},
            {"attachments": []},
            {"attachments": {"data": [None, {"target": 5}, {"target": {"id": 5}}]}},
            {"attachments": {"data": [{"subattachments": {"data": {}}, "url": {}}]}},
        ],
    )
    def test_odd_fields_break_nothing(self, stage: Stage, odd: dict[str, object]) -> None:
        for post in (text_post(TEXT), photo_post(TEXT, "a"), Post("", link="https://example.org")):
            evidence = stage.look(listing(stage.item() | odd), post=post)
            assert not isinstance(evidence, Absent)
            assert "javascript" not in repr(evidence)

    def test_attachments_nested_without_end_are_left(self, stage: Stage) -> None:
        nested: dict[str, Any] = {"data": []}
        for _ in range(300):
            nested = {"data": [{"type": "album", "subattachments": nested}]}
        evidence = stage.look(listing(stage.item(attachments=nested)), post=photo_post(TEXT, "a"))
        assert isinstance(evidence, Inconclusive)

    @pytest.mark.parametrize(
        ("more", "why"),
        [
            ({"ours": False, "is_published": False}, "a draft"),
            ({"id": "777_1"}, "another Page's post"),
        ],
    )
    def test_what_is_not_on_this_page_is_not_found(
        self, stage: Stage, more: dict[str, object], why: str
    ) -> None:
        evidence = stage.look(listing(stage.item() | more))
        assert isinstance(evidence, Inconclusive), why
        assert len(evidence.candidates) == 1

    def test_a_listing_without_end_is_given_up(self, stage: Stage) -> None:
        count = iter(range(10**9))

        def endless(_: Asked) -> Said:
            n = next(count)
            paging = {"cursors": {"after": f"c{n}"}, "next": "http://127.0.0.1:1/"}
            return Said({"data": [stage.item(n)], "paging": paging})

        evidence = stage.look(endless, bounds=Bounds(pages=4))
        assert isinstance(evidence, Inconclusive)
        assert not evidence.clean
        assert len(stage.asked) == 4
        assert [asked.query.get("after") for asked in stage.asked] == [None, "c0", "c1", "c2"]
        stage.look(endless, bounds=Bounds(posts=2))
        assert len(stage.asked) == 2

    def test_a_listing_in_a_circle_is_left(self, stage: Stage) -> None:
        paging = {"cursors": {"after": "same"}, "next": "http://127.0.0.1:1/"}
        evidence = stage.look(listing(stage.item(), paging=paging))
        assert isinstance(evidence, Inconclusive)
        assert len(stage.asked) == 2

    @pytest.mark.parametrize(
        "paging",
        [
            {"next": "http://127.0.0.1:1/"},
            {"next": "x", "cursors": []},
            {"next": "x", "cursors": {"after": 5}},
            {"next": "x", "cursors": {"after": ""}},
        ],
    )
    def test_a_next_page_without_a_cursor_is_no_end(
        self, stage: Stage, paging: dict[str, object]
    ) -> None:
        evidence = stage.look(listing(stage.item(), paging=paging))
        assert isinstance(evidence, Inconclusive)
        assert len(stage.asked) == 1

    def test_the_address_of_the_next_page_is_never_followed(self, stage: Stage) -> None:
        with Liar(listing()) as elsewhere:
            first = {"cursors": {"after": "c"}, "next": f"{elsewhere.url}/?access_token=x"}

            def script(asked: Asked) -> Said:
                last = "after" in asked.query
                return Said({"data": [stage.item()], "paging": {} if last else first})

            assert isinstance(stage.look(script), Found)
            assert elsewhere.asked == []

    def test_a_listing_that_ignores_since_is_read_to_its_end_or_given_up(
        self, stage: Stage
    ) -> None:
        old = [stage.item(n, created_time="2020-01-01T00:00:00+0000") for n in range(2, 5)]
        assert isinstance(stage.look(listing(*old, stage.item())), Found)

        def endless(asked: Asked) -> Said:
            paging = {"cursors": {"after": f"{asked.query.get('after')}+"}, "next": "x"}
            return Said({"data": old, "paging": paging})

        evidence = stage.look(endless)
        assert isinstance(evidence, Inconclusive)
        assert not evidence.clean

    def test_slow_listings_are_given_up_in_time(self, stage: Stage) -> None:
        began = datetime.now(UTC)

        def script(_: Asked) -> Said:
            time.sleep(0.3)
            return Said({"data": []})

        evidence = stage.look(script, bounds=Bounds(seconds=0.1))
        assert isinstance(evidence, Inconclusive)
        assert not evidence.clean
        assert datetime.now(UTC) - began < timedelta(seconds=3)

    def test_a_look_without_time_proves_nothing(self, stage: Stage) -> None:
        evidence = stage.look(listing(), bounds=Bounds(seconds=0))
        assert evidence == Inconclusive("the listing took too long")

    def test_a_token_in_a_listing_is_cut_out(self, stage: Stage) -> None:
        token = stage.stand.secret
        item = stage.item(message=f"{TEXT} {token}", permalink_url=f"https://x.org/?t={token}")
        evidence = stage.look(listing(item))
        assert isinstance(evidence, Inconclusive)
        assert len(evidence.candidates) == 1

    def test_the_other_platforms_absence_is_never_ours(self, stage: Stage) -> None:
        evidence = stage.look(listing())
        assert isinstance(evidence, Inconclusive)
        assert evidence.clean


class TestVideoListings:
    """Reels are on ``/videos`` alone, so both listings are read."""

    def script(self, posts: list[Any], videos: list[Any]) -> Script:
        def answer(asked: Asked) -> Said:
            return Said({"data": posts if asked.path.endswith("published_posts") else videos})

        return answer

    def video(self, stage: Stage, number: int = 5, **more: object) -> dict[str, Any]:
        item = stage.item(number) | {"id": str(number), "description": TEXT, **more}
        del item["message"]
        return item

    def shown(self, stage: Stage, number: int = 5) -> dict[str, Any]:
        attachment = {"type": "video_inline", "target": {"id": str(number)}}
        return stage.item(900 + number, attachments={"data": [attachment]})

    def post(self) -> Post:
        item = Media(kind="video", type="video/mp4", url="https://example.org/a.mp4")
        return Post(TEXT, media=(item,))

    def test_a_reel_is_found_on_the_list_of_videos(self, stage: Stage) -> None:
        script = self.script([], [self.video(stage)])
        evidence = stage.look(script, post=self.post(), handle="5")
        assert isinstance(evidence, Found)
        assert evidence.remote_id == "5"
        assert [asked.path.rpartition("/")[2] for asked in stage.asked] == [
            "published_posts",
            "videos",
        ]

    def test_a_reel_of_which_no_id_is_known_may_be_anybodys(self, stage: Stage) -> None:
        """Videos show no application: whoever uploaded the same text would be taken for us."""
        evidence = stage.look(self.script([], [self.video(stage)]), post=self.post())
        assert isinstance(evidence, Inconclusive)
        assert [post.remote_id for post in evidence.candidates] == ["5"]
        assert not evidence.clean

    def test_on_both_lists_it_is_one(self, stage: Stage) -> None:
        script = self.script([self.shown(stage)], [self.video(stage)])
        assert isinstance(stage.look(script, post=self.post()), Found)

    def test_one_on_each_list_is_two(self, stage: Stage) -> None:
        script = self.script([self.shown(stage, 6)], [self.video(stage, 5)])
        evidence = stage.look(script, post=self.post())
        assert isinstance(evidence, Inconclusive)
        assert {post.remote_id for post in evidence.candidates} == {"5", "6"}

    def test_an_unpublished_video_is_not_found(self, stage: Stage) -> None:
        script = self.script([], [self.video(stage, published=False)])
        assert isinstance(stage.look(script, post=self.post()), Inconclusive)

    def test_nothing_on_both_lists_is_clean(self, stage: Stage) -> None:
        evidence = stage.look(self.script([], []), post=self.post())
        assert isinstance(evidence, Inconclusive)
        assert evidence.clean

    def test_a_text_of_ours_is_no_video_of_ours(self, stage: Stage) -> None:
        script = self.script([stage.item()], [])
        assert isinstance(stage.look(script, post=self.post()), Inconclusive)
