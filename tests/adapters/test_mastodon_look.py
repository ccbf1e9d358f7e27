"""Mastodon: a listing is read whole, or it proves nothing."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from publisher.adapters.mastodon.servers import ServerKind
from publisher.adapters.mastodon.statuses import Bounds
from publisher.engine.content import Post
from publisher.engine.evidence import Absent, Found, Inconclusive
from publisher.sandbox.process import SandboxProcess
from publisher.transport import Transport
from tests.adapters.liar import Asked, Said
from tests.adapters.mastodon_stage import TEXT, Stage, listing, said
from tests.adapters.mastodon_stand import MastodonStand
from tests.adapters.stand import photo_post, text_post

OLD = (datetime.now(UTC) - timedelta(days=2)).isoformat()


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


class TestListings:
    """Walked by the last id seen, from the newest to five minutes before the first byte."""

    def test_one_that_is_whole_is_believed(self, stage: Stage) -> None:
        assert isinstance(stage.look(listing(stage.status(), stage.status(5, content="x"))), Found)
        pages = [asked for asked in stage.asked if asked.path.endswith("/statuses")]
        assert [dict(asked.query) for asked in pages] == [
            {"limit": "40", "exclude_reblogs": "true"},
            {"limit": "40", "exclude_reblogs": "true", "max_id": "995"},
        ]
        assert {asked.path for asked in pages} == {f"/api/v1/accounts/{stage.page}/statuses"}

    def test_absence_is_declared_where_the_listing_is_whole(self, stage: Stage) -> None:
        empty, other = listing(), listing(stage.status(content="<p>Quite something else</p>"))
        for script in (empty, other):
            assert isinstance(stage.look(script), Absent)

    @pytest.mark.parametrize("kind", [k for k in ServerKind if k is not ServerKind.MASTODON])
    def test_absence_is_not_declared_elsewhere(self, stage: Stage, kind: ServerKind) -> None:
        evidence = stage.look(listing(), progress=stage.progress(kind))
        assert isinstance(evidence, Inconclusive)
        assert evidence.clean

    def test_it_stops_at_age(self, stage: Stage) -> None:
        script = listing(stage.status(), stage.status(2, created_at=OLD))
        assert isinstance(stage.look(script), Found)
        assert len([a for a in stage.asked if a.path.endswith("/statuses")]) == 1

    def test_a_pinned_old_post_before_the_rest_stops_nothing(self, stage: Stage) -> None:
        pinned = stage.status(900, created_at=OLD, content="<p>About us</p>")
        other = stage.status(1, content="<p>Fresh bread</p>")

        def script(asked: Asked) -> Said:
            if asked.path.endswith("source"):
                return Said({"text": TEXT})
            first = "max_id" not in asked.query
            if asked.query.get("max_id") == "998":
                return Said([])
            return Said([pinned, other] if first else [stage.status(2)])

        assert isinstance(stage.look(script), Found)

    @pytest.mark.parametrize(
        "body",
        [b"", b"<html>", b"{", {}, None, 7, {"data": []}, [None], ["x"], [[]], {"error": "no"}],
    )
    def test_garbage_proves_nothing(self, stage: Stage, body: object) -> None:
        evidence = stage.look(said(body))
        assert isinstance(evidence, Inconclusive)
        assert not evidence.clean

    @pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 429, 500, 503])
    def test_a_refused_listing_proves_nothing(self, stage: Stage, status: int) -> None:
        evidence = stage.look(said({"error": "no"}, status))
        assert isinstance(evidence, Inconclusive)
        assert not evidence.clean

    @pytest.mark.parametrize(
        "spoiled",
        [
            {"id": 5},
            {"id": None},
            {"id": ""},
            {"created_at": None},
            {"created_at": "yesterday"},
            {"created_at": 1_760_000_000},
            {"created_at": "2026-12-07T02:00:31"},
            {"content": None},
        ],
    )
    def test_one_unreadable_post_spoils_the_whole(
        self, stage: Stage, spoiled: dict[str, object]
    ) -> None:
        for statuses in (
            (stage.status(1), stage.status(2) | spoiled),
            (stage.status(1) | spoiled, stage.status(2)),
        ):
            evidence = stage.look(listing(*statuses))
            assert isinstance(evidence, Inconclusive)
            assert not evidence.clean

    def test_a_listing_without_end_is_given_up(self, stage: Stage) -> None:
        def endless(asked: Asked) -> Said:
            number = 1 + (1000 - int(asked.query.get("max_id", "1000")))
            return Said([stage.status(number, content="<p>Noise</p>")])

        evidence = stage.look(endless, bounds=Bounds(pages=4))
        assert isinstance(evidence, Inconclusive)
        assert not evidence.clean
        assert len(stage.asked) == 4

    def test_a_listing_in_a_circle_is_left(self, stage: Stage) -> None:
        evidence = stage.look(said([stage.status(content="<p>Noise</p>")]))
        assert isinstance(evidence, Inconclusive)
        assert not evidence.clean
        assert len(stage.asked) == 2

    def test_slow_listings_are_given_up_in_time(self, stage: Stage) -> None:
        def script(_: Asked) -> Said:
            time.sleep(0.3)
            return Said([])

        began = time.monotonic()
        evidence = stage.look(script, bounds=Bounds(seconds=0.1))
        assert isinstance(evidence, Inconclusive)
        assert not evidence.clean
        assert time.monotonic() - began < 3

    def test_a_token_in_a_listing_is_cut_out(self, stage: Stage) -> None:
        token = stage.stand.secret
        status = stage.status(content=f"<p>{TEXT} {token}</p>", url=f"https://x.org/?t={token}")
        evidence = stage.look(listing(status, sources={"999": f"{TEXT} {token}"}))
        assert isinstance(evidence, Inconclusive)
        assert len(evidence.candidates) == 1


class TestSources:
    """The text is compared with what a post was made of, not with its HTML."""

    def test_source_decides_over_html(self, stage: Stage) -> None:
        shown = stage.status(content="<p>The <em>mill</em> is open</p>")
        assert isinstance(
            stage.look(listing(shown, sources={"999": TEXT}), post=text_post(TEXT)), Found
        )
        evidence = stage.look(listing(shown, sources={"999": "The *mill* is open"}))
        assert isinstance(evidence, Inconclusive)

    def test_without_a_source_html_has_to_do(self, stage: Stage) -> None:
        assert isinstance(stage.look(listing(stage.status())), Found)

    @pytest.mark.parametrize(
        "body", [b"", b"<html>", {}, {"text": None}, {"text": 5}, {"error": "no"}]
    )
    def test_odd_sources_are_none(self, stage: Stage, body: object) -> None:
        def script(asked: Asked) -> Said:
            if asked.path.endswith("source"):
                return Said(body)
            return Said([] if "max_id" in asked.query else [stage.status()])

        assert isinstance(stage.look(script), Found)

    def test_trimmed_ends_and_line_feeds_are_the_same_text(self, stage: Stage) -> None:
        post = text_post("  one\r\ntwo  \r\n")
        script = listing(stage.status(content="<p>one<br>two</p>"), sources={"999": "one\ntwo"})
        assert isinstance(stage.look(script, post=post), Found)

    def test_only_what_resembles_is_asked_for(self, stage: Stage) -> None:
        others = [stage.status(n, content=f"<p>{'ab' * n}qq</p>") for n in range(2, 30)]
        stage.look(listing(stage.status(), *others, sources={"999": TEXT}))
        asked = [asked.path for asked in stage.asked if asked.path.endswith("source")]
        assert asked == ["/api/v1/statuses/999/source"]

    def test_too_many_that_resemble_are_given_up(self, stage: Stage) -> None:
        many = [stage.status(n, content=f"<p>{TEXT} {n}</p>") for n in range(1, 8)]
        evidence = stage.look(listing(*many), bounds=Bounds(sources=3))
        assert isinstance(evidence, Inconclusive)
        assert evidence.reason == "too many posts resemble this one"

    def test_a_link_that_was_added_is_part_of_the_text(self, stage: Stage) -> None:
        post = Post(TEXT, link="https://example.org/mill")
        source = f"{TEXT}\n\nhttps://example.org/mill"
        shown = stage.status(content=f"<p>{TEXT}</p><p>example.org/mill</p>")
        assert isinstance(stage.look(listing(shown, sources={"999": source}), post=post), Found)


class TestMarks:
    """What keeps a post with the same text from being ours."""

    @pytest.mark.parametrize(
        "other",
        [
            {"account": {"id": "77"}},
            {"in_reply_to_id": "5"},
            {"media_attachments": [{"id": "9"}]},
            {"application": {"name": "Theirs"}},
        ],
    )
    def test_others_are_not_found_and_not_absent(
        self, stage: Stage, other: dict[str, object]
    ) -> None:
        progress = stage.progress(application="Ours")
        evidence = stage.look(listing(stage.status() | other), progress=progress)
        assert isinstance(evidence, Inconclusive)
        assert [post.ours for post in evidence.candidates] == [False]

    @pytest.mark.parametrize("application", [None, {"name": "Ours"}, {"name": None}, {}, "Ours"])
    def test_ours_or_unsaid_is_found(self, stage: Stage, application: object) -> None:
        progress = stage.progress(application="Ours")
        script = listing(stage.status(application=application))
        assert isinstance(stage.look(script, progress=progress), Found)

    def test_unsaid_is_not_ours_where_the_server_does_say(self, stage: Stage) -> None:
        other = stage.status(2, content="<p>Another matter</p>", application={"name": "Theirs"})
        script = listing(stage.status(application=None), other)
        evidence = stage.look(script, progress=stage.progress(application="Ours"))
        assert isinstance(evidence, Inconclusive)
        assert not evidence.clean

    def test_one_that_shows_an_application_is_anybodys_while_ours_is_not_known(
        self, stage: Stage
    ) -> None:
        """The server is asked for ours, and does not say."""
        evidence = stage.look(listing(stage.status(application={"name": "Ours"})))
        assert isinstance(evidence, Inconclusive)
        assert [post.ours for post in evidence.candidates] == [None]

    def test_what_stood_there_before_is_not_ours(self, stage: Stage) -> None:
        script = listing(stage.status(1), stage.status(20))
        evidence = stage.look(script)
        assert isinstance(evidence, Inconclusive)
        assert len(evidence.candidates) == 2
        found = stage.look(script, progress=stage.progress(newest="980"))
        assert isinstance(found, Found)
        assert found.remote_id == "999"
        before = stage.look(script, progress=stage.progress(newest="999"))
        assert isinstance(before, Inconclusive)

    def test_pictures_alone_are_told_by_their_ids(self, stage: Stage) -> None:
        progress = stage.progress(media={"0": {"id": "m1", "ready": True, "tries": 1}})
        post = photo_post("", "a")
        mine = stage.status(content="", media_attachments=[{"id": "m1"}])
        other = stage.status(2, content="", media_attachments=[{"id": "m2"}])
        found = stage.look(listing(mine, other), post=post, progress=progress)
        assert isinstance(found, Found)
        assert found.remote_id == "999"
        evidence = stage.look(listing(other), post=post, progress=progress)
        assert isinstance(evidence, Inconclusive)
        assert not any(asked.path.endswith("source") for asked in stage.asked)
