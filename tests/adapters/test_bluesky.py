"""Bluesky: the conformance suite, and what is the AT Protocol's own."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from publisher.adapters.bluesky import tid
from publisher.adapters.bluesky.formats import capabilities, problems
from publisher.adapters.bluesky.record import record_key
from publisher.engine.adapter import Adapter, More, Promise, Ready, SendPermit, Task
from publisher.engine.content import Media, Post
from publisher.engine.evidence import Absent, Found, Inconclusive
from publisher.engine.outcome import (
    Deferred,
    Published,
    Reason,
    Rejected,
    Unauthorized,
    Unknown,
)
from publisher.sandbox.process import SandboxProcess
from publisher.transport import Reply, Request, Transport
from publisher.transport.body import encode
from tests.adapters.bluesky_stand import BlueskyStand
from tests.adapters.conformance import Conformance
from tests.adapters.stand import Attempt, look, make_permit, make_task, photo_post, send


@pytest.fixture
def bluesky(
    sandbox: SandboxProcess, transport: Transport, caplog: pytest.LogCaptureFixture
) -> Iterator[BlueskyStand]:
    """An account of its own; afterwards, no secret of it is anywhere, its tokens included."""
    stand = BlueskyStand(sandbox, transport)
    tokens = stand.tokens()
    yield stand
    kept = f"{stand.seen!r}{caplog.text}"
    assert stand.secret not in kept
    assert not [token for token in tokens | stand.tokens() if token in kept]


class TestConformanceBluesky(Conformance):
    """Every case of the suite, against the sandbox."""

    @pytest.fixture
    def stand(self, bluesky: BlueskyStand) -> BlueskyStand:
        """Give the account."""
        return bluesky


PNG = (
    b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"
    + (1200).to_bytes(4, "big")
    + (630).to_bytes(4, "big")
    + b"\x08"
)


def picture(stand: BlueskyStand, alt: str = "") -> Media:
    stand.store.files["png"] = PNG
    return Media(kind="image", type="image/png", alt=alt, sha256="png", size=len(PNG))


def job(stand: BlueskyStand, post: Post, key: str = "post:1/channel:2") -> Task:
    key = f"{key}/at:2026-07-08T09:00:00.000000Z"
    task = make_task(stand.channel, post)
    minted = stand.adapter.platform_key(key, datetime(2026, 7, 8, 9, tzinfo=UTC))
    return replace(task, key=key, platform_key=minted)


def through(stand: BlueskyStand, task: Task, adapter: Adapter | None = None) -> Task:
    """Do the steps; the task that comes back holds their progress."""
    adapter = adapter or stand.adapter
    while (ready := adapter.prepared(task)) is None:
        step = adapter.step(task)
        stand.seen.append(step)
        assert isinstance(step, More | Ready), step
        task = replace(task, progress=step.progress)
    return replace(task, progress=ready.progress)


class TestRecord:
    """What is built from a post, and that it is built once."""

    def test_the_whole_record_of_a_post(self, bluesky: BlueskyStand) -> None:
        text = "👋 @nobody.test xem https://example.org/a, #tin"
        task = through(bluesky, job(bluesky, Post(text, link="https://www.example.org/b?c=d")))
        assert task.platform_key == "3mq4qxrzwsvos"
        assert task.progress["record"] == (
            '{"$type":"app.bsky.feed.post","createdAt":"2026-07-08T09:00:00.290Z",'
            '"embed":{"$type":"app.bsky.embed.external","external":{"description":"",'
            '"title":"example.org","uri":"https://www.example.org/b?c=d"}},'
            '"facets":[{"features":[{"$type":"app.bsky.richtext.facet#link",'
            '"uri":"https://example.org/a"}],"index":{"byteEnd":43,"byteStart":22}},'
            '{"features":[{"$type":"app.bsky.richtext.facet#tag","tag":"tin"}],'
            '"index":{"byteEnd":49,"byteStart":45}}],'
            f'"text":"{text}"}}'
        )
        assert task.progress["mentions"] == {"nobody.test": None}
        outcome = bluesky.adapter.publish(task, Ready(task.progress), make_permit(task))
        assert isinstance(outcome, Published)
        assert outcome.permalink == f"https://bsky.app/profile/{bluesky.page}/post/3mq4qxrzwsvos"

    def test_a_handle_of_somebody_is_a_mention(self, bluesky: BlueskyStand) -> None:
        task = through(bluesky, job(bluesky, Post(f"Hello @{bluesky.handle.upper()}!")))
        assert task.progress["mentions"] == {bluesky.handle: bluesky.page}
        (facet,) = json.loads(str(task.progress["record"]))["facets"]
        assert facet["features"] == [
            {"$type": "app.bsky.richtext.facet#mention", "did": bluesky.page}
        ]

    def test_pictures_with_alt_and_shape(self, bluesky: BlueskyStand) -> None:
        post = Post("Two", media=(picture(bluesky, "Sân vận động"), picture(bluesky)))
        task = job(bluesky, post)
        first = bluesky.adapter.step(task)
        assert isinstance(first, More)
        assert bluesky.adapter.prepared(replace(task, progress=first.progress)) is None
        task = through(bluesky, replace(task, progress=first.progress))
        images = json.loads(str(task.progress["record"]))["embed"]["images"]
        assert [image["alt"] for image in images] == ["Sân vận động", ""]
        assert [image["aspectRatio"] for image in images] == [{"width": 1200, "height": 630}] * 2
        assert images[0]["image"] == images[1]["image"]

    def test_every_attempt_sends_the_same_bytes(self, bluesky: BlueskyStand) -> None:
        """With the progress of the first, and by a process that lost it all."""
        post = Post(f"@{bluesky.handle} 🇻🇳 #x https://a.example", media=(picture(bluesky, "A"),))
        task = job(bluesky, post)
        sent: list[bytes] = []
        for adapter in (bluesky.real, bluesky.real, bluesky.adapter_at(bluesky.url)):
            ready = through(bluesky, replace(task, attempts=len(sent)), adapter)
            listening = Listening(bluesky.transport)
            adapter._transport = listening
            outcome = adapter.publish(ready, Ready(ready.progress), make_permit(ready))
            assert isinstance(outcome, Published)
            sent += listening.bodies
            adapter._transport = bluesky.transport
            task = task if len(sent) > 1 else ready
        assert len(sent) == 3
        assert len(set(sent)) == 1
        assert sent[0].endswith(b'"swapRecord":null}')
        assert len(bluesky.texts()) == 1

    def test_a_key_stored_by_nobody_is_minted_from_the_jobs_own(
        self, bluesky: BlueskyStand
    ) -> None:
        task = job(bluesky, Post("Old job"))
        older = replace(task, platform_key=None)
        assert record_key(older) == record_key(task) == task.platform_key
        undated = replace(task, platform_key=None, key="imported/7")
        assert record_key(undated) == tid.of_key("imported/7")
        assert tid.instant(record_key(undated)).year == 2024

    def test_a_repeat_is_no_second_post(self, bluesky: BlueskyStand) -> None:
        task = through(bluesky, job(bluesky, Post("Once")))
        outcomes = [
            bluesky.adapter.publish(task, Ready(task.progress), make_permit(task)) for _ in "1234"
        ]
        assert {type(outcome) for outcome in outcomes} == {Published}
        assert bluesky.texts() == ["Once"]
        assert bluesky.adapter.capabilities(task.content).repeat_is_atomic

    def test_another_record_under_our_key_is_a_doubt_and_stays(self, bluesky: BlueskyStand) -> None:
        theirs = through(bluesky, job(bluesky, Post("Theirs")))
        bluesky.adapter.publish(theirs, Ready(theirs.progress), make_permit(theirs))
        ours = through(bluesky, job(bluesky, Post("Ours")))
        attempt = Attempt(ours, make_permit(ours))
        outcome = bluesky.adapter.publish(ours, Ready(ours.progress), attempt.permit)
        assert isinstance(outcome, Unknown)
        evidence = look(bluesky, attempt.query())
        assert isinstance(evidence, Inconclusive)
        assert not evidence.clean
        assert bluesky.texts() == ["Theirs"]

    def test_our_own_record_with_another_mention_is_still_ours(self, bluesky: BlueskyStand) -> None:
        """Progress was lost, and the handle leads elsewhere by now: refused, and found."""
        task = job(bluesky, Post(f"Hello @{bluesky.handle}"))
        first = through(bluesky, task)
        bluesky.adapter.publish(first, Ready(first.progress), make_permit(first))
        moved = replace(task, progress={"mentions": {bluesky.handle: None}}, attempts=1)
        moved = through(bluesky, moved)
        attempt = Attempt(moved, make_permit(moved))
        outcome = bluesky.adapter.publish(moved, Ready(moved.progress), attempt.permit)
        assert isinstance(outcome, Unknown)
        assert isinstance(look(bluesky, attempt.query()), Found)

    def test_a_record_bound_to_another_job_is_not_ours(self, bluesky: BlueskyStand) -> None:
        attempt, outcome = send(bluesky, Post("Bound"))
        assert isinstance(outcome, Published)
        evidence = look(bluesky, attempt.query(bound=frozenset({outcome.remote_id})))
        assert isinstance(evidence, Inconclusive)
        assert not evidence.clean

    def test_a_look_needs_no_credential_once_a_step_was_done(self, bluesky: BlueskyStand) -> None:
        attempt, outcome = send(bluesky, Post("Revoked since"))
        assert isinstance(outcome, Published)
        closed = replace(attempt.task, channel=bluesky.broken)
        assert isinstance(look(bluesky, Attempt(closed, attempt.permit).query()), Found)

    def test_absence_needs_that_nobody_sends(self, bluesky: BlueskyStand) -> None:
        task = through(bluesky, job(bluesky, Post("Not yet")))
        query = Attempt(task, make_permit(task)).query()
        early = look(bluesky, replace(query, sender_is_gone=False))
        assert isinstance(early, Inconclusive)
        assert early.clean
        assert isinstance(look(bluesky, query), Absent)

    @pytest.mark.parametrize(
        "progress",
        [
            {"record": 5, "repo": None, "url": ""},
            {"record": "{", "repo": "did:plc:a", "url": "http://a"},
            {"record": "[]", "repo": "did:plc:a", "url": "http://a"},
            {"blobs": {"0": {"$type": "blob"}}, "uploaded_for": 0},
            {"blobs": {"x": None}, "mentions": [], "shapes": 5},
        ],
    )
    def test_spoiled_progress_is_made_again(
        self, bluesky: BlueskyStand, progress: dict[str, object]
    ) -> None:
        post = Post(f"@{bluesky.handle}", media=(picture(bluesky),))
        task = replace(job(bluesky, post), progress=progress)
        assert bluesky.adapter.prepared(task) is None
        attempt, outcome = send(bluesky, post)
        assert isinstance(outcome, Published)
        permit = make_permit(task)
        unready = bluesky.adapter.publish(task, Ready(progress), permit)
        assert isinstance(unready, Deferred)
        assert not permit.used
        assert isinstance(through(bluesky, task).progress["record"], str)
        assert attempt.permit.used


class Listening(Transport):
    """HTTP as it is, and the bodies of what was published."""

    def __init__(self, inner: Transport) -> None:
        self.inner = inner
        self.bodies: list[bytes] = []

    def publish(self, request: Request, permit: SendPermit) -> Reply | Deferred | Unknown:
        self.bodies.append(b"".join(encode(request)))
        return self.inner.publish(request, permit)


class TestUploads:
    """A failed step publishes nothing, and says why."""

    @pytest.mark.parametrize(
        ("behaviour", "error", "wanted", "reason"),
        [
            ("fail-500", {}, Deferred, Reason.STEP_FAILED),
            ("drop", {}, Deferred, Reason.STEP_FAILED),
            ("answer-without-id", {}, Deferred, Reason.STEP_FAILED),
            ("refuse-limited", {}, Deferred, Reason.RATE_LIMITED),
            ("refuse-token", {}, Deferred, Reason.BUSY),
            ("refuse-token", {"error": "InvalidToken"}, Unauthorized, Reason.NEEDS_RECONNECTING),
            ("refuse-invalid", {}, Rejected, Reason.MEDIA_REFUSED),
        ],
    )
    def test_failed_upload(
        self,
        bluesky: BlueskyStand,
        behaviour: str,
        error: dict[str, object],
        wanted: type,
        reason: Reason,
    ) -> None:
        bluesky.control.behave(behaviour, page=bluesky.page, endpoint="media", error=error)
        task = job(bluesky, Post("Upload", media=(picture(bluesky),)))
        step = bluesky.adapter.step(task)
        bluesky.seen.append(step)
        assert isinstance(step, wanted)
        assert getattr(step, "reason", None) is reason
        assert getattr(step, "row", None) == ""
        assert isinstance(bluesky.adapter.step(task), Ready)
        assert bluesky.texts() == []

    def test_missing_bytes_are_no_upload(self, bluesky: BlueskyStand) -> None:
        item = Media(kind="image", type="image/png", sha256="nowhere", size=5)
        step = bluesky.adapter.step(job(bluesky, Post("Lost", media=(item,))))
        assert isinstance(step, Deferred)
        assert "Photo 1" in step.detail

    def test_each_attempt_uploads_for_itself(self, bluesky: BlueskyStand) -> None:
        """A server drops what no record uses, perhaps while a job waits for its second try."""
        task = through(bluesky, job(bluesky, Post("Again", media=(picture(bluesky),))))
        later = replace(task, attempts=1)
        assert bluesky.adapter.prepared(later) is None
        again = through(bluesky, later)
        assert again.progress["uploaded_for"] == 1
        assert again.progress["record"] == task.progress["record"]

    def test_a_record_that_was_built_is_never_built_anew(self, bluesky: BlueskyStand) -> None:
        """Another release may build it otherwise; what may be live is repeated as it was."""
        task = through(bluesky, job(bluesky, Post("Kept", media=(picture(bluesky),))))
        older = str(task.progress["record"]).replace('"text":', '"tags":["old"],"text":')
        later = replace(task, attempts=1, progress={**task.progress, "record": older})
        assert through(bluesky, later).progress["record"] == older

    @pytest.mark.parametrize("behaviour", ["fail-500", "drop", "refuse-limited", "refuse-token"])
    def test_failed_resolution(self, bluesky: BlueskyStand, behaviour: str) -> None:
        bluesky.control.behave(behaviour, page=None, endpoint="account", times=3)
        try:
            step = bluesky.adapter.step(job(bluesky, Post("Hi @somebody.test")))
        finally:
            bluesky.control.heal()
        bluesky.seen.append(step)
        assert isinstance(step, Deferred)


class TestContent:
    """What is refused before it may be approved, in words a person can act on."""

    def test_each_problem_has_its_code(self) -> None:
        photo = Media(kind="image", type="image/jpeg", sha256="a", size=5)
        video = Media(kind="video", type="video/mp4", sha256="v", size=5)
        cases: list[tuple[Post, list[str]]] = [
            (Post("ok"), []),
            (Post("", link="https://example.org"), []),
            (Post("", media=(photo,) * 4), []),
            (Post("x", link="ftp://example.org"), ["link-not-an-address"]),
            (Post("x", link="https://a b.org/"), ["link-not-an-address"]),
            (Post("x", link="https:///a"), ["link-not-an-address"]),
            (Post("x", link="https://[1"), ["link-not-an-address"]),
            (Post("x", link="https://a.org/" + "b" * 2048), ["link-too-long"]),
            (Post("x", link="https://example.org", media=(photo,)), ["link-with-media"]),
            (Post("x", media=(photo, video)), ["media-kind"]),
            (Post("x", media=(replace(photo, type="image/svg+xml"),)), ["media-type"]),
            (Post("x", media=(replace(photo, size=0),)), ["media-size"]),
            (Post("x", media=(replace(photo, size=None),)), ["media-size"]),
            (
                Post("x", media=(replace(photo, sha256=None, url="https://a.org/"),)),
                ["media-missing"],
            ),
            (Post("👨‍👩‍👧‍👦" * 120), []),
            (Post("👨‍👩‍👧‍👦" * 121), ["text-too-long"]),
        ]
        for post, codes in cases:
            assert [problem.code for problem in problems(post.to_json())] == codes, post

    def test_too_long_reads_as_the_wording_brief_has_it(self) -> None:
        (problem,) = problems(Post("a" * 318).to_json())
        assert problem.message == (
            "Bluesky takes 300 characters as it counts them; this is 318. Shorten by 18, or write "
            "its own text."
        )
        (problem,) = problems(Post("👨‍👩‍👧‍👦" * 121).to_json())
        assert problem.message == (
            "Bluesky takes 3,000 bytes of text; this is 3,025, since its characters are made of "
            "many parts. Shorten by 25 bytes, or write its own text."
        )

    @pytest.mark.parametrize(
        ("post", "name"),
        [
            (Post("x"), "text"),
            (Post("x", link="https://example.org"), "link"),
            (photo_post("x", "a"), "photo"),
            (photo_post("x", "a", "b"), "photos"),
        ],
    )
    def test_capabilities_by_format(self, post: Post, name: str) -> None:
        can = capabilities(post.to_json())
        assert (can.format, can.promise) == (name, Promise.EXACTLY_ONCE)
        assert can.can_look
        assert can.listing_is_exhaustive
        assert can.repeat_is_atomic
        assert can.repeat_for == math.inf
