"""Hands one message to a relay: the conversation, and what follows from where it stopped."""

from __future__ import annotations

import base64
import contextlib
import re
import ssl
from dataclasses import dataclass, field
from typing import Final

import certifi
import structlog

from publisher.config import Settings
from publisher.engine.adapter import SendPermit, boottime
from publisher.engine.errors import PermitLate, PermitUsed, PublisherError
from publisher.engine.outcome import (
    Answer,
    Deferred,
    Proof,
    Rejected,
    Unauthorized,
    Unknown,
)
from publisher.mailer.line import Closed, Garbled, Line, Said
from publisher.mailer.phases import End, Row, Stage, Verdict, judge
from publisher.mailer.relay import Envelope, Relay, Tls, is_address
from publisher.transport.addresses import AddressRefused, checked
from publisher.transport.redaction import Redaction

OPENING_SECONDS: Final = 60.0
"""For everything before the message. Some relays greet late on purpose."""
_KEPT_CHARACTERS: Final = 2_000
_BARE: Final = re.compile(rb"\r(?!\n)|(?<!\r)\n|\0")
_AT_LINE_START: Final = re.compile(rb"(?m)^\.")
_SHORT_COMMAND: Final = 400

log = structlog.get_logger(__name__)


class BadAuthorities(PublisherError):
    """The operator's own certificates cannot be used."""

    code = "mail-ca-file"


@dataclass(frozen=True, slots=True)
class Taken:
    """The relay said that it is responsible for the message now."""

    answer: Answer


Handed = Taken | Rejected | Deferred | Unauthorized | Unknown


class _Stop(Exception):
    """The conversation ends here: with a reply that does not lead on, or by our own will."""

    def __init__(self, end: End, why: str = "", said: Said | None = None) -> None:
        super().__init__(why)
        self.end = end
        self.said = said


_ENDS: Final[tuple[tuple[type[BaseException], End], ...]] = (
    (PermitLate, End.PERMIT_LATE),
    (PermitUsed, End.PERMIT_USED),
    (AddressRefused, End.REFUSED),
    (TimeoutError, End.TIME_UP),
    (Closed, End.CLOSED),
    (Garbled, End.GARBLED),
    (OSError, End.BROKEN),
)


@dataclass(slots=True)
class _Call:
    """One conversation, as far as it came."""

    line: Line
    stage: Stage = Stage.CONNECT
    features: dict[str, str] = field(default_factory=dict)

    def expect(self, said: Said, kind: int) -> Said:
        if said.kind != kind:
            raise _Stop(End.SAID, said=said)
        return said

    def ask(self, stage: Stage, command: str, kind: int = 2) -> Said:
        self.stage = stage
        return self.expect(self.line.ask(command), kind)


class Mailer:
    """Speaks SMTP. ``tls``: other trust roots than the settings', for a relay of one's own.

    Keeps nothing between calls, so it may be shared by threads. Raises ``BadAuthorities``.
    """

    def __init__(self, settings: Settings, *, tls: ssl.SSLContext | None = None) -> None:
        self._settings = settings
        self._tls = tls or _trust_roots(settings)

    def send(self, envelope: Envelope, relay: Relay, permit: SendPermit) -> Handed:
        """Hand the message over, once, under ``permit``; its budget runs from the first byte of it.

        The permit is used up just before the message and its final dot are written: whatever
        fails earlier was certainly not sent. Raises nothing but what ends a process.
        """
        opens_by = min(boottime() + min(OPENING_SECONDS, permit.budget), permit.deadline)
        call = _Call(self._line(opens_by))
        error: Exception | None = None
        said: Said | None = None
        try:
            data = _dotted(envelope)
            self._open(call, relay)
            self._address(call, envelope, len(data))
            call.ask(Stage.DATA, "DATA", kind=3)
            said = _content(call, data, permit)
        except Exception as caught:  # noqa: BLE001 - the table decides, and knows its default
            error = caught
            said = caught.said if isinstance(caught, _Stop) else None
        finally:
            call.line.leave()
        return _outcome(call, error, said, _redaction(relay), permit)

    def check(self, relay: Relay) -> str | None:
        """Open a conversation and end it before any mail. What is wrong, or None."""
        call = _Call(self._line(boottime() + OPENING_SECONDS))
        try:
            self._open(call, relay)
        except Exception as error:  # noqa: BLE001 - all of them mean that it cannot be used
            said = error.said if isinstance(error, _Stop) else None
            row = judge(call.stage, _end_of(error), None if said is None else said.code)
            return _redaction(relay)(_detail(row, error, said), _KEPT_CHARACTERS)
        finally:
            call.line.leave()
        return None

    def _line(self, deadline: float) -> Line:
        return Line(deadline=deadline, user_timeout=self._settings.tcp_user_timeout_seconds)

    def _open(self, call: _Call, relay: Relay) -> None:
        """Connect, greet, encrypt and show our access."""
        line = call.line
        line.connect(self._addresses(relay), relay.port)
        if relay.tls is Tls.TLS:
            self._secure(line, relay)
        call.stage = Stage.GREETING
        call.expect(line.read(), 2)
        self._hello(call, relay)
        if relay.tls is Tls.STARTTLS:
            call.stage = Stage.ENCRYPT
            if "STARTTLS" not in call.features:
                raise _Stop(End.REFUSED, "the relay offers no STARTTLS")
            call.ask(Stage.ENCRYPT, "STARTTLS")
            self._secure(line, relay)
            self._hello(call, relay)
        if relay.user is not None:
            _show_access(call, relay)

    def _addresses(self, relay: Relay) -> tuple[str, ...]:
        if relay.tls is Tls.NONE:
            # Written as such; "localhost" may lead elsewhere in a file that others write.
            return ("127.0.0.1",) if relay.host == "localhost" else (relay.host,)
        if relay.trusted:
            return (relay.host,)
        return checked(relay.host, relay.port, self._settings.allowed_networks)

    def _secure(self, line: Line, relay: Relay) -> None:
        try:
            line.secure(self._tls, relay.host)
        except ssl.SSLCertVerificationError as error:
            raise _Stop(End.REFUSED, f"its certificate: {error.verify_message}") from error

    def _hello(self, call: _Call, relay: Relay) -> None:
        said = call.ask(Stage.HELLO, f"EHLO {relay.hello or call.line.own_address}")
        words = [line.partition(" ") for line in said.lines[1:]]
        call.features = {name.upper(): rest.upper() for name, _, rest in words}

    def _address(self, call: _Call, envelope: Envelope, size: int) -> None:
        call.stage = Stage.SENDER
        limit = call.features.get("SIZE", "")
        if limit.isdigit() and 0 < int(limit) < size:
            raise _Stop(End.TOO_LARGE, f"{size:,} bytes; it takes {int(limit):,}")
        call.ask(Stage.SENDER, f"MAIL FROM:<{envelope.sender}>")
        call.ask(Stage.RECIPIENT, f"RCPT TO:<{envelope.recipient}>")


def _show_access(call: _Call, relay: Relay) -> None:
    """AUTH PLAIN where it is offered, else LOGIN. Always under TLS, or within this machine."""
    call.stage = Stage.ACCESS
    offered = call.features.get("AUTH", "").split()
    user, password = relay.user or "", relay.password or ""
    if "PLAIN" in offered:
        token = _base64(f"\0{user}\0{password}")
        if len(token) <= _SHORT_COMMAND:
            call.ask(Stage.ACCESS, f"AUTH PLAIN {token}")
        else:  # RFC 4954, 4: what makes a line too long is asked for
            call.ask(Stage.ACCESS, "AUTH PLAIN", kind=3)
            call.ask(Stage.ACCESS, token)
    elif "LOGIN" in offered:
        call.ask(Stage.ACCESS, "AUTH LOGIN", kind=3)
        call.ask(Stage.ACCESS, _base64(user), kind=3)
        call.ask(Stage.ACCESS, _base64(password))
    else:
        raise _Stop(End.NO_ACCESS, "it offers neither AUTH PLAIN nor AUTH LOGIN")


def _content(call: _Call, data: bytes, permit: SendPermit) -> Said:
    """Write the message and its final dot: the one irreversible thing here."""
    call.line.sent = 0
    # Believed to be sent until the permit says otherwise: whatever may strike between these
    # lines, a used permit never goes with "not sent".
    earlier, call.stage = call.stage, Stage.CONTENT
    try:
        permit.use()
    except (PermitLate, PermitUsed):
        call.stage = earlier
        raise
    call.line.deadline = boottime() + permit.budget
    call.line.write(data)
    return call.line.read()


def _dotted(envelope: Envelope) -> bytes:
    """The message as it goes on the wire, with its final dot (RFC 5321, 4.5.2).

    Raises ``_Stop`` for what could be read as more than one message: a line break of one
    character alone is one to some servers and none to others (SMTP smuggling).
    """
    if not is_address(envelope.sender) or not is_address(envelope.recipient):
        raise _Stop(End.REFUSED, "an address of it is none")
    data = envelope.data if envelope.data.endswith(b"\r\n") else envelope.data + b"\r\n"
    if _BARE.search(data):
        raise _Stop(End.REFUSED, "it holds a line break that is not CRLF")
    return _AT_LINE_START.sub(b"..", data) + b".\r\n"


def _outcome(
    call: _Call,
    error: Exception | None,
    said: Said | None,
    redacted: Redaction,
    permit: SendPermit,
) -> Handed:
    end = End.SAID if error is None else _end_of(error)
    row = judge(call.stage, end, None if said is None else said.code)
    detail = redacted(_detail(row, error, said), _KEPT_CHARACTERS)
    sent = call.line.sent if call.stage is Stage.CONTENT else 0
    answer = Answer(
        status=None if said is None else said.code,
        body="" if said is None else redacted("\n".join(said.lines), _KEPT_CHARACTERS),
        sent=None if end is End.PERMIT_USED else sent,
        error=None if error is None or said is not None else redacted(_words(error), 500),
    )
    if end is End.BROKE:
        with contextlib.suppress(Exception):
            log.error("mailer.broke", stage=call.stage.name, kind=type(error).__name__)
    was_refused = call.stage is Stage.CONTENT and permit.used
    name = f"smtp:{row.name}" + ("" if said is None else f":{said.code}")
    match row.verdict:
        case Verdict.TAKEN:
            return Taken(answer)
        case Verdict.REJECTED:
            return Rejected(row.reason, detail, name, validated_before_storing=True, answer=answer)
        case Verdict.DEFERRED:
            return Deferred(
                row.reason,
                detail,
                Proof.REFUSED if was_refused else Proof.NOT_SENT,
                row=name,
                validated_before_storing=True,
                answer=answer,
            )
        case Verdict.UNAUTHORIZED:
            return Unauthorized(
                row.reason, detail, name, validated_before_storing=True, answer=answer
            )
        case Verdict.UNKNOWN:
            return Unknown(row.reason, detail, answer=answer)


def _end_of(error: Exception) -> End:
    if isinstance(error, _Stop):
        return error.end
    return next((end for kind, end in _ENDS if isinstance(error, kind)), End.BROKE)


def _detail(row: Row, error: Exception | None, said: Said | None) -> str:
    if said is not None:
        return f"{row.says} ({said.code} {said.text})".replace(" )", ")")
    words = "" if error is None else _words(error)
    return f"{row.says} ({words})" if words else row.says


def _words(error: Exception) -> str:
    if isinstance(error, _Stop | AddressRefused | Closed | Garbled):
        return str(error)
    return f"{type(error).__name__}: {error}".removesuffix(": ")


def _redaction(relay: Relay) -> Redaction:
    user, password = relay.user, relay.password
    if user is None or password is None:
        return Redaction(())
    return Redaction((password, _base64(password), _base64(f"\0{user}\0{password}")))


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode("ascii")


def _trust_roots(settings: Settings) -> ssl.SSLContext:
    """Verify names and certificates, against certifi's roots and the operator's own, if any."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_verify_locations(certifi.where())
    if settings.mail_ca_file is not None:
        try:
            context.load_verify_locations(settings.mail_ca_file)
        except OSError as error:
            message = (
                f"PUBLISHER_MAIL_CA_FILE {settings.mail_ca_file} holds no certificates that can be "
                f"read ({error.strerror or error}). Give a file in PEM."
            )
            raise BadAuthorities(message) from error
    return context
