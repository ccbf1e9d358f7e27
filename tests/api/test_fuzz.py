"""Every operation for every role with whatever the description lets through, and what it does not.

schemathesis makes the requests from the description; ids of both workspaces are among them. With
the other tests each role asks by the examples, and an admin by some more; ``make api-fuzz`` asks
much more, for each.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from publisher.api import description, jobs
from publisher.editorial.people.roles import Role
from publisher.engine.job import State, public_id
from tests.api import things
from tests.api.conftest import CANARY, OTHERS, House, housed
from tests.postgres import Postgres

EXAMPLES = int(os.environ.get("PUBLISHER_TEST_FUZZ", "1"))
QUICK = EXAMPLES < 20
LEFT_OUT = (
    # A body that fits its schema may still name a post that is none, a time that is past, or a
    # text that is too long for its channel.
    "positive_data_acceptance",
    # They follow links, which nothing here declares.
    "use_after_free",
    "ensure_resource_availability",
    "object_level_authorization",
)


@dataclass
class Watch:
    """Stands before the application and reads every answer."""

    inner: ASGIApp
    statuses: Counter[int] = field(default_factory=Counter)
    leaks: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)

    def forget(self) -> None:
        """What was asked before: by the other workspace's own people, too."""
        self.leaks.clear()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        where = f"{scope.get('method')} {scope.get('path')}"

        async def reading(message: Message) -> None:
            if message["type"] == "http.response.start":
                self.statuses[message["status"]] += 1
                if message["status"] >= 500:
                    self.broken.append(where)
            elif CANARY.encode() in message.get("body", b""):
                self.leaks.append(where)
            await send(message)

        await self.inner(scope, receive, reading)


@pytest.fixture(scope="module")
def watched(pg: Postgres) -> Iterator[tuple[House, Watch]]:
    watches: list[Watch] = []

    def wrap(app: Any) -> Watch:  # noqa: ANN401 - an ASGI application
        watches.append(Watch(app))
        return watches[0]

    # Half a minute that somebody asks to wait passes in half a second.
    hurried = SimpleNamespace(monotonic=lambda: time.monotonic() * 60)
    with pytest.MonkeyPatch.context() as patch, housed(pg, wrap) as house:
        patch.setattr(jobs, "time", hurried)
        yield house, watches[0]


@pytest.fixture
def schema(watched: tuple[House, Watch], tmp_path: Path) -> Path:
    """The description with ids that exist, ours and the other workspace's, among all others."""
    house, watch = watched
    theirs = house.ground.sql("SELECT id FROM channels WHERE name LIKE 'page %%' ORDER BY id")
    house.ground.sql("UPDATE channels SET name = %s WHERE id = %s", CANARY, house.others.channel_id)
    placed = [
        public_id(lane.put(state).id)
        for lane in (house.ours, house.others)
        for state in (State.SCHEDULED, State.UNKNOWN, State.FAILED, State.PUBLISHED)
    ]
    posts = [
        house.done("POST", "/posts", {"text": text}, workspace=workspace)["id"]
        for workspace, text in (("main", "ours"), (OTHERS, CANARY))
    ]
    known = {
        "job": placed,
        "channel": [row["id"] for row in theirs],
        "post": posts,
        **_people(house),
    }
    assert {*known} == {*things.MAKERS}
    document = description.document()
    for operations in document["paths"].values():
        for operation in operations.values():
            for parameter in operation.get("parameters", []):
                if parameter["in"] == "path" and parameter["name"] in known:
                    parameter.pop("example", None)
                    values = known[parameter["name"]]
                    parameter["schema"] = {"enum": values}
                    parameter["examples"] = {str(one): {"value": one} for one in values}
    file = tmp_path / "openapi.json"
    file.write_text(json.dumps(document))
    watch.forget()
    return file


def _people(house: House) -> dict[str, list[object]]:
    """People, their sessions and tokens, and pictures, of both; none that the tests go by."""
    known: dict[str, list[object]] = {"user": [], "session": [], "token": [], "sha256": []}
    for workspace, name in (("main", "spare"), (OTHERS, CANARY)):
        email = f"{house.key()}@{workspace}.example"
        body = {"email": email, "name": name, "role": "editor"}
        user = house.done("POST", "/users", body, workspace=workspace)["user"]["id"]
        known["user"].append(user)
        known["session"].append(things.signed_in(house, user))
        token = {"name": name, "scopes": ["posts.read"]}
        made = house.done("POST", "/me/tokens", token, workspace=workspace)
        known["token"].append(made["id"])
        known["sha256"].append(things.kept(house, workspace))
    return known


@pytest.mark.timeout(110 if QUICK else 7_200)
@pytest.mark.parametrize("role", Role)
def test_nothing_breaks_and_nothing_of_another_workspace_is_read(
    watched: tuple[House, Watch], schema: Path, role: Role, tmp_path: Path
) -> None:
    house, watch = watched
    before = sum(watch.statuses.values())
    # RFC 6585, section 3: what is missing is a precondition.
    config = "[checks.missing_required_header]\nexpected-statuses = [400, 401, 403, 422, 428]\n"
    (tmp_path / "schemathesis.toml").write_text(config)
    phases = "examples,coverage,fuzzing"
    if QUICK:
        phases = "examples,fuzzing" if role is Role.ADMIN else "examples"
    command = [
        *(sys.executable, "-m", "schemathesis.cli", "run", str(schema), "--url", house.url),
        *("--header", f"Authorization: {house.bearer(role)['Authorization']}"),
        *("--phases", phases, "--max-examples", str(EXAMPLES)),
        # One alone: CPython 3.11 loses count of its recursion where several threads parse source.
        *("--workers", "1"),
        *("--exclude-checks", ",".join(LEFT_OUT)),
        *("--suppress-health-check", "all", "--generation-database", "none"),
        *("--continue-on-failure", "--no-shrink", "--warnings", "off", "--no-color"),
        *("--request-timeout", "60", "--seed", "1"),
    ]
    run = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, check=False, env={**os.environ}
    )
    told = run.stdout[-6_000:] + run.stderr[-2_000:]
    # For whoever asked for the long run: shown with -rP.
    print(role, sum(watch.statuses.values()) - before, dict(watch.statuses))  # noqa: T201
    assert not watch.broken, (watch.broken[:5], told)
    assert not watch.leaks, watch.leaks[:5]
    assert sum(watch.statuses.values()) - before > len(description.document()["paths"]), told
    assert run.returncode == 0, told
