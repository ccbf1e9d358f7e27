"""Mail over a real SMTP server: what was taken, refused, lost, and never begun."""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from publisher.adapters.mail.letters import message_id
from publisher.config import Settings
from publisher.engine.adapter import LookQuery, Promise, Ready
from publisher.engine.evidence import Candidate, Inconclusive, NotThisPost
from publisher.engine.outcome import (
    Deferred,
    Proof,
    Published,
    Reason,
    Rejected,
    Unauthorized,
    Unknown,
)
from publisher.mailer import Mailer
from publisher.mailer.mailer import BadAuthorities
from tests.adapters import mail_relay
from tests.adapters.mail_relay import PASSWORD, Relay, relay
from tests.adapters.mail_stand import AT, SENDER, MailStand, letter
from tests.transport.peer import Certificate, make_certificate


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return make_certificate(tmp_path_factory.mktemp("relay"))


@pytest.fixture(scope="module")
def client(certificate: Certificate) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=certificate.text)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


@pytest.fixture
def server(certificate: Certificate) -> Iterator[Relay]:
    with relay(certificate.server) as running:
        yield running


@pytest.fixture
def stand(
    server: Relay, client: ssl.SSLContext, caplog: pytest.LogCaptureFixture
) -> Iterator[MailStand]:
    """After each test, its password is looked for in everything that came out."""
    caplog.set_level("DEBUG")
    made = MailStand(server.credential(), client)
    yield made
    for where in (repr(made.seen), caplog.text):
        assert PASSWORD not in where
        assert PASSWORD[:14] not in where


def test_published_under_starttls_with_a_message_id_of_its_own(
    server: Relay, stand: MailStand
) -> None:
    text = "Nothing will be sent by itself.\n.\n..two dots\nBản tin; «سلام» می‌خواهم 👨‍👩‍👧\n"
    content = letter(subject="Bản tin: 1 may be live", text=text).to_json()
    task, permit, outcome = stand.send(stand.task(content))
    assert isinstance(outcome, Published)
    assert permit.used
    assert outcome.answer is not None
    assert outcome.answer.status == 250
    (mail,) = server.box.parsed
    assert server.box.recipients == ["ops@example.org"]
    assert mail["Message-ID"] == outcome.remote_id == message_id(task.key, SENDER)
    assert mail["Date"].datetime == AT
    assert (mail["From"], mail["To"]) == (SENDER, "ops@example.org")
    assert mail["Subject"] == "Bản tin: 1 may be live"
    assert mail["Auto-Submitted"] == "auto-generated"
    assert mail.get_content().replace("\r\n", "\n") == text
    assert max(server.box.mails[0]) < 128


def test_the_bytes_are_the_same_on_every_attempt(server: Relay, stand: MailStand) -> None:
    task = stand.task(letter(html="<p>Nothing <b>leaves</b></p>").to_json())
    for _ in range(2):
        stand.send(task)
    first, second = (mail.split(b"\r\n", 1)[1] for mail in server.box.mails)
    assert first == second
    assert server.box.parsed[0].is_multipart()


def test_published_under_tls_from_the_first_byte(
    certificate: Certificate, client: ssl.SSLContext
) -> None:
    with relay(certificate.server, implicit=True) as running:
        _, _, outcome = MailStand(running.credential("tls"), client).send()
        assert isinstance(outcome, Published)
        assert len(running.box.mails) == 1


def test_a_dropped_250_is_unknown_and_it_was_delivered(server: Relay, stand: MailStand) -> None:
    server.box.at_data = mail_relay.drop_the_250
    task, permit, outcome = stand.send()
    assert isinstance(outcome, Unknown)
    assert outcome.reason is Reason.CONNECTION_LOST
    assert permit.used
    assert len(server.box.mails) == 1
    can = stand.adapter.capabilities(task.content)
    assert (can.can_look, can.repeat_for) == (False, None)
    assert can.promise is Promise.AT_MOST_ONCE_WITHOUT_EVIDENCE


def test_silence_after_the_dot_is_unknown_within_the_budget(
    server: Relay, stand: MailStand
) -> None:
    server.box.at_data = mail_relay.say_nothing
    started = time.monotonic()
    _, permit, outcome = stand.send(budget=0.7)
    assert isinstance(outcome, Unknown)
    assert outcome.reason is Reason.NO_ANSWER
    assert permit.used
    assert time.monotonic() - started < 5


@pytest.mark.parametrize("answer", ["451 4.3.0 try later", "452 4.2.2 mailbox full"])
def test_4yz_after_the_dot_is_refused_for_now(server: Relay, stand: MailStand, answer: str) -> None:
    server.box.at_data = mail_relay.say(answer)
    _, permit, outcome = stand.send()
    assert isinstance(outcome, Deferred)
    assert outcome.proof is Proof.REFUSED
    assert outcome.row == f"smtp:dot-4yz:{answer[:3]}"
    assert outcome.validated_before_storing
    assert permit.used
    assert server.box.mails == []


def test_5yz_after_the_dot_is_refused_for_good(server: Relay, stand: MailStand) -> None:
    server.box.at_data = mail_relay.say("554 5.7.1 not such content")
    _, _, outcome = stand.send()
    assert isinstance(outcome, Rejected)
    assert outcome.row == "smtp:dot-5yz:554"
    assert outcome.validated_before_storing
    assert "not such content" in outcome.detail


def test_421_after_the_dot_says_nothing_of_the_mail(server: Relay, stand: MailStand) -> None:
    server.box.at_data = mail_relay.say("421 4.3.2 closing")
    _, _, outcome = stand.send()
    assert isinstance(outcome, Unknown)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [("550 5.1.1 no such user", Rejected), ("450 4.2.0 greylisted", Deferred)],
)
def test_a_refused_recipient_is_certain(
    server: Relay, stand: MailStand, answer: str, kind: type
) -> None:
    server.box.at_rcpt = answer
    _, permit, outcome = stand.send()
    assert isinstance(outcome, kind)
    assert not permit.used
    assert server.box.mails == []


def test_a_refused_sender_is_certain(server: Relay, stand: MailStand) -> None:
    server.box.at_mail = "553 5.7.1 not your address"
    _, permit, outcome = stand.send()
    assert isinstance(outcome, Rejected)
    assert not permit.used


def test_wrong_password_needs_a_person(server: Relay, client: ssl.SSLContext) -> None:
    other = MailStand(server.credential(password="CanaryWrongOne"), client)
    _, permit, outcome = other.send()
    assert isinstance(outcome, Unauthorized)
    assert outcome.reason is Reason.NEEDS_RECONNECTING
    assert not permit.used
    assert "CanaryWrongOne" not in repr(other.seen)
    health = other.adapter.check(other.channel)
    assert not health.usable
    assert "CanaryWrongOne" not in repr(health)


def test_check_shows_access_and_begins_no_mail(server: Relay, stand: MailStand) -> None:
    assert stand.adapter.check(stand.channel).usable
    assert server.box.logins == 1
    assert server.box.mails == []


def test_nobody_listens(client: ssl.SSLContext) -> None:
    down = MailStand("smtp://127.0.0.1:1?tls=none", client)
    _, permit, outcome = down.send()
    assert isinstance(outcome, Deferred)
    assert outcome.proof is Proof.NOT_SENT
    assert outcome.reason is Reason.CONNECT_FAILED
    assert not permit.used


def test_an_unknown_certificate_is_refused(server: Relay) -> None:
    strict = MailStand(server.credential())
    _, permit, outcome = strict.send()
    assert isinstance(outcome, Deferred)
    assert "certificate" in outcome.detail
    assert not permit.used
    assert server.box.logins == 0


def test_a_late_permit_sends_nothing(server: Relay, stand: MailStand) -> None:
    _, permit, outcome = stand.send(window=-1.0)
    assert isinstance(outcome, Deferred)
    assert not permit.used
    assert server.box.mails == []


def test_a_permit_is_one_mail(server: Relay, stand: MailStand) -> None:
    task, permit, outcome = stand.send()
    assert isinstance(outcome, Published)
    again = stand.adapter.publish(task, Ready({}), permit)
    assert isinstance(again, Unknown)
    assert len(server.box.mails) == 1


def test_a_permit_for_another_mail_sends_nothing(server: Relay, stand: MailStand) -> None:
    task = stand.task()
    _, other, _ = stand.send(stand.task())
    outcome = stand.adapter.publish(task, Ready({}), other)
    assert isinstance(outcome, Deferred)
    assert len(server.box.mails) == 1


def test_an_address_that_came_by_page_may_not_lead_inside(
    server: Relay, client: ssl.SSLContext
) -> None:
    given = MailStand(server.credential(), client, trusted=False)
    _, permit, outcome = given.send()
    assert isinstance(outcome, Deferred)
    assert "a loopback address" in outcome.detail
    assert not permit.used


INJECTIONS = {
    "subject": "1 post\r\nBcc: everybody@example.org",
    "subject, LF": "1 post\nBcc: everybody@example.org",
    "to": "ops@example.org>\r\nRCPT TO:<everybody@example.org",
    "to, comma": "ops@example.org, everybody@example.org",
    "to, name": "Ops <ops@example.org>",
    "to, quoted": '"a b"@example.org',
    "to, long": "a" * 65 + "@example.org",
    "to, unicode": "öps@example.org",
}


@pytest.mark.parametrize("case", INJECTIONS)
def test_nothing_is_injected(server: Relay, stand: MailStand, case: str) -> None:
    task = stand.task(letter(**{case.partition(",")[0]: INJECTIONS[case]}).to_json())
    assert stand.adapter.problems(task.content)
    assert stand.adapter.prepared(task) is None
    assert isinstance(stand.adapter.step(task), Rejected)
    # Even past the checks, nothing leaves.
    _, permit, outcome = stand.send(task)
    assert isinstance(outcome, Deferred)
    assert not permit.used
    assert server.box.mails == []


@pytest.mark.parametrize("ending", ["\r\n.\r\n", "\n.\n", "\r.\r", "\n.\r\n", "\r\n.\n"])
def test_no_end_of_the_mail_can_be_smuggled_in(
    server: Relay, stand: MailStand, ending: str
) -> None:
    text = f"first{ending}MAIL FROM:<a@b.example>{ending}second"
    task, _, outcome = stand.send(stand.task(letter(text=text).to_json()))
    assert isinstance(outcome, Published)
    (mail,) = server.box.mails
    assert b"second" in mail
    assert b"\r" not in mail.replace(b"\r\n", b"")
    assert task.key


def test_what_cannot_be_a_mail_is_said_before(stand: MailStand) -> None:
    texts = (letter(text=" \n"), letter(subject=" "), letter(text="x" * 1_000_001))
    half = letter().to_json().replace("by itself", "by \\ud83d")
    nul = letter().to_json().replace("by itself", "by \\u0000")
    naive = letter().to_json().replace("+00:00", "")
    for content in (*(text.to_json() for text in texts), half, nul, naive, "", "{}", "null", "[]"):
        problems = stand.adapter.problems(content)
        assert problems, content
        assert all(problem.message.endswith(".") for problem in problems)


def test_a_credential_that_cannot_be_opened_is_an_outcome(stand: MailStand) -> None:
    stand.channel = stand.broken
    task, permit, outcome = stand.send()
    assert isinstance(outcome, Deferred)
    assert not permit.used
    assert stand.adapter.prepared(task) is None
    step = stand.adapter.step(task)
    stand.seen.append(step)
    assert isinstance(step, Unauthorized)
    assert not stand.adapter.check(stand.channel).usable


@pytest.mark.parametrize(
    "credential",
    [
        "",
        "CanaryMailPassword/+7",
        "smtp://",
        "smtp://user:CanaryMailPassword@relay.example.org:99999",
        "http://relay.example.org",
        "smtp://user@relay.example.org",
        "smtp://relay.example.org?tls=none",
        "smtp://relay.example.org?tls=maybe",
        '{"host":"relay.example.org","pasword":"CanaryMailPassword"}',
        '{"host":"relay example"}',
        '{"port":25}',
        '["CanaryMailPassword"]',
        "{",
    ],
)
def test_a_credential_that_names_no_relay_is_never_repeated_back(credential: str) -> None:
    stand = MailStand(credential)
    step = stand.adapter.step(stand.task())
    assert isinstance(step, Unauthorized)
    assert "Canary" not in repr(step)


def test_no_look_and_no_link_but_its_own(stand: MailStand) -> None:
    task, _, outcome = stand.send()
    assert isinstance(outcome, Published)
    query = LookQuery(task=task, began_at=AT, now=AT, bound=frozenset())
    evidence = stand.adapter.look(query)
    assert isinstance(evidence, Inconclusive)
    assert not evidence.clean
    named = stand.adapter.identify(query, outcome.remote_id.strip("<>"))
    assert isinstance(named, Candidate)
    assert named.remote_id == outcome.remote_id
    assert isinstance(stand.adapter.identify(query, "<other@example.org>"), NotThisPost)


def test_a_relay_of_ones_own_authority_is_trusted_by_its_file(tmp_path: Path) -> None:
    own = make_certificate(tmp_path)
    (tmp_path / "ca.pem").write_text(own.text)
    settings = Settings.model_validate({"mail_ca_file": tmp_path / "ca.pem"})
    with relay(own.server) as running:
        stand = MailStand(running.credential())
        stand.adapter._mailer = Mailer(settings)
        assert isinstance(stand.send()[2], Published)
    (tmp_path / "ca.pem").write_text("no certificate")
    with pytest.raises(BadAuthorities, match="PUBLISHER_MAIL_CA_FILE"):
        Mailer(settings)
