"""A relay that drops start-up options, as PgBouncer does with ``ignore_startup_parameters``."""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import threading
from pathlib import Path
from typing import Final, Self

SOCKET: Final = ".s.PGSQL.5432"
_PROTOCOL_MAJOR: Final = 3


class OptionDroppingPooler:
    """Listens in ``folder`` and relays to the server in ``behind``, one thread per connection."""

    def __init__(self, folder: Path, behind: Path) -> None:
        self._behind = str(behind / SOCKET)
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / SOCKET))
        self._listener.listen()
        self._threads = [threading.Thread(target=self._accept)]

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        """Close; every client has closed before, so every relay has ended or is about to."""
        self._listener.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        with self._listener, contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                thread = threading.Thread(target=self._serve, args=(client,))
                thread.start()
                self._threads.append(thread)

    def _serve(self, client: socket.socket) -> None:
        with client, socket.socket(socket.AF_UNIX) as server, contextlib.suppress(OSError):
            server.connect(self._behind)
            server.sendall(_without_options(_startup(client)))
            other = {client: server, server: client}
            while True:
                for source in select.select([*other], [], [])[0]:
                    part = source.recv(65536)
                    if not part:
                        return
                    other[source].sendall(part)


def _startup(client: socket.socket) -> bytes:
    """Read the start-up message: its length, then the rest; a socket asks for no TLS before."""
    head = client.recv(4, socket.MSG_WAITALL)
    (length,) = struct.unpack("!i", head)
    return client.recv(length - 4, socket.MSG_WAITALL)


def _without_options(message: bytes) -> bytes:
    version, body = message[:4], message[4:].rstrip(b"\0")
    if struct.unpack("!hh", version)[0] != _PROTOCOL_MAJOR:
        return struct.pack("!i", len(message) + 4) + message
    words = body.split(b"\0")
    pairs = zip(words[::2], words[1::2], strict=True)
    kept = b"".join(name + b"\0" + value + b"\0" for name, value in pairs if name != b"options")
    message = version + kept + b"\0"
    return struct.pack("!i", len(message) + 4) + message
