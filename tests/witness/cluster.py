"""A Kubernetes API server as far as ConfigMaps need one: over TLS, with a token, by version."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.transport.peer import Certificate

TOKEN = "canary-service-account-token"
NAMESPACE = "posting"
Json = dict[str, Any]
PATH = re.compile(r"/api/v1/namespaces/([a-z0-9-]+)/configmaps(?:/([a-z0-9.-]+))?")


class Cluster(ThreadingHTTPServer):
    """Its ConfigMaps by name, as JSON has them; ``version`` counts every change."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.held: dict[str, dict[str, Any]] = {}
        self.version = 100
        self.turn = threading.Lock()
        self.forbids = False

    def answer(self, method: str, path: str, token: str, body: Json) -> tuple[int, Json]:
        if token != f"Bearer {TOKEN}":
            return 401, _status("Unauthorized")
        if self.forbids:
            return 403, _status(f"forbidden to {token}")
        with self.turn:
            return self._answer(method, path, body)

    def _answer(self, method: str, path: str, body: Json) -> tuple[int, Json]:
        place = PATH.fullmatch(path)
        if place is None or place[1] != NAMESPACE:
            return 404, _status("NotFound")
        name = place[2]
        match method:
            case "GET":
                found = self.held.get(name)
                return (200, found) if found else (404, _status("NotFound"))
            case "POST" if name is None:
                return self._create(body)
            case "PUT":
                return self._replace(name, body)
        return 405, _status("MethodNotAllowed")

    def _create(self, body: Json) -> tuple[int, Json]:
        if body["metadata"]["name"] in self.held:
            return 409, _status("AlreadyExists")
        return 201, self._store(body)

    def _replace(self, name: str, body: Json) -> tuple[int, Json]:
        found = self.held.get(name)
        if found is None:
            return 404, _status("NotFound")
        given = body["metadata"].get("resourceVersion")
        if given not in (None, found["metadata"]["resourceVersion"]):
            return 409, _status("Conflict")
        if found.get("immutable"):
            return 422, _status("Invalid")
        return 200, self._store(body)

    def _store(self, body: Json) -> Json:
        assert all(isinstance(value, str) for value in body.get("data", {}).values())
        self.version += 1
        body["metadata"]["resourceVersion"] = str(self.version)
        self.held[body["metadata"]["name"]] = body
        return body


class _Handler(BaseHTTPRequestHandler):
    server: Cluster

    def _serve(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        body = json.loads(self.rfile.read(length)) if length else {}
        if body:
            assert self.headers["Content-Type"] == "application/json"
        token = self.headers.get("Authorization", "")
        status, answer = self.server.answer(self.command, self.path, token, body)
        content = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = do_PUT = _serve  # noqa: N815 - http.server's names

    def log_message(self, *args: object) -> None:
        pass


def _status(reason: str) -> dict[str, str]:
    return {"kind": "Status", "status": "Failure", "reason": reason}


@contextmanager
def serving(certificate: Certificate) -> Iterator[Cluster]:
    cluster = Cluster()
    cluster.socket = certificate.server.wrap_socket(
        cluster.socket, server_side=True, do_handshake_on_connect=False
    )
    thread = threading.Thread(target=cluster.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield cluster
    finally:
        cluster.shutdown()
        thread.join()
        cluster.server_close()


def service_account(folder: Path, certificate: Certificate, token: str = TOKEN) -> Path:
    """What the kubelet lays into a pod."""
    folder.mkdir(exist_ok=True)
    (folder / "token").write_text(f"{token}\n")
    (folder / "ca.crt").write_text(certificate.text)
    return folder
