"""Graph's dialect: every row of the closed list, usage headers, error bodies, requests."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from publisher.engine.outcome import (
    Answer,
    Deferred,
    Outcome,
    Proof,
    Reason,
    Rejected,
    Unauthorized,
)
from publisher.graph.call import Node, token_is_sendable
from publisher.graph.complaint import Complaint
from publisher.graph.refusals import (
    CLOSED_LIST,
    Endpoint,
    Meaning,
    classify,
    row_for,
    step_failure,
)
from publisher.graph.usage import LONGEST_SECONDS, REST_SECONDS, seconds_to_rest, seconds_to_wait
from publisher.transport import FilePart, Reply

FEED, VIDEOS, PHOTOS = Endpoint.FEED, Endpoint.VIDEOS, Endpoint.PHOTOS
TOKEN = "EAAB-canary-token"


def reply(
    code: object = 100,
    subcode: object = None,
    message: str = "words",
    *,
    status: int = 400,
    headers: dict[str, str] | None = None,
    **more: object,
) -> Reply:
    error: dict[str, Any] = {"message": message, "type": "OAuthException", "code": code, **more}
    if subcode is not None:
        error["error_subcode"] = subcode
    body = json.dumps({"error": error}).encode()
    return Reply(status, headers or {}, body, Answer(status, headers or {}, body.decode()))


def name(outcome: Outcome | None) -> str:
    return "-" if outcome is None else type(outcome).__name__


D, R, U, N = "Deferred", "Rejected", "Unauthorized", "-"

# code, subcode, words: (/feed first, /feed later, /videos first, /videos later), validated, reason.
# Written by hand from platforms.md section 13, not from the list: moving a row must fail here.
EXPECTED: list[tuple[int, int | None, str, tuple[str, str, str, str], bool, Reason | None]] = [
    (1, None, "unknown error", (N, N, N, N), False, None),
    (1, 1366046, "photo", (N, N, N, N), False, None),
    (2, None, "service", (N, N, N, N), False, None),
    (2, 1390008, "service", (N, N, N, N), False, None),
    (100, 33, "no such object", (N, N, N, N), False, None),
    (100, None, "invalid parameter", (R, R, N, N), True, Reason.CONTENT_REFUSED),
    (100, 2061006, "bad address", (R, R, N, N), False, Reason.CONTENT_REFUSED),
    (100, 1609005, "link", (R, R, N, N), False, Reason.CONTENT_REFUSED),
    (100, 1609008, "facebook link", (R, R, N, N), False, Reason.CONTENT_REFUSED),
    (1500, 1609005, "link", (R, R, N, N), False, Reason.CONTENT_REFUSED),
    (324, 1366046, "photo", (R, R, N, N), True, Reason.MEDIA_REFUSED),
    (368, 1404102, "standards", (R, R, R, R), False, Reason.CONTENT_REFUSED),
    (368, 1346003, "standards", (R, R, R, R), False, Reason.CONTENT_REFUSED),
    (6000, 1363022, "too small", (N, N, R, R), False, Reason.MEDIA_REFUSED),
    (6000, 1363023, "too large", (N, N, R, R), False, Reason.MEDIA_REFUSED),
    (506, None, "duplicate", (R, N, R, N), False, Reason.DUPLICATE_CONTENT),
    (100, 1366051, "photos", (R, N, R, N), False, Reason.DUPLICATE_CONTENT),
    (368, None, "You've already posted this", (R, N, R, N), False, Reason.DUPLICATE_CONTENT),
    (368, 1390008, "Looks like you already posted", (R, N, R, N), False, Reason.DUPLICATE_CONTENT),
    (368, 1390008, "too fast", (D, D, D, D), False, Reason.RATE_LIMITED),
    (368, None, "temporarily blocked", (D, D, D, D), False, Reason.BLOCKED_FOR_A_WHILE),
    (368, None, "deemed abusive", (D, D, D, D), False, Reason.BLOCKED_FOR_A_WHILE),
    (368, None, "Bạn đã đăng nội dung này", (D, N, D, N), False, Reason.BLOCKED_FOR_A_WHILE),
    (4, None, "app limit", (D, D, D, D), True, Reason.RATE_LIMITED),
    (17, None, "user limit", (D, D, D, D), True, Reason.RATE_LIMITED),
    (32, None, "page limit", (D, D, D, D), True, Reason.RATE_LIMITED),
    (341, None, "app limit", (D, D, D, D), True, Reason.RATE_LIMITED),
    (613, None, "custom limit", (D, D, D, D), True, Reason.RATE_LIMITED),
    (80001, None, "page limit", (D, D, D, D), True, Reason.RATE_LIMITED),
    (80002, None, "instagram limit", (N, N, N, N), False, None),
    (102, None, "session", (U, U, U, U), True, Reason.NEEDS_RECONNECTING),
    (190, None, "token", (U, U, U, U), True, Reason.NEEDS_RECONNECTING),
    (190, 458, "app removed", (U, U, U, U), True, Reason.NEEDS_RECONNECTING),
    (190, 460, "password", (U, U, U, U), True, Reason.NEEDS_RECONNECTING),
    (190, 463, "expired", (U, U, U, U), True, Reason.NEEDS_RECONNECTING),
    (200, 4854002, "confirm identity", (U, U, U, U), True, Reason.NEEDS_RECONNECTING),
    (200, 1404078, "authorisation", (U, U, U, U), True, Reason.MISSING_PERMISSION),
    (100, 1363042, "no permission", (R, R, U, U), True, None),
    (3, None, "capability", (U, U, U, U), True, Reason.MISSING_PERMISSION),
    (10, None, "permission", (U, U, U, U), True, Reason.MISSING_PERMISSION),
    (200, None, "permission", (U, U, U, U), True, Reason.MISSING_PERMISSION),
    (299, None, "permission", (U, U, U, U), True, Reason.MISSING_PERMISSION),
    (300, None, "other", (N, N, N, N), False, None),
    (199, None, "other", (N, N, N, N), False, None),
    (-1, None, "other", (N, N, N, N), False, None),
    (0, None, "other", (N, N, N, N), False, None),
    (104, None, "no token", (N, N, N, N), False, None),
    (324, None, "missing image", (N, N, N, N), False, None),
    (9007, None, "instagram", (N, N, N, N), False, None),
]


@pytest.mark.parametrize(
    ("code", "subcode", "words", "classes", "validated", "reason"),
    EXPECTED,
    ids=[f"{row[0]}-{row[1]}-{row[2]}".replace(" ", "_") for row in EXPECTED],
)
def test_each_row_of_the_closed_list(
    code: int,
    subcode: int | None,
    words: str,
    classes: tuple[str, str, str, str],
    *,
    validated: bool,
    reason: Reason | None,
) -> None:
    calls = [(FEED, 0), (FEED, 1), (VIDEOS, 0), (VIDEOS, 3)]
    for wanted, (endpoint, attempts) in zip(classes, calls, strict=True):
        outcome = classify(endpoint, reply(code, subcode, words), attempts)
        assert name(outcome) == wanted, (endpoint, attempts)
        if outcome is not None:
            assert outcome.validated_before_storing is validated
            assert outcome.reason is (reason or outcome.reason)
            assert outcome.row.startswith("graph/")


def test_the_table_above_meets_every_row_on_every_endpoint_that_publishes() -> None:
    met = set()
    for code, subcode, words, *_ in EXPECTED:
        complaint = Complaint.read(reply(code, subcode, words))
        assert complaint is not None
        for endpoint in (FEED, VIDEOS):
            rows = [row.name for row in CLOSED_LIST if row.fits(endpoint, complaint)]
            met |= {(endpoint, rows[0])} if rows else set()
    publishing = {
        (endpoint, row.name)
        for row in CLOSED_LIST
        for endpoint in row.endpoints - {Endpoint.PHOTOS}
    }
    assert publishing == met


def test_rows_have_names_of_their_own_and_sources() -> None:
    names = [row.name for row in CLOSED_LIST]
    assert len(names) == len(set(names))
    assert all(row.source and row.endpoints for row in CLOSED_LIST)
    assert all(row.codes or row.subcodes for row in CLOSED_LIST), "a row without a code is none"


def test_no_row_about_duplicates_or_unread_words_speaks_of_later_attempts() -> None:
    for row in CLOSED_LIST:
        if row.reason is Reason.DUPLICATE_CONTENT:
            assert row.first_only
            assert not row.validated_before_storing


@pytest.mark.parametrize("status", [200, 302, 399, 500, 502, 503, 504])
def test_only_4xx_answers_are_refusals(status: int) -> None:
    assert classify(FEED, reply(100, status=status), 0) is None


@pytest.mark.parametrize("code", [100, 190, 200, 368, 506])
@pytest.mark.parametrize("flag", [True, 1, "true", "false"])
def test_what_graph_calls_transient_proves_nothing(code: int, flag: object) -> None:
    assert classify(FEED, reply(code, is_transient=flag), 0) is None


@pytest.mark.parametrize("code", [4, 17, 32, 341, 613, 80001])
def test_a_limit_is_a_limit_although_it_is_transient(code: int) -> None:
    assert isinstance(classify(FEED, reply(code, is_transient=True), 2), Deferred)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html><body>502</body></html>",
        b"{",
        b"[]",
        b"null",
        b'"error"',
        b"{}",
        b'{"error": null}',
        b'{"error": "no"}',
        b'{"error": []}',
        b'{"error": {}}',
        b'{"error": {"code": "190"}}',
        b'{"error": {"code": true}}',
        b'{"error": {"code": 190.0}}',
        b'{"error": {"code": null, "error_subcode": 463}}',
        b'{"error": {"code": 190, "error_subcode": "463"}}',
        b"[" * 100_000,
        b"\xff\xfe",
    ],
)
def test_a_body_graph_would_not_write_proves_nothing(body: bytes) -> None:
    for status in (400, 401, 403, 429):
        assert classify(FEED, Reply(status, {}, body, Answer(status)), 0) is None


@pytest.mark.parametrize("code", [True, False, "1", 1.0, None, [1]])
def test_a_code_is_a_whole_number(code: object) -> None:
    assert Complaint.read(reply(code)) is None


def test_a_bare_status_is_no_row() -> None:
    for status in range(400, 500):
        assert classify(FEED, Reply(status, {}, b'{"message": "no"}', Answer(status)), 0) is None


def test_a_limit_says_how_long() -> None:
    usage = json.dumps(
        {"101": [{"type": "pages", "call_count": 100, "estimated_time_to_regain_access": 7}]}
    )
    outcome = classify(FEED, reply(4, headers={"x-business-use-case-usage": usage}), 0)
    assert isinstance(outcome, Deferred)
    assert outcome.retry_after == 420
    assert outcome.rest_channel
    assert outcome.proof is Proof.REFUSED
    assert outcome.row == "graph/limit-app"
    bare = classify(FEED, reply(4), 0)
    assert isinstance(bare, Deferred)
    assert bare.retry_after == 60


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "30"}, 30),
        ({"retry-after": "Mon, 07 Dec 2026 02:00:00 GMT"}, None),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "nan"}, None),
        ({"x-business-use-case-usage": "{"}, None),
        ({"x-business-use-case-usage": "[1]"}, None),
        ({"x-business-use-case-usage": '{"1": [{"estimated_time_to_regain_access": 0}]}'}, None),
        ({"x-business-use-case-usage": '{"1": [{"estimated_time_to_regain_access": "3"}]}'}, 180),
        ({"x-business-use-case-usage": '{"1": [{"estimated_time_to_regain_access": 1e99}]}'},
         LONGEST_SECONDS),
        ({"x-business-use-case-usage":
          '{"1": [{"estimated_time_to_regain_access": 2}, 5], "2": 3, '
          '"4": [{"estimated_time_to_regain_access": 9}]}'}, 540),
        ({"x-app-usage": '{"call_count": 100}'}, None),
    ],
)  # fmt: skip
def test_waits_are_read_from_headers(headers: dict[str, str], seconds: float | None) -> None:
    assert seconds_to_wait(headers) == seconds


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"x-app-usage": '{"call_count": 94, "total_time": 10}'}, None),
        ({"x-app-usage": '{"call_count": 5, "total_time": 95}'}, REST_SECONDS),
        ({"x-page-usage": '{"call_count": 99.5}'}, REST_SECONDS),
        ({"x-business-use-case-usage":
          '{"101": [{"call_count": 100, "estimated_time_to_regain_access": 4}]}'}, 240),
        ({"x-app-usage": "not json"}, None),
        ({"x-app-usage": '{"call_count": "many"}'}, None),
        ({"x-app-usage": '{"call_count": true}'}, None),
    ],
)  # fmt: skip
def test_a_nearly_full_channel_rests(headers: dict[str, str], seconds: float | None) -> None:
    assert seconds_to_rest(headers) == seconds


@given(st.dictionaries(st.sampled_from(["x-app-usage", "retry-after", "x-page-usage",
                                        "x-business-use-case-usage"]),
                       st.one_of(st.text(), st.recursive(
                           st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
                           lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
                       ).map(json.dumps))))  # fmt: skip
def test_no_header_breaks_the_reading(headers: dict[str, str]) -> None:
    for seconds in (seconds_to_wait(headers), seconds_to_rest(headers)):
        assert seconds is None or 0 < seconds <= LONGEST_SECONDS


@given(
    code=st.one_of(st.integers(), st.sampled_from([1, 2, 4, 100, 190, 200, 368, 506])),
    subcode=st.one_of(st.none(), st.integers(), st.sampled_from([33, 1366046, 1390008])),
    words=st.one_of(st.text(max_size=40), st.just("already posted")),
    transient=st.booleans(),
)
def test_whatever_is_not_a_row_proves_nothing(
    code: int, subcode: int | None, words: str, *, transient: bool
) -> None:
    answer = reply(code, subcode, words, is_transient=transient)
    complaint = Complaint.read(answer)
    assert complaint is not None
    for endpoint in (FEED, VIDEOS):
        listed = row_for(endpoint, complaint)
        outcome = classify(endpoint, answer, 1)
        assert (outcome is None) == (listed is None or listed.first_only)
        if listed is not None:
            assert listed.meaning is not Meaning.DOUBT


def test_steps_fail_harmlessly_and_name_no_row() -> None:
    for code, subcode, kind, reason in [
        (2, None, Deferred, Reason.STEP_FAILED),
        (999, None, Deferred, Reason.STEP_FAILED),
        (100, 33, Deferred, Reason.STEP_FAILED),
        (100, None, Rejected, Reason.MEDIA_REFUSED),
        (324, 1366046, Rejected, Reason.MEDIA_REFUSED),
        (4, None, Deferred, Reason.RATE_LIMITED),
        (190, 463, Unauthorized, Reason.NEEDS_RECONNECTING),
        (368, None, Deferred, Reason.BLOCKED_FOR_A_WHILE),
        (506, None, Deferred, Reason.STEP_FAILED),
    ]:
        outcome = step_failure(PHOTOS, reply(code, subcode))
        assert isinstance(outcome, kind)
        assert outcome.reason is reason
        assert outcome.row == ""
        assert not isinstance(outcome, Deferred) or outcome.proof is Proof.NOT_SENT
    gateway = step_failure(PHOTOS, Reply(502, {}, b"<html>", Answer(502)))
    assert isinstance(gateway, Deferred)


def test_graphs_words_are_cut_and_hold_no_token() -> None:
    answer = reply(190, 467, f"Malformed access token {TOKEN} " + "x" * 5000)
    for outcome in (
        classify(FEED, answer, 0, secrets=(TOKEN,)),
        step_failure(PHOTOS, answer, secrets=(TOKEN,)),
    ):
        assert outcome is not None
        assert TOKEN not in outcome.detail
        assert len(outcome.detail) < 400
        assert outcome.detail.endswith("(code 190, subcode 467)")


def test_the_token_is_in_a_header_and_named_as_a_secret() -> None:
    node = Node("101", TOKEN, "http://127.0.0.1:1/", trusted=False)
    part = FilePart("source", "a.jpg", "image/jpeg", 1, lambda: iter([b"x"]))
    for request in (node.get(params={"fields": "id"}), node.post("photos", [("a", "b")], [part])):
        assert TOKEN not in request.url
        assert TOKEN not in str(request.params)
        assert request.headers["Authorization"] == f"Bearer {TOKEN}"
        assert request.secrets == (TOKEN,)
        assert not request.trusted
        assert request.url.startswith("http://127.0.0.1:1/v26.0/101")
    assert TOKEN not in repr(node)
    assert Node("../me", TOKEN).get("feed").url == "https://graph.facebook.com/v26.0/..%2Fme/feed"


@pytest.mark.parametrize("token", ["", "a b", "a\nb", "a\r\nX: y", "ключ", "a\x7f", "\x00"])
def test_tokens_that_cannot_stand_in_a_header(token: str) -> None:
    assert not token_is_sendable(token)
