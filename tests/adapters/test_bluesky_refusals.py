"""Bluesky before a server that lies: the closed list by hand, and answers that are none."""

from __future__ import annotations

from dataclasses import replace

import pytest

from publisher.adapters.bluesky import Bluesky
from publisher.adapters.bluesky.evidence import is_ours
from publisher.adapters.bluesky.refusals import CLOSED_LIST, Meaning, seconds_to_wait
from publisher.config import Settings
from publisher.engine.adapter import Ready
from publisher.engine.content import Media, Post
from publisher.engine.evidence import Inconclusive
from publisher.engine.outcome import (
    Deferred,
    Proof,
    Published,
    Reason,
    Rejected,
    Unauthorized,
    Unknown,
)
from publisher.transport import Transport
from tests.adapters.bluesky_liar import (
    ACCESS,
    DID,
    GET,
    PASSWORD,
    SESSION,
    adapter_at,
    channel,
    publish,
    scripted,
)
from tests.adapters.liar import Liar, Said
from tests.adapters.stand import Attempt, Store, make_permit, make_task

PHOTO = Media(kind="image", type="image/png", alt="A mill", sha256="p", size=4)
U, R, D, A = Unknown, Rejected, Deferred, Unauthorized
LIST: list[tuple[int, str, type, str, Reason]] = [
    (429, "RateLimitExceeded", D, "RateLimitExceeded", Reason.RATE_LIMITED),
    (400, "ExpiredToken", D, "ExpiredToken", Reason.BUSY),
    (401, "ExpiredToken", D, "ExpiredToken", Reason.BUSY),
    (400, "InvalidToken", A, "InvalidToken", Reason.NEEDS_RECONNECTING),
    (401, "InvalidToken", A, "InvalidToken", Reason.NEEDS_RECONNECTING),
    (401, "AuthMissing", A, "AuthMissing", Reason.NEEDS_RECONNECTING),
    (401, "AuthenticationRequired", A, "AuthMissing", Reason.NEEDS_RECONNECTING),
    (401, "AccountTakedown", A, "AccountTakedown", Reason.NEEDS_RECONNECTING),
    (401, "AccountDeactivated", A, "AccountDeactivated", Reason.NEEDS_RECONNECTING),
    (403, "AccountNotFound", A, "AccountNotFound", Reason.NEEDS_RECONNECTING),
    (400, "BlobNotFound", D, "BlobNotFound", Reason.BUSY),
    (400, "InvalidMimeType", R, "blob", Reason.MEDIA_REFUSED),
    (400, "InvalidSize", R, "blob", Reason.MEDIA_REFUSED),
    (400, "InvalidRequest", R, "InvalidRequest", Reason.CONTENT_REFUSED),
    (400, "InvalidRecord", R, "InvalidRequest", Reason.CONTENT_REFUSED),
    (413, "PayloadTooLarge", R, "PayloadTooLarge", Reason.CONTENT_REFUSED),
    # Nothing is proved by these.
    (400, "InvalidSwap", U, "", Reason.UNLISTED_REFUSAL),
    (409, "InvalidSwap", U, "", Reason.UNLISTED_REFUSAL),
    (400, "SomethingNew", U, "", Reason.UNLISTED_REFUSAL),
    (404, "InvalidRequest", U, "", Reason.UNLISTED_REFUSAL),
    (400, "RateLimitExceeded", U, "", Reason.UNLISTED_REFUSAL),
    (418, "ExpiredToken", U, "", Reason.UNLISTED_REFUSAL),
    (500, "InternalServerError", U, "", Reason.SERVER_ERROR),
    (500, "InvalidRequest", U, "", Reason.SERVER_ERROR),
    (502, "UpstreamFailure", U, "", Reason.SERVER_ERROR),
    (503, "NotEnoughResources", U, "", Reason.SERVER_ERROR),
]


@pytest.mark.parametrize("attempts", [0, 1])
@pytest.mark.parametrize(("status", "error", "kind", "row", "reason"), LIST)
def test_each_row(
    transport: Transport,
    status: int,
    error: str,
    kind: type,
    row: str,
    reason: Reason,
    attempts: int,
) -> None:
    said = Said({"error": error, "message": f"Words about {PASSWORD}"}, status)
    outcome = publish(transport, said, attempts=attempts)
    assert isinstance(outcome, kind)
    assert not isinstance(outcome, Published)
    assert outcome.reason is reason
    if not isinstance(outcome, Unknown):
        assert outcome.row == f"bluesky/{row}"
        assert outcome.validated_before_storing
    if isinstance(outcome, Deferred):
        assert outcome.proof is Proof.REFUSED


def test_the_table_above_has_every_row_that_a_publish_can_meet() -> None:
    rows = {
        row.name
        for row in CLOSED_LIST
        if row.meaning is not Meaning.DOUBT and any(call.name == "PUT" for call in row.calls)
    }
    assert rows == {f"bluesky/{row}" for _, _, _, row, _ in LIST if row}


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>Too many requests</html>", b"[]", {"error": 5}, {"error": ""}, {"message": "no"}],
)
@pytest.mark.parametrize("status", [400, 401, 403, 413, 429])
def test_a_bare_status_is_no_row(transport: Transport, status: int, body: object) -> None:
    assert isinstance(publish(transport, Said(body, status)), Unknown)


@pytest.mark.parametrize(
    "body",
    [
        {},
        [],
        {"uri": 5},
        {"uri": f"at://{DID}/app.bsky.feed.post/3lc3ovqyk2s2k"},
        {"uri": "at://did:plc:other/app.bsky.feed.post/3lc3ovqyk2s2k"},
        b"not JSON",
    ],
)
def test_success_without_our_name_is_a_doubt(transport: Transport, body: object) -> None:
    outcome = publish(transport, Said(body))
    assert isinstance(outcome, Unknown)
    assert outcome.reason is Reason.NO_ID


def test_rate_limit_waits_until_the_reset_on_the_servers_clock(transport: Transport) -> None:
    headers = {"Date": "Wed, 08 Jul 2026 09:00:00 GMT", "RateLimit-Reset": "1783501320"}
    said = Said({"error": "RateLimitExceeded", "message": "Slow down"}, 429, headers)
    # http.server writes a Date of its own first; both are joined, and no date can be read.
    outcome = publish(transport, said)
    assert isinstance(outcome, Deferred)
    assert outcome.rest_channel
    assert outcome.retry_after == 300.0
    alone = {name.lower(): value for name, value in headers.items()}
    assert seconds_to_wait(alone) == 120.0
    assert seconds_to_wait(alone | {"retry-after": "200"}) == 200.0
    assert seconds_to_wait(alone | {"date": ""}) is None
    assert seconds_to_wait(alone | {"ratelimit-reset": "1e300"}) == 86_400.0
    for strange in ("", "nan", "-5", "soon"):
        assert seconds_to_wait({"ratelimit-reset": strange, "retry-after": strange}) is None


def test_an_address_that_a_channel_names_is_checked() -> None:
    """Loopback is for the operator's own setting, unless the operator says so."""
    strict = Transport(Settings())
    with Liar(scripted()) as liar:
        adapter = adapter_at("https://bsky.social", strict)
        given = channel(base_url=liar.url)
        assert isinstance(adapter.step(make_task(given, Post("Inside"))), Deferred)
        assert not adapter.check(given).usable
        assert liar.asked == []
        trusted = channel(base_url=liar.url, trusted=True)
        assert isinstance(adapter.step(make_task(trusted, Post("Inside"))), Ready)


def test_a_picture_goes_as_it_is(transport: Transport) -> None:
    blob = {"$type": "blob", "ref": {"$link": "bafk"}, "mimeType": "image/webp", "size": 4}
    with Liar(scripted(uploadBlob=Said({"blob": blob}))) as liar:
        adapter = Bluesky(transport, lambda _: PASSWORD, Store({"p": b"abcd"}), base_url=liar.url)
        item = Media(kind="image", type="image/webp", sha256="p", size=4)
        assert isinstance(adapter.step(make_task(channel(), Post("", media=(item,)))), Ready)
        upload = liar.asked[1]
        assert (upload.headers["content-type"], upload.body) == ("image/webp", b"abcd")
        assert upload.headers["authorization"] == f"Bearer {ACCESS}"
        wrong = replace(item, size=5)
        step = adapter.step(make_task(channel(), Post("", media=(wrong,))))
        assert isinstance(step, Deferred)
        assert len(liar.asked) == 2


def test_a_session_that_ended_in_between_sends_nothing(transport: Transport) -> None:
    with Liar(scripted()) as liar:
        adapter = adapter_at(liar.url, transport)
        task = make_task(channel(), Post("Late"))
        ready = adapter.step(task)
        assert isinstance(ready, Ready)
        permit = make_permit(task)
        outcome = adapter_at(liar.url, transport).publish(task, ready, permit)
        assert isinstance(outcome, Deferred)
        assert (outcome.reason, outcome.proof) == (Reason.NOT_STARTED, Proof.NOT_SENT)
        assert not permit.used
        assert len(liar.asked) == 1


@pytest.mark.parametrize(
    ("post", "value", "ours"),
    [
        (Post("a"), {"text": "a"}, True),
        (Post("a"), {"text": "a "}, False),
        (Post("a"), {"text": 5}, False),
        (Post("a"), {"text": "a", "embed": {"$type": "app.bsky.embed.record"}}, False),
        (Post("a", link="https://b.c"), {"text": "a"}, False),
        (Post("a", link="https://b.c"), {"text": "a", "embed": {"external": {"uri": "x"}}}, False),
        (
            Post("a", link="https://b.c"),
            {"text": "a", "embed": {"external": {"uri": "https://b.c", "title": "t"}}},
            True,
        ),
        (Post("", media=(PHOTO,)), {"text": "", "embed": {"images": [{"alt": "A mill"}]}}, True),
        (Post("", media=(PHOTO,)), {"text": "", "embed": {"images": [{"alt": ""}]}}, False),
        (Post("", media=(PHOTO,)), {"text": "", "embed": {"images": [5, {}]}}, False),
    ],
)
def test_which_record_is_ours(post: Post, value: dict[str, object], *, ours: bool) -> None:
    assert is_ours(post, None, value) is ours
    assert is_ours(post, value, value)


def test_a_handle_that_went_to_another_account_is_not_written_to(transport: Transport) -> None:
    """Under the other account our key would be free, and an earlier attempt's post a twin."""
    other = SESSION | {"did": "did:plc:bbbbbbbbbbbbbbbbbbbbbbbb"}
    with Liar(scripted()) as liar, Liar(scripted(createSession=Said(other))) as later:
        task = make_task(channel(remote_id="an.test"), Post("Whose"))
        ready = adapter_at(liar.url, transport).step(task)
        assert isinstance(ready, Ready)
        task = replace(task, progress=ready.progress, attempts=1)
        adapter = adapter_at(later.url, transport)
        assert isinstance(adapter.step(task), Unauthorized)
        assert adapter.prepared(task) is None
        permit = make_permit(task)
        assert isinstance(adapter.publish(task, ready, permit), Deferred)
        assert not permit.used


@pytest.mark.parametrize(
    "said",
    [
        Said({"error": "RepoTakendown"}, 400),
        Said({"error": "RepoNotFound"}, 400),
        Said({"error": "RecordNotFound"}, 404),
        Said(b"<html>", 400),
        Said({"uri": "at://did:plc:x/app.bsky.feed.post/1", "value": {"text": "x"}}),
        Said({"value": 5}),
        Said([]),
        Said({"error": "InternalServerError"}, 500),
    ],
)
def test_a_look_that_is_not_answered_proves_nothing(transport: Transport, said: Said) -> None:
    with Liar(scripted(getRecord=said)) as liar:
        adapter = adapter_at(liar.url, transport)
        task = make_task(channel(), Post("x"))
        evidence = adapter.look(Attempt(task, make_permit(task)).query())
        assert "authorization" not in liar.asked[-1].headers
        assert liar.asked[-1].path == GET
    assert isinstance(evidence, Inconclusive)
    assert not evidence.clean


@pytest.mark.parametrize(
    ("body", "usable"),
    [
        ({"did": DID, "handle": "an.test", "active": True}, True),
        ({"did": DID, "handle": "an.test"}, True),
        ({"did": DID, "active": False, "status": "deactivated"}, False),
        ({"did": "did:plc:other", "handle": "x.test"}, False),
        ([], False),
    ],
)
def test_health(transport: Transport, body: object, *, usable: bool) -> None:
    with Liar(scripted(getSession=Said(body))) as liar:
        assert adapter_at(liar.url, transport).check(channel()).usable is usable
