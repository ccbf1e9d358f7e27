"""A server over raw sockets that does what a script says, and keeps every byte it was sent."""

from __future__ import annotations

import contextlib
import datetime as dt
import ipaddress
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

PATIENCE = 10.0
"""Seconds after which a test has hung; nothing waits as long when all is well."""

OK = b'HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n{"id":"1a"}'


class Connection:
    """One accepted connection. ``got`` is every byte that came, in clear."""

    def __init__(self, sock: socket.socket, released: threading.Event) -> None:
        self.sock = sock
        self.got = b""
        self._released = released

    def request(self) -> bytes:
        """Read up to the end of one whole request, and return all that came until then."""
        while b"\r\n\r\n" not in self.got:
            if not self._more():
                return self.got
        head, _, body = self.got.partition(b"\r\n\r\n")
        length = 0
        for line in head.lower().split(b"\r\n"):
            if line.startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        while len(body) < length:
            data = self._more()
            if not data:
                break
            body += data
        return self.got

    def to_the_end(self) -> bytes:
        """Read until the other side closes."""
        while self._more():
            pass
        return self.got

    def _more(self) -> bytes:
        try:
            data = self.sock.recv(65_536)
        except OSError:
            data = b""
        self.got += data
        return data

    def send(self, data: bytes) -> bool:
        """Send all of ``data``; False when the other side is gone."""
        try:
            self.sock.sendall(data)
        except OSError:
            return False
        return True

    def reset(self) -> None:
        """Close with RST."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def hang(self, seconds: float = PATIENCE) -> bool:
        """Do nothing until the test is over; True when it is."""
        return self._released.wait(seconds)


Script = Callable[[Connection], object]


class Peer:
    """Listens on 127.0.0.1 and runs ``script`` for each connection in a thread of its own."""

    def __init__(self, script: Script, tls: ssl.SSLContext | None = None) -> None:
        self.connections: list[Connection] = []
        self._script = script
        self._tls = tls
        self._released = threading.Event()
        self._threads: list[threading.Thread] = []
        self._last: tuple[str, int] | None = None
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port: int = self._listener.getsockname()[1]

    def url(self, path: str = "/feed", host: str = "127.0.0.1") -> str:
        return f"http{'s' if self._tls else ''}://{host}:{self.port}{path}"

    @property
    def requests(self) -> list[bytes]:
        """What each connection sent, after every script has run to its end."""
        self._end()
        return [connection.got for connection in self.connections]

    def __enter__(self) -> Self:
        self._spawn(self._accept)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self._end()

    def _end(self) -> None:
        self._released.set()
        if self._last is None:
            # Connections that wait to be accepted come before this one, and are still served.
            with socket.socket() as last:
                last.settimeout(PATIENCE)
                last.bind(("127.0.0.1", 0))
                self._last = last.getsockname()
                last.connect(("127.0.0.1", self.port))
                self._threads[0].join(PATIENCE)
        for thread in self._threads:
            thread.join(PATIENCE)
            assert not thread.is_alive(), "a script did not end"

    def _spawn(self, target: Callable[[], None]) -> None:
        thread = threading.Thread(target=target, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            sock, address = self._listener.accept()
            if address == self._last:
                sock.close()
                self._listener.close()
                return
            sock.settimeout(PATIENCE)
            connection = Connection(sock, self._released)
            self.connections.append(connection)
            self._spawn(lambda connection=connection: self._serve(connection))  # type: ignore[misc]

    def _serve(self, connection: Connection) -> None:
        try:
            if self._tls is not None:
                connection.sock = self._tls.wrap_socket(connection.sock, server_side=True)
            self._script(connection)
        except (ssl.SSLError, ConnectionError):
            pass
        finally:
            connection.sock.close()


def answering(answer: bytes) -> Script:
    """Read one request, answer, close."""

    def script(connection: Connection) -> None:
        connection.request()
        connection.send(answer)

    return script


@dataclass(frozen=True, slots=True)
class Certificate:
    """A throw-away certificate for ``platform.test``, ``localhost`` and 127.0.0.1."""

    server: ssl.SSLContext
    text: str


def make_certificate(folder: Path) -> Certificate:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "platform.test")])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName(
                [
                    x509.DNSName("platform.test"),
                    x509.DNSName("localhost"),
                    x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
                ]
            ),
            critical=False,
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    text = certificate.public_bytes(serialization.Encoding.PEM)
    file = folder / "platform.pem"
    file.write_bytes(
        text
        + key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(file)
    return Certificate(server, text.decode())


@contextlib.contextmanager
def full_backlog() -> Iterator[int]:
    """Yield a port on which a connection is neither made nor refused."""
    with socket.socket() as listener, contextlib.ExitStack() as stack:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listener.getsockname())
        yield listener.getsockname()[1]


def closed_port() -> int:
    """Return a port on which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port
