"""Facebook Pages: the conformance suite, and what is Graph's own."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from publisher.adapters.facebook_pages.formats import capabilities, problems
from publisher.config import Settings
from publisher.engine.adapter import More, Promise, Ready
from publisher.engine.content import Media, Post
from publisher.engine.evidence import Found, Inconclusive
from publisher.engine.outcome import (
    Deferred,
    Proof,
    Published,
    Reason,
    Rejected,
    Unauthorized,
    Unknown,
)
from publisher.sandbox.process import SandboxProcess
from publisher.transport import Transport
from tests.adapters.conformance import Conformance
from tests.adapters.facebook_stand import FacebookStand
from tests.adapters.stand import (
    Attempt,
    Fault,
    look,
    make_permit,
    make_task,
    photo_post,
    prepare,
    send,
    text_post,
)


@pytest.fixture
def facebook(sandbox: SandboxProcess, transport: Transport) -> FacebookStand:
    """A Page of its own."""
    return FacebookStand(sandbox, transport)


class TestConformanceFacebookPages(Conformance):
    """Every case of the suite, against the sandbox."""

    @pytest.fixture
    def stand(self, facebook: FacebookStand) -> FacebookStand:
        """Give the Page."""
        return facebook


def video_post(text: str, url: str | None = None) -> Post:
    if url is not None:
        return Post(text, media=(Media(kind="video", type="video/mp4", url=url),))
    item = Media(kind="video", type="video/mp4", sha256="v", size=len(VIDEO))
    return Post(text, media=(item,))


VIDEO = b"\x00\x00\x00\x18ftypmp42" + b"frames" * 50


class TestVideos:
    """A video is one call, and is named by its video id."""

    def test_file_is_published_and_found_by_its_video_id(self, facebook: FacebookStand) -> None:
        facebook.store.files["v"] = VIDEO
        attempt, outcome = send(facebook, video_post("A walk 👨‍👩‍👧 through the mill"))
        assert isinstance(outcome, Published)
        assert outcome.remote_id.isdigit()
        (post,) = facebook.control.posts(facebook.page)
        assert post["media"] == [outcome.remote_id]
        assert post["message"] == "A walk 👨‍👩‍👧 through the mill"
        evidence = look(facebook, attempt.query())
        assert isinstance(evidence, Found)
        assert evidence.remote_id == outcome.remote_id

    def test_address_is_handed_on(self, facebook: FacebookStand) -> None:
        post = video_post("By address", url="https://example.org/a.mp4")
        facebook.misbehave(Fault.LOSE_ANSWER)
        attempt, outcome = send(facebook, post)
        assert isinstance(outcome, Unknown)
        assert isinstance(look(facebook, attempt.query(outcome)), Found)

    def test_a_bound_video_is_not_found_again(self, facebook: FacebookStand) -> None:
        facebook.store.files["v"] = VIDEO
        attempt, outcome = send(facebook, video_post("Once more"))
        assert isinstance(outcome, Published)
        bound = frozenset({outcome.remote_id})
        assert isinstance(look(facebook, attempt.query(bound=bound)), Inconclusive)

    def test_a_look_that_cannot_see_reels_is_not_clean(self, facebook: FacebookStand) -> None:
        facebook.store.files["v"] = VIDEO
        task = make_task(facebook.channel, video_post("Nowhere"))
        evidence = look(facebook, Attempt(task, make_permit(task)).query())
        assert isinstance(evidence, Inconclusive)
        assert not evidence.clean
        assert "videos" in evidence.reason

    def test_missing_bytes_are_not_sent(self, facebook: FacebookStand) -> None:
        task = make_task(facebook.channel, video_post("Nothing there"))
        permit = make_permit(task)
        outcome = facebook.adapter.publish(task, Ready({}), permit)
        assert isinstance(outcome, Deferred)
        assert outcome.proof is Proof.NOT_SENT
        assert not permit.used

    def test_invalid_parameter_is_no_row_for_videos(self, facebook: FacebookStand) -> None:
        facebook.store.files["v"] = VIDEO
        facebook.misbehave(Fault.REFUSED)
        _, outcome = send(facebook, video_post("Refused"))
        assert isinstance(outcome, Unknown)
        assert outcome.reason is Reason.UNLISTED_REFUSAL


class TestPhotos:
    """Photos are uploaded one by one, and never twice when their id is known."""

    def test_each_step_uploads_one_and_keeps_its_place(self, facebook: FacebookStand) -> None:
        task = make_task(facebook.channel, photo_post("Two", "a", "b"))
        assert facebook.adapter.prepared(task) is None
        first = facebook.adapter.step(task)
        assert isinstance(first, More)
        photos = first.progress["photos"]
        assert isinstance(photos, dict)
        assert list(photos) == ["0"]
        second = facebook.adapter.step(replace(task, progress=first.progress))
        assert isinstance(second, Ready)
        kept = second.progress["photos"]
        assert isinstance(kept, dict)
        assert kept["0"] == photos["0"]
        assert facebook.adapter.prepared(replace(task, progress=second.progress)) == second
        facebook.adapter.publish(task, second, make_permit(task))
        (post,) = facebook.control.posts(facebook.page)
        assert post["media"] == [kept["0"], kept["1"]]

    def test_photo_by_address_with_alternative_text(self, facebook: FacebookStand) -> None:
        item = Media(kind="image", type="image/png", url="https://example.org/a.png", alt="A mill")
        _, outcome = send(facebook, Post("By address", media=(item,)))
        assert isinstance(outcome, Published)

    def test_spoiled_progress_is_uploaded_again(self, facebook: FacebookStand) -> None:
        for progress in ({"photos": None}, {"photos": {"0": 5}}, {"photos": {"0": ""}}, {"x": 1}):
            task = make_task(facebook.channel, photo_post("Again", "a"), progress=progress)
            assert facebook.adapter.prepared(task) is None
            assert isinstance(facebook.adapter.step(task), Ready)

    def test_missing_photo_is_not_sent(self, facebook: FacebookStand) -> None:
        task = make_task(facebook.channel, photo_post("Half", "a", "b"))
        permit = make_permit(task)
        outcome = facebook.adapter.publish(task, Ready({"photos": {"0": "1"}}), permit)
        assert isinstance(outcome, Deferred)
        assert not permit.used
        lost = make_task(facebook.channel, photo_post("Lost", "nowhere"))
        assert isinstance(facebook.adapter.step(lost), Deferred)

    @pytest.mark.parametrize(
        ("behaviour", "error", "wanted", "reason"),
        [
            ("fail-500", {}, Deferred, Reason.STEP_FAILED),
            ("drop", {}, Deferred, Reason.STEP_FAILED),
            ("lose-answer", {}, Deferred, Reason.STEP_FAILED),
            ("garbage-answer", {}, Deferred, Reason.STEP_FAILED),
            ("answer-without-id", {}, Deferred, Reason.STEP_FAILED),
            ("refuse-limited", {}, Deferred, Reason.RATE_LIMITED),
            ("refuse-token", {}, Unauthorized, Reason.NEEDS_RECONNECTING),
            ("refuse-invalid", {"error_subcode": 1366046}, Rejected, Reason.MEDIA_REFUSED),
        ],
    )
    def test_failed_upload_publishes_nothing(
        self,
        facebook: FacebookStand,
        behaviour: str,
        error: dict[str, object],
        wanted: type,
        reason: Reason,
    ) -> None:
        facebook.control.behave(behaviour, page=facebook.page, endpoint="photos", error=error)
        task = make_task(facebook.channel, photo_post("Upload", "a"))
        step = facebook.adapter.step(task)
        facebook.seen.append(step)
        assert isinstance(step, wanted)
        assert getattr(step, "reason", None) is reason
        assert isinstance(facebook.adapter.step(task), Ready)
        assert facebook.texts() == []

    def test_equal_text_with_other_photos_is_not_ours(self, facebook: FacebookStand) -> None:
        _, theirs = send(facebook, photo_post("Same words", "a"))
        assert isinstance(theirs, Published)
        task = make_task(facebook.channel, photo_post("Same words", "b"))
        ready = prepare(facebook, task)
        task = replace(task, progress=ready.progress)
        evidence = look(facebook, Attempt(task, make_permit(task)).query())
        assert isinstance(evidence, Inconclusive)
        assert [post.ours for post in evidence.candidates] == [False]


def say_nothing_of_the_token(facebook: FacebookStand) -> None:
    """Have Graph fail on ``debug_token``, as often as one read of it tries."""
    facebook.control.behave("fail-500", page=None, endpoint="read", times=3)


class TestAccess:
    """When our access ends, as far as Graph says."""

    @pytest.mark.parametrize("ends", [None, 0, 1_893_456_000, 10**15])
    def test_the_end_of_the_token_is_asked_for(
        self, facebook: FacebookStand, ends: int | None
    ) -> None:
        page = {"id": facebook.page, "name": "A Page", "token": facebook.secret}
        facebook.control.add_pages([page if ends is None else page | {"token_ends": ends}])
        health = facebook.adapter.check(facebook.channel)
        assert health.usable
        told = datetime(2030, 1, 1, tzinfo=UTC) if ends == 1_893_456_000 else None
        assert health.expires_at == told

    def test_a_page_that_can_be_read_is_usable_where_graph_says_nothing_of_the_token(
        self, facebook: FacebookStand
    ) -> None:
        page = {"id": facebook.page, "name": "A Page", "token": facebook.secret}
        facebook.control.add_pages([page | {"token_ends": 1_893_456_000}])
        facebook.control.behave("fail-500", page=None, endpoint="read", times=3, after=1)
        health = facebook.adapter.check(facebook.channel)
        assert (health.usable, health.expires_at) == (True, None)


class TestOurs:
    """What a post of another application proves, and what it does not."""

    def test_another_applications_twin_is_told_apart(self, facebook: FacebookStand) -> None:
        facebook.control.behave("accept-with-twin", page=facebook.page, endpoint="publish")
        attempt, outcome = send(facebook, text_post("Twins"))
        assert isinstance(outcome, Unknown)
        assert facebook.texts() == ["Twins", "Twins"]
        evidence = look(facebook, attempt.query())
        assert isinstance(evidence, Found)
        mine = [p["id"] for p in facebook.control.posts(facebook.page) if not p["foreign"]]
        assert [evidence.remote_id] == mine

    def test_our_application_is_asked_for_where_it_is_not_set(
        self, facebook: FacebookStand, transport: Transport
    ) -> None:
        facebook.adapter = facebook.adapter_at(transport, facebook.url)
        facebook.control.behave("accept-with-twin", page=facebook.page, endpoint="publish")
        attempt, _ = send(facebook, text_post("Twins again"))
        evidence = look(facebook, attempt.query())
        assert isinstance(evidence, Found)
        mine = [p["id"] for p in facebook.control.posts(facebook.page) if not p["foreign"]]
        assert [evidence.remote_id] == mine

    @pytest.mark.parametrize("asked", [True, False], ids=["Graph says", "Graph will not say"])
    @pytest.mark.parametrize("by", [None, "another application"])
    def test_somebody_elses_equal_text_is_never_taken_for_ours(
        self, facebook: FacebookStand, transport: Transport, by: str | None, *, asked: bool
    ) -> None:
        """Ours is refused as a duplicate of theirs: theirs is the only one that is there."""
        facebook.adapter = facebook.adapter_at(transport, facebook.url)
        facebook.control.behave("drop", page=facebook.page, endpoint="publish")
        attempt, outcome = send(facebook, text_post("The ferry is late"))
        assert isinstance(outcome, Unknown)
        facebook.control.foreign_post(facebook.page, "The ferry is late", application=by)
        if not asked:
            say_nothing_of_the_token(facebook)
        evidence = look(facebook, attempt.query())
        assert isinstance(evidence, Inconclusive)
        assert not evidence.clean

    def test_without_our_application_known_a_person_decides(
        self, facebook: FacebookStand, transport: Transport
    ) -> None:
        facebook.adapter = facebook.adapter_at(transport, facebook.url)
        facebook.control.behave("lose-answer", page=facebook.page, endpoint="publish")
        attempt, _ = send(facebook, text_post("Whose is this?"))
        say_nothing_of_the_token(facebook)
        evidence = look(facebook, attempt.query())
        assert isinstance(evidence, Inconclusive)
        assert [post.text for post in evidence.candidates] == ["Whose is this?"]

    def test_only_anothers_twin_is_a_doubt_and_no_find(self, facebook: FacebookStand) -> None:
        facebook.control.behave("twin", page=facebook.page, endpoint="publish")
        attempt, _ = send(facebook, text_post("Only theirs"))
        evidence = look(facebook, attempt.query())
        assert isinstance(evidence, Inconclusive)
        assert not evidence.clean

    def test_links_without_text_are_told_apart(self, facebook: FacebookStand) -> None:
        one, first = send(facebook, Post("", link="https://example.org/1"))
        two, second = send(facebook, Post("", link="https://example.org/2"))
        assert isinstance(first, Published)
        assert isinstance(second, Published)
        for attempt, outcome in ((one, first), (two, second)):
            evidence = look(facebook, attempt.query())
            assert isinstance(evidence, Found)
            assert evidence.remote_id == outcome.remote_id


class TestContent:
    """What is refused before it may be approved, in words a person can act on."""

    def test_each_problem_has_its_code(self) -> None:
        photo = Media(kind="image", type="image/jpeg", sha256="a", size=5)
        video = Media(kind="video", type="video/mp4", sha256="v", size=5)
        cases: list[tuple[Post, list[str]]] = [
            (Post("ok"), []),
            (Post("", link="https://example.org"), []),
            (Post("", media=(photo,)), []),
            (Post("x", link="ftp://example.org"), ["link-not-an-address"]),
            (Post("x", link="https://a b.org/"), ["link-not-an-address"]),
            (Post("x", link="https://[1"), ["link-not-an-address"]),
            (Post("x", link="https://example.org", media=(photo,)), ["link-with-media"]),
            (Post("x", media=(photo, video)), ["media-mixed"]),
            (Post("x", media=(video, video)), ["too-many-media"]),
            (Post("x", media=(replace(photo, type="image/svg+xml"),)), ["media-type"]),
            (Post("x", media=(replace(photo, size=0),)), ["media-size"]),
            (Post("x", media=(replace(photo, size=None),)), ["media-size"]),
            (Post("x", media=(replace(photo, sha256=None),)), ["media-missing"]),
            (Post("x", media=(replace(photo, sha256=None, url="/etc/passwd"),)), ["media-missing"]),
            (Post("x", media=(replace(photo, kind="sound"),)), ["media-kind"]),  # type: ignore[arg-type]
        ]
        for post, codes in cases:
            assert [problem.code for problem in problems(post.to_json())] == codes, post

    def test_too_long_reads_as_the_wording_brief_has_it(self) -> None:
        (problem,) = problems(Post("a" * 63_210).to_json())
        assert problem.message == (
            "Facebook takes 63,206 characters as it counts them; this is 63,210. Shorten by 4, "
            "or write its own text."
        )

    @pytest.mark.parametrize(
        ("post", "name"),
        [
            (Post("x"), "text"),
            (Post("x", link="https://example.org"), "link"),
            (photo_post("x", "a"), "photo"),
            (photo_post("x", "a", "b"), "photos"),
            (video_post("x"), "video"),
        ],
    )
    def test_capabilities_by_format(self, post: Post, name: str) -> None:
        capable = capabilities(post.to_json())
        assert capable.format == name
        assert capable.promise is Promise.AT_MOST_ONCE_WITH_EVIDENCE
        assert capable.can_look
        assert not capable.listing_is_exhaustive
        assert capable.repeat_for is None

    def test_an_address_that_a_channel_names_is_checked(self, facebook: FacebookStand) -> None:
        """Loopback is for the operator's own setting, unless the operator allows it."""
        strict = Transport(Settings())
        adapter = facebook.adapter_at(strict, "https://graph.facebook.com")
        channel = replace(facebook.channel, base_url=facebook.url)
        task = make_task(channel, text_post("Inside"))
        outcome = adapter.publish(task, Ready({}), make_permit(task))
        assert isinstance(outcome, Deferred)
        assert outcome.proof is Proof.NOT_SENT
        assert not adapter.check(channel).usable
        assert facebook.texts() == []

    def test_nearly_full_usage_rests_the_channel(self, facebook: FacebookStand) -> None:
        facebook.control.usage(97)
        try:
            _, outcome = send(facebook, text_post("Slowly now"))
        finally:
            facebook.control.usage(None)
        assert isinstance(outcome, Published)
        assert outcome.not_before == 300.0
