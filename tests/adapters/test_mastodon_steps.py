"""Mastodon: the harmless steps before a post."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

from publisher.adapters.mastodon.servers import Server, ServerKind
from publisher.engine.adapter import More, Ready, Wait
from publisher.engine.content import Media, Post
from publisher.engine.outcome import Deferred, Proof, Published, Reason, Rejected, Unauthorized
from publisher.sandbox.process import SandboxProcess
from publisher.transport import Transport
from tests.adapters.liar import Asked, Said
from tests.adapters.mastodon_stage import Stage, said
from tests.adapters.mastodon_stand import MastodonStand
from tests.adapters.stand import make_permit, make_task, photo_post, text_post


@pytest.fixture
def mastodon(sandbox: SandboxProcess, transport: Transport) -> MastodonStand:
    """An account of its own on a Mastodon."""
    return MastodonStand(sandbox, transport)


@pytest.fixture
def stage(
    mastodon: MastodonStand, transport: Transport, caplog: pytest.LogCaptureFixture
) -> Iterator[Stage]:
    """A stage; at its end nothing may hold the token."""
    caplog.set_level("DEBUG")
    yield Stage(mastodon, transport)
    assert mastodon.seen
    assert mastodon.secret not in repr(mastodon.seen)
    assert mastodon.secret not in caplog.text


def video_post(text: str) -> Post:
    item = Media(kind="video", type="video/mp4", sha256="v", size=len(VIDEO), alt="A walk")
    return Post(text, media=(item,))


VIDEO = b"\x00\x00\x00\x18ftypmp42" + b"frames" * 50
INSTANCE = {"version": "4.5.0", "source_url": "https://github.com/mastodon/mastodon"}


class TestSteps:
    """Every step is harmless; what it found is kept."""

    def test_server_files_and_newest_post_in_turn(self, mastodon: MastodonStand) -> None:
        older = mastodon.post_by_someone("Before all this")
        task = make_task(mastodon.channel, photo_post("Two", "a", "b"))
        for kept in ({"server"}, {"server", "media"}, {"server", "media"}):
            assert mastodon.adapter.prepared(task) is None
            step = mastodon.adapter.step(task)
            assert isinstance(step, More)
            assert set(step.progress) - {"application"} == kept
            task = replace(task, progress=step.progress)
        step = mastodon.adapter.step(task)
        assert isinstance(step, Ready)
        assert step.progress["newest"] == older
        assert mastodon.adapter.prepared(replace(task, progress=step.progress)) == step
        assert mastodon.adapter.step(replace(task, progress=step.progress)) == step
        assert json.loads(json.dumps(step.progress)) == step.progress
        assert mastodon.texts() == ["Before all this"]

    def test_a_video_is_waited_for(self, mastodon: MastodonStand) -> None:
        mastodon.control.mastodon(mastodon.page, processing_for=0.1)
        mastodon.store.files["v"] = VIDEO
        task = make_task(mastodon.channel, video_post("A walk through the mill"))
        seen = []
        for _ in range(2000):
            step = mastodon.adapter.step(task)
            seen.append(type(step))
            assert isinstance(step, More | Wait | Ready)
            task = replace(task, progress=step.progress)
            if isinstance(step, Ready):
                break
        assert Wait in seen
        outcome = mastodon.adapter.publish(task, Ready(task.progress), make_permit(task))
        assert isinstance(outcome, Published)
        (post,) = mastodon.control.posts(mastodon.page)
        kept = task.progress["media"]
        assert isinstance(kept, dict)
        assert post["media"] == [kept["0"]["id"]]

    def test_alternative_text_goes_with_the_file_and_no_key_does(self, stage: Stage) -> None:
        photo = replace(photo_post("", "a").media[0], alt="A mill, «old»")
        step = stage.step(
            said({"id": "m1", "url": "https://x/m1"}),
            post=Post("", media=(photo,)),
            progress=stage.progress(),
        )
        assert isinstance(step, More)
        (asked,) = stage.asked
        assert (asked.method, asked.path) == ("POST", "/api/v2/media")
        assert 'name="description"\r\n\r\nA mill, «old»\r\n'.encode() in asked.body
        assert "idempotency-key" not in asked.headers

    @pytest.mark.parametrize(
        ("answer", "kind", "reason"),
        [
            (said({}, 206), Wait, "the server is processing a file"),
            (said({"error": "Error processing thumbnail for uploaded media"}, 422), Rejected,
             Reason.MEDIA_REFUSED),
            (said(b"", 500), Deferred, Reason.STEP_FAILED),
            (said({"error": "The access token was revoked"}, 401), Unauthorized,
             Reason.NEEDS_RECONNECTING),
        ],
    )  # fmt: skip
    def test_processing_by_what_it_answers(
        self, stage: Stage, answer: object, kind: type, reason: str
    ) -> None:
        progress = stage.progress(media={"0": {"id": "m1", "ready": False, "tries": 1}})
        step = stage.step(answer, post=photo_post("", "a"), progress=progress)  # type: ignore[arg-type]
        assert isinstance(step, kind)
        assert getattr(step, "reason", None) == reason
        assert stage.asked[0].path == "/api/v1/media/m1"

    @pytest.mark.parametrize(("tries", "kind"), [(1, More), (2, More), (3, Deferred)])
    def test_a_lost_file_is_uploaded_again_a_few_times(
        self, stage: Stage, tries: int, kind: type
    ) -> None:
        def script(asked: Asked) -> Said:
            return Said({"error": "gone"}, 404) if asked.method == "GET" else Said({"id": "m2"})

        progress = stage.progress(media={"0": {"id": "m1", "ready": False, "tries": tries}})
        step = stage.step(script, post=photo_post("", "a"), progress=progress)
        assert isinstance(step, kind)
        if isinstance(step, More):
            wanted = {"0": {"id": "m2", "ready": True, "tries": tries + 1}}
            assert step.progress["media"] == wanted

    @pytest.mark.parametrize(
        ("status", "body", "kind", "reason"),
        [
            (500, b"", Deferred, Reason.STEP_FAILED),
            (404, b"<html>", Deferred, Reason.STEP_FAILED),
            (200, [], Deferred, Reason.STEP_FAILED),
            (200, {"id": 5}, Deferred, Reason.STEP_FAILED),
            (200, {"id": ""}, Deferred, Reason.STEP_FAILED),
            (422, {"error": "Validation failed: File is invalid"}, Rejected, Reason.MEDIA_REFUSED),
            (429, {"error": "Too many requests"}, Deferred, Reason.RATE_LIMITED),
            (403, {"error": "outside the authorized scopes"}, Unauthorized,
             Reason.MISSING_PERMISSION),
        ],
    )  # fmt: skip
    def test_failed_upload_by_what_it_answers(
        self, stage: Stage, status: int, body: object, kind: type, reason: Reason
    ) -> None:
        step = stage.step(said(body, status), post=photo_post("", "a"), progress=stage.progress())
        assert isinstance(step, kind)
        assert getattr(step, "reason", None) is reason
        if isinstance(step, Deferred):
            assert step.proof is Proof.NOT_SENT
            assert step.row == ""

    def test_old_server_is_read_by_the_first_version(self, stage: Stage) -> None:
        def script(asked: Asked) -> Said:
            if asked.path == "/api/v1/instance":
                version = "2.7.2 (compatible; Pleroma 2.0)"
                return Said({"version": version, "max_toot_chars": 5000})
            return Said({"error": "no"}, 404)

        step = stage.step(script)
        assert isinstance(step, More)
        server = Server.kept(step.progress)
        assert server is not None
        assert (server.kind, server.characters) == (ServerKind.PLEROMA, 5000)

    def test_our_application_has_the_name_the_server_knows(self, stage: Stage) -> None:
        def script(asked: Asked) -> Said:
            return Said({"name": "Ours"} if asked.path.endswith("credentials") else INSTANCE)

        step = stage.step(script)
        assert isinstance(step, More)
        assert step.progress["application"] == "Ours"

    @pytest.mark.parametrize(
        ("answer", "kind"),
        [
            (said(b"", 502), Deferred),
            (said(b"<html>"), Deferred),
            (said({"error": "The access token is invalid"}, 401), Unauthorized),
        ],
    )
    def test_unreadable_server_stops_before_any_attempt(
        self, stage: Stage, answer: object, kind: type
    ) -> None:
        assert isinstance(stage.step(answer), kind)  # type: ignore[arg-type]

    def test_a_smaller_limit_of_the_servers_own_is_said_before(self, stage: Stage) -> None:
        small = Server(ServerKind.OTHER, "1", characters=20, url=23, media=1)
        for post in (text_post("x" * 21), text_post("https://a.example"), photo_post("", "a", "b")):
            step = stage.step(said({}), post=post, progress=small.keep({}))
            assert isinstance(step, Rejected)
            assert step.reason is Reason.CONTENT_REFUSED
            assert stage.asked == []
        fits = stage.step(said([]), post=text_post("x" * 20), progress=small.keep({}))
        assert isinstance(fits, Ready)

    @pytest.mark.parametrize("body", [{}, [5], b"", {"error": "x"}, [{}], [{"id": 5}]])
    def test_unreadable_newest_post_is_no_ready(self, stage: Stage, body: object) -> None:
        progress = Server(ServerKind.OTHER, "1").keep({})
        assert isinstance(stage.step(said(body), progress=progress), Deferred)

    def test_spoiled_progress_is_made_good(self, mastodon: MastodonStand) -> None:
        for media in (None, {"0": None}, {"0": {"id": 5}}, {"0": {"id": ""}}, {"0": "m"}):
            progress = Server(ServerKind.OTHER, "1").keep({"media": media, "newest": 5})
            task = make_task(mastodon.channel, photo_post("Again", "a"), progress=progress)
            assert mastodon.adapter.prepared(task) is None
            assert isinstance(mastodon.adapter.step(task), More)

    def test_what_is_not_prepared_is_not_sent(self, mastodon: MastodonStand) -> None:
        task = make_task(mastodon.channel, photo_post("Half", "a", "b"))
        permit = make_permit(task)
        outcome = mastodon.adapter.publish(task, Ready({}), permit)
        assert isinstance(outcome, Deferred)
        assert not permit.used
        lost = replace(
            make_task(mastodon.channel, photo_post("Lost", "nowhere")),
            progress=Server(ServerKind.OTHER, "1").keep({}),
        )
        assert isinstance(mastodon.adapter.step(lost), Deferred)

    def test_a_channel_without_a_server_is_for_a_person(self, mastodon: MastodonStand) -> None:
        for channel in (
            replace(mastodon.channel, base_url=None),
            replace(mastodon.channel, remote_id=""),
        ):
            task = make_task(channel, text_post("Where to"))
            assert isinstance(mastodon.adapter.step(task), Unauthorized)
            assert not mastodon.adapter.check(channel).usable
