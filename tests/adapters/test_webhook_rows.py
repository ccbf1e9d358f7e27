"""Webhooks: what each status means, against the protocol's text, not against its table."""

from __future__ import annotations

from datetime import UTC, datetime

from publisher.adapters.webhook.protocol import CAPABILITIES, classify
from publisher.engine.adapter import Promise
from publisher.engine.outcome import (
    Answer,
    Deferred,
    Outcome,
    Proof,
    Published,
    Reason,
    Rejected,
    Unauthorized,
    Unknown,
)
from publisher.transport import Reply

NOW = datetime(2026, 12, 7, tzinfo=UTC)
REFUSED = (Rejected, Reason.CONTENT_REFUSED)
ACCESS = (Unauthorized, Reason.NEEDS_RECONNECTING)
NOBODY = (Deferred, Reason.BUSY)
ROWS: dict[int, tuple[type, Reason]] = {
    400: REFUSED, 410: REFUSED, 413: REFUSED, 415: REFUSED, 422: REFUSED,
    401: ACCESS, 403: ACCESS,
    404: NOBODY, 405: NOBODY,
    429: (Deferred, Reason.RATE_LIMITED),
}  # fmt: skip


def outcome_of(status: int, **headers: str) -> Outcome:
    return classify("evt_1", Reply(status, headers, b"", Answer(status, headers, "")), NOW)


def test_every_status_there_is() -> None:
    for status in range(100, 600):
        outcome = outcome_of(status)
        if 200 <= status < 300:
            assert isinstance(outcome, Published)
            assert outcome.remote_id == "evt_1"
            continue
        assert not isinstance(outcome, Published)
        kind, reason = ROWS.get(status, (Unknown, Reason.UNLISTED_REFUSAL))
        assert (type(outcome), outcome.reason) == (kind, reason), status
        if isinstance(outcome, Rejected | Unauthorized | Deferred):
            assert outcome.row == f"webhook:{status}"
            assert outcome.validated_before_storing
        if isinstance(outcome, Deferred):
            assert outcome.proof is Proof.REFUSED
            assert outcome.rest_channel is (status == 429)


def test_words_tell_the_refusals_apart() -> None:
    said = {status: getattr(outcome_of(status), "detail", "") for status in (400, 401, 404, 410)}
    assert said == {
        400: "HTTP 400: the receiver refuses this event.",
        401: "HTTP 401: the receiver refuses our signature.",
        404: "HTTP 404: nobody receives at this address at present.",
        410: "HTTP 410: the receiver takes no more events here.",
    }


def test_what_is_promised_of_an_event() -> None:
    assert CAPABILITIES.promise is Promise.SAFE_WHILE_THE_KEY_LIVES
    assert CAPABILITIES.repeat_is_atomic
    assert CAPABILITIES.repeat_for == float("inf")
    assert not CAPABILITIES.can_look
    assert not CAPABILITIES.listing_is_exhaustive
