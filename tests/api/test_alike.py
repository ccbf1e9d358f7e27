"""What is like a post, and how long it is, in every answer about one; nothing is refused for it."""

from __future__ import annotations

from publisher.editorial.people.roles import Role
from tests.api.conftest import House
from tests.api.platform import TEXT_LIMIT
from tests.api.test_posts import approved, place, written


def test_two_posts_with_one_text(house: House) -> None:
    text = f"The library opens at nine on Saturday, as notice {house.key()} says."
    first = approved(house, text=text)
    house.done("POST", f"{first['url']}/schedule", {"places": [place(house)]}, role=Role.EDITOR)
    second = written(house, text=text)
    (note,) = second["problems"]
    assert (note["code"], note["field"], note["channel"], note["must_be_fixed"]) == (
        "alike-twin", "text", house.ours.channel_id, False,
    )  # fmt: skip
    assert note["detail"].startswith("The same text as a post scheduled here for ")
    asked = house.done("POST", f"{second['url']}/submit", {"version": 1}, role=Role.EDITOR)
    assert asked["post"]["problems"] == [note]
    done = house.done("POST", f"{second['url']}/approve", {"version": 1}, role=Role.APPROVER)
    assert done["post"]["problems"] == [note]
    body = {"places": [place(house, 2)]}
    made = house.done("POST", f"{second['url']}/schedule", body, role=Role.EDITOR)
    assert [job["state"] for job in made["jobs"]] == ["scheduled"]
    assert [one["code"] for one in made["problems"]] == ["alike-twin"]
    (length,) = second["lengths"]
    assert length == {
        "channel": house.ours.channel_id, "used": len(text), "limit": TEXT_LIMIT,
        "excess_at": None,
    }  # fmt: skip


def test_a_text_that_is_too_long_says_where(house: House) -> None:
    (length,) = written(house, text="x" * (TEXT_LIMIT + 18))["lengths"]
    assert (length["used"], length["excess_at"]) == (TEXT_LIMIT + 18, TEXT_LIMIT)
