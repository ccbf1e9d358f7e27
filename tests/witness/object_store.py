"""An S3-compatible server on a socket: moto's, one request at a time, so that a condition holds."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

BUCKET = "posting-witness"


class _Quiet(WSGIRequestHandler):
    def log(self, *args: object) -> None:
        pass


class ObjectStore:
    """``careless``: it ignores the conditions of a write, as some do. ``down``: 503 to all."""

    def __init__(self) -> None:
        self.careless = False
        self.down = False
        self._app = DomainDispatcherApplication(create_backend_app)
        self._server = make_server("127.0.0.1", 0, self._serve, request_handler=_Quiet)
        self.url = f"http://127.0.0.1:{self._server.port}"

    def _serve(
        self, environ: dict[str, Any], start_response: Callable[..., object]
    ) -> Iterable[bytes]:
        if self.down:
            environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            answer = b"<Error><Code>SlowDown</Code></Error>"
            start_response("503 Slow Down", [("Content-Length", str(len(answer)))])
            return [answer]
        if self.careless:
            environ.pop("HTTP_IF_MATCH", None)
            environ.pop("HTTP_IF_NONE_MATCH", None)
        served: Iterable[bytes] = self._app(environ, start_response)
        return served

    @contextmanager
    def serving(self) -> Iterator[None]:
        thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield
        finally:
            self._server.shutdown()
            thread.join()
            self._server.server_close()
