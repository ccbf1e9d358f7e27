"""One request and its answer, as far as they came."""

from __future__ import annotations

import socket
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Protocol

import httpcore
import httpx

from publisher.engine.adapter import SendPermit, boottime
from publisher.engine.errors import PermitError, PermitLate, PermitUsed
from publisher.engine.outcome import Answer
from publisher.transport.addresses import AddressRefused
from publisher.transport.phases import End, Phase
from publisher.transport.redaction import CUT, Redaction
from publisher.transport.request import BadRequest
from publisher.transport.wire import Wire

ANSWER_BYTES = 8 * 1024 * 1024
"""What an answer may weigh, as it comes and unpacked."""
_KEPT_CHARACTERS = 4_000
_KEPT_HEADER_CHARACTERS = 500
_KEPT_HEADERS = 60
_KEPT_ERROR_CHARACTERS = 500
_NEVER_KEPT = frozenset({"set-cookie", "set-cookie2", "authorization", "proxy-authorization"})


class TooLarge(Exception):
    """More bytes than an answer may have."""


class Undecodable(Exception):
    """A content encoding that is not what it says, or that was not asked for."""


_ENDS: tuple[tuple[type[BaseException], End], ...] = (
    (PermitLate, End.PERMIT_LATE),
    (PermitUsed, End.PERMIT_USED),
    (AddressRefused, End.REFUSED),
    (BadRequest, End.REFUSED),
    (httpx.InvalidURL, End.REFUSED),
    (httpcore.UnsupportedProtocol, End.REFUSED),
    (httpcore.TimeoutException, End.TIME_UP),
    (httpcore.ConnectError, End.NOT_CONNECTED),
    (socket.gaierror, End.NOT_CONNECTED),
    (httpcore.ProxyError, End.NOT_CONNECTED),
    (httpcore.NetworkError, End.RESET),
    (httpcore.RemoteProtocolError, End.GARBLED),
    (TooLarge, End.TOO_LARGE),
    (Undecodable, End.UNDECODABLE),
)


class Sink(Protocol):
    """Where the bytes of a download go."""

    def write(self, chunk: bytes, /) -> object:
        """Take some. What it raises ends the call."""
        ...


@dataclass(frozen=True, slots=True)
class Download:
    """Where the body of a 200 goes, as it comes, and how large it may be."""

    sink: Sink
    most_bytes: int

    def take(self, response: httpx.Response, headers: Mapping[str, str]) -> None:
        """Write the body. Raises ``TooLarge``, ``Undecodable``, and what the sink raises.

        Nothing is unpacked: it was not asked for packed, and a file is wanted as it lies there.
        """
        encoding = headers.get("content-encoding", "").strip().lower()
        if encoding not in {"", "identity"}:
            message = f"content encoding {encoding}"
            raise Undecodable(message)
        declared = headers.get("content-length", "")
        taken = int(declared) if declared.isascii() and declared.isdigit() else 0
        if taken <= self.most_bytes:
            taken = 0
            for chunk in response.iter_raw():
                taken += len(chunk)
                if taken > self.most_bytes:
                    break
                self.sink.write(chunk)
        if taken > self.most_bytes:
            message = f"more than {self.most_bytes:,} bytes"
            raise TooLarge(message)


class Exchange:
    """Keeps account of one call while httpcore makes it."""

    def __init__(
        self,
        method: str,
        wire: Wire,
        redaction: Redaction,
        *,
        permit: SendPermit | None,
        ends_at: float,
        into: Download | None = None,
    ) -> None:
        self.wire = wire
        self.started = False
        self.connected = False
        self.status: int | None = None
        self.headers: Mapping[str, str] = {}
        self.body = b""
        self.error: Exception | None = None
        self._redacted = redaction
        self._method = method.encode()
        self._permit = permit
        self._ends_at = ends_at
        self._into = into

    def connects_from_now(self, seconds: float) -> None:
        """Give a publish call its time to connect; preparing its body may have taken long."""
        if self._permit is not None:
            self.wire.deadline = min(boottime() + seconds, self._permit.deadline)

    def trace(self, name: str, info: Mapping[str, Any]) -> None:
        """Take httpcore's account of what it does, and use up the permit before the first byte.

        Raises ``PermitLate`` or ``PermitUsed``; httpcore has written nothing then and closes the
        connection. A second request inside one call would find the permit used.
        """
        if name == "connection.connect_tcp.started":
            self.connected = True
        elif name == "http11.send_request_headers.started":
            if info["request"].method == self._method:
                self._start()
        elif name == "http11.receive_response_headers.complete" and self.started:
            _, self.status, _, headers = info["return_value"]
            self.headers = _lowered(headers)

    def _start(self) -> None:
        if self._permit is None:
            self.started = True
            self.wire.begin(self._ends_at)
            return
        # Believed to be sent until the permit says otherwise: whatever may strike between these
        # lines, a used permit never goes with "not sent".
        earlier, self.started = self.started, True
        try:
            self._permit.use()
        except PermitError:
            self.started = earlier
            raise
        self.wire.begin(boottime() + self._permit.budget)

    def read(self, response: httpx.Response) -> None:
        """Read the whole body; what came is kept when the rest does not come.

        Raises ``TooLarge``, ``Undecodable``, and what httpcore raises for a cut answer.
        """
        if self._into is not None and self.status == HTTPStatus.OK:
            self._into.take(response, self.headers)
            return
        raw = bytearray()
        try:
            for chunk in response.iter_raw():
                raw += chunk
                if len(raw) > ANSWER_BYTES:
                    message = f"more than {ANSWER_BYTES:,} bytes"
                    raise TooLarge(message)
        finally:
            self.body = bytes(raw)
        self.body = unpacked(self.body, self.headers.get("content-encoding", ""))

    @property
    def phase(self) -> Phase:
        """How far our own request came."""
        if not self.started:
            return Phase.CONNECTING
        return Phase.ANSWERING if self.wire.received else Phase.SENDING

    def end(self) -> End:
        """How the call ended."""
        if self.started and not self.connected:
            return End.REUSED
        if self.error is None:
            return End.WHOLE
        end = next((end for kind, end in _ENDS if isinstance(self.error, kind)), End.BROKE)
        return End.CLOSED if end is End.GARBLED and self.wire.ended else end

    def answer(self) -> Answer:
        """What may be kept of it: without secrets, and not too long."""
        headers = {
            self._redacted(name, 100): CUT
            if name in _NEVER_KEPT
            else self._redacted(value, _KEPT_HEADER_CHARACTERS)
            for name, value in list(self.headers.items())[:_KEPT_HEADERS]
        }
        # A character takes at most four bytes, so this leaves enough to find a secret in.
        body = self.body[: 4 * (_KEPT_CHARACTERS + self._redacted.longest)]
        return Answer(
            status=self.status,
            headers=headers,
            body=self._redacted(body.decode(errors="replace"), _KEPT_CHARACTERS),
            sent=self._sent(),
            error=self._error(),
        )

    def _sent(self) -> int | None:
        if self.started:
            return self.wire.sent
        # Another call used this permit; what it sent is not known here.
        return None if isinstance(self.error, PermitUsed) else 0

    def _error(self) -> str | None:
        if self.error is None:
            return None
        text = str(self.error)
        if not isinstance(self.error, AddressRefused | BadRequest):
            text = f"{type(self.error).__name__}: {text}".removesuffix(": ")
        return self._redacted(text, _KEPT_ERROR_CHARACTERS)


def unpacked(body: bytes, encoding: str) -> bytes:
    """Undo gzip or deflate, never holding more than an answer may weigh.

    Raises ``TooLarge``, ``Undecodable``. Nothing but ``identity`` is asked for; some answer
    packed all the same.
    """
    known = encoding.strip().lower()
    if known in {"", "identity"} or not body:
        return body
    if known not in {"gzip", "x-gzip", "deflate"}:
        message = f"content encoding {encoding}"
        raise Undecodable(message)
    # 32: a zlib or a gzip header, whichever it has (zlib manual, inflateInit2).
    unpacker = zlib.decompressobj(32 + zlib.MAX_WBITS)
    try:
        content = unpacker.decompress(body, ANSWER_BYTES + 1)
    except zlib.error as error:
        raise Undecodable(str(error)) from error
    if len(content) > ANSWER_BYTES:
        message = f"more than {ANSWER_BYTES:,} bytes when unpacked"
        raise TooLarge(message)
    if not unpacker.eof:
        message = f"{known} content without its end"
        raise Undecodable(message)
    return content


def _lowered(headers: list[tuple[bytes, bytes]]) -> dict[str, str]:
    """Join repeated headers as RFC 9110, section 5.3, allows."""
    joined: dict[str, str] = {}
    for raw_name, raw_value in headers:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        joined[name] = f"{joined[name]}, {value}" if name in joined else value
    return joined
