"""Mail before a relay that says whatever a script tells it, byte for byte."""

from __future__ import annotations

import time

import pytest

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
from tests.adapters.mail_relay import ADDRESSED, HELLO, ScriptedRelay
from tests.adapters.mail_stand import MailStand, letter


def send(
    *script: str | bytes | None, budget: float = 5.0, query: str = ""
) -> tuple[Outcome, bool, list[bytes]]:
    with ScriptedRelay(script) as relay:
        stand = MailStand(relay.credential + query)
        _, permit, outcome = stand.send(budget=budget)
    return outcome, permit.used, relay.got


BEFORE: dict[str, tuple[tuple[str | bytes | None, ...], type, Reason]] = {
    "closed at once": ((), Deferred, Reason.CONNECT_FAILED),
    "no service": ((b"554 no service here\r\n",), Deferred, Reason.CONNECT_FAILED),
    "busy greeting": ((b"421 busy\r\n",), Deferred, Reason.CONNECT_FAILED),
    "speaks HTTP": ((b"HTTP/1.1 400 Bad Request\r\n\r\n",), Deferred, Reason.CONNECT_FAILED),
    "endless greeting": ((b"2" * 10_000,), Deferred, Reason.CONNECT_FAILED),
    "endless reply": ((b"220-more\r\n" * 1000,), Deferred, Reason.CONNECT_FAILED),
    "two codes": ((b"220-a\r\n250 b\r\n",), Deferred, Reason.CONNECT_FAILED),
    "EHLO refused": ((b"220 a\r\n", "EHLO", b"502 no\r\n"), Deferred, Reason.CONNECT_FAILED),
    "wants access": ((*HELLO, "MAIL", b"530 5.7.0 first AUTH\r\n"), Unauthorized,
                     Reason.NEEDS_RECONNECTING),
    "sender later": ((*HELLO, "MAIL", b"451 later\r\n"), Deferred, Reason.BUSY),
    "sender never": ((*HELLO, "MAIL", b"550 no\r\n"), Rejected, Reason.CONTENT_REFUSED),
    "closes at RCPT": ((*HELLO, "MAIL", b"250 ok\r\n", "RCPT"), Deferred, Reason.CONNECT_FAILED),
    "DATA refused": ((*HELLO, "MAIL", b"250 ok\r\n", "RCPT", b"250 ok\r\n", "DATA",
                      b"554 no\r\n"), Rejected, Reason.CONTENT_REFUSED),
    "DATA taken for all": ((*HELLO, "MAIL", b"250 ok\r\n", "RCPT", b"250 ok\r\n", "DATA",
                            b"250 what\r\n"), Deferred, Reason.CONNECT_FAILED),
}  # fmt: skip


@pytest.mark.parametrize("case", BEFORE)
def test_before_the_message_all_is_certain(case: str) -> None:
    script, kind, reason = BEFORE[case]
    outcome, used, got = send(*script)
    assert isinstance(outcome, kind)
    assert getattr(outcome, "reason", None) is reason
    assert getattr(outcome, "proof", Proof.NOT_SENT) is Proof.NOT_SENT
    assert not used
    assert not [line for line in got if b"Subject" in line]


AFTER: dict[str, tuple[tuple[bytes | None, ...], type]] = {
    "250": ((b"250 ok\r\n",), Published),
    "250 of many lines": ((b"250-ok\r\n250 2.0.0 queued\r\n",), Published),
    "251": ((b"251 ok\r\n",), Published),
    "closed": ((), Unknown),
    "half a reply": ((b"250 o",), Unknown),
    "half of many lines": ((b"250-ok\r\n",), Unknown),
    "garbage": ((b"\xff\xfe\x00 nonsense\r\n",), Unknown),
    "354 again": ((b"354 go on\r\n",), Unknown),
    "600": ((b"600 what\r\n",), Unknown),
    "421": ((b"421 bye\r\n",), Unknown),
    "451": ((b"451 later\r\n",), Deferred),
    "552": ((b"552 too much\r\n",), Rejected),
    "535": ((b"535 who\r\n",), Rejected),
    "endless": ((b"250-more\r\n" * 1000,), Unknown),
}


@pytest.mark.parametrize("case", AFTER)
def test_after_the_dot_only_its_answer_counts(case: str) -> None:
    script, kind = AFTER[case]
    outcome, used, got = send(*ADDRESSED, *script)
    assert isinstance(outcome, kind)
    assert used
    assert got[-1] == b".\r\n" or b"QUIT" in got[-1]
    if isinstance(outcome, Deferred):
        assert outcome.proof is Proof.REFUSED


def test_a_relay_that_drips_ends_by_the_budget() -> None:
    started = time.monotonic()
    outcome, used, _ = send(*ADDRESSED, b"2", None, budget=0.6)
    assert isinstance(outcome, Unknown)
    assert used
    outcome, used, _ = send(b"220 rel", None, budget=0.6)
    assert isinstance(outcome, Deferred)
    assert not used
    assert time.monotonic() - started < 6


def test_what_was_sent_ahead_of_the_encryption_is_not_read() -> None:
    ahead = b"220 go\r\n250 AUTH PLAIN\r\n"
    with ScriptedRelay(
        [b"220 a\r\n", "EHLO", b"250-a\r\n250 STARTTLS\r\n", "STARTTLS", ahead]
    ) as r:
        _, permit, outcome = MailStand(f"smtp://127.0.0.1:{r.port}?tls=starttls").send()
    assert isinstance(outcome, Deferred)
    assert "ahead of the encryption" in outcome.detail
    assert not permit.used


def test_without_starttls_nothing_is_said_in_clear() -> None:
    with ScriptedRelay([b"220 a\r\n", "EHLO", b"250-a\r\n250 AUTH PLAIN\r\n", None]) as relay:
        url = f"smtp://user:CanaryInClear@127.0.0.1:{relay.port}"
        _, permit, outcome = MailStand(url).send(budget=2)
    assert isinstance(outcome, Deferred)
    assert not permit.used
    assert all(line.startswith((b"EHLO", b"QUIT")) for line in relay.got)


def test_access_by_login_and_a_password_the_relay_repeats() -> None:
    script = (
        b"220 a\r\n", "EHLO", b"250-a\r\n250 AUTH LOGIN\r\n", "AUTH LOGIN", b"334 VXNlcg==\r\n",
        "dXNlcg==", b"334 UGFzcw==\r\n", "Q2FuYXJ5", b"535 not Q2FuYXJ5, not Canary\r\n",
    )  # fmt: skip
    with ScriptedRelay(script) as relay:
        stand = MailStand(f"smtp://user:Canary@127.0.0.1:{relay.port}?tls=none")
        _, _, outcome = stand.send()
    assert isinstance(outcome, Unauthorized)
    assert "Canary" not in repr(outcome)
    assert "Q2FuYXJ5" not in repr(outcome)


def test_a_mail_larger_than_the_relay_takes_is_not_begun() -> None:
    with ScriptedRelay([*HELLO, None]) as relay:
        stand = MailStand(relay.credential)
        _, permit, outcome = stand.send(stand.task(letter(text="x" * 200_000).to_json()), budget=3)
    assert isinstance(outcome, Rejected)
    assert not permit.used


def test_no_dot_of_the_text_ends_the_mail() -> None:
    with ScriptedRelay([*ADDRESSED, b"250 ok\r\n"]) as relay:
        stand = MailStand(relay.credential)
        stand.send(stand.task(letter(text="one\n.\n.two\nthree\n").to_json()))
    assert relay.got[-5:-1] == [b"one\r\n", b"..\r\n", b"..two\r\n", b"three\r\n"]
