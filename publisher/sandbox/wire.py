"""One connection, at the level where it can be treated badly: bytes in, bytes out, FIN or RST."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
from dataclasses import dataclass, field
from email.utils import formatdate
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote

HEAD_LIMIT = 64 * 1024
BODY_LIMIT = 256 * 1024 * 1024
IDLE_SECONDS = 120.0
"""A kept connection is closed when nothing comes for so long."""

_REASONS = {status.value: status.phrase for status in HTTPStatus}


class BadRequest(Exception):
    """The bytes are not a request that can be read."""


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a request. Header names are in lower case; ``path`` is decoded."""

    method: str
    path: str
    query: str
    headers: dict[str, str]

    @property
    def bearer(self) -> str:
        """The token of an ``Authorization: Bearer`` header; empty when there is none."""
        scheme, _, token = self.headers.get("authorization", "").partition(" ")
        return token.strip() if scheme.lower() == "bearer" else ""

    @property
    def keeps_open(self) -> bool:
        """Say whether the client wants the connection kept."""
        return self.headers.get("connection", "").lower() != "close"


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer before it is put on the wire."""

    status: int
    body: bytes
    content_type: str = "application/json; charset=UTF-8"
    headers: dict[str, str] = field(default_factory=dict)
    code: int | None = None
    """The platform's own error code in it, for the log."""

    @classmethod
    def of_json(cls, data: Any, status: int = 200, **headers: str) -> Answer:  # noqa: ANN401
        """Make an answer of anything JSON can hold; ``_`` in header names stands for ``-``."""
        body = json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return cls(status, body, headers=named)

    def head(self, *, keep: bool, length: bool = True) -> bytes:
        """Return status line and headers, with the empty line that ends them."""
        lines = [
            f"HTTP/1.1 {self.status} {_REASONS.get(self.status, 'Unknown')}",
            f"Content-Type: {self.content_type}",
            f"Date: {formatdate(usegmt=True)}",
            f"Connection: {'keep-alive' if keep else 'close'}",
        ]
        if length:
            lines.append(f"Content-Length: {len(self.body)}")
        lines.extend(f"{name}: {value}" for name, value in self.headers.items())
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


class Connection:
    """A client's connection. Once ``finish`` or ``reset`` was called it is ``closed``."""

    def __init__(self, sock: socket.socket) -> None:
        self.closed = False
        self._sock = sock
        self._buffer = bytearray()
        sock.settimeout(IDLE_SECONDS)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def read_head(self) -> Head | None:
        """Read a request's head; None when the client is done. Raises ``BadRequest``."""
        while (end := self._buffer.find(b"\r\n\r\n")) < 0:
            if len(self._buffer) > HEAD_LIMIT:
                reason = "The head of the request is too long."
                raise BadRequest(reason)
            if not self._receive():
                return None
        raw = self._buffer[:end].decode("latin-1")
        del self._buffer[: end + 4]
        return _parse_head(raw)

    def read_body(self, head: Head) -> bytes:
        """Read the body that ``head`` announces. Raises ``BadRequest``, ``OSError``."""
        if head.headers.get("expect", "").lower() == "100-continue":
            self.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        if "chunked" in head.headers.get("transfer-encoding", "").lower():
            return self._read_chunks()
        length = head.headers.get("content-length", "0")
        if not length.isdigit() or int(length) > BODY_LIMIT:
            reason = "Content-Length is not a number the sandbox takes."
            raise BadRequest(reason)
        return self._take(int(length))

    def send(self, data: bytes) -> None:
        """Write all of ``data``."""
        self._sock.sendall(data)

    def finish(self) -> None:
        """Close in order: the client reads what was sent, then the end (FIN)."""
        if self.closed:
            return
        self.closed = True
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_WR)
        self._sock.close()

    def reset(self) -> None:
        """Cut the connection: the client gets RST."""
        self.closed = True
        self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._sock.close()

    def wait_for_client(self, seconds: float) -> None:
        """Hold the connection until the client closes it, or for so long."""
        self._sock.settimeout(seconds)
        while self._receive():
            self._buffer.clear()

    def _receive(self) -> bool:
        data = self._sock.recv(65536)
        self._buffer += data
        return bool(data)

    def _take(self, count: int) -> bytes:
        while len(self._buffer) < count:
            if not self._receive():
                reason = "The body ends too soon."
                raise BadRequest(reason)
        data = bytes(self._buffer[:count])
        del self._buffer[:count]
        return data

    def _take_line(self) -> bytes:
        while (end := self._buffer.find(b"\r\n")) < 0:
            if len(self._buffer) > HEAD_LIMIT or not self._receive():
                reason = "A chunk of the body has no end."
                raise BadRequest(reason)
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 2]
        return line

    def _read_chunks(self) -> bytes:
        body = bytearray()
        while True:
            try:
                size = int(self._take_line().split(b";")[0], 16)
            except ValueError:
                reason = "A chunk of the body has no size."
                raise BadRequest(reason) from None
            if len(body) + size > BODY_LIMIT:
                reason = "The body is too long."
                raise BadRequest(reason)
            if size == 0:
                while self._take_line():
                    pass
                return bytes(body)
            body += self._take(size)
            self._take_line()


def _parse_head(raw: str) -> Head:
    first, *lines = raw.split("\r\n")
    method, _, rest = first.partition(" ")
    target, _, version = rest.partition(" ")
    if not version.startswith("HTTP/1."):
        reason = "The first line is not an HTTP request."
        raise BadRequest(reason)
    headers = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon:
            reason = "A header has no colon."
            raise BadRequest(reason)
        headers[name.strip().lower()] = value.strip()
    path, _, query = target.partition("?")
    return Head(method, unquote(path), query, headers)
