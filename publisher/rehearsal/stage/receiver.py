"""Who is told when a person is needed: takes webhooks, and sometimes says so badly."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

SECRET = "a secret that alerts are signed with"  # noqa: S105 - of a receiver that ends with us
_BADLY_EACH = 7
"""So many events are taken for each that is then answered 500."""


class Receiver:
    """Takes alerts. ``path``: what the events of one schedule are sent to; each has its own."""

    def __init__(self, server: ThreadingHTTPServer) -> None:
        self._server = server
        self._lock = threading.Lock()
        self._bodies: dict[tuple[str, str], set[bytes]] = {}
        self._came: Counter[str] = Counter()

    @classmethod
    @contextmanager
    def running(cls) -> Iterator[Self]:
        """Receive on a port of the loopback address."""
        server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        server.daemon_threads = True
        receiver = cls(server)
        server.receiver = receiver  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, args=(0.1,), daemon=True)
        thread.start()
        try:
            yield receiver
        finally:
            server.shutdown()
            server.server_close()
            thread.join()

    def url(self, path: str) -> str:
        """Where the events of one schedule are sent to."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/{path}"

    def take(self, path: str, event: str, body: bytes) -> int:
        """Keep an event; returns the status that is answered."""
        with self._lock:
            self._bodies.setdefault((path, event), set()).add(body)
            self._came[path] += 1
            return 500 if self._came[path] % _BADLY_EACH == 0 else 200

    def told(self, path: str) -> set[str]:
        """Public ids of the jobs that the events of a schedule told of."""
        with self._lock:
            bodies = [b for (to, _), found in self._bodies.items() if to == path for b in found]
        return {job for body in bodies for job in json.loads(body)["data"]["jobs"]}

    def changed(self, path: str) -> list[str]:
        """Events that came twice with different bodies."""
        with self._lock:
            return [e for (to, e), found in self._bodies.items() if to == path and len(found) > 1]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        receiver: Receiver = self.server.receiver  # type: ignore[attr-defined]
        event = self.headers["publisher-event-id"]
        status = receiver.take(self.path.strip("/"), event, body)
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Say nothing."""
