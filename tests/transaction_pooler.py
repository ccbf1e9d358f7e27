"""A pooler that lends each transaction some server process, as PgBouncer's transaction mode does.

It gives its clients cancel keys of its own, hands out the process that was given back last, and
knows nothing of prepared statements, as PgBouncer before 1.21. With ``whole_sessions`` a client
keeps its process instead.
"""

from __future__ import annotations

import contextlib
import itertools
import socket
import struct
import threading
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self

from tests.pooler import SOCKET

_ENDS_A_REQUEST: Final = b"QS"
_KEY: Final = b"K"
_READY: Final = b"Z"
_IDLE: Final = b"I"
_TERMINATE: Final = b"X"


@dataclass
class _Server:
    """One server process, and what it said when it was reached."""

    wire: socket.socket
    greeting: list[tuple[bytes, bytes]]


@dataclass
class TransactionPooler:
    """Listens in ``folder`` for the server in ``behind``; a thread per client."""

    folder: Path
    behind: Path
    whole_sessions: bool = False
    _idle: dict[bytes, list[_Server]] = field(default_factory=lambda: defaultdict(list))
    _pids: itertools.count[int] = field(default_factory=lambda: itertools.count(1_000_000_000))
    _threads: list[threading.Thread] = field(default_factory=list)

    def __enter__(self) -> Self:
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self.folder / SOCKET))
        self._listener.listen()
        self._threads.append(threading.Thread(target=self._accept))
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        """Close; every client has closed before."""
        self._listener.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        for servers in self._idle.values():
            for server in servers:
                server.wire.close()

    def _accept(self) -> None:
        with self._listener, contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                thread = threading.Thread(target=self._serve, args=(client,))
                thread.start()
                self._threads.append(thread)

    def _serve(self, client: socket.socket) -> None:
        with client, contextlib.suppress(OSError, EOFError):
            (length,) = struct.unpack("!i", _read(client, 4))
            startup = struct.pack("!i", length) + _read(client, length - 4)
            server: _Server | None = self._take(startup)
            for kind, body in server.greeting:
                _send(client, kind, self._own_key() if kind == _KEY else body)
            try:
                if not self.whole_sessions:
                    server = self._give(startup, server)
                while True:
                    kind, body = _message(client)
                    if kind == _TERMINATE:
                        return
                    server = server or self._take(startup)
                    _send(server.wire, kind, body)
                    if kind in _ENDS_A_REQUEST and self._answer(client, server):
                        server = self._give(startup, server)
            finally:
                if server is not None:
                    server.wire.close()

    def _answer(self, client: socket.socket, server: _Server) -> bool:
        """Relay an answer; tell whether the transaction is over and the process may go back."""
        while True:
            kind, body = _message(server.wire)
            _send(client, kind, body)
            if kind == _READY:
                return body == _IDLE and not self.whole_sessions

    def _take(self, startup: bytes) -> _Server:
        if self._idle[startup]:
            return self._idle[startup].pop()
        wire = socket.socket(socket.AF_UNIX)
        wire.connect(str(self.behind / SOCKET))
        wire.sendall(startup)
        greeting = []
        while not greeting or greeting[-1][0] != _READY:
            greeting.append(_message(wire))
        return _Server(wire, greeting)

    def _give(self, startup: bytes, server: _Server) -> None:
        self._idle[startup].append(server)

    def _own_key(self) -> bytes:
        return struct.pack("!ii", next(self._pids), 7)


def _message(wire: socket.socket) -> tuple[bytes, bytes]:
    kind = _read(wire, 1)
    (length,) = struct.unpack("!i", _read(wire, 4))
    return kind, _read(wire, length - 4)


def _send(wire: socket.socket, kind: bytes, body: bytes) -> None:
    wire.sendall(kind + struct.pack("!i", len(body) + 4) + body)


def _read(wire: socket.socket, length: int) -> bytes:
    data = b""
    while len(data) < length:
        part = wire.recv(length - len(data))
        if not part:
            raise EOFError
        data += part
    return data
