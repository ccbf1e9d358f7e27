"""Ids of another workspace, for every operation that takes one: as if there were none.

Made of the router, so that an operation, or a place in a path, that nobody thought of fails here.
"""

from __future__ import annotations

from typing import Any

import pytest

from publisher.api import application
from tests.api import things
from tests.api.conftest import OTHERS, House

OPERATIONS = sorted(
    (method, path)
    for method, path, _permission in application.operations()
    if "{" in path and not {*things.parts(path)} & {*things.SHARED}
)
NAMES = [f"{method} {path}" for method, path in OPERATIONS]


def ask(house: House, method: str, path: str, values: dict[str, Any], **how: Any) -> Any:  # noqa: ANN401 - an answer
    headers = {"If-Match": "*"} if method == "PUT" and path.endswith("/{post}") else {}
    return house.call(
        method, things.filled(path, values), things.example(method, path), headers=headers, **how
    )


def test_every_place_in_a_path_is_known() -> None:
    used = {name for _, path, _ in application.operations() for name in things.parts(path)}
    assert used == {*things.MAKERS} | {*things.SHARED}
    assert used == {*things.ABSENT}


@pytest.mark.parametrize(("method", "path"), OPERATIONS, ids=NAMES)
def test_what_is_another_workspaces_is_not_there(house: House, method: str, path: str) -> None:
    """Asked with ids of ours by an admin of the other: 404, word for word as for none at all."""
    ours = things.ours(house, path)
    before = things.everything(house)
    theirs = ask(house, method, path, ours, workspace=OTHERS)
    none = ask(house, method, path, things.ABSENT, workspace=OTHERS)
    assert (theirs.status_code, none.status_code) == (404, 404), (theirs.text, none.text)
    assert theirs.json()["code"] == none.json()["code"] == "not-found"
    said, told = theirs.json()["detail"], none.json()["detail"]
    for name in things.parts(path):
        said = said.replace(str(ours[name]), name)
        told = told.replace(str(things.ABSENT[name]), name)
    assert said == told
    assert things.everything(house) == before
    # The same request of ours finds it, whatever it comes to: so the ids were right.
    own = ask(house, method, path, ours, role=things.owner(path))
    assert own.status_code not in (401, 403, 404, 500), own.text


def test_ids_in_bodies_are_as_those_in_paths(house: House) -> None:
    """What is written, approved or scheduled cannot reach over the wall either."""
    channel = house.ours.channel_id
    sha256 = things.kept(house)
    post = house.done("POST", "/posts", {"text": "theirs"}, workspace=OTHERS)["id"]
    before = things.everything(house)
    bodies: list[tuple[str, object]] = [
        ("/posts", {"text": "x", "channels": [channel]}),
        ("/posts", {"text": "x", "media": [{"sha256": sha256}]}),
        ("/posts", {"text": "x", "variants": {str(channel): {"media": [{"sha256": sha256}]}}}),
        (f"/posts/{post}/schedule", {"places": [{"channel": channel, "at": "now"}]}),
        (f"/posts/{post}/again", {"channel": channel, "at": "now"}),
    ]
    for path, body in bodies:
        answer = house.call("POST", path, body, workspace=OTHERS)
        assert answer.status_code in (404, 409, 422), (path, body, answer.text)
        assert "page" not in answer.json()["detail"]
        assert things.everything(house) == before, (path, body)


def test_nobody_reaches_over_the_wall_by_an_account_that_both_have(house: House) -> None:
    """Who is in both workspaces keeps what they are in the other, and their password."""
    shared = {"email": "both@shared.example", "name": "Both", "role": "viewer"}
    invited = house.done("POST", "/users", shared)
    again = house.done("POST", "/users", shared | {"role": "admin"}, workspace=OTHERS)
    user = invited["user"]["id"]
    assert again["user"]["id"] == user
    assert (invited["user"]["role"], again["user"]["role"]) == ("viewer", "admin")
    assert house.done("GET", f"/users/{user}")["role"] == "viewer"
    things.signed_in(house, user)
    for verb in ("disable", "enable", "link", "sessions/end"):
        house.refused(409, "account-elsewhere", "POST", f"/users/{user}/{verb}")
    house.refused(409, "account-elsewhere", "GET", f"/users/{user}/sessions")
    house.done("PUT", f"/users/{user}/role", {"role": "editor"})
    house.done("POST", f"/users/{user}/remove")
    house.refused(404, "not-found", "GET", f"/users/{user}")
    assert house.done("GET", f"/users/{user}", workspace=OTHERS)["role"] == "admin"
    lines = house.done("GET", "/journal?limit=200", workspace=OTHERS)["lines"]
    told = [line for line in lines if line["user"] == user]
    assert {line["detail"].get("role") for line in told} - {None} == {"admin"}
    assert not [line for line in told if "main" in str(line["detail"])]
