"""What no operation takes, asked of each; hostile files; and twenty at once with one key."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from threading import Barrier
from typing import Any, Final

import httpx
import pytest

from publisher.api import application
from publisher.editorial.people.roles import Role
from tests.api import things
from tests.api.conftest import House
from tests.editorial.media.test_intake import HOSTILE

JSON: Final = {"Content-Type": "application/json"}
FILE: Final = {"Content-Type": "application/octet-stream"}
WRITES = sorted(
    (method, path)
    for method, path, _permission in application.operations()
    if things.example(method, path) is not None
)
NAMES = [f"{method} {path}" for method, path in WRITES]
AT_ONCE = 20
BAD: Final[dict[str, tuple[Callable[[str], str], int, str]]] = {
    "NUL": (lambda text: f"{text}\0", 422, "text-unstorable"),
    "half a pair": (lambda text: f"{text}\ud800", 422, "text-unstorable"),
    "the other half": (lambda text: f"\udfff{text}", 422, "text-unstorable"),
    "ten megabytes": (lambda text: text + "x" * 10_000_000, 413, "body-too-large"),
}


def spoiled(value: Any, spoil: Callable[[str], str]) -> Any:  # noqa: ANN401 - JSON
    """The same with every text in it spoiled; where it has none, one more."""
    match value:
        case str():
            return spoil(value)
        case list():
            return [spoiled(one, spoil) for one in value]
        case dict():
            return {name: spoiled(one, spoil) for name, one in value.items()}
    return value


@pytest.mark.parametrize("what", BAD)
@pytest.mark.parametrize(("method", "path"), WRITES, ids=NAMES)
def test_no_operation_takes_what_cannot_be_kept(
    house: House, method: str, path: str, what: str
) -> None:
    """Its own example with its texts spoiled: refused, and nothing is stored or changed."""
    spoil, status, code = BAD[what]
    body = spoiled(things.example(method, path), spoil)
    if json.dumps(body) == json.dumps(things.example(method, path)):
        body = {**body, "text": spoil("x")}
    before = things.everything(house)
    answer = house.call(
        method,
        things.filled(path, things.ABSENT),
        headers={**JSON, "If-Match": "*"},
        content=json.dumps(body).encode(),
    )
    problem = answer.json()
    assert (answer.status_code, problem["code"]) == (status, code), answer.text[:300]
    assert (problem["on_page"], problem["safe_to_repeat"]) == ("no", True)
    assert len(answer.content) < 2_000
    assert "\0" not in answer.text
    assert things.everything(house) == before


def test_a_body_that_unpacks_to_more_is_not_unpacked(house: House) -> None:
    """A bomb stays what it is: bytes that are no JSON."""
    content = gzip.compress(json.dumps({"text": "x" * 50_000_000}).encode())
    headers = {**JSON, "Content-Encoding": "gzip"}
    house.refused(400, "json-invalid", "POST", "/posts", content=content, headers=headers)


def test_a_text_as_long_as_a_body_may_be_is_refused_by_its_field(house: House) -> None:
    before = house.ground.one("SELECT count(*) FROM posts")
    problem = house.refused(422, "request-invalid", "POST", "/posts", {"text": "x" * 900_000})
    assert problem["field"] == "text"
    assert house.ground.one("SELECT count(*) FROM posts") == before


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_refused_with_a_reason_and_nothing_is_stored(
    house: House, name: str
) -> None:
    content, code, words = HOSTILE[name]
    before = things.everything(house)
    for kind in ("application/octet-stream", "image/png", "text/html"):
        answer = house.call("POST", "/media", content=content, headers={"Content-Type": kind})
        problem = answer.json()
        assert (answer.status_code, problem["code"], problem["field"]) == (422, code, "file")
        assert words in problem["detail"]
        assert house.call("GET", problem["type"], role=None).status_code == 200
    assert things.everything(house) == before


def _post(_house: House) -> tuple[str, dict[str, Any]]:
    return "/posts", {"text": "once"}


def _comment(house: House) -> tuple[str, dict[str, Any]]:
    post = house.done("POST", "/posts", {"text": "x"})
    return f"/posts/{post['id']}/comments", {"comment": "once"}


def _schedule(house: House) -> tuple[str, dict[str, Any]]:
    channel = house.ours.channel_id
    post = house.done("POST", "/posts", {"text": house.key(), "channels": [channel]})
    house.done("POST", f"{post['url']}/approve", {"version": 1}, role=Role.APPROVER)
    at = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    return f"{post['url']}/schedule", {"places": [{"channel": channel, "at": at}]}


def _user(house: House) -> tuple[str, dict[str, Any]]:
    name = house.key()
    return "/users", {"email": f"{name}@main.example", "name": name, "role": "viewer"}


def _token(_house: House) -> tuple[str, dict[str, Any]]:
    return "/me/tokens", {"name": "once", "scopes": ["posts.read"]}


def _time(house: House) -> tuple[str, dict[str, Any]]:
    path = f"/channels/{house.ours.channel_id}/posting-times"
    house.done("POST", path, {"add": ["daily 09:00"]})
    return f"{path}/take", {}


@pytest.mark.parametrize(
    ("make", "table"),
    [
        (_post, "posts"),
        (_comment, "post_events"),
        (_schedule, "jobs"),
        (_user, "users"),
        (_token, "api_tokens"),
        (_time, "taken_times"),
    ],
)
def test_twenty_at_once_with_one_key_have_one_effect(
    house: House, make: Callable[[House], tuple[str, dict[str, Any]]], table: str
) -> None:
    path, body = make(house)
    key, start = house.key(), Barrier(AT_ONCE)
    before = house.ground.one(f"SELECT count(*) FROM {table}")

    def send(_number: int) -> httpx.Response:
        start.wait()
        while True:
            answer = house.call("POST", path, body, key=key)
            if answer.status_code != 409:
                return answer
            assert answer.json()["code"] == "idempotency-still-running"

    with ThreadPoolExecutor(AT_ONCE) as pool:
        answers = list(pool.map(send, range(AT_ONCE)))
    assert len({answer.status_code for answer in answers}) == 1, answers
    assert answers[0].is_success, answers[0].text
    told = Counter(answer.headers.get("idempotent-replayed") for answer in answers)
    assert told == {None: 1, "true": AT_ONCE - 1}
    assert house.ground.one(f"SELECT count(*) FROM {table}") == before + 1
    repeated = {one.text for one in answers if "idempotent-replayed" in one.headers}
    assert len(repeated) == 1
