"""Relays: a real SMTP server that can be told to misbehave, and one that says what it is told."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from typing import Any, Self
from urllib.parse import quote

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

USER, PASSWORD = "sender-1", "CanaryMailPassword/+7:é"
PATIENCE = 20.0


@dataclass
class Box:
    """What the relay has, and what it is to do with the next message. ``mails``: those it took."""

    mails: list[bytes] = field(default_factory=list)
    recipients: list[str] = field(default_factory=list)
    at_data: Callable[[SMTP], Any] | None = None
    at_rcpt: str = "250 OK"
    at_mail: str = "250 OK"
    logins: int = 0

    async def handle_MAIL(  # noqa: N802 - aiosmtpd's names
        self,
        _server: SMTP,
        _session: Session,
        envelope: Envelope,
        address: str,
        _options: list[str],
    ) -> str:
        if self.at_mail.startswith("2"):
            envelope.mail_from = address
        return self.at_mail

    async def handle_RCPT(  # noqa: N802
        self,
        _server: SMTP,
        _session: Session,
        envelope: Envelope,
        address: str,
        _options: list[str],
    ) -> str:
        if self.at_rcpt.startswith("2"):
            envelope.rcpt_tos.append(address)
        return self.at_rcpt

    async def handle_DATA(self, server: SMTP, _session: Session, envelope: Envelope) -> str:  # noqa: N802
        if self.at_data is None:
            self.take(envelope)
            return "250 2.0.0 queued as 1A2B"
        done = self.at_data(server)
        if done is Taking:
            self.take(envelope)
            done = Taking.then(server)
        answer = await done if asyncio.iscoroutine(done) else done
        if answer.startswith("250"):
            self.take(envelope)
        return str(answer)

    def take(self, envelope: Envelope) -> None:
        content = envelope.content
        assert isinstance(content, bytes)
        self.mails.append(content)
        self.recipients += envelope.rcpt_tos

    @property
    def parsed(self) -> list[EmailMessage]:
        return [message_from_bytes(mail, policy=default) for mail in self.mails]  # type: ignore[arg-type, misc]


class Taking:
    """Marks an act that takes the message and then does not say so."""

    @staticmethod
    def then(server: SMTP) -> str:
        transport = server.transport
        assert transport is not None
        transport.close()
        return "451 nobody hears this"


def drop_the_250(_server: SMTP) -> type[Taking]:
    """Take the message; close the connection before the answer."""
    return Taking


def say(answer: str) -> Callable[[SMTP], str]:
    return lambda _server: answer


async def _sleep() -> str:
    await asyncio.sleep(PATIENCE)
    return "250 late"


def say_nothing(_server: SMTP) -> Any:  # noqa: ANN401 - a coroutine
    return _sleep()


@dataclass
class Relay:
    """A running relay."""

    box: Box
    port: int

    def credential(self, tls: str = "starttls", *, password: str = PASSWORD) -> str:
        return f"smtp://{USER}:{quote(password, safe='')}@127.0.0.1:{self.port}?tls={tls}"


@contextmanager
def relay(certificate: ssl.SSLContext, *, implicit: bool = False) -> Iterator[Relay]:
    """A relay that takes mail from one user, under TLS only."""
    box = Box()

    def login(
        _server: SMTP, _session: Session, _envelope: Envelope, _mechanism: str, data: object
    ) -> AuthResult:
        box.logins += 1
        assert isinstance(data, LoginPassword)
        wanted = (USER.encode(), PASSWORD.encode())
        return AuthResult(success=(data.login, data.password) == wanted, handled=False)

    controller = Controller(
        box,
        hostname="127.0.0.1",
        port=_free_port(),
        ssl_context=certificate if implicit else None,
        tls_context=None if implicit else certificate,
        require_starttls=not implicit,
        auth_required=not implicit,
        auth_require_tls=not implicit,
        authenticator=login,
        decode_data=False,
    )
    controller.start()
    try:
        yield Relay(box, controller.port)
    finally:
        controller.stop()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        port: int = sock.getsockname()[1]
        return port


class ScriptedRelay:
    """Says one thing after the other: bytes, or waits for a line that begins so; then closes.

    In ``script`` a text is waited for, bytes are said, and ``None`` is a silence until the test
    ends. ``got``: every line that came.
    """

    def __init__(self, script: Sequence[str | bytes | None]) -> None:
        self.got: list[bytes] = []
        self._script = script
        self._ended = threading.Event()
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._server.close()
        self._thread.join(5)

    @property
    def credential(self) -> str:
        return f"smtp://127.0.0.1:{self.port}?tls=none"

    def _serve(self) -> None:
        try:
            sock, _ = self._server.accept()
        except OSError:
            return
        with sock, sock.makefile("rb") as lines:
            sock.settimeout(PATIENCE)
            try:
                for step in self._script:
                    self._step(sock, lines, step)
            except OSError:
                return

    def _step(self, sock: socket.socket, lines: Any, step: str | bytes | None) -> None:  # noqa: ANN401
        if step is None:
            self._ended.wait(PATIENCE)
        elif isinstance(step, bytes):
            sock.sendall(step)
        else:
            while line := lines.readline():
                self.got.append(line)
                if line.decode("latin-1").startswith(step):
                    return


HELLO: tuple[str | bytes, ...] = (b"220 relay\r\n", "EHLO", b"250-relay\r\n250 SIZE 100000\r\n")
ADDRESSED: tuple[str | bytes, ...] = (
    *HELLO, "MAIL", b"250 ok\r\n", "RCPT", b"250 ok\r\n", "DATA", b"354 go on\r\n", ".\r\n",
)  # fmt: skip
"""All of it until the final dot has come."""
