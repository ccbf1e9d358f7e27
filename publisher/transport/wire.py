"""One call's connection: a deadline on every operation, and a count of what left and came.

httpx and httpcore bound each operation by itself, so that a peer which sends a byte now and then
holds a call for ever. Here each ``connect``, handshake, ``send`` and ``recv`` is given what is
left of the call's one budget. That needs no watchdog thread, which a fork would lose and which
could shut a socket whose number had meanwhile been given to another.

Name resolution is the system's and is not bounded here: it gives up by itself (``resolv.conf``),
and a permit that lapsed meanwhile is refused.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterable, Iterator
from typing import Any

import httpcore

from publisher.engine.adapter import boottime


class WriteTooEarly(RuntimeError):
    """Something wanted to write before this call's request was announced by the trace."""


class Wire(httpcore.NetworkBackend):
    """Makes one connection, and keeps account of it.

    ``connect_by`` and ``deadline`` are instants of ``boottime()``. ``addresses``: connect to
    these in place of what the name leads to. ``server_name``: what the certificate must name,
    where it is not the host of the URL. ``sent`` and ``received`` count bytes of our own request
    and its answer, before encryption; a proxy's CONNECT is not counted.
    """

    def __init__(
        self,
        *,
        connect_by: float,
        user_timeout: float,
        proxied: bool = False,
    ) -> None:
        self.deadline = connect_by
        self.begun = False
        self.sent = 0
        self.received = 0
        self.ended = False
        self.addresses: tuple[str, ...] = ()
        self.server_name: str | None = None
        self._proxied = proxied
        self._user_timeout = int(user_timeout * 1000)

    def begin(self, deadline: float) -> None:
        """Open the way for our own request, whose answer must be whole by ``deadline``."""
        self.begun = True
        self.deadline = deadline
        self.sent = self.received = 0
        self.ended = False

    def remaining(self) -> float:
        """Seconds left. Raises ``TimeoutError`` when there are none."""
        left = self.deadline - boottime()
        if left <= 0:
            message = "the time for this call was used up"
            raise TimeoutError(message)
        return left

    def may_write(self, buffer: bytes) -> None:
        """Refuse a write that no trace event announced.

        Permits are used up in a trace event of httpcore's. Were that event renamed one day, posts
        would leave under permits that say *not sent*; so the wire itself stays shut until then.
        """
        if not self.begun and not (self._proxied and buffer.startswith(b"CONNECT ")):
            message = "httpcore wrote before it announced the request"
            raise WriteTooEarly(message)

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ARG002 - httpcore's signature; ours is the deadline
        local_address: str | None = None,  # noqa: ARG002
        socket_options: Iterable[Any] | None = None,  # noqa: ARG002
    ) -> httpcore.NetworkStream:
        """Connect to the first address that answers. Raises ``ConnectError``, ``ConnectTimeout``.

        Each address has an equal share of the time left, so that a dead one does not use it up.
        """
        with _as(httpcore.ConnectTimeout, httpcore.ConnectError):
            targets = [
                target
                for name in self.addresses or (host,)
                for target in socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)
            ]
            last: OSError | None = None
            for index, (family, kind, protocol, _, address) in enumerate(targets):
                sock = socket.socket(family, kind, protocol)
                try:
                    self._set_options(sock)
                    sock.settimeout(self.remaining() / (len(targets) - index))
                    sock.connect(address)
                except OSError as error:
                    sock.close()
                    last = error
                except BaseException:
                    sock.close()
                    raise
                else:
                    return WireStream(self, sock)
            raise last or OSError("the name leads to no address")

    def _set_options(self, sock: socket.socket) -> None:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, self._user_timeout)

    def connect_unix_socket(
        self,
        path: str,  # noqa: ARG002
        timeout: float | None = None,  # noqa: ARG002
        socket_options: Iterable[Any] | None = None,  # noqa: ARG002
    ) -> httpcore.NetworkStream:
        """Refuse: no platform is reached that way."""
        message = "Unix sockets are not used"
        raise httpcore.ConnectError(message)


class WireStream(httpcore.NetworkStream):
    """The connected socket, plain or under TLS."""

    def __init__(self, wire: Wire, sock: socket.socket) -> None:
        self._wire = wire
        self._sock = sock

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002
        """Read what is there. Raises ``ReadTimeout`` at the deadline, ``ReadError``."""
        with _as(httpcore.ReadTimeout, httpcore.ReadError):
            self._sock.settimeout(self._wire.remaining())
            data = self._sock.recv(max_bytes)
        self._wire.received += len(data)
        self._wire.ended = not data
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002
        """Hand all of it to the kernel. Raises ``WriteTimeout``, ``WriteError``.

        httpcore swallows a ``WriteError`` and reads the answer, which a server may have sent
        early; what was sent until then is counted all the same.
        """
        if not buffer:
            return  # a CONNECT ends with a body of nothing
        self._wire.may_write(buffer)
        rest = memoryview(buffer)
        with _as(httpcore.WriteTimeout, httpcore.WriteError):
            while rest:
                self._sock.settimeout(self._wire.remaining())
                count = self._sock.send(rest)
                self._wire.sent += count
                rest = rest[count:]

    def close(self) -> None:
        """Close. An error here says nothing about the request."""
        with contextlib.suppress(OSError):
            self._sock.close()

    def start_tls(
        self,
        ssl_context: Any,  # noqa: ANN401 - named ssl.SSLContext in httpcore
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ARG002
    ) -> httpcore.NetworkStream:
        """Encrypt. Raises ``ConnectTimeout``, ``ConnectError`` (a certificate refused, too).

        An end without the closing alert is an error, not an end: an answer that ends with its
        connection could otherwise be cut by anyone on the way.
        """
        try:
            with _as(httpcore.ConnectTimeout, httpcore.ConnectError):
                self._sock.settimeout(self._wire.remaining())
                secured = ssl_context.wrap_socket(
                    self._sock,
                    server_hostname=self._wire.server_name or server_hostname,
                    suppress_ragged_eofs=False,
                )
        except BaseException:
            self.close()
            raise
        return WireStream(self._wire, secured)

    def get_extra_info(self, info: str) -> Any:  # noqa: ANN401 - httpcore's signature
        """Give httpcore the TLS object it asks for the protocol that was agreed on."""
        if info == "ssl_object" and hasattr(self._sock, "selected_alpn_protocol"):
            return self._sock
        return None


@contextlib.contextmanager
def _as(timed_out: type[Exception], failed: type[Exception]) -> Iterator[None]:
    """Turn the system's errors into httpcore's, which say what was being done."""
    try:
        yield
    except TimeoutError as error:
        raise timed_out(str(error) or "timed out") from error
    except OSError as error:
        raise failed(str(error)) from error
