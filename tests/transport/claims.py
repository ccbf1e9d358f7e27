"""What the tests of publish calls have in common."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator

from publisher.engine.adapter import SendPermit
from publisher.engine.outcome import Answer, Deferred, Proof, Reason, Unknown
from publisher.transport import FilePart, Request
from tests.transport.peer import PATIENCE, Connection, Peer, Script

POST = [("message", "Grüße")]


def post(peer: Peer) -> Request:
    return Request("POST", peer.url(), form=POST)


def assert_not_sent(outcome: object, permit: SendPermit, reason: Reason) -> None:
    assert isinstance(outcome, Deferred)
    assert outcome.proof is Proof.NOT_SENT
    assert outcome.reason is reason
    assert outcome.answer is not None
    assert outcome.answer.sent == 0
    assert not permit.used


def assert_unknown(outcome: object, permit: SendPermit, reason: Reason) -> Answer:
    assert isinstance(outcome, Unknown)
    assert outcome.reason is reason
    assert outcome.answer is not None
    assert permit.used
    return outcome.answer


def zeros(size: int, chunk: int = 65_536) -> FilePart:
    def read() -> Iterator[bytes]:
        for start in range(0, size, chunk):
            yield bytes(min(chunk, size - start))

    return FilePart("source", "a.png", "image/png", size, read)


def tunnel(port: int) -> Script:
    """Be a proxy: connect to ``port`` here, whatever name was asked for."""

    def script(connection: Connection) -> None:
        connection.request()
        with socket.create_connection(("127.0.0.1", port)) as onward:
            connection.send(b"HTTP/1.1 200 Connected\r\n\r\n")
            back = threading.Thread(target=_pump, args=(onward, connection.sock))
            back.start()
            _pump(connection.sock, onward)
            back.join(PATIENCE)

    return script


def _pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65_536):
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)
