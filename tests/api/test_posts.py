"""Posts over HTTP: written, edited by two, approved, scheduled, and what is refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from publisher.editorial.people.roles import Role
from publisher.engine import ledger
from publisher.engine.job import of_public_id
from tests.api.conftest import OTHERS, House
from tests.api.platform import TEXT_LIMIT
from tests.engine.ground import published


def written(house: House, **parts: Any) -> dict[str, Any]:  # noqa: ANN401 - a body's parts
    body = {"text": f"Text {house.key()}", "channels": [house.ours.channel_id], **parts}
    told: dict[str, Any] = house.done("POST", "/posts", body, role=Role.EDITOR)
    return told


def approved(house: House, **parts: Any) -> dict[str, Any]:  # noqa: ANN401 - a body's parts
    post = written(house, **parts)
    house.done("POST", f"{post['url']}/approve", {"version": 1}, role=Role.APPROVER)
    return post


def place(house: House, hours: float = 1) -> dict[str, Any]:
    at = datetime.now(UTC) + timedelta(hours=hours)
    return {"channel": house.ours.channel_id, "at": at.isoformat()}


def test_a_post_is_written_approved_and_scheduled(house: House) -> None:
    reference = f"cms {house.key()}"
    post = written(house, external_reference=reference, labels=["weekly"])
    at = post["url"]
    assert (post["status"], post["newest_version"], post["approved"]) == ("draft", 1, False)
    assert (post["labels"], post["problems"]) == (["weekly"], [])
    listed = house.done("GET", f"/posts?external_reference={reference}")["posts"]
    assert [one["id"] for one in listed] == [post["id"]]
    problem = house.refused(
        409, "needs-approval", "POST", f"{at}/schedule", {"places": [place(house)]}
    )
    assert problem["on_page"] == "no"
    asked = house.done("POST", f"{at}/submit", {"version": 1}, role=Role.EDITOR)
    assert asked["post"]["status"] == "in review"
    house.refused(403, "not-allowed", "POST", f"{at}/approve", {"version": 1}, role=Role.EDITOR)
    done = house.done("POST", f"{at}/approve", {"version": 1}, role=Role.APPROVER)
    assert (done["new"], done["post"]["status"]) == (True, "approved")
    made = house.done("POST", f"{at}/schedule", {"places": [place(house)]}, role=Role.EDITOR)
    (job,) = made["jobs"]
    assert (job["state"], job["external_reference"], job["post_id"]) == (
        "scheduled", reference, post["id"],
    )  # fmt: skip
    frozen = house.done("GET", job["url"])["content"]
    versions = house.done("GET", f"{at}/versions")["versions"]
    assert (frozen["text"], frozen["version"]) == (post["words"]["text"], 1)
    assert [one["approved_by"] for one in versions] == ["approver of main"]
    again = house.refused(
        409, "open-job-exists", "POST", f"{at}/schedule", {"places": [place(house, 2)]}
    )
    assert again["job"] == job["id"]
    found = house.done("GET", f"/jobs?external_reference={reference}")["jobs"]
    assert [one["id"] for one in found] == [job["id"]]


def test_twenty_posts_with_one_key_are_one(house: House) -> None:
    body, key = {"text": "once"}, house.key()
    answers = [house.call("POST", "/posts", body, key=key) for _ in range(3)]
    assert len({answer.text for answer in answers}) == 1
    assert len({answer.headers["etag"] for answer in answers}) == 1


def test_the_second_of_two_editors_sees_both_texts(house: House) -> None:
    post = written(house)
    etag = house.call("GET", post["url"]).headers["etag"]
    first = {"If-Match": etag}
    saved = house.call("PUT", post["url"], {"text": "mine"}, headers=first)
    assert (saved.status_code, saved.json()["post"]["newest_version"]) == (200, 2)
    assert saved.headers["etag"] != etag
    problem = house.refused(
        412, "edited-meanwhile", "PUT", post["url"], {"text": "yours"}, headers=first
    )
    assert problem["current"]["words"]["text"] == "mine"
    assert problem["current"]["etag"] == saved.headers["etag"]
    assert problem["yours"]["words"]["text"] == "yours"
    assert problem["detail"].startswith("admin of main saved this post at ")
    house.refused(428, "precondition-missing", "PUT", post["url"], {"text": "no"})
    assert house.done("GET", post["url"])["words"]["text"] == "mine"
    newer = {"If-Match": saved.headers["etag"]}
    assert house.call("PUT", post["url"], {"text": "both"}, headers=newer).is_success


def test_an_edit_after_approval_holds_what_is_scheduled(house: House) -> None:
    post = approved(house)
    made = house.done("POST", f"{post['url']}/schedule", {"places": [place(house)]})
    job = made["jobs"][0]
    edited = house.done("PUT", post["url"], {"text": "changed"}, headers={"If-Match": "*"})
    assert [(one["job"], one["act"]) for one in edited["changes"]] == [(job["id"], "held")]
    assert house.done("GET", job["url"])["hold_reason"] == "changed after approval"
    old = house.refused(409, "version-is-old", "POST", f"{post['url']}/approve", {"version": 1})
    assert "version 2" in old["detail"]
    done = house.done("POST", f"{post['url']}/approve", {"version": 2})
    assert {one["act"] for one in done["changes"]} <= {"replaced", "released"}
    told = house.done("GET", job["url"])
    assert (told["content"]["text"], told["hold_reason"]) == ("changed", None)


def test_variants_are_a_channels_own(house: House) -> None:
    number = str(house.ours.channel_id)
    post = written(house, text="x" * (TEXT_LIMIT + 18))
    (found,) = post["problems"]
    assert (found["code"], found["field"], found["must_be_fixed"]) == (
        "text-too-long",
        "text",
        True,
    )
    refused = house.refused(422, "text-too-long", "POST", f"{post['url']}/approve", {"version": 1})
    assert refused["errors"][0]["field"] == "text"
    body = {"text": post["words"]["text"], "variants": {number: {"text": "short"}}}
    mended = house.done("PUT", post["url"], body, headers={"If-Match": "*"})["post"]
    assert mended["problems"] == []
    (variant,) = mended["words"]["variants"]
    assert (variant["channel"], variant["own"], variant["text"]) == (int(number), ["text"], "short")


def test_a_reference_is_unique_in_its_workspace(house: House) -> None:
    reference = house.key()
    written(house, external_reference=reference)
    problem = house.refused(
        409, "ref-taken", "POST", "/posts", {"text": "x", "external_reference": reference}
    )
    assert problem["field"] == "ref"
    body = {"text": "x", "external_reference": reference}
    assert house.done("POST", "/posts", body, workspace=OTHERS)["external_reference"] == reference


def test_a_post_whose_number_is_anothers_reference_is_approved_itself(house: House) -> None:
    mine = written(house)
    decoy = written(house, external_reference=str(mine["id"]))
    house.done("POST", f"{mine['url']}/approve", {"version": 1})
    assert house.done("GET", mine["url"])["approved"]
    assert not house.done("GET", decoy["url"])["approved"]


def test_what_another_workspace_has_cannot_be_named(house: House) -> None:
    theirs = {"text": "x", "channels": [house.others.channel_id]}
    house.refused(404, "not-found", "POST", "/posts", theirs)
    post = approved(house)
    there = {"places": [place(house) | {"channel": house.others.channel_id}]}
    answer = house.call("POST", f"{post['url']}/schedule", there)
    assert answer.status_code in (404, 409, 422)
    assert house.done("GET", post["url"])["jobs"] == []


def test_a_time_is_told_at_its_place(house: House) -> None:
    post = approved(house)
    gap = {"channel": house.ours.channel_id, "at": "2027-03-14 02:30", "zone": "America/New_York"}
    problem = house.refused(
        422, "time-not-real", "POST", f"{post['url']}/schedule", {"places": [gap]}
    )
    assert problem["field"] == "places.0.at"


def test_what_is_live_is_published_again_only_on_purpose(house: House) -> None:
    post = approved(house)
    made = house.done("POST", f"{post['url']}/schedule", {"places": [place(house)]})
    job_id = of_public_id(made["jobs"][0]["id"])
    assert job_id is not None
    house.refused(409, "open-job-exists", "POST", f"{post['url']}/again", place(house, 5))
    claimed = house.ours.claimed(job_id)
    house.ours.begin(claimed)
    unknown = house.refused(409, "sending-now", "POST", f"{post['url']}/again", place(house, 5))
    assert (unknown["on_page"], unknown["safe_to_repeat"]) == ("maybe", False)


def test_trash_and_labels_and_comments(house: House) -> None:
    post = written(house)
    at = post["url"]
    assert house.done("POST", f"{at}/labels", {"add": ["b", "a"]})["post"]["labels"] == ["a", "b"]
    assert not house.done("POST", f"{at}/labels", {"add": ["a"]})["new"]
    assert house.done("POST", f"{at}/assignees", {"add": ["desk"]})["post"]["assignees"] == ["desk"]
    house.refused(422, "comment-missing", "POST", f"{at}/comments", {"comment": " "})
    house.done("POST", f"{at}/comments", {"comment": "Is it right?"})
    assert house.done("POST", f"{at}/trash")["post"]["status"] == "in the trash"
    house.refused(409, "in-trash", "POST", f"{at}/submit")
    back = house.done("POST", f"{at}/restore")["post"]
    assert back["status"] == "draft"
    told = [event["event"] for event in back["events"]]
    assert told[-3:] == ["commented", "trashed", "restored"]


def test_pages_of_posts_hold_each_once(house: House) -> None:
    made = [written(house)["id"] for _ in range(5)]
    first = house.done("GET", "/posts?limit=3")
    written(house)
    rest = house.done("GET", f"/posts?limit=2&cursor={first['next_cursor']}")
    seen = [one["id"] for one in first["posts"] + rest["posts"]]
    assert seen == made[::-1]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"text": "x", "variants": {"0": {}}}, "variants"),
        ({"text": "x", "media": [{"sha256": "zz"}]}, "media.0.sha256"),
        ({"text": "x", "channels": ["7"]}, "channels.0"),
        ({"text": "x", "txt": "y"}, "txt"),
        ({}, "text"),
    ],
)
def test_bodies_of_posts_are_strict(house: House, body: dict[str, Any], field: str) -> None:
    problem = house.refused(422, "request-invalid", "POST", "/posts", body)
    assert problem["field"].startswith(field)


def test_a_picture_that_is_not_kept_is_named(house: House) -> None:
    body = {"text": "x", "media": [{"sha256": "0" * 64}]}
    problem = house.refused(422, "media-missing", "POST", "/posts", body)
    assert problem["field"] == "media.1"


def test_a_live_post_is_deleted_by_a_job_of_its_own(house: House) -> None:
    post = approved(house)
    made = house.done("POST", f"{post['url']}/schedule", {"places": [place(house)]})
    body = {"channel": house.ours.channel_id, "reason": "wrong price"}
    delete = f"{post['url']}/delete"
    house.refused(409, "not-live", "POST", delete, body)
    job = of_public_id(made["jobs"][0]["id"])
    house.ours.ground.sql("UPDATE jobs SET run_at = now(), due_at = now() WHERE id = %s", job)
    _sent(house, int(job or 0), "501")
    house.refused(403, "not-allowed", "POST", delete, body, role=Role.EDITOR)
    house.refused(403, "not-allowed", "POST", delete, body, role=Role.OPERATOR)
    house.refused(404, "not-found", "POST", delete, body, workspace=OTHERS)
    key = house.key()
    asked = house.done("POST", delete, body, role=Role.APPROVER, key=key)
    assert asked == house.done("POST", delete, body, role=Role.APPROVER, key=key)
    removal, removed = asked["job"], asked["removes"]
    assert (removal["kind"], removal["removes"]) == ("delete", removed["id"])
    assert (removal["on_page"], removed["on_page"], removed["deleted_at"]) == ("yes", "yes", None)
    twice = house.refused(409, "open-job-exists", "POST", delete, body)
    assert removal["id"] in twice["detail"]
    _sent(house, int(of_public_id(removal["id"]) or 0), "removed:1")
    told = house.done("GET", post["url"])
    (was,), (gone,) = told["jobs"], told["deletions"]
    assert (was["state"], was["on_page"], was["label"]) == (
        "published", "no", "Was live, then deleted",
    )  # fmt: skip
    assert was["deleted_at"] == gone["settled_at"]
    assert (gone["state"], gone["on_page"], gone["label"]) == ("published", "no", "Deleted")
    assert told["events"][-1]["event"] == "deletion_asked"
    house.refused(409, "already-deleted", "POST", delete, body)
    named = {**body, "job": was["id"]}
    house.refused(409, "already-deleted", "POST", delete, named)
    elsewhere = {**body, "job": removal["id"]}
    house.refused(409, "not-live", "POST", delete, elsewhere)


def test_a_platform_that_deletes_nothing_says_so_at_once(house: House) -> None:
    post = approved(house)
    made = house.done("POST", f"{post['url']}/schedule", {"places": [place(house)]})
    job = of_public_id(made["jobs"][0]["id"])
    house.ours.ground.sql("UPDATE jobs SET run_at = now(), due_at = now() WHERE id = %s", job)
    _sent(house, int(job or 0), "502")
    house.wall.can_delete = False
    try:
        problem = house.refused(
            409, "cannot-delete", "POST", f"{post['url']}/delete",
            {"channel": house.ours.channel_id},
        )  # fmt: skip
    finally:
        house.wall.can_delete = True
    assert "Wall deletes nothing for us" in problem["detail"]


def _sent(house: House, job: int, remote_id: str) -> None:
    """A worker has sent this very job, and it is through."""
    ground = house.ground
    ground.sql("UPDATE jobs SET queue = %s WHERE id = %s", f"only {job}", job)
    (claimed,) = house.ours.claim(queues=[f"only {job}"])
    held = [(claimed.id, claimed.token)]
    assert ledger.begin_send(ground.conn, held, lease=60.0, window=30.0, budget=30.0)
    assert house.ours.end(claimed, published(remote_id)).done
