"""Telegram: the conformance suite, and the one call that makes each kind of post."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from publisher.config import Settings
from publisher.engine.adapter import Ready
from publisher.engine.content import Media, Post
from publisher.engine.evidence import Inconclusive
from publisher.engine.outcome import (
    Deferred,
    Outcome,
    Proof,
    Published,
    Reason,
    Rejected,
    Unauthorized,
    Unknown,
)
from publisher.engine.retry import Policy, Standing, settle
from publisher.sandbox.process import SandboxProcess
from publisher.transport import Transport
from tests.adapters.conformance import CORPUS, Conformance
from tests.adapters.liar import Asked, Liar, Said
from tests.adapters.stand import (
    Attempt,
    Fault,
    look,
    make_permit,
    make_task,
    photo_post,
    send,
    text_post,
)
from tests.adapters.telegram_stand import TelegramStand

PHOTO = Media(kind="image", type="image/jpeg", sha256="a", size=5)


@pytest.fixture
def telegram(
    sandbox: SandboxProcess, transport: Transport, caplog: pytest.LogCaptureFixture
) -> Iterator[TelegramStand]:
    """A channel of its own; at its end nothing may hold the token, nor the secret half of it."""
    caplog.set_level("DEBUG")
    stand = TelegramStand(sandbox, transport)
    yield stand
    for secret in (stand.secret, stand.secret.partition(":")[2]):
        assert secret not in repr(stand.seen)
        assert secret not in caplog.text


class TestConformanceTelegram(Conformance):
    """Every case of the suite that is not about looking, against the sandbox."""

    @pytest.fixture
    def stand(self, telegram: TelegramStand) -> TelegramStand:
        """Give the channel."""
        return telegram


class TestPosts:
    """One call each, its text under the first photo, its link as a preview."""

    def test_album_is_one_call_and_all_its_numbers_are_kept(self, telegram: TelegramStand) -> None:
        _, outcome = send(telegram, photo_post("Ten of the mill", *"abcabcabca"))
        assert isinstance(outcome, Published)
        (post,) = telegram.control.posts(telegram.page)
        assert post["message"] == "Ten of the mill"
        assert len(post["media"]) == 10
        chat, _, first = outcome.remote_id.partition("/")
        assert chat == telegram.page
        assert outcome.answer is not None
        numbers = [str(int(first) + index) for index in range(10)]
        assert outcome.answer.body.startswith(f"[messages {', '.join(numbers)}] ")

    def test_permalink_is_the_public_one(self, telegram: TelegramStand) -> None:
        _, outcome = send(telegram, text_post("By name"))
        assert isinstance(outcome, Published)
        number = outcome.remote_id.partition("/")[2]
        assert outcome.remote_id == f"{telegram.page}/{number}"
        assert outcome.permalink == f"https://t.me/{telegram.username}/{number}"
        assert outcome.at is not None
        assert abs((datetime.now(UTC) - outcome.at).total_seconds()) < 60

    def test_channel_by_its_name(self, telegram: TelegramStand) -> None:
        named = replace(telegram.channel, remote_id=f"@{telegram.username.upper()}")
        telegram.channel = named
        assert telegram.adapter.check(named).usable
        _, outcome = send(telegram, text_post("Hello by name"))
        assert isinstance(outcome, Published)
        assert outcome.remote_id.startswith(f"{telegram.page}/")

    @pytest.mark.parametrize("name", CORPUS)
    @pytest.mark.parametrize("photos", [("a",), ("a", "b")])
    def test_captions_byte_for_byte(
        self, telegram: TelegramStand, name: str, photos: tuple[str, ...]
    ) -> None:
        _, outcome = send(telegram, photo_post(CORPUS[name], *photos))
        assert isinstance(outcome, Published)
        assert [text.encode() for text in telegram.texts()] == [CORPUS[name].encode()]

    @pytest.mark.parametrize("fault", [Fault.LOSE_ANSWER, Fault.GATEWAY, Fault.HALF_ANSWER])
    def test_lost_answer_to_an_album_is_for_a_person(
        self, telegram: TelegramStand, fault: Fault
    ) -> None:
        telegram.misbehave(fault)
        attempt, outcome = send(telegram, photo_post("Three", "a", "b", "c"))
        assert isinstance(outcome, Unknown)
        assert telegram.texts() == ["Three"]
        evidence = look(telegram, attempt.query(outcome))
        assert evidence == Inconclusive("this platform cannot be looked up")

    def test_missing_bytes_are_not_sent(self, telegram: TelegramStand) -> None:
        for photos in (("nowhere",), ("a", "nowhere")):
            task = make_task(telegram.channel, photo_post("Lost", *photos))
            permit = make_permit(task)
            outcome = telegram.adapter.publish(task, Ready({}), permit)
            assert isinstance(outcome, Deferred)
            assert outcome.proof is Proof.NOT_SENT
            assert not permit.used

    def test_rights_that_were_taken_are_a_persons_matter(self, telegram: TelegramStand) -> None:
        for details, reason in (
            ({"can_post_messages": False}, Reason.MISSING_PERMISSION),
            ({"status": "left"}, Reason.MISSING_PERMISSION),
            ({"status": "kicked"}, Reason.MISSING_PERMISSION),
        ):
            telegram.control.add_account(
                "telegram",
                id=telegram.page,
                username=telegram.username,
                token=telegram.secret,
                **details,
            )
            _, outcome = send(telegram, text_post("May I"))
            assert isinstance(outcome, Unauthorized)
            assert outcome.reason is reason
            assert outcome.validated_before_storing
        assert telegram.texts() == []

    @pytest.mark.parametrize("secret", ["", "nonsense", "1:a/../b", "1:a?b", "1:ü", "a:b"])
    def test_what_is_no_token_never_becomes_an_address(
        self, telegram: TelegramStand, secret: str
    ) -> None:
        telegram.secret, kept = secret, telegram.secret
        task = make_task(telegram.channel, text_post("Where to"))
        permit = make_permit(task)
        assert isinstance(telegram.adapter.step(task), Unauthorized)
        assert isinstance(telegram.adapter.publish(task, Ready({}), permit), Deferred)
        assert not permit.used
        telegram.secret = kept

    @pytest.mark.parametrize("chat", ["", "@", "@a b", "name", "-100x", "@../x", "1" * 40])
    def test_what_is_no_channel_is_for_a_person(self, telegram: TelegramStand, chat: str) -> None:
        task = make_task(replace(telegram.channel, remote_id=chat), text_post("Where to"))
        assert isinstance(telegram.adapter.step(task), Unauthorized)

    def test_an_address_that_a_channel_names_is_checked(
        self, telegram: TelegramStand, sandbox: SandboxProcess
    ) -> None:
        """Loopback is for the operator's own setting, unless the operator allows it."""
        telegram.transport = Transport(Settings())
        adapter = telegram.adapter_at("https://api.telegram.org")
        task = make_task(replace(telegram.channel, base_url=sandbox.url), text_post("Inside"))
        outcome = adapter.publish(task, Ready({}), make_permit(task))
        telegram.seen.append(outcome)
        assert isinstance(outcome, Deferred)
        assert outcome.proof is Proof.NOT_SENT
        assert telegram.texts() == []


Script = Callable[[Asked], Said]


class TestBodies:
    """What goes over the wire, and that it is the same each time."""

    def asked(self, telegram: TelegramStand, post: Post, script: Script | None = None) -> Asked:
        seen = []
        for attempts in range(2):
            with Liar(script or (lambda _: Said({"ok": True, "result": True}))) as liar:
                task = make_task(telegram.channel, post, attempts=attempts)
                adapter = telegram.adapter_at(liar.url)
                telegram.seen.append(adapter.publish(task, Ready({}), make_permit(task)))
                seen += liar.asked
        first, second = seen
        assert (first.path, first.body) == (second.path, second.body)
        return first

    def test_text(self, telegram: TelegramStand) -> None:
        asked = self.asked(telegram, text_post("*as* <b>it</b> _is_"))
        assert asked.path == f"/bot{telegram.secret}/sendMessage"
        body = {"chat_id": telegram.page, "text": "*as* <b>it</b> _is_"}
        assert json.loads(asked.body) == body

    @pytest.mark.parametrize(("text", "sent"), [("See", "See"), (" ", "https://e.org/a")])
    def test_link_is_the_preview(self, telegram: TelegramStand, text: str, sent: str) -> None:
        asked = self.asked(telegram, Post(text, link="https://e.org/a"))
        assert json.loads(asked.body) == {
            "chat_id": telegram.page,
            "text": sent,
            "link_preview_options": {"url": "https://e.org/a"},
        }

    def test_photo(self, telegram: TelegramStand) -> None:
        asked = self.asked(telegram, photo_post("Caption", "a"))
        assert asked.path.endswith("/sendPhoto")
        assert b'name="caption"\r\n\r\nCaption\r\n' in asked.body
        assert b'name="photo"; filename="photo-1"' in asked.body
        assert b"parse_mode" not in asked.body

    def test_photo_by_address_without_a_caption(self, telegram: TelegramStand) -> None:
        item = replace(PHOTO, sha256=None, url="https://e.org/a.jpg")
        asked = self.asked(telegram, Post("", media=(item,)))
        assert asked.body == (f"chat_id={telegram.page}&photo=https%3A%2F%2Fe.org%2Fa.jpg".encode())

    def test_album(self, telegram: TelegramStand) -> None:
        by_address = replace(PHOTO, sha256=None, url="https://e.org/a.jpg")
        post = photo_post("Đi chợ", "a", "b")
        asked = self.asked(telegram, replace(post, media=(*post.media, by_address)))
        assert asked.path.endswith("/sendMediaGroup")
        start = asked.body.index(b"[{")
        listed = json.loads(asked.body[start : asked.body.index(b"\r\n", start)])
        assert listed == [
            {"type": "photo", "media": "attach://photo0", "caption": "Đi chợ"},
            {"type": "photo", "media": "attach://photo1"},
            {"type": "photo", "media": "https://e.org/a.jpg"},
        ]
        assert b'name="photo0"' in asked.body
        assert b'name="photo1"' in asked.body

    def test_an_echoed_token_is_cut_out_of_everything(self, telegram: TelegramStand) -> None:
        token, half = telegram.secret, telegram.secret.partition(":")[2]

        def echo(status: int) -> Script:
            body = {
                "ok": status == 200,
                "error_code": status,
                "description": f"Unauthorized: {token} or {half}",
                "result": {"message_id": 5, "chat": {"id": 1, "title": token}, "text": half},
            }
            return lambda asked: Said(body, status, {"X-Echo": asked.path})

        for status in (200, 400, 401, 500):
            self.asked(telegram, text_post("Echo"), echo(status))
            with Liar(echo(status)) as liar:
                health = telegram.adapter_at(liar.url).check(telegram.channel)
                telegram.seen.append(health)
        assert telegram.seen


def message(telegram: TelegramStand, number: int = 7, **more: object) -> dict[str, Any]:
    """A message as the Bot API shows it."""
    chat = {"id": int(telegram.page), "username": telegram.username, "type": "channel"}
    return {
        "message_id": number,
        "date": 1_796_608_890,
        "chat": chat,
        "text": "Good morning",
    } | more


class TestAnswers:
    """A success is a message in this channel; nothing else is."""

    def publish(self, telegram: TelegramStand, said: Said, post: Post | None = None) -> Outcome:
        with Liar(lambda _: said) as liar:
            task = make_task(telegram.channel, post or text_post("Good morning"))
            adapter = telegram.adapter_at(liar.url)
            outcome = adapter.publish(task, Ready({}), make_permit(task))
        telegram.seen.append(outcome)
        return outcome

    @pytest.mark.parametrize(
        "body",
        [
            b"",
            b"<html>",
            b'{"ok":true',
            [],
            {},
            {"ok": True},
            {"ok": True, "result": True},
            {"ok": True, "result": []},
            {"ok": True, "result": {}},
            {"ok": True, "result": {"message_id": 7}},
            {"ok": True, "result": [None]},
            {"ok": False, "result": {"message_id": 7}},
        ],
    )
    def test_without_a_message_it_is_unknown(self, telegram: TelegramStand, body: object) -> None:
        outcome = self.publish(telegram, Said(body))
        assert isinstance(outcome, Unknown)
        assert outcome.reason is Reason.NO_ID

    @pytest.mark.parametrize(
        "wrong",
        [
            {"message_id": "7"},
            {"message_id": True},
            {"message_id": 0},
            {"message_id": -7},
            {"chat": {"id": -100_999}},
            {"chat": {"id": "x"}},
            {"chat": None},
            {"text": "Something else altogether"},
            {"text": ""},
            {"text": None},
        ],
    )
    def test_with_another_message_it_is_unknown(
        self, telegram: TelegramStand, wrong: dict[str, object]
    ) -> None:
        said = Said({"ok": True, "result": message(telegram) | wrong})
        assert isinstance(self.publish(telegram, said), Unknown)

    def test_with_this_message_it_is_published(self, telegram: TelegramStand) -> None:
        outcome = self.publish(telegram, Said({"ok": True, "result": message(telegram)}))
        assert isinstance(outcome, Published)
        assert outcome.remote_id == f"{telegram.page}/7"
        assert outcome.at == datetime(2026, 12, 7, 2, 1, 30, tzinfo=UTC)

    def test_a_channel_without_a_name_has_no_public_link(self, telegram: TelegramStand) -> None:
        nameless = message(telegram, chat={"id": int(telegram.page)})
        outcome = self.publish(telegram, Said({"ok": True, "result": nameless}))
        assert isinstance(outcome, Published)
        assert outcome.permalink is None

    @pytest.mark.parametrize(("count", "kind"), [(1, Unknown), (2, Published), (3, Unknown)])
    def test_an_album_is_as_many_messages_as_photos(
        self, telegram: TelegramStand, count: int, kind: type
    ) -> None:
        result = [message(telegram, 7 + index, caption="Two") for index in range(count)]
        for item in result:
            del item["text"]
        said = Said({"ok": True, "result": result})
        outcome = self.publish(telegram, said, photo_post("Two", "a", "b"))
        assert isinstance(outcome, kind)
        if isinstance(outcome, Unknown):
            assert outcome.remote_handle == f"{telegram.page}/7"

    def test_the_id_in_half_an_answer_is_a_clue(self, telegram: TelegramStand) -> None:
        half = b'{"ok":true,"result":{"message_id":77,"sender'
        outcome = self.publish(telegram, Said(half, missing=9))
        assert isinstance(outcome, Unknown)
        assert outcome.remote_handle == f"{telegram.page}/77"
        for said in (Said(half, 500, missing=9), Said(half[:30], missing=9)):
            outcome = self.publish(telegram, said)
            assert isinstance(outcome, Unknown)
            assert outcome.remote_handle is None


class TestNobodyCanLook:
    """A refusal that is not validated first ends as unknown, because nothing could check it."""

    def test_engine_makes_unknown_of_a_refusal_it_cannot_check(
        self, telegram: TelegramStand
    ) -> None:
        telegram.misbehave(Fault.LIMITED, times=2)
        now = datetime.now(UTC)
        standing = Standing(
            0, now.replace(year=now.year + 1), begun=True, sent=True, can_look=False
        )
        for post, event in (
            (text_post("One message"), "defer"),
            (photo_post("Several messages", "a", "b"), "lose_answer"),
        ):
            _, outcome = send(telegram, post)
            assert isinstance(outcome, Deferred)
            assert settle(outcome, standing, Policy(), now).event == event

    def test_content_that_is_refused_by_a_step_needs_no_attempt(
        self, telegram: TelegramStand
    ) -> None:
        task = make_task(telegram.channel, text_post("x" * 5000))
        assert telegram.adapter.prepared(task) is None
        assert isinstance(telegram.adapter.step(task), Rejected)
        attempt = Attempt(task, make_permit(task))
        assert isinstance(look(telegram, attempt.query()), Inconclusive)
