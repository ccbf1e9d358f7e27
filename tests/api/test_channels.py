"""Channels, workers and the deployment over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from publisher.editorial.people.roles import Role
from tests.api.conftest import CANARY, OTHERS, House

SECRET = "s3cret-token-of-the-platform"


def added(house: House, **parts: object) -> dict[str, object]:
    name = house.key()
    body = {"platform": "fake", "name": f"c {name}", "remote_id": name, "token": SECRET, **parts}
    told: dict[str, object] = house.done("POST", "/channels", body)
    return told


def test_a_channel_is_connected_and_its_token_never_shown(house: House) -> None:
    told = added(house)
    assert (told["state"], told["open"], told["waiting"]) == ("open", True, 0)
    assert SECRET not in house.call("GET", "/channels").text
    assert SECRET not in house.call("GET", str(told["url"])).text
    sealed = house.ground.one("SELECT sealed FROM channels WHERE id = %s", told["id"])
    assert SECRET.encode() not in bytes(sealed)
    trusted = house.ground.one("SELECT trusted FROM channels WHERE id = %s", told["id"])
    assert trusted is False
    checked = house.done("POST", f"{told['url']}/check", role=Role.VIEWER)
    assert checked["usable"] is True


def test_a_channel_is_paused_resumed_and_reconnected(house: House) -> None:
    at = str(added(house)["url"])
    paused = house.done("POST", f"{at}/pause", role=Role.OPERATOR)
    assert (paused["state"], paused["paused_by"]) == ("paused", "operator of main")
    assert house.done("POST", f"{at}/resume")["state"] == "open"
    told = house.done("POST", f"{at}/reconnect", {"token": "another"})
    assert [event["event"] for event in told["events"]] == [
        "added", "paused", "resumed", "reconnected",
    ]  # fmt: skip
    house.refused(403, "not-allowed", "POST", f"{at}/reconnect", {"token": "x"}, role=Role.OPERATOR)


def test_what_is_wrong_with_a_channel_is_told_at_its_field(house: House) -> None:
    known = added(house)
    for part, value, code, status in (
        ("name", known["name"], "name-taken", 409),
        ("remote_id", known["remote_id"], "place-taken", 409),
        ("remote_id", "a b", "remote-id-unusable", 422),
        ("base_url", "ftp://x", "url-unusable", 422),
        ("name", "77", "name-unusable", 422),
        ("token", "a b", "token-unusable", 422),
    ):
        fresh = house.key()
        body = {"platform": "fake", "name": fresh, "remote_id": fresh, "token": "t", part: value}
        problem = house.refused(status, code, "POST", "/channels", body)
        assert problem["field"] == part
        assert problem["detail"] != "t"


def test_a_page_of_another_workspace_is_not_described(house: House) -> None:
    house.ground.sql("UPDATE channels SET name = %s WHERE id = %s", CANARY, house.others.channel_id)
    theirs = house.ground.one(
        "SELECT remote_id FROM channels WHERE id = %s", house.others.channel_id
    )
    body = {"platform": "fake", "name": house.key(), "remote_id": theirs, "token": "t"}
    problem = house.refused(409, "place-taken", "POST", "/channels", body)
    assert CANARY not in str(problem)
    assert CANARY not in house.call("GET", "/channels").text
    house.refused(404, "not-found", "GET", f"/channels/{house.others.channel_id}")
    house.refused(404, "not-found", "POST", f"/channels/{house.others.channel_id}/pause")
    assert house.done("GET", f"/channels/{house.others.channel_id}", workspace=OTHERS)


@contextmanager
def only_one_workspace(house: House) -> Iterator[None]:
    """The function that counts them is given another answer: rows of the other one stay."""
    alone = "own_workspace() RETURNS integer STABLE LANGUAGE sql AS $$ SELECT {} $$"
    own = house.ground.one("SELECT pg_get_functiondef('publisher.own_workspace'::regproc)")
    house.ground.sql("CREATE OR REPLACE FUNCTION publisher." + alone.format(1))
    try:
        yield
    finally:
        house.ground.sql(own)


def test_workers_are_listed_and_stated_gone(house: House) -> None:
    run = house.ground.incarnation()
    at = f"/workers/{run}/declare-gone"
    body = {"confirm": "here", "reason": "it burnt"}
    house.refused(403, "not-allowed", "POST", at, body, role=Role.EDITOR)
    # It sends for the other workspace as well, whose doubts a statement would unlock.
    house.refused(409, "serves-others", "POST", at, body)
    with only_one_workspace(house):
        house.refused(409, "worker-alive", "POST", at, body)
    house.ground.sql(
        "UPDATE incarnations SET seen_at = seen_at - interval '1 hour' WHERE id = %s", run
    )
    (mine,) = [one for one in house.done("GET", "/workers")["workers"] if one["run"] == run]
    assert (mine["silent"], mine["host"]) == (True, "here")
    with only_one_workspace(house):
        house.refused(422, "not-confirmed", "POST", at, body | {"confirm": "there"})
        told = house.done("POST", at, body, role=Role.OPERATOR)
    assert told["unlocks_at"] > told["declared_at"]


def test_the_deployment_says_whether_it_sends(house: House) -> None:
    told = house.done("GET", "/deployment", role=Role.VIEWER)
    assert (told["key"], told["sends"]) == ("matches", True)
    assert {*told["jobs"]} == {
        "scheduled", "claimed", "sending", "published", "failed", "unknown", "missed",
        "cancelled", "dropped",
    }  # fmt: skip
