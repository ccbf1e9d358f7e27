"""Graph's closed list: which row decides, for uploads too, and how long a limit rests a Page."""

from __future__ import annotations

import json

import pytest

from publisher.engine.outcome import Answer, Deferred
from publisher.graph.complaint import Complaint
from publisher.graph.refusals import Endpoint, Meaning, classify, row_for, step_failure
from publisher.transport import Reply

FEED, VIDEOS, PHOTOS = Endpoint.FEED, Endpoint.VIDEOS, Endpoint.PHOTOS


def reply(code: int, subcode: int | None = None, words: str = "words", **more: object) -> Reply:
    error = {"message": words, "code": code, **more}
    if subcode is not None:
        error["error_subcode"] = subcode
    body = json.dumps({"error": error}).encode()
    return Reply(400, {}, body, Answer(400, {}, body.decode()))


# code, subcode, words: the row on /feed, on /photos (an upload), on /videos.
ROWS = [
    (1, None, "", None, None, None),
    (2, 1366046, "", None, None, None),
    (100, 33, "", None, None, None),
    (190, 33, "", "graph/token", "graph/token", "graph/token"),
    (100, None, "", "graph/100", "graph/100-photo", None),
    (506, None, "", "graph/506", None, "graph/506"),
    (100, 1366051, "", "graph/1366051", "graph/100-photo", "graph/1366051"),
    (9, 1366051, "", "graph/1366051", None, "graph/1366051"),
    (368, None, "already posted", "graph/368-already", "graph/368", "graph/368-already"),
    (368, None, "already been posted", "graph/368-already", "graph/368", "graph/368-already"),
    (368, None, "a duplicate", "graph/368-already", "graph/368", "graph/368-already"),
    (9, None, "already posted", None, None, None),
    (9, 1390008, "", "graph/1390008", "graph/1390008", "graph/1390008"),
    (4, None, "", "graph/limit-app", "graph/limit-app", "graph/limit-app"),
    (341, None, "", "graph/limit-app", "graph/limit-app", "graph/limit-app"),
    (17, None, "", "graph/limit-user", "graph/limit-user", "graph/limit-user"),
    (32, None, "", "graph/limit-page", "graph/limit-page", "graph/limit-page"),
    (80001, None, "", "graph/limit-page", "graph/limit-page", "graph/limit-page"),
    (613, None, "", "graph/limit-custom", "graph/limit-custom", "graph/limit-custom"),
    (9, 1404102, "", "graph/standards", "graph/standards", "graph/standards"),
    (9, 1346003, "", "graph/standards", "graph/standards", "graph/standards"),
    (9, 1366046, "", "graph/1366046", "graph/1366046", None),
    (9, 1609005, "", "graph/link", None, None),
    (9, 1609008, "", "graph/link", None, None),
    (9, 2061006, "", "graph/link", None, None),
    (9, 1363022, "", None, None, "graph/video-size"),
    (9, 1363023, "", None, None, "graph/video-size"),
    (9, 1404078, "", "graph/1404078", "graph/1404078", "graph/1404078"),
    (9, 4854002, "", "graph/4854002", "graph/4854002", "graph/4854002"),
    (9, 1363042, "", None, None, "graph/1363042"),
    (102, None, "", "graph/token", "graph/token", "graph/token"),
    (190, 7, "", "graph/token", "graph/token", "graph/token"),
    (3, None, "", "graph/permission", "graph/permission", "graph/permission"),
    (10, None, "", "graph/permission", "graph/permission", "graph/permission"),
    (200, None, "", "graph/permission", "graph/permission", "graph/permission"),
    (299, None, "", "graph/permission", "graph/permission", "graph/permission"),
    (300, None, "", None, None, None),
    (368, None, "temporarily blocked", *["graph/368-blocked"] * 3),
    (368, None, "deemed abusive", *["graph/368-blocked"] * 3),
    (368, None, "otherwise disallowed", *["graph/368-blocked"] * 3),
    (368, None, "bị chặn", *["graph/368"] * 3),
    (9, None, "temporarily blocked", None, None, None),
]


@pytest.mark.parametrize(("code", "subcode", "words", "feed", "photos", "videos"), ROWS)
def test_which_row_decides(
    code: int,
    subcode: int | None,
    words: str,
    feed: str | None,
    photos: str | None,
    videos: str | None,
) -> None:
    complaint = Complaint.read(reply(code, subcode, words))
    assert complaint is not None
    for endpoint, name in ((FEED, feed), (PHOTOS, photos), (VIDEOS, videos)):
        row = row_for(endpoint, complaint)
        assert (None if row is None else row.name) == name, endpoint
        if row is not None:
            assert row.meaning is not Meaning.DOUBT


WAITS = [
    (9, 1390008, "", 900.0),
    (4, None, "", 60.0),
    (17, None, "", 60.0),
    (32, None, "", 60.0),
    (613, None, "", 60.0),
    (368, None, "deemed abusive", 3600.0),
    (368, None, "bị chặn", 3600.0),
]


@pytest.mark.parametrize(("code", "subcode", "words", "seconds"), WAITS)
def test_a_limit_rests_the_page_for_as_long_as_its_row_says(
    code: int, subcode: int | None, words: str, seconds: float
) -> None:
    outcome = classify(FEED, reply(code, subcode, words), 0)
    assert isinstance(outcome, Deferred)
    assert (outcome.retry_after, outcome.rest_channel) == (seconds, True)


@pytest.mark.parametrize(
    ("code", "subcode", "words", "is_row"),
    [
        *[(code, None, "", True) for code in (4, 341, 17, 32, 80001, 613)],
        *[(code, None, "deemed abusive", False) for code in (100, 102, 190, 3, 10, 368, 506)],
        *[(9, subcode, "", False) for subcode in (1390008, 1404102, 1366046, 1609005, 1404078)],
        *[(9, subcode, "", False) for subcode in (4854002, 1366051)],
    ],
)
def test_only_a_limit_holds_although_graph_calls_it_transient(
    code: int, subcode: int | None, words: str, *, is_row: bool
) -> None:
    outcome = classify(FEED, reply(code, subcode, words, is_transient=True), 0)
    assert (outcome is not None) is is_row


def test_an_upload_that_is_refused_says_whose_fault_it_is() -> None:
    assert type(step_failure(PHOTOS, reply(100))).__name__ == "Rejected"
    assert type(step_failure(PHOTOS, reply(190))).__name__ == "Unauthorized"
    assert type(step_failure(PHOTOS, reply(1))).__name__ == "Deferred"
