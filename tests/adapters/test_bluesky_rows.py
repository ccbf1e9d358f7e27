"""Bluesky's closed list: which row decides for each call, error and status, by hand."""

from __future__ import annotations

import json
from itertools import product

import pytest

from publisher.adapters.bluesky.refusals import Call, Meaning, row_for
from publisher.adapters.bluesky.xrpc import Complaint
from publisher.engine.outcome import Answer
from publisher.transport import Reply

PUT, UPLOAD, RESOLVE = Call.PUT, Call.UPLOAD, Call.RESOLVE
LOGIN, REFRESH = Call.CREATE_SESSION, Call.REFRESH_SESSION
EVERY = {PUT, UPLOAD, RESOLVE, LOGIN, REFRESH}
SESSION = {PUT, UPLOAD, RESOLVE}
STATUSES = (400, 401, 403, 404, 413, 429)
M = Meaning

# error, calls, statuses: row, what it proves.
ROWS: list[tuple[str, set[Call], set[int], str, Meaning]] = [
    ("InvalidSwap", {PUT}, {400}, "InvalidSwap", M.DOUBT),
    ("RateLimitExceeded", EVERY, {429}, "RateLimitExceeded", M.DEFERRED),
    ("ExpiredToken", SESSION, {400, 401, 403}, "ExpiredToken", M.DEFERRED),
    ("InvalidToken", SESSION, {400, 401, 403}, "InvalidToken", M.UNAUTHORIZED),
    ("AuthMissing", SESSION, {401, 403}, "AuthMissing", M.UNAUTHORIZED),
    ("AuthenticationRequired", SESSION, {401, 403}, "AuthMissing", M.UNAUTHORIZED),
    ("AuthenticationRequired", {LOGIN}, {401, 403}, "login", M.UNAUTHORIZED),
    ("AuthFactorTokenRequired", {LOGIN}, {401, 403}, "AuthFactorTokenRequired", M.UNAUTHORIZED),
    ("AccountTakedown", EVERY, {400, 401, 403}, "AccountTakedown", M.UNAUTHORIZED),
    ("AccountDeactivated", EVERY, {401, 403}, "AccountDeactivated", M.UNAUTHORIZED),
    ("AccountNotFound", EVERY, {400, 401, 403}, "AccountNotFound", M.UNAUTHORIZED),
    ("BlobNotFound", {PUT}, {400}, "BlobNotFound", M.DEFERRED),
    ("InvalidMimeType", {PUT}, {400}, "blob", M.REJECTED),
    ("InvalidSize", {PUT}, {400}, "blob", M.REJECTED),
    ("InvalidRequest", {PUT}, {400}, "InvalidRequest", M.REJECTED),
    ("InvalidRecord", {PUT}, {400}, "InvalidRequest", M.REJECTED),
    ("PayloadTooLarge", {PUT}, {413}, "PayloadTooLarge", M.REJECTED),
    ("InvalidRequest", {UPLOAD}, {400, 413}, "upload", M.REJECTED),
    ("PayloadTooLarge", {UPLOAD}, {400, 413}, "upload", M.REJECTED),
]


def by_hand(call: Call, error: str, status: int) -> tuple[str, Meaning] | None:
    fitting = [
        (f"bluesky/{row}", meaning)
        for name, calls, statuses, row, meaning in ROWS
        if name == error and call in calls and status in statuses
    ]
    assert len(fitting) <= 1
    return fitting[0] if fitting else None


@pytest.mark.parametrize("error", sorted({row[0] for row in ROWS} | {"SomethingNew"}))
def test_which_row_decides(error: str) -> None:
    for call, status in product(EVERY, STATUSES):
        body = json.dumps({"error": error, "message": "words"}).encode()
        complaint = Complaint.read(Reply(status, {}, body, Answer(status, {}, body.decode())))
        assert complaint is not None
        row = row_for(call, complaint)
        said = None if row is None else (row.name, row.meaning)
        assert said == by_hand(call, error, status), (call, status)


def test_only_the_limit_rests_the_channel() -> None:
    body = json.dumps({"error": "RateLimitExceeded", "message": "words"}).encode()
    complaint = Complaint.read(Reply(429, {}, body, Answer(429, {}, body.decode())))
    assert complaint is not None
    row = row_for(PUT, complaint)
    assert row is not None
    assert (row.wait_for, row.rest_channel) == (300.0, True)
