"""A channel's rules and posting times over HTTP, and when our access to it ends."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from publisher.editorial.people.roles import Role
from publisher.engine.adapter import ChannelHealth
from tests.api.conftest import House

CHANNEL = {"platform": "fake", "token": "secret-token"}


@pytest.fixture
def at(house: House) -> str:
    """The address of a channel of its own."""
    name = house.key()
    told = house.done("POST", "/channels", CHANNEL | {"name": f"c {name}", "remote_id": name})
    return str(told["url"])


def test_rules_are_shown_and_changed_one_by_one(house: House, at: str) -> None:
    before = house.done("GET", f"{at}/rules", role=Role.VIEWER)
    assert (before["spacing_seconds"], before["useful_for_seconds"]) == (0, None)
    changed = house.done(
        "PATCH", f"{at}/rules", {"spacing_seconds": 1800, "useful_for_seconds": 7200}
    )
    assert changed == {**before, "spacing_seconds": 1800, "useful_for_seconds": 7200}
    changed = house.done("PATCH", f"{at}/rules", {"backlog": "miss", "useful_for_seconds": 0})
    assert changed == {**before, "spacing_seconds": 1800, "backlog": "miss"}
    assert house.done("PATCH", f"{at}/rules", {}) == changed
    (event,) = [
        one
        for one in house.done("GET", at)["events"]
        if one["detail"].get("backlog") == [before["backlog"], "miss"]
    ]
    assert (event["event"], event["who"]) == ("rules_changed", "admin of main")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"spacing_seconds": 86_401}, "spacing_seconds"),
        ({"useful_for_seconds": 367 * 86_400}, "useful_for_seconds"),
        ({"late_after_seconds": 1}, "late_after_seconds"),
        ({"release_every_seconds": 86_401}, "release_every_seconds"),
        ({"spacing_seconds": -1}, "spacing_seconds"),
        ({"spacing_seconds": 10**12}, "spacing_seconds"),
        ({"spacing_seconds": "30m"}, "spacing_seconds"),
        ({"backlog": "drop"}, "backlog"),
    ],
)
def test_a_rule_that_cannot_be_is_refused_at_its_field(
    house: House, at: str, body: dict[str, Any], field: str
) -> None:
    before = house.done("GET", f"{at}/rules")
    answer = house.call("PATCH", f"{at}/rules", body)
    assert (answer.status_code, answer.json()["field"]) == (422, field), answer.text
    assert house.done("GET", f"{at}/rules") == before


def test_rules_are_an_admins(house: House, at: str) -> None:
    for role in (Role.VIEWER, Role.EDITOR, Role.APPROVER, Role.OPERATOR):
        house.refused(403, "not-allowed", "PATCH", f"{at}/rules", {}, role=role)
        house.refused(403, "not-allowed", "POST", f"{at}/posting-times", {}, role=role)


def test_posting_times_are_added_removed_and_the_next_are_told(house: House, at: str) -> None:
    path = f"{at}/posting-times"
    empty = house.done("GET", path, role=Role.VIEWER)
    assert empty == {"zone": "UTC", "times": [], "free": []}
    told = house.done("POST", path, {"add": ["weekdays 09:00", "sun 18:30"]})
    assert [(one["weekday"], one["at"]) for one in told["times"]] == [
        *((day, "09:00") for day in range(1, 6)), (7, "18:30"),
    ]  # fmt: skip
    assert len(told["free"]) == 5
    assert told["free"] == sorted(told["free"])
    told = house.done("POST", path, {"remove": ["weekdays 09:00"], "add": ["sun 18:30"]})
    assert [(one["weekday"], one["at"]) for one in told["times"]] == [(7, "18:30")]
    problem = house.refused(
        422, "posting-time-unreadable", "POST", path, {"add": ["mon 09:00", "someday"]}
    )
    assert problem["field"] == "add.1"
    assert house.done("GET", path)["times"] == told["times"]


def test_a_free_time_is_taken_once_and_given_back(house: House, at: str) -> None:
    path = f"{at}/posting-times"
    house.refused(409, "no-posting-times", "POST", f"{path}/take", {}, role=Role.EDITOR)
    house.done("POST", path, {"add": ["daily 09:00"]})
    first, second, *_ = house.done("GET", path)["free"]
    key = house.key()
    taken = house.done("POST", f"{path}/take", {}, key=key, role=Role.EDITOR)
    assert taken["at"] == first
    assert house.done("POST", f"{path}/take", {}, key=key, role=Role.EDITOR) == taken
    assert house.done("POST", f"{path}/take", {}, role=Role.EDITOR)["at"] == second
    later = (datetime.fromisoformat(second) + timedelta(days=7)).isoformat()
    assert house.done("POST", f"{path}/take", {"after": later})["at"] > later
    given = house.done("POST", f"{path}/give-back", {"at": first}, role=Role.EDITOR)
    assert given == {"given_back": True}
    assert house.done("GET", path)["free"][0] == first
    assert house.done("POST", f"{path}/give-back", {"at": first}) == {"given_back": False}


def test_when_the_access_ends_is_told_asked_and_noted_on_posts(
    house: House, at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert house.done("GET", at)["access_ends_at"] is None
    ends = datetime.now(UTC).replace(microsecond=0) + timedelta(days=3)
    asked = ChannelHealth(usable=True, detail="fine", expires_at=ends)
    monkeypatch.setattr(house.wall, "check", lambda _channel: asked)
    number = house.done("GET", at)["id"]
    house.done("POST", f"{at}/check", role=Role.VIEWER)
    told = datetime.fromisoformat(house.done("GET", at)["access_ends_at"])
    assert told == ends
    post = house.done("POST", "/posts", {"text": "late", "channels": [number]})
    house.done("POST", f"{post['url']}/approve", {"version": 1}, role=Role.APPROVER)
    for days, codes in ((2, []), (4, ["token-ends-before"])):
        due = (datetime.now(UTC) + timedelta(days=days)).isoformat()
        done = house.done(
            "POST", f"{post['url']}/schedule", {"places": [{"channel": number, "at": due}]}
        )
        assert [one["code"] for one in done["problems"]] == codes
        shown = house.done("GET", post["url"])["problems"]
        assert [one["code"] for one in shown] == codes
        assert not [one for one in shown if one["must_be_fixed"]]
        house.done("POST", f"/jobs/{done['jobs'][0]['id']}/cancel", {"reason": "test"})
    later = (ends + timedelta(days=60)).isoformat()
    house.done("POST", f"{at}/reconnect", {"token": "new", "access_ends_at": later})
    assert house.done("GET", at)["access_ends_at"] > later[:19]
    house.done("POST", f"{at}/reconnect", {"token": "newer"})
    assert house.done("GET", at)["access_ends_at"] is None
    for wrong in ("2027-01-01", "2027-01-01T00:00:00", "soon", 7):
        answer = house.call("POST", f"{at}/reconnect", {"token": "x", "access_ends_at": wrong})
        assert (answer.status_code, answer.json()["field"]) == (422, "access_ends_at")
