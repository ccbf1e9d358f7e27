"""A TCP proxy that can lose what passes through it: the answer, or the question."""

from __future__ import annotations

import contextlib
import socket
import threading
from enum import StrEnum
from types import TracebackType
from typing import Self

_PIECE = 65_536
_SECONDS = 20.0


class Loss(StrEnum):
    """What is lost of one connection."""

    ANSWER = "answer"
    """The server does its work and answers; the client sees its connection closed."""
    HALF_ANSWER = "half answer"
    QUESTION = "question"
    """Nothing reaches the server."""


class CuttingProxy:
    """Passes connections on to ``port`` of this machine, but for the next one after ``lose``."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._losses: list[Loss] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._accept, daemon=True)

    def lose(self, loss: Loss) -> None:
        """Lose this of the next connection."""
        self._losses.append(loss)

    def stop(self) -> None:
        """Take no more connections: they are refused from now on."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            loss = self._losses.pop(0) if self._losses else None
            threading.Thread(target=self._serve, args=(client, loss), daemon=True).start()

    def _serve(self, client: socket.socket, loss: Loss | None) -> None:
        client.settimeout(_SECONDS)
        with client, contextlib.suppress(OSError):
            if loss is Loss.QUESTION:
                client.recv(_PIECE)
                return
            with socket.create_connection(("127.0.0.1", self._target), timeout=_SECONDS) as server:
                asking = threading.Thread(target=_pass_on, args=(client, server), daemon=True)
                asking.start()
                answer = _whole(server)
                if loss is Loss.HALF_ANSWER:
                    client.sendall(answer[: len(answer) // 2])
                elif loss is None:
                    client.sendall(answer)
            # A close alone would wait for the other thread, which still reads from this socket.
            client.shutdown(socket.SHUT_RDWR)


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while piece := source.recv(_PIECE):
            target.sendall(piece)


def _whole(server: socket.socket) -> bytes:
    """Everything up to the end: our calls ask for the connection to be closed."""
    answer = bytearray()
    while piece := server.recv(_PIECE):
        answer += piece
    return bytes(answer)
