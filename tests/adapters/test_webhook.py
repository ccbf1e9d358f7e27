"""Webhooks over real sockets: signed, once for each id, repeated under it, and kept from inside."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
import uuid
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from publisher.adapters.webhook import Webhook
from publisher.adapters.webhook.protocol import ROWS, event_id, retry_after
from publisher.config import Settings
from publisher.engine.adapter import LookQuery, Promise, Ready, SendPermit, Task
from publisher.engine.content import Happening, digest
from publisher.engine.evidence import Candidate, Inconclusive, NotThisPost
from publisher.engine.job import Channel, JobId, Token
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
from publisher.transport import Transport
from tests.adapters.liar import Asked, Liar, Said
from tests.adapters.stand import make_permit

SECRET = "CanaryWebhookSecret/+77"
AT = datetime(2026, 12, 7, 2, 3, tzinfo=UTC)
KEY = "alert:doubt/channel:7/job:8f3a/at:once/to:9"
EVENT = Happening("alert.doubt", AT, {"text": "Bản tin: «سلام»", "jobs": ["8f3a"]}).to_json()


class Stand:
    """One receiver's channel."""

    def __init__(self, transport: Transport, url: str | None, *, trusted: bool = True) -> None:
        self.adapter = Webhook(transport, self._open)
        self.seen: list[object] = []
        self.channel = Channel(
            id=9,
            platform="webhook",
            name="Hooks",
            remote_id="hooks",
            base_url=url,
            sealed=b"sealed",
            generation=1,
            trusted=trusted,
        )

    def task(self, content: str = EVENT, *, key: str = KEY, attempts: int = 0) -> Task:
        return Task(
            job_id=JobId(time.monotonic_ns()),
            key=key,
            kind="webhook",
            token=Token(uuid.uuid4()),
            channel=self.channel,
            content=content,
            content_sha256=digest(content),
            progress={},
            platform_key=self.adapter.platform_key(key, AT),
            attempts=attempts,
        )

    def send(self, task: Task | None = None, **how: float) -> tuple[SendPermit, Outcome]:
        task = task or self.task()
        permit = make_permit(task, **how)
        outcome = self.adapter.publish(task, Ready({}), permit)
        self.seen.append(outcome)
        return permit, outcome

    def _open(self, channel: Channel) -> str:
        if channel.sealed is None:
            message = f"no key for {SECRET}"
            raise RuntimeError(message)
        return SECRET


@pytest.fixture(autouse=True)
def canary(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    caplog.set_level("DEBUG")
    yield
    assert SECRET not in caplog.text


def answer(status: int = 204, body: object = b"", **headers: str) -> Liar:
    return Liar(lambda _: Said(body, status, headers))


def is_signed(asked: Asked, secret: str = SECRET) -> bool:
    """What a receiver does, as the protocol tells it to."""
    given = dict(part.split("=") for part in asked.headers["publisher-signature"].split(","))
    signed = given["t"].encode() + b"." + asked.body
    wanted = hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()
    return hmac.compare_digest(wanted, given["v1"]) and abs(time.time() - int(given["t"])) < 300


def test_taken_with_its_signature_and_its_id(transport: Transport) -> None:
    with answer() as receiver:
        permit, outcome = Stand(transport, receiver.url + "/hooks").send()
    assert isinstance(outcome, Published)
    assert permit.used
    (asked,) = receiver.asked
    assert (asked.method, asked.path) == ("POST", "/hooks")
    assert is_signed(asked)
    assert not is_signed(asked, "another secret")
    assert not is_signed(replace(asked, body=asked.body + b" "))
    assert asked.headers["content-type"] == "application/json"
    assert asked.headers["publisher-event-id"] == outcome.remote_id == event_id(KEY)
    assert json.loads(asked.body) == {
        "id": event_id(KEY),
        "type": "alert.doubt",
        "created_at": AT.isoformat(),
        "data": {"text": "Bản tin: «سلام»", "jobs": ["8f3a"]},
    }


def test_500_after_accepting_comes_again_with_one_id_and_one_body(transport: Transport) -> None:
    answers = iter([500, 502, 503, 200])
    taken: set[str] = set()

    def receive(asked: Asked) -> Said:
        taken.add(json.loads(asked.body)["id"])
        return Said(b"oops", next(answers))

    with Liar(receive) as receiver:
        stand = Stand(transport, receiver.url)
        outcomes = [stand.send(stand.task(attempts=number))[1] for number in range(4)]
    assert [type(outcome) for outcome in outcomes] == [Unknown, Unknown, Unknown, Published]
    assert taken == {event_id(KEY)}
    assert len({asked.body for asked in receiver.asked}) == 1
    assert all(is_signed(asked) for asked in receiver.asked)
    can = stand.adapter.capabilities(EVENT)
    assert can.repeat_is_atomic
    assert can.repeat_for == float("inf")
    assert can.promise is Promise.SAFE_WHILE_THE_KEY_LIVES
    assert not can.can_look


@pytest.mark.parametrize("status", ROWS)
def test_each_row_of_the_protocol(transport: Transport, status: int) -> None:
    with answer(status, {"error": "no"}) as receiver:
        _, outcome = Stand(transport, receiver.url).send()
    assert isinstance(outcome, ROWS[status].kind)
    assert isinstance(outcome, Rejected | Deferred | Unauthorized)
    assert outcome.reason is ROWS[status].reason
    assert outcome.row == f"webhook:{status}"
    assert outcome.validated_before_storing
    if isinstance(outcome, Deferred):
        assert outcome.proof is Proof.REFUSED


def test_429_rests_the_channel_for_as_long_as_it_says(transport: Transport) -> None:
    with answer(429, b"", **{"Retry-After": "42"}) as receiver:
        _, outcome = Stand(transport, receiver.url).send()
    assert isinstance(outcome, Deferred)
    assert outcome.retry_after == 42
    assert outcome.rest_channel


@pytest.mark.parametrize("status", [302, 307, 402, 409, 418, 451, 500, 503, 504])
def test_any_other_status_says_nothing(transport: Transport, status: int) -> None:
    with answer(status, b"", Location="http://127.0.0.1:1/") as receiver:
        permit, outcome = Stand(transport, receiver.url).send()
    assert isinstance(outcome, Unknown)
    assert permit.used
    assert len(receiver.asked) == 1


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("7", 7.0),
        ("99999999", 3600.0),
        ("Mon, 07 Dec 2026 02:03:30 GMT", 30.0),
        ("Mon, 07 Dec 2026 01:00:00 GMT", 0.0),
        ("soon", None),
        ("-5", None),
        ("٣", None),
        (None, None),
    ],
)
def test_retry_after(value: str | None, seconds: float | None) -> None:
    assert retry_after(value, AT) == seconds


def test_an_address_that_came_by_page_may_not_lead_inside() -> None:
    closed = Transport(Settings())
    with answer() as receiver:
        permit, outcome = Stand(closed, receiver.url, trusted=False).send()
    assert isinstance(outcome, Deferred)
    assert outcome.proof is Proof.NOT_SENT
    assert "a loopback address" in outcome.detail
    assert not permit.used
    assert receiver.asked == []
    for url in ("http://169.254.169.254/latest", "http://[::ffff:10.0.0.1]/", "http://0.0.0.0/"):
        permit, outcome = Stand(closed, url, trusted=False).send()
        assert isinstance(outcome, Deferred)
        assert not permit.used
    closed.close()


def test_the_secret_is_nowhere_though_the_receiver_repeats_it(transport: Transport) -> None:
    with answer(400, {"your secret": SECRET}) as receiver:
        stand = Stand(transport, receiver.url)
        stand.send()
    assert SECRET not in repr(stand.seen)
    assert SECRET.encode() not in receiver.asked[0].body
    assert SECRET not in repr(receiver.asked[0].headers)


def test_a_channel_that_cannot_be_used_sends_nothing(transport: Transport) -> None:
    stand = Stand(transport, None)
    assert stand.adapter.prepared(stand.task()) is None
    assert isinstance(stand.adapter.step(stand.task()), Unauthorized)
    stand.channel = replace(stand.channel, base_url="http://127.0.0.1:1", sealed=None)
    step = stand.adapter.step(stand.task())
    assert isinstance(step, Unauthorized)
    assert SECRET not in repr(step)
    permit, outcome = stand.send()
    assert isinstance(outcome, Deferred)
    assert not permit.used
    assert not stand.adapter.check(stand.channel).usable


def test_a_short_secret_is_none(transport: Transport) -> None:
    stand = Stand(transport, "http://127.0.0.1:1")
    stand.adapter = Webhook(transport, lambda _: "short")
    step = stand.adapter.step(stand.task())
    assert isinstance(step, Unauthorized)
    assert "sixteen" in step.detail


def test_nobody_listens(transport: Transport) -> None:
    permit, outcome = Stand(transport, "http://127.0.0.1:1").send()
    assert isinstance(outcome, Deferred)
    assert outcome.reason is Reason.CONNECT_FAILED
    assert not permit.used


def test_a_late_permit_and_another_tasks_send_nothing(transport: Transport) -> None:
    with answer() as receiver:
        stand = Stand(transport, receiver.url)
        permit, outcome = stand.send(window=-1.0)
        assert isinstance(outcome, Deferred)
        other = stand.task(Happening("x", AT, {}).to_json())
        outcome = stand.adapter.publish(stand.task(), Ready({}), make_permit(other))
        assert isinstance(outcome, Deferred)
    assert not permit.used
    assert receiver.asked == []


def test_what_cannot_be_an_event_is_said_before(transport: Transport) -> None:
    stand = Stand(transport, "http://127.0.0.1:1")
    big = Happening("x", AT, {"text": "x" * 300_000}).to_json()
    for content in (big, "", "{}", "null", "[]", EVENT.replace("+00:00", ""), '{"type":1}'):
        problems = stand.adapter.problems(content)
        assert problems, content
        assert problems[0].message.endswith(".")
        assert isinstance(stand.adapter.step(stand.task(content)), Rejected)


def test_no_look_and_no_link_but_its_own(transport: Transport) -> None:
    stand = Stand(transport, "http://127.0.0.1:1")
    query = LookQuery(task=stand.task(), began_at=AT, now=AT, bound=frozenset())
    assert isinstance(stand.adapter.look(query), Inconclusive)
    assert isinstance(stand.adapter.identify(query, f" {event_id(KEY)}"), Candidate)
    assert isinstance(stand.adapter.identify(query, event_id("other")), NotThisPost)
