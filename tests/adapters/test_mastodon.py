"""Mastodon: the conformance suite, kinds of server, and what a key is worth on each."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from publisher.adapters.mastodon.servers import REPEAT_FOR, Server, ServerKind, kind_of
from publisher.engine.adapter import Promise, Ready, Task
from publisher.engine.content import Post
from publisher.engine.evidence import Found
from publisher.engine.outcome import (
    Outcome,
    Published,
    Rejected,
    Unknown,
)
from publisher.sandbox.process import SandboxProcess
from publisher.transport import Transport
from tests.adapters.conformance import Conformance
from tests.adapters.liar import Liar
from tests.adapters.mastodon_stage import Stage, said
from tests.adapters.mastodon_stand import MastodonStand
from tests.adapters.stand import (
    Attempt,
    Fault,
    look,
    make_permit,
    make_task,
    photo_post,
    prepare,
    text_post,
)

KEY_HONOURED = ("mastodon", "pleroma", "hollo")
KEY_NOT_PROMISED = ("akkoma", "gotosocial", "takahe", "pixelfed")


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


class TestConformanceMastodon(Conformance):
    """Every case of the suite, on a server whose key and listing may be trusted."""

    @pytest.fixture
    def stand(self, mastodon: MastodonStand) -> MastodonStand:
        """Give the account."""
        return mastodon


class TestConformanceGoToSocial(Conformance):
    """The same on a server that ignores the key, where only evidence is left."""

    @pytest.fixture
    def stand(self, sandbox: SandboxProcess, transport: Transport) -> MastodonStand:
        """Give an account there."""
        return MastodonStand(sandbox, transport, "gotosocial")


def ready_task(stand: MastodonStand, post: Post) -> tuple[Task, Ready]:
    task = make_task(stand.channel, post)
    ready = prepare(stand, task)
    return replace(task, progress=ready.progress), ready


def publish(stand: MastodonStand, task: Task, ready: Ready, attempts: int) -> Outcome:
    begun = replace(task, attempts=attempts)
    outcome = stand.adapter.publish(begun, ready, make_permit(begun))
    stand.seen.append(outcome)
    return outcome


class TestKinds:
    """What is promised depends on the server, and without knowing it the least is."""

    @pytest.mark.parametrize("server", [*KEY_HONOURED, *KEY_NOT_PROMISED])
    def test_promise_by_server(
        self, sandbox: SandboxProcess, transport: Transport, server: str
    ) -> None:
        stand = MastodonStand(sandbox, transport, server)
        task, _ = ready_task(stand, text_post("Which are you"))
        can = stand.capabilities(task)
        keyed = server in KEY_HONOURED
        wanted = Promise.SAFE_WHILE_THE_KEY_LIVES if keyed else Promise.AT_MOST_ONCE_WITH_EVIDENCE
        assert can.promise is wanted
        assert can.repeat_for == (REPEAT_FOR if keyed else None)
        assert not can.repeat_is_atomic
        assert can.can_look
        assert can.listing_is_exhaustive is (server == "mastodon")

    def test_unread_server_is_promised_least(self, mastodon: MastodonStand) -> None:
        can = mastodon.adapter.capabilities(text_post("Anyone").to_json())
        assert can.promise is Promise.AT_MOST_ONCE_WITH_EVIDENCE
        assert can.repeat_for is None
        assert not can.listing_is_exhaustive

    def test_a_repeat_ends_well_before_the_key(self) -> None:
        assert REPEAT_FOR == 3000.0

    @pytest.mark.parametrize(
        ("version", "source", "kind"),
        [
            ("4.5.1", "https://github.com/mastodon/mastodon", ServerKind.MASTODON),
            ("4.6.0-nightly.2026-11-01", "https://github.com/mastodon/mastodon.git", "Mastodon"),
            ("4.4.2+glitch", "https://github.com/glitch-soc/mastodon/", ServerKind.MASTODON),
            ("4.5.1", "", ServerKind.OTHER),
            ("4.5.1", "https://github.com/matthewdeanmartin/mastodon_mock", ServerKind.OTHER),
            ("2.7.2", "https://github.com/mastodon/mastodon", ServerKind.OTHER),
            ("2.7.2 (compatible; Pleroma 2.9.1)", "", ServerKind.PLEROMA),
            ("2.7.2 (compatible; Akkoma 3.13.2)", "", ServerKind.AKKOMA),
            ("2.7.2 (compatible; Pleroma 2.4.50+akkoma)", "", ServerKind.AKKOMA),
            ("4.0.0 (compatible; Sharkey 2025.4)", "https://x/mastodon", ServerKind.OTHER),
            ("3.5.3 (compatible; Pixelfed 0.12.5)", "", ServerKind.PIXELFED),
            ("0.7.0", "https://github.com/fedify-dev/hollo", ServerKind.HOLLO),
            ("0.19.1+git-57cb4fe", "https://codeberg.org/x/gotosocial", ServerKind.GOTOSOCIAL),
            ("takahe/0.11.0", "", ServerKind.TAKAHE),
            ("", "", ServerKind.OTHER),
        ],
    )
    def test_kind_by_what_it_says(self, version: str, source: str, kind: str) -> None:
        assert kind_of(version, source) == kind

    @pytest.mark.parametrize(
        "odd",
        [
            {},
            {"version": 5, "source_url": [], "configuration": "none"},
            {"configuration": {"statuses": {"max_characters": "500"}}},
            {"configuration": {"statuses": {"max_characters": -1, "max_media_attachments": True}}},
        ],
    )
    def test_odd_instance_has_the_defaults(self, odd: dict[str, object]) -> None:
        server = Server.read(odd)
        assert (server.kind, server.characters, server.media) == (ServerKind.OTHER, 500, 4)
        assert Server.kept(server.keep({})) == server

    @pytest.mark.parametrize("spoiled", [None, 5, {}, {"kind": "Nonesuch"}, {"kind": None}])
    def test_spoiled_progress_is_no_server(self, spoiled: object) -> None:
        assert Server.kept({"server": spoiled}) is None


class TestKeys:
    """One key per job and account, sent on every attempt; what it is worth is the server's."""

    @pytest.mark.parametrize(
        ("keys", "records"), [("honoured", 1), ("cached", 1), ("unlocked", 1), ("ignored", 3)]
    )
    def test_the_same_job_three_times(
        self, mastodon: MastodonStand, keys: str, records: int
    ) -> None:
        mastodon.control.mastodon(mastodon.page, keys=keys)
        task, ready = ready_task(mastodon, text_post("Three times"))
        ids = set()
        for attempts in range(3):
            outcome = publish(mastodon, task, ready, attempts)
            assert isinstance(outcome, Published)
            ids.add(outcome.remote_id)
        assert len(ids) == records
        assert mastodon.texts() == ["Three times"] * records

    @pytest.mark.parametrize("fault", [Fault.LOSE_ANSWER, Fault.RESET, Fault.GATEWAY])
    def test_repeat_after_a_lost_answer_gets_the_first_post(
        self, mastodon: MastodonStand, fault: Fault
    ) -> None:
        task, ready = ready_task(mastodon, photo_post("Taken once", "a", "b"))
        mastodon.misbehave(fault)
        assert isinstance(publish(mastodon, task, ready, 0), Unknown)
        outcome = publish(mastodon, task, ready, 1)
        assert isinstance(outcome, Published)
        assert mastodon.texts() == ["Taken once"]
        found = look(mastodon, Attempt(task, make_permit(task)).query())
        assert isinstance(found, Found)
        assert found.remote_id == outcome.remote_id

    def test_replay_that_breaks_the_server_is_found(self, mastodon: MastodonStand) -> None:
        mastodon.control.mastodon(mastodon.page, keys="replay-500")
        task, ready = ready_task(mastodon, text_post("mastodon#40399"))
        first = publish(mastodon, task, ready, 0)
        assert isinstance(first, Published)
        assert isinstance(publish(mastodon, task, ready, 1), Unknown)
        assert mastodon.texts() == ["mastodon#40399"]
        assert isinstance(look(mastodon, Attempt(task, make_permit(task)).query()), Found)

    def test_pleromas_echo_of_a_refusal_proves_nothing(self, mastodon: MastodonStand) -> None:
        mastodon.control.mastodon(mastodon.page, keys="cached")
        task, ready = ready_task(mastodon, text_post("x" * 490))
        mastodon.control.mastodon(mastodon.page, max_characters=10)
        assert isinstance(publish(mastodon, task, ready, 0), Rejected)
        mastodon.control.mastodon(mastodon.page, max_characters=500)
        assert isinstance(publish(mastodon, task, ready, 1), Unknown)

    def test_key_and_body_are_the_same_on_every_attempt(self, stage: Stage) -> None:
        requests = []
        for attempts in range(2):
            stage.publish(said(stage.status()), attempts=attempts)
            requests += stage.asked
        assert [(asked.method, asked.path) for asked in requests] == [
            ("POST", "/api/v1/statuses")
        ] * 2
        assert len({asked.body for asked in requests}) == 1
        assert json.loads(requests[0].body) == {
            "status": "The mill is open",
            "visibility": "public",
        }
        assert requests[0].headers["content-type"] == "application/json"
        assert requests[0].headers["authorization"] == f"Bearer {stage.stand.secret}"

    def test_key_is_a_uuid_of_job_and_account(self, stage: Stage, mastodon: MastodonStand) -> None:
        at = datetime(2026, 12, 1, tzinfo=UTC)
        frozen = mastodon.adapter.platform_key("post:1/channel:1/at:x", at)
        assert frozen is not None
        assert uuid.UUID(frozen).version == 8
        assert frozen == mastodon.adapter.platform_key("post:1/channel:1/at:x", datetime.now(UTC))
        assert frozen != mastodon.adapter.platform_key("post:1/channel:2/at:x", at)
        task = replace(make_task(mastodon.channel, text_post("k")), platform_key=frozen)
        here, again, elsewhere = (
            self._sent(stage, replace(task, channel=channel))
            for channel in (
                mastodon.channel,
                mastodon.channel,
                replace(mastodon.channel, remote_id="77"),
            )
        )
        assert here == again
        assert here != elsewhere
        assert re.fullmatch(r"[0-9a-f-]{36}", here)

    def _sent(self, stage: Stage, task: Task) -> str:
        with Liar(said({})) as liar:
            channel = replace(task.channel, base_url=liar.url)
            moved = replace(task, channel=channel)
            ready = Ready(stage.progress())
            stage.stand.adapter_with(stage.transport).publish(moved, ready, make_permit(moved))
            stage.stand.seen.append(moved.job_id)
            return liar.asked[0].headers["idempotency-key"]
