"""One SMTP connection: commands out, replies in, and a deadline on every operation.

``smtplib`` is left out: its ``data()`` writes the message and reads the answer in one call, its
timeout is per operation, so that a server which sends a byte now and then holds a call for ever,
and it reads on after STARTTLS what was injected before it.
"""

from __future__ import annotations

import contextlib
import re
import socket
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from publisher.engine.adapter import boottime

_REPLY: Final = re.compile(rb"([2-5][0-9]{2})(?:([ -])(.*))?", re.DOTALL)
LINE_BYTES: Final = 2_048
"""RFC 5321, 4.5.3.1.5, gives a reply line 512; some servers say more."""
REPLY_LINES: Final = 200
_CHUNK: Final = 65_536


class Garbled(Exception):
    """What came is no SMTP reply."""


class Closed(Exception):
    """The server closed the connection in place of a reply."""


@dataclass(frozen=True, slots=True)
class Said:
    """One reply: its code and the text of its lines."""

    code: int
    lines: tuple[str, ...]

    @property
    def kind(self) -> int:
        """The first digit, which alone decides (RFC 5321, 4.2)."""
        return self.code // 100

    @property
    def text(self) -> str:
        """All of it on one line."""
        return " ".join(line for line in self.lines if line)


class Line:
    """A connected socket, plain or under TLS. ``deadline``: an instant of ``boottime()``.

    ``sent`` counts the bytes written since it was last set to zero, before encryption.
    """

    def __init__(self, *, deadline: float, user_timeout: float) -> None:
        self.deadline = deadline
        self.sent = 0
        self._user_timeout = int(user_timeout * 1000)
        self._sock: socket.socket | None = None
        self._read = bytearray()

    def remaining(self) -> float:
        """Seconds left. Raises ``TimeoutError`` when there are none."""
        left = self.deadline - boottime()
        if left <= 0:
            message = "the time for this call was used up"
            raise TimeoutError(message)
        return left

    def connect(self, addresses: Sequence[str], port: int) -> None:
        """Connect to the first address that answers; each has an equal share of the time left.

        Raises ``OSError``.
        """
        targets = [
            target
            for address in addresses
            for target in socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)
        ]
        last: OSError | None = None
        for index, (family, kind, protocol, _, place) in enumerate(targets):
            sock = socket.socket(family, kind, protocol)
            try:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, self._user_timeout)
                sock.settimeout(self.remaining() / (len(targets) - index))
                sock.connect(place)
            except OSError as error:
                sock.close()
                last = error
            except BaseException:
                sock.close()
                raise
            else:
                self._sock = sock
                return
        raise last or OSError("the name leads to no address")

    def secure(self, tls: ssl.SSLContext, host: str) -> None:
        """Encrypt from here on, and make sure that it is ``host``. Raises ``OSError``.

        Raises ``Garbled`` when anything was sent ahead in clear: it would be read as if it had
        come under TLS (CVE-2011-0411 and its kin).
        """
        if self._read:
            message = "something was sent ahead of the encryption"
            raise Garbled(message)
        plain = self._connected()
        plain.settimeout(self.remaining())
        self._sock = tls.wrap_socket(plain, server_hostname=host, suppress_ragged_eofs=False)

    @property
    def own_address(self) -> str:
        """This end's address as RFC 5321, 4.1.3, writes one."""
        host = str(self._connected().getsockname()[0])
        return f"[IPv6:{host}]" if ":" in host else f"[{host}]"

    @property
    def peer(self) -> str:
        """The other end's address."""
        return str(self._connected().getpeername()[0])

    def ask(self, command: str) -> Said:
        """Send a command and read its reply. Raises ``OSError``, ``Garbled``, ``Closed``."""
        if not command.isascii() or "\r" in command or "\n" in command:
            message = "a command holds a line break or a character that is not ASCII"
            raise Garbled(message)
        self.write(command.encode() + b"\r\n")
        return self.read()

    def write(self, data: bytes) -> None:
        """Hand all of it to the kernel. Raises ``OSError``; then a part of it may have left."""
        sock = self._connected()
        rest = memoryview(data)
        while rest:
            sock.settimeout(self.remaining())
            count = sock.send(rest[:_CHUNK])
            self.sent += count
            rest = rest[count:]

    def read(self) -> Said:
        """Read one reply, of however many lines. Raises ``OSError``, ``Garbled``, ``Closed``."""
        code: int | None = None
        lines: list[str] = []
        while len(lines) < REPLY_LINES:
            parsed = _REPLY.fullmatch(self._line())
            if parsed is None or (code is not None and int(parsed[1]) != code):
                message = "what came is no SMTP reply"
                raise Garbled(message)
            code = int(parsed[1])
            lines.append((parsed[3] or b"").decode("utf-8", "replace").strip())
            if parsed[2] != b"-":
                return Said(code, tuple(lines))
        message = f"a reply of more than {REPLY_LINES} lines"
        raise Garbled(message)

    def _line(self) -> bytes:
        while (end := self._read.find(b"\n")) < 0:
            if len(self._read) > LINE_BYTES:
                message = f"a line of more than {LINE_BYTES} bytes"
                raise Garbled(message)
            sock = self._connected()
            sock.settimeout(self.remaining())
            came = sock.recv(4096)
            if not came:
                message = "the connection was closed"
                raise Closed(message)
            self._read += came
        line = bytes(self._read[:end]).removesuffix(b"\r")
        del self._read[: end + 1]
        return line

    def leave(self) -> None:
        """Say goodbye without waiting for an answer, and close. Never raises."""
        with contextlib.suppress(Exception):
            if self._sock is not None:
                self._sock.settimeout(min(1.0, max(0.01, self.deadline - boottime())))
                self._sock.send(b"QUIT\r\n")
        self.close()

    def close(self) -> None:
        """Close. An error here says nothing about the mail."""
        with contextlib.suppress(OSError):
            if self._sock is not None:
                self._sock.close()

    def _connected(self) -> socket.socket:
        if self._sock is None:
            message = "not connected"
            raise OSError(message)
        return self._sock
