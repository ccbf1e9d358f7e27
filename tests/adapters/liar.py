"""A server that answers whatever a test tells it to, over real sockets."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self
from urllib.parse import parse_qsl, urlsplit


@dataclass(frozen=True, slots=True)
class Asked:
    """One request as it came."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Said:
    """One answer. ``missing``: bytes that are announced and never come."""

    body: object = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    missing: int = 0

    def content(self) -> bytes:
        """The body: bytes as they are, anything else as JSON."""
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


class Liar:
    """Answers each request with what ``script`` says, and remembers what was asked."""

    def __init__(self, script: Callable[[Asked], Said]) -> None:
        self.asked: list[Asked] = []
        liar = self

        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                parts = urlsplit(self.path)
                length = int(self.headers.get("Content-Length") or 0)
                asked = Asked(
                    self.command,
                    parts.path,
                    dict(parse_qsl(parts.query)),
                    {name.lower(): value for name, value in self.headers.items()},
                    self.rfile.read(length),
                )
                liar.asked.append(asked)
                said = script(asked)
                content = said.content()
                self.send_response(said.status)
                for name, value in said.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(content) + said.missing))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = do_DELETE = answer  # noqa: N815 - http.server's names

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
