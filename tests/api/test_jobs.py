"""Jobs over HTTP: lists, pages, moves, and what is said when one cannot be moved."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from publisher.editorial.people.roles import Role
from publisher.engine.job import State, public_id
from tests.api.conftest import CANARY, House

S = State


def test_a_job_says_where_it_stands(house: House) -> None:
    job = house.ours.put(S.UNKNOWN)
    told = house.done("GET", f"/jobs/{public_id(job.id)}", role=Role.VIEWER)
    assert (told["state"], told["final"], told["on_page"]) == ("unknown", False, "maybe")
    assert told["safe_to_repeat"] is False
    assert told["may"] == [f"GET /api/v1/unknowns/{public_id(job.id)}"]
    assert [send["outcome"] for send in told["sends"]] == ["unknown"]
    assert told["content"]["text"].startswith(house.ours.queue)
    assert {line["event"] for line in told["timeline"]} >= {"claim", "begin_send", "settle"}


@pytest.mark.parametrize(
    ("state", "on_page", "final", "safe"),
    [
        (S.SCHEDULED, "no", False, False),
        (S.CLAIMED, "no", False, False),
        (S.SENDING, "maybe", False, False),
        (S.PUBLISHED, "yes", True, False),
        (S.UNKNOWN, "maybe", False, False),
        (S.FAILED, "no", True, True),
        (S.MISSED, "no", True, True),
        (S.CANCELLED, "no", True, True),
        (S.DROPPED, "maybe", True, False),
    ],
)
def test_only_what_is_certainly_not_there_is_safe_to_repeat(
    house: House, state: State, on_page: str, *, final: bool, safe: bool
) -> None:
    job = house.ours.put(state)
    told = house.done("GET", f"/jobs/{public_id(job.id)}")
    got = (told["on_page"], told["final"], told["safe_to_repeat"])
    assert got == (on_page, final, safe)


def test_pages_of_a_list_hold_each_job_once(house: House) -> None:
    made = [house.ours.put(S.SCHEDULED, queue="pages").id for _ in range(7)]
    seen: list[str] = []
    cursor = ""
    for _ in range(3):
        more = f"&cursor={cursor}" if cursor else ""
        page = house.done("GET", f"/jobs?queue=pages&limit=3{more}")
        seen += [job["id"] for job in page["jobs"]]
        cursor = page["next_cursor"]
        # What is added meanwhile moves nothing.
        house.ours.put(S.SCHEDULED, queue="pages")
    assert cursor is None
    assert seen == [public_id(job_id) for job_id in reversed(made)]


def test_lists_are_narrowed_by_state_channel_and_time(house: House) -> None:
    queue = "narrow"
    soon = datetime.now(UTC) + timedelta(hours=1)
    early = house.ours.put(S.SCHEDULED, queue=queue, run_at=soon)
    late = house.ours.put(S.SCHEDULED, queue=queue, run_at=soon + timedelta(hours=1))
    gone = house.ours.put(S.CANCELLED)

    def ids(query: str) -> set[str]:
        return {job["id"] for job in house.done("GET", f"/jobs?{query}")["jobs"]}

    both = {public_id(early.id), public_id(late.id)}
    border = (soon + timedelta(minutes=30)).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert ids(f"queue={queue}") == both
    assert ids(f"queue={queue}&due_until={border}") == {public_id(early.id)}
    assert ids(f"queue={queue}&due_from={border}") == {public_id(late.id)}
    assert public_id(gone.id) in ids(f"state=cancelled&channel={house.ours.channel_id}")
    assert not ids(f"queue={queue}&state=cancelled&state=missed")
    key = house.done("GET", f"/jobs/{public_id(early.id)}")["key"]
    assert ids(f"key={key}") == {public_id(early.id)}


def test_a_filter_that_is_misspelt_is_refused_and_lists_nothing(house: House) -> None:
    problem = house.refused(422, "request-invalid", "GET", "/jobs?stat=failed")
    assert problem["field"] == "stat"
    assert house.refused(422, "request-invalid", "GET", "/jobs?cursor=zzz")["field"] == "cursor"
    local = "/jobs?due_from=2026-12-07T09:00:00"
    assert house.refused(422, "request-invalid", "GET", local)["field"] == "due_from"


def test_jobs_are_moved_and_the_journal_says_by_whom(house: House) -> None:
    job = house.ours.put(S.SCHEDULED)
    at = f"/jobs/{public_id(job.id)}"
    assert house.done("POST", f"{at}/hold", {"reason": "a check"})["job"]["hold_reason"]
    assert house.done("POST", f"{at}/release")["job"]["hold_reason"] is None
    soon = (datetime.now(UTC) + timedelta(hours=3)).replace(microsecond=0)
    moved = house.done("POST", f"{at}/reschedule", {"at": soon.isoformat()})
    assert moved["job"]["due_at"] == soon.strftime("%Y-%m-%dT%H:%M:%S.000000Z")
    assert house.done("POST", f"{at}/cancel", role=Role.OPERATOR)["job"]["state"] == "cancelled"
    assert house.done("POST", f"{at}/restore")["was"] == "cancelled"
    told = [(event["event"], event["who"]) for event in house.ground.events(job.id)]
    assert told == [
        ("hold", "admin of main"),
        ("release_hold", "admin of main"),
        ("reschedule", "admin of main"),
        ("cancel", "operator of main"),
        ("restore", "admin of main"),
    ]


def test_what_failed_is_requeued(house: House) -> None:
    job = house.ours.put(S.FAILED)
    told = house.done("POST", f"/jobs/{public_id(job.id)}/requeue")
    assert (told["was"], told["job"]["state"]) == ("failed", "scheduled")


@pytest.mark.parametrize(
    ("state", "verb", "code", "on_page"),
    [
        (S.UNKNOWN, "requeue", "unknown-not-retryable", "maybe"),
        (S.UNKNOWN, "cancel", "unknown-not-retryable", "maybe"),
        (S.SENDING, "cancel", "sending-now", "maybe"),
        (S.PUBLISHED, "cancel", "already-live", "yes"),
        (S.SCHEDULED, "release", "not-held", "no"),
    ],
)
def test_a_refusal_says_whether_it_is_on_the_page(
    house: House, state: State, verb: str, code: str, on_page: str
) -> None:
    job = house.ours.put(state)
    before = house.ground.everything(job.id)
    problem = house.refused(409, code, "POST", f"/jobs/{public_id(job.id)}/{verb}")
    assert (problem["on_page"], problem["safe_to_repeat"]) == (on_page, False)
    assert problem["job"] == public_id(job.id)
    assert problem["type"] == f"/api/v1/errors/{code}"
    assert house.ground.everything(job.id) == before


def test_a_time_that_is_none_is_told_at_its_field(house: House) -> None:
    job = house.ours.put(S.SCHEDULED)
    at = f"/jobs/{public_id(job.id)}/reschedule"
    gap = {"at": "2027-03-14 02:30", "zone": "America/New_York"}
    problem = house.refused(422, "time-not-real", "POST", at, gap)
    assert problem["field"] == "at"
    assert "Choose 03:30 or 01:30." in problem["detail"]
    nowhere = {"at": "2027-03-14 02:30", "zone": "Asia/Ho_Chi_Min"}
    assert house.refused(422, "zone-unknown", "POST", at, nowhere)["field"] == "zone"
    assert house.refused(422, "zone-missing", "POST", at, {"at": "2027-03-14 02:30"})


def test_a_wait_ends_with_the_job_or_with_its_time(house: House) -> None:
    settled = house.ours.put(S.PUBLISHED)
    told = house.done("POST", f"/jobs/{public_id(settled.id)}/wait", role=Role.VIEWER)
    assert (told["settled"], told["job"]["state"]) == (True, "published")
    waiting = house.ours.put(S.SCHEDULED)
    told = house.done("POST", f"/jobs/{public_id(waiting.id)}/wait", {"seconds": 0})
    assert (told["settled"], told["job"]["state"]) == (False, "scheduled")


def test_jobs_of_another_workspace_are_not_there(house: House) -> None:
    content = house.others.put(S.SCHEDULED).id
    house.ground.sql("UPDATE channels SET name = %s WHERE id = %s", CANARY, house.others.channel_id)
    name = public_id(content)
    theirs = house.refused(404, "not-found", "GET", f"/jobs/{name}")
    none = house.refused(404, "not-found", "GET", "/jobs/ffffffffff")
    assert theirs["detail"].replace(name, "") == none["detail"].replace("ffffffffff", "")
    for verb in ("cancel", "hold", "release", "requeue", "restore", "wait"):
        house.refused(404, "not-found", "POST", f"/jobs/{name}/{verb}")
    assert CANARY not in house.call("GET", "/jobs?limit=200").text
    assert house.ground.state(content) is S.SCHEDULED
