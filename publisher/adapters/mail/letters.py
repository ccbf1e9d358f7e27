"""What a mail may be, and its bytes: the same for one job on every attempt."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from typing import Final

from publisher.engine.adapter import Capabilities, Problem, Promise
from publisher.engine.content import ContentError, Letter
from publisher.mailer import Envelope
from publisher.mailer.relay import is_address
from publisher.words import N_, _

TEXT_LIMIT: Final = 1_000_000
SUBJECT_LIMIT: Final = 500
# ASCII alone goes on the wire: no relay needs 8BITMIME or SMTPUTF8 for it.
_POLICY: Final = SMTP.clone(cte_type="7bit")

CAPABILITIES: Final = Capabilities(
    format="letter",
    noun="mail",
    # A relay that was given the message tells nobody afterwards whether it has it.
    promise=Promise.AT_MOST_ONCE_WITHOUT_EVIDENCE,
    can_look=False,
    listing_is_exhaustive=False,
    text_limit=TEXT_LIMIT,
    queue="mail",
    in_flight=8,
    name=N_("A mailbox"),
    takes_posts=False,
)


def problems(content: str) -> tuple[Problem, ...]:
    """What no relay could be given."""
    try:
        letter = Letter.from_json(content)
    except ContentError as error:
        message = _("This mail cannot be read: {why}.").format(why=error)
        return (Problem("text", "unreadable", message),)
    return tuple(_problems(letter))


def _problems(letter: Letter) -> Iterator[Problem]:
    if not is_address(letter.to):
        message = _("The recipient is not one plain mail address.")
        yield Problem("to", "address-unusable", message)
    if not letter.subject.strip() or not _is_one_line(letter.subject):
        message = _("The subject is empty, or holds a line break or another control character.")
        yield Problem("subject", "subject-unusable", message)
    if len(letter.subject) > SUBJECT_LIMIT:
        message = _("A subject has at most {limit} characters; this one has {length:,}.").format(
            limit=SUBJECT_LIMIT, length=len(letter.subject)
        )
        yield Problem("subject", "subject-too-long", message)
    if not letter.text.strip():
        yield Problem("text", "text-empty", _("The text is empty."))
    if len(letter.text) + len(letter.html or "") > TEXT_LIMIT:
        message = _("A mail has at most {limit:,} characters; this one has {length:,}.").format(
            limit=TEXT_LIMIT, length=len(letter.text) + len(letter.html or "")
        )
        yield Problem("text", "text-too-long", message)
    if any(_cannot_be_sent(text) for text in (letter.text, letter.html or "", letter.subject)):
        message = _("It holds a NUL, or half of a surrogate pair, which is no character.")
        yield Problem("text", "text-unusable", message)


def _is_one_line(text: str) -> bool:
    return len(text.splitlines()) == 1 and all(c.isprintable() or c == "\u200c" for c in text)


def _cannot_be_sent(text: str) -> bool:
    return "\0" in text or any("\ud800" <= c <= "\udfff" for c in text)


def message_id(key: str, sender: str) -> str:
    """The Message-ID of a job, the same for ever: whoever gets it twice can tell."""
    return f"<{hashlib.sha256(key.encode()).hexdigest()[:40]}@{sender.rpartition('@')[2]}>"


def envelope(key: str, sender: str, letter: Letter) -> Envelope:
    """The mail as it goes on the wire. Raises ``ValueError`` for what no header may hold."""
    mail = EmailMessage(policy=_POLICY)
    mail["Message-ID"] = message_id(key, sender)
    mail["Date"] = format_datetime(letter.at)
    mail["From"] = sender
    mail["To"] = letter.to
    mail["Subject"] = letter.subject
    # RFC 3834: out-of-office answers are not sent to a machine.
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content(letter.text)
    if letter.html is not None:
        mail.add_alternative(letter.html, subtype="html")
        # The library's own is random, and the bytes of a job are the same on every attempt.
        parts = hashlib.sha256(f"{key}\n{letter.text}\n{letter.html}".encode()).hexdigest()
        mail.set_boundary(f"={parts[:40]}")
    return Envelope(sender, letter.to, mail.as_bytes())
