"""Doubts over HTTP: the evidence, the desk, and each decision with its locks."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from publisher.editorial.people.roles import Permission, Role
from publisher.engine import ledger
from publisher.engine.content import Post
from publisher.engine.evidence import Candidate, Inconclusive
from publisher.engine.job import State, public_id
from tests.api.conftest import CANARY, House
from tests.engine.ground import Placed

S = State


def doubt(house: House) -> tuple[Placed, str]:
    job = house.ours.put(S.UNKNOWN)
    return job, f"/unknowns/{public_id(job.id)}"


def candidate(house: House, job: Placed, remote_id: str) -> Candidate:
    text = house.ground.one("SELECT content FROM job_contents WHERE job_id = %s", job.id)
    link = f"https://e.org/{remote_id}"
    return Candidate(remote_id, Post.from_json(text).text, datetime.now(UTC), link)


def long_ago(house: House, job: Placed) -> None:
    """The send's hand came back long ago, so that nothing of it can arrive."""
    house.ground.sql("ALTER TABLE attempts DISABLE TRIGGER attempts_frozen")
    house.ground.sql(
        "UPDATE attempts SET begun_at = begun_at - interval '1 hour',"
        " settled_at = settled_at - interval '1 hour' WHERE job_id = %s",
        job.id,
    )
    house.ground.sql("ALTER TABLE attempts ENABLE TRIGGER attempts_frozen")


def looked(house: House, job: Placed, *found: Candidate) -> None:
    evidence = Inconclusive("two could be it", found)
    ledger.record_look(
        house.ground.conn,
        job_id=job.id,
        attempt=1,
        token=job.token,
        by="reconciler",
        took=0.1,
        evidence={"kind": "Inconclusive", **asdict(evidence)},
    )


def decide(house: House, at: str, **decision: Any) -> Any:  # noqa: ANN401 - JSON
    return house.done("POST", f"{at}/resolve", {"reason": "I looked", **decision})


def channel(house: House) -> str:
    return str(house.ground.one("SELECT name FROM channels WHERE id = %s", house.ours.channel_id))


def test_a_doubt_is_listed_and_shown_with_its_evidence(house: House) -> None:
    job, at = doubt(house)
    looked(house, job, candidate(house, job, "501"), candidate(house, job, "502"))
    listed = house.done("GET", "/unknowns", role=Role.VIEWER)["unknowns"]
    (mine,) = [one for one in listed if one["id"] == public_id(job.id)]
    assert (mine["candidates"], mine["can_look"]) == (["501", "502"], True)
    shown = house.done("GET", at, role=Role.VIEWER)
    assert [one["remote_id"] for one in shown["candidates"]] == ["501", "502"]
    assert (shown["attempt"], shown["latest_attempt"]) == (1, 1)
    assert shown["locked"] is not None
    assert shown["job"]["on_page"] == "maybe"


def test_what_is_no_doubt_says_what_it_is(house: House) -> None:
    job = house.ours.put(S.PUBLISHED)
    problem = house.refused(409, "already-decided", "GET", f"/unknowns/{public_id(job.id)}")
    assert (problem["on_page"], problem["safe_to_repeat"]) == ("yes", False)


def test_a_link_is_read_and_bound(house: House) -> None:
    job, at = doubt(house)
    house.wall.shows["601"] = candidate(house, job, "601")
    told = decide(house, at, decision="live", link="601", latest_attempt=1)
    assert (told["state"], told["remote_id"], told["was_read"]) == ("published", "601", True)
    shown = house.done("GET", f"/jobs/{public_id(job.id)}")
    assert (shown["on_page"], shown["permalink"]) == ("yes", "https://e.org/601")
    assert [line["who"] for line in shown["verdicts"]] == ["admin of main"]


def test_another_post_is_refused_and_nothing_is_recorded(house: House) -> None:
    job, at = doubt(house)
    before = house.ground.everything(job.id)
    body = {"decision": "live", "link": "nowhere", "reason": "x"}
    problem = house.refused(422, "not-this-post", "POST", f"{at}/resolve", body)
    assert problem["on_page"] == "maybe"
    old = body | {"latest_attempt": 0}
    house.refused(409, "look-is-old", "POST", f"{at}/resolve", old)
    house.wall.away = True
    try:
        house.refused(409, "cannot-be-read", "POST", f"{at}/resolve", body)
    finally:
        house.wall.away = False
    assert house.ground.everything(job.id) == before


def test_sending_again_is_locked_until_nothing_can_arrive(house: House) -> None:
    job, at = doubt(house)
    again = {"decision": "absent", "send": "now", "reason": "the page is empty"}
    house.refused(409, "sender-may-be-alive", "POST", f"{at}/resolve", again)
    long_ago(house, job)
    assert house.done("GET", at)["locked"] is None
    problem = house.refused(422, "not-confirmed", "POST", f"{at}/resolve", again)
    assert channel(house) in problem["detail"]
    told = decide(house, at, **again, confirm=channel(house))
    assert (told["state"], told["forced"]) == ("scheduled", False)


def test_against_candidates_it_needs_the_right_to_force(house: House) -> None:
    job, at = doubt(house)
    looked(house, job, candidate(house, job, "701"))
    long_ago(house, job)
    again = {"decision": "absent", "send": "now", "reason": "not ours", "confirm": channel(house)}
    scopes = ["unknowns.resolve", "unknowns.read", "jobs.read"]
    bearer = {"Authorization": f"Bearer {house.token(Role.OPERATOR, scopes=scopes)}"}
    problem = house.refused(
        403, "not-allowed", "POST", f"{at}/resolve", again, role=None, headers=bearer
    )
    assert Permission.UNKNOWNS_FORCE.value in problem["detail"]
    assert house.ground.state(job.id) is S.UNKNOWN
    assert decide(house, at, **again)["forced"] is True


@pytest.mark.parametrize(
    ("decision", "state"),
    [({"decision": "attested"}, "published"), ({"decision": "dropped"}, "dropped")],
)
def test_a_persons_word_is_recorded(house: House, decision: dict[str, str], state: str) -> None:
    job, at = doubt(house)
    assert decide(house, at, **decision)["state"] == state
    assert house.ground.state(job.id) == state


def test_it_is_given_up(house: House) -> None:
    job, at = doubt(house)
    long_ago(house, job)
    assert decide(house, at, decision="absent", send="no")["state"] == "failed"


@pytest.mark.parametrize(
    "body",
    [
        {"decision": "live", "reason": "x"},
        {"decision": "attested", "reason": "x", "link": "5"},
        {"decision": "absent", "reason": "x"},
        {"decision": "absent", "reason": "x", "send": "at"},
        {"decision": "absent", "reason": "x", "send": "now", "at": "now"},
        {"decision": "dropped", "reason": "x", "send": "no"},
        {"decision": "absent", "reason": "x", "send": "no", "useful_until": "now"},
    ],
)
def test_a_decision_that_says_two_things_is_refused(house: House, body: dict[str, str]) -> None:
    job, at = doubt(house)
    house.refused(422, "request-invalid", "POST", f"{at}/resolve", body)
    assert house.ground.state(job.id) is S.UNKNOWN


def test_a_decision_needs_a_reason(house: House) -> None:
    _job, at = doubt(house)
    body = {"decision": "attested", "reason": " "}
    house.refused(422, "reason-missing", "POST", f"{at}/resolve", body)


def test_the_desk_takes_hands_over_and_puts_off(house: House) -> None:
    job, at = doubt(house)
    assert house.done("POST", f"{at}/take", role=Role.OPERATOR)["taken_by"] == "operator of main"
    problem = house.refused(409, "taken", "POST", f"{at}/take")
    assert "operator of main" in problem["detail"]
    handed = house.done("POST", f"{at}/hand-over", {"to": "night desk", "note": "two alike"})
    assert handed["taken_by"] == "night desk"
    until = (datetime.now(UTC) + timedelta(hours=2)).isoformat()
    house.done("POST", f"{at}/snooze", {"until": until})
    past = house.refused(422, "time-past", "POST", f"{at}/snooze", {"until": "2020-01-01T00:00Z"})
    assert past["field"] == "until"
    house.done("POST", f"{at}/look")
    told = [event["event"] for event in house.ground.events(job.id)][-4:]
    assert told == ["take", "hand_over", "snooze", "look_now"]


def test_doubts_of_another_workspace_are_not_there(house: House) -> None:
    job = house.others.put(S.UNKNOWN)
    house.ground.sql("UPDATE channels SET name = %s WHERE id = %s", CANARY, house.others.channel_id)
    at = f"/unknowns/{public_id(job.id)}"
    assert CANARY not in house.call("GET", "/unknowns").text
    house.refused(404, "not-found", "GET", at)
    body = {"decision": "attested", "reason": "x"}
    house.refused(404, "not-found", "POST", f"{at}/resolve", body)
    house.refused(404, "not-found", "POST", f"{at}/take")
    assert house.ground.state(job.id) is S.UNKNOWN
