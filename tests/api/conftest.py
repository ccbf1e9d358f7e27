"""The API over real HTTP: a server of its own, two workspaces, and a token for each role."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from pydantic import SecretStr

from publisher import api, bootstrap, telemetry
from publisher.api.serving import listening
from publisher.config import Settings
from publisher.db.connect import Database
from publisher.db.roles import Role as DatabaseRole
from publisher.db.walls import EVERY
from publisher.editorial.people import person, tokens, users, workspaces
from publisher.editorial.people.roles import PERMISSIONS, Role
from publisher.engine.registry import Registry
from tests.api.platform import Wall
from tests.engine.ground import Ground, Lane
from tests.postgres import Postgres

OURS, OTHERS = "main", "other"
CANARY = "canary-of-the-other-workspace"
_MANY = httpx.Limits(max_connections=50, max_keepalive_connections=50)


@dataclass
class House:
    """One server. ``ours`` is a lane of the workspace that callers are in, ``others`` is not."""

    url: str
    app: FastAPI
    ground: Ground
    wall: Wall
    settings: Settings
    secrets: dict[tuple[str, str], str]
    ours: Lane
    others: Lane
    client: httpx.Client
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        role: Role | None = Role.ADMIN,
        workspace: str = OURS,
        key: str | None = "fresh",
        headers: dict[str, str] | None = None,
        content: bytes | None = None,
    ) -> httpx.Response:
        """Send one request; ``key`` fresh: a new Idempotency-Key."""
        sent = {} if role is None else self.bearer(role, workspace)
        if key is not None and method != "GET":
            sent["Idempotency-Key"] = self.key() if key == "fresh" else key
        if body is not None:
            content = json.dumps(body).encode()
            sent["Content-Type"] = "application/json"
        full = path if path.startswith("/api/") else f"/api/v1{path}"
        wired = {name: value.encode("latin-1") for name, value in (sent | (headers or {})).items()}
        return self.client.request(method, self.url + full, headers=wired, content=content)

    def done(self, method: str, path: str, body: object = None, **how: Any) -> Any:  # noqa: ANN401 - JSON
        """Send a request that must be answered well; its JSON."""
        answer = self.call(method, path, body, **how)
        assert answer.is_success, (answer.status_code, answer.text)
        return answer.json()

    def refused(
        self,
        status: int,
        code: str,
        method: str,
        path: str,
        body: object = None,
        **how: Any,  # noqa: ANN401 - those of call
    ) -> dict[str, Any]:
        """Send a request that must be refused so; the problem."""
        answer = self.call(method, path, body, **how)
        assert answer.headers["content-type"] == "application/problem+json", answer.text
        problem: dict[str, Any] = answer.json()
        assert (answer.status_code, problem["code"]) == (status, code), answer.text
        assert problem["status"] == status
        return problem

    def bearer(self, role: Role, workspace: str = OURS) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.secrets[workspace, role]}"}

    def key(self) -> str:
        return f"key-{next(self._numbers)}"

    def token(self, role: Role, workspace: str = OURS, **how: Any) -> str:  # noqa: ANN401 - those of make
        """Another token of that role's person, by default with everything the role has."""
        return _token(self.ground.app, role, workspace, **how)


def _invited(database: Database, role: Role, slug: str) -> None:
    with database.engine.begin() as conn:
        workspace = workspaces.find(conn, slug)
        users.add(
            conn,
            workspace,
            email=f"{role}@{slug}.example",
            name=f"{role} of {slug}",
            role=role,
            who="root",
        )


def _token(
    database: Database,
    role: Role,
    slug: str,
    *,
    scopes: list[str] | None = None,
    **how: Any,  # noqa: ANN401 - those of make
) -> str:
    with database.engine.begin() as conn:
        found = users.find(conn, f"{role}@{slug}.example")
        owner = person.in_workspace(conn, found.id, slug)
        wanted = scopes if scopes is not None else sorted(PERMISSIONS[role])
        made = tokens.make(
            conn, owner, name="test", scopes=wanted, who="root", **{"lasts": None, **how}
        )
    return made.secret


@contextmanager
def served(app: Any) -> Iterator[str]:  # noqa: ANN401 - any ASGI application
    """Serve it on a free port of this machine; its address."""
    with listening(app, "127.0.0.1", 0) as server:
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        try:
            yield server.url
        finally:
            server.stop()
            thread.join(30)
            assert not thread.is_alive()


def _as_it_is(app: Any) -> Any:  # noqa: ANN401 - an ASGI application
    return app


@contextmanager
def housed(pg: Postgres, wrap: Callable[[Any], Any] = _as_it_is) -> Iterator[House]:
    """A house on a database of its own; ``wrap``: around the application that is served."""
    with ExitStack() as stack:
        ground = stack.enter_context(Ground.open(pg))
        settings = Settings(home=ground.home, database_url=SecretStr(pg.url(ground.name)))
        # As the command does; without it a fault's log shows every local, for a minute.
        telemetry.configure(settings, stream=sys.__stderr__)
        with ground.app.engine.begin() as conn:
            workspaces.add(conn, slug=OTHERS, name=CANARY, zone="UTC", who="root")
        secrets = {}
        for slug in (OURS, OTHERS):
            for role in Role:
                _invited(ground.app, role, slug)
                secrets[slug, role] = _token(ground.app, role, slug)
        database = stack.enter_context(
            Database.open(
                settings,
                DatabaseRole.APP,
                application_name="test api",
                pool_size=20,
                workspace=EVERY,
            )
        )
        parts = stack.enter_context(bootstrap.open_app(settings, database))
        wall = Wall()
        known = [wall, *(parts.registry.adapter(name) for name in parts.registry.platforms)]
        made = api.app(replace(parts, registry=Registry(known)))
        url = stack.enter_context(served(wrap(made)))
        client = stack.enter_context(
            httpx.Client(timeout=60, trust_env=False, verify=False, limits=_MANY)
        )
        ours, others = _lane(ground, OURS), _lane(ground, OTHERS)
        ground.sql("SET publisher.workspace = 'main'")
        yield House(url, made, ground, wall, settings, secrets, ours, others, client)


def _lane(ground: Ground, slug: str) -> Lane:
    ground.sql(f"SET publisher.workspace = '{slug}'")
    return ground.lane()


@pytest.fixture(scope="module")
def house(pg: Postgres) -> Iterator[House]:
    """A house for a module's tests; each takes jobs and names of its own there."""
    with housed(pg) as opened:
        yield opened
