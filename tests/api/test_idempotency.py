"""One effect for one Idempotency-Key, whatever is lost, repeated or done at once."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from threading import Barrier, Event
from typing import Any

import httpx
import pytest

from publisher.editorial import idempotency
from publisher.editorial.people.roles import Role
from publisher.engine.content import Post
from publisher.engine.evidence import Candidate
from publisher.engine.job import State, public_id
from tests.api.conftest import OTHERS, House

CHANNEL = {"platform": "fake", "remote_id": "r", "token": "secret-token"}
AT_ONCE = 20


def channel(house: House) -> dict[str, str]:
    name = house.key()
    return CHANNEL | {"name": f"channel {name}", "remote_id": name}


def count(house: House, name: str) -> int:
    return int(house.ground.one("SELECT count(*) FROM channels WHERE name = %s", name))


def test_the_same_key_and_body_give_the_same_answer(house: House) -> None:
    body, key = channel(house), house.key()
    first = house.call("POST", "/channels", body, key=key)
    again = house.call("POST", "/channels", dict(reversed(body.items())), key=key)
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.text == again.text
    assert first.headers["location"] == again.headers["location"]
    assert "idempotent-replayed" not in first.headers
    assert again.headers["idempotent-replayed"] == "true"
    assert count(house, body["name"]) == 1


def test_another_body_or_address_under_the_key_is_refused(house: House) -> None:
    body, key = channel(house), house.key()
    house.done("POST", "/channels", body, key=key)
    for other in (body | {"name": "another"}, body | {"token": "other-token"}):
        problem = house.refused(422, "idempotency-key-reused", "POST", "/channels", other, key=key)
        assert problem["field"] == "Idempotency-Key"
    house.refused(
        422, "idempotency-key-reused", "POST", f"/channels/{house.ours.channel_id}/pause", key=key
    )
    assert count(house, "another") == 0
    stored = house.ground.one(
        "SELECT row_to_json(k)::text FROM idempotency_keys k WHERE key = %s", key
    )
    assert "secret-token" not in stored


def test_a_key_is_one_persons_in_one_workspace(house: House) -> None:
    key = house.key()
    for who in ({"role": Role.ADMIN}, {"role": Role.ADMIN, "workspace": OTHERS}):
        answer = house.call("POST", "/channels", channel(house), key=key, **who)
        assert answer.status_code == 201
    at = f"/channels/{house.ours.channel_id}/pause"
    assert house.call("POST", at, key=key, role=Role.OPERATOR).status_code == 200
    house.done("POST", f"/channels/{house.ours.channel_id}/resume")


def test_what_makes_something_needs_a_key(house: House) -> None:
    body = channel(house)
    problem = house.refused(400, "idempotency-key-missing", "POST", "/channels", body, key=None)
    assert problem["type"] == "/api/v1/errors/idempotency-key-missing"
    assert count(house, body["name"]) == 0
    for wrong in ("a b", "x" * 256, "é"):
        answer = house.call("POST", "/channels", body, key=None, headers={"Idempotency-Key": wrong})
        assert answer.json()["field"] == "Idempotency-Key"


def test_a_refusal_keeps_nothing_and_is_judged_anew(house: House) -> None:
    body, key = channel(house), house.key()
    house.refused(422, "token-unusable", "POST", "/channels", body | {"token": "a b"}, key=key)
    assert house.call("POST", "/channels", body, key=key).status_code == 201


def test_twenty_at_once_have_one_effect_and_equal_answers(house: House) -> None:
    body, key = channel(house), house.key()
    start = Barrier(AT_ONCE)

    def send(_number: int) -> httpx.Response:
        start.wait()
        while True:
            answer = house.call("POST", "/channels", body, key=key)
            if answer.status_code != 409:
                return answer
            problem = answer.json()
            assert (problem["code"], problem["safe_to_repeat"]) == (
                "idempotency-still-running",
                True,
            )
            assert answer.headers["retry-after"] == "1"

    with ThreadPoolExecutor(AT_ONCE) as pool:
        answers = list(pool.map(send, range(AT_ONCE)))
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.text for answer in answers}) == 1
    told = Counter(answer.headers.get("idempotent-replayed") for answer in answers)
    assert told == {None: 1, "true": AT_ONCE - 1}
    assert count(house, body["name"]) == 1


def test_while_the_first_runs_the_second_is_told_so(house: House) -> None:
    """The first has done its work and not committed: its effect is held by the test."""
    body, key = channel(house), house.key()
    person = house.ground.sql("SELECT id FROM users WHERE email = 'admin@main.example'")[0]["id"]
    with house.ground.server.superuser(house.ground.name) as conn, conn.transaction():
        conn.execute(
            "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))",
            (f"idempotency\n1\n{person}\n{key}",),
        )
        house.refused(409, "idempotency-still-running", "POST", "/channels", body, key=key)
    assert count(house, body["name"]) == 0
    assert house.call("POST", "/channels", body, key=key).status_code == 201


def test_a_crash_before_the_key_is_kept_leaves_no_effect(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    body, key = channel(house), house.key()

    def break_down(*_: object) -> None:
        raise RuntimeError

    with monkeypatch.context() as broken:
        broken.setattr(idempotency, "keep", break_down)
        problem = house.refused(500, "fault", "POST", "/channels", body, key=key)
    assert (problem["on_page"], problem["safe_to_repeat"]) == ("maybe", True)
    assert count(house, body["name"]) == 0
    assert house.call("POST", "/channels", body, key=key).status_code == 201
    assert count(house, body["name"]) == 1


def test_a_decision_that_was_lost_is_told_again(house: House) -> None:
    job = house.ours.put(State.UNKNOWN)
    at, key = f"/unknowns/{public_id(job.id)}/resolve", house.key()
    body = {"decision": "attested", "reason": "seen"}
    first = house.call("POST", at, body, key=key)
    again = house.call("POST", at, body, key=key)
    assert (first.status_code, first.text) == (200, again.text)
    assert again.headers["idempotent-replayed"] == "true"
    problem = house.refused(409, "already-decided", "POST", at, body)
    assert (problem["on_page"], problem["safe_to_repeat"]) == ("yes", False)


def test_two_that_read_the_platform_at_once_are_answered_alike(house: House) -> None:
    job = house.ours.put(State.UNKNOWN)
    at, key = f"/unknowns/{public_id(job.id)}/resolve", house.key()
    house.wall.shows["777"] = _candidate(house, job.id)
    body: dict[str, Any] = {"decision": "live", "link": "777", "reason": "seen"}
    both, seen = Barrier(2), Event()

    def together() -> None:
        if not seen.is_set():
            both.wait(20)
            seen.set()

    def send() -> httpx.Response:
        """As the answer asks for: again in a moment, while the other's holds the key."""
        while True:
            answer = house.call("POST", at, body, key=key)
            if answer.status_code != 409:
                return answer
            assert answer.json()["code"] == "idempotency-still-running"

    house.wall.while_read = together
    try:
        with ThreadPoolExecutor(2) as pool:
            answers = [one.result() for one in [pool.submit(send) for _ in range(2)]]
    finally:
        house.wall.while_read = lambda: None
    assert [answer.status_code for answer in answers] == [200, 200]
    assert answers[0].text == answers[1].text
    assert house.ground.one("SELECT count(*) FROM verdicts WHERE job_id = %s", job.id) == 1
    last = house.call("POST", at, body, key=key)
    assert (last.status_code, last.headers["idempotent-replayed"]) == (200, "true")


def _candidate(house: House, job_id: int) -> Candidate:
    text = house.ground.one("SELECT content FROM job_contents WHERE job_id = %s", job_id)
    return Candidate("777", Post.from_json(text).text, datetime.now(UTC), "https://e.org/777")
