"""The closed list: which of Graph's answers prove that a post was not published.

Whatever is not a row here may be live. A row is a code, where need be with its subcode or its
words, on named endpoints, with its source; a bare status is none, and neither is "other".
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import assert_never

from publisher.engine.outcome import Deferred, Proof, Reason, Rejected, Unauthorized
from publisher.graph.complaint import Complaint
from publisher.graph.usage import seconds_to_wait
from publisher.transport import Reply
from publisher.transport.redaction import Redaction


class Endpoint(StrEnum):
    """Calls whose refusals are told apart. ``PHOTOS`` is the unpublished upload, a step."""

    FEED = "feed"
    PHOTOS = "photos"
    VIDEOS = "videos"


class Meaning(StrEnum):
    """What a row proves."""

    REJECTED = "rejected"
    DEFERRED = "deferred"
    UNAUTHORIZED = "unauthorized"
    DOUBT = "doubt"
    """Nothing, whatever a later row says."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the list. The first that fits decides.

    ``codes`` and ``subcodes``: None fits any. ``says``: words of which one must be there.
    ``first_only``: proves something on a first attempt alone; on a later one it may be the echo
    of an earlier attempt that landed. ``transient``: holds although Graph calls it transient.
    ``wait_for``: seconds, where the answer names none; ``rest_channel``: for the whole channel.
    """

    name: str
    endpoints: frozenset[Endpoint]
    meaning: Meaning
    reason: Reason
    source: str
    codes: frozenset[int] | None = None
    subcodes: frozenset[int] | None = None
    says: tuple[str, ...] = ()
    first_only: bool = False
    transient: bool = False
    validated_before_storing: bool = False
    wait_for: float | None = None
    rest_channel: bool = False

    def fits(self, endpoint: Endpoint, complaint: Complaint) -> bool:
        """Whether the row is about this answer of this endpoint."""
        return (
            endpoint in self.endpoints
            and (self.codes is None or complaint.code in self.codes)
            and (self.subcodes is None or complaint.subcode in self.subcodes)
            and (not self.says or complaint.says(self.says))
        )


EVERY = frozenset(Endpoint)
FEED = frozenset({Endpoint.FEED})
PUBLISHING = frozenset({Endpoint.FEED, Endpoint.VIDEOS})
PICTURES = frozenset({Endpoint.FEED, Endpoint.PHOTOS})

_ERRORS = "https://developers.facebook.com/docs/graph-api/guides/error-handling"
_LIMITS = "https://developers.facebook.com/docs/graph-api/overview/rate-limiting/"
_VIDEO = "https://developers.facebook.com/documentation/video-api/reference/error-codes"
_POSTIZ = "gitroomhq/postiz-app@74b01ad facebook.provider.ts"
_TRANSIENT = "facebook-nodejs-business-sdk#97: code 4 comes with is_transient"
_ALREADY = ("already posted", "already been posted", "duplicate")
_BLOCKED = ("temporarily blocked", "deemed abusive", "otherwise disallowed")

_DETAIL_LIMIT = 1000

CLOSED_LIST: tuple[Row, ...] = (
    # What may be live although it reads like a failure. These stand first.
    Row("graph/1-or-2", EVERY, Meaning.DOUBT, Reason.SERVER_ERROR,
        "koala#699: seven calls answered code 2, seven copies were published",
        codes=frozenset({1, 2})),
    Row("graph/100-33", EVERY, Meaning.DOUBT, Reason.UNLISTED_REFUSAL,
        "postiz#1562, #1568: an object that cannot be read; not a verdict on a publish",
        codes=frozenset({100}), subcodes=frozenset({33})),
    # Duplicates: an error in the data, or the echo of an attempt that landed.
    Row("graph/506", PUBLISHING, Meaning.REJECTED, Reason.DUPLICATE_CONTENT,
        _ERRORS, codes=frozenset({506}), first_only=True),
    Row("graph/1366051", PUBLISHING, Meaning.REJECTED, Reason.DUPLICATE_CONTENT,
        _POSTIZ, subcodes=frozenset({1366051}), first_only=True),
    Row("graph/368-already", PUBLISHING, Meaning.REJECTED, Reason.DUPLICATE_CONTENT,
        "koala#422", codes=frozenset({368}), says=_ALREADY, first_only=True),
    # Too fast.
    Row("graph/1390008", EVERY, Meaning.DEFERRED, Reason.RATE_LIMITED,
        _POSTIZ, subcodes=frozenset({1390008}), wait_for=900.0, rest_channel=True),
    Row("graph/limit-app", EVERY, Meaning.DEFERRED, Reason.RATE_LIMITED,
        f"{_ERRORS}; {_TRANSIENT}", codes=frozenset({4, 341}), transient=True,
        validated_before_storing=True, wait_for=60.0, rest_channel=True),
    Row("graph/limit-user", EVERY, Meaning.DEFERRED, Reason.RATE_LIMITED,
        _ERRORS, codes=frozenset({17}), transient=True,
        validated_before_storing=True, wait_for=60.0, rest_channel=True),
    Row("graph/limit-page", EVERY, Meaning.DEFERRED, Reason.RATE_LIMITED,
        _LIMITS, codes=frozenset({32, 80001}), transient=True,
        validated_before_storing=True, wait_for=60.0, rest_channel=True),
    Row("graph/limit-custom", EVERY, Meaning.DEFERRED, Reason.RATE_LIMITED,
        _LIMITS, codes=frozenset({613}), transient=True,
        validated_before_storing=True, wait_for=60.0, rest_channel=True),
    # What the post holds. Standards are judged by content, so perhaps after it was stored.
    Row("graph/standards", EVERY, Meaning.REJECTED, Reason.CONTENT_REFUSED,
        _POSTIZ, subcodes=frozenset({1404102, 1346003})),
    Row("graph/1366046", PICTURES, Meaning.REJECTED, Reason.MEDIA_REFUSED,
        _POSTIZ, subcodes=frozenset({1366046}), validated_before_storing=True),
    Row("graph/link", FEED, Meaning.REJECTED, Reason.CONTENT_REFUSED,
        _POSTIZ, subcodes=frozenset({1609005, 1609008, 2061006})),
    Row("graph/video-size", frozenset({Endpoint.VIDEOS}), Meaning.REJECTED, Reason.MEDIA_REFUSED,
        _VIDEO, subcodes=frozenset({1363022, 1363023})),
    # The access.
    Row("graph/1404078", EVERY, Meaning.UNAUTHORIZED, Reason.MISSING_PERMISSION,
        _POSTIZ, subcodes=frozenset({1404078}), validated_before_storing=True),
    Row("graph/4854002", EVERY, Meaning.UNAUTHORIZED, Reason.NEEDS_RECONNECTING,
        _POSTIZ, subcodes=frozenset({4854002}), validated_before_storing=True),
    Row("graph/1363042", frozenset({Endpoint.VIDEOS}), Meaning.UNAUTHORIZED,
        Reason.MISSING_PERMISSION, _VIDEO, subcodes=frozenset({1363042}),
        validated_before_storing=True),
    Row("graph/token", EVERY, Meaning.UNAUTHORIZED, Reason.NEEDS_RECONNECTING,
        _ERRORS, codes=frozenset({102, 190}), validated_before_storing=True),
    Row("graph/permission", EVERY, Meaning.UNAUTHORIZED, Reason.MISSING_PERMISSION,
        _ERRORS, codes=frozenset({3, 10, *range(200, 300)}), validated_before_storing=True),
    # A block in words we know; in others, such as another language, it could be koala#422's
    # "already posted", so then it proves nothing after a first attempt.
    Row("graph/368-blocked", EVERY, Meaning.DEFERRED, Reason.BLOCKED_FOR_A_WHILE,
        _ERRORS, codes=frozenset({368}), says=_BLOCKED, wait_for=3600.0, rest_channel=True),
    Row("graph/368", EVERY, Meaning.DEFERRED, Reason.BLOCKED_FOR_A_WHILE,
        _ERRORS, codes=frozenset({368}), first_only=True, wait_for=3600.0, rest_channel=True),
    # Parameters are checked before anything is stored; seen on /feed, not proved for /videos.
    Row("graph/100", FEED, Meaning.REJECTED, Reason.CONTENT_REFUSED,
        _ERRORS, codes=frozenset({100}), validated_before_storing=True),
    Row("graph/100-photo", frozenset({Endpoint.PHOTOS}), Meaning.REJECTED, Reason.MEDIA_REFUSED,
        _ERRORS, codes=frozenset({100})),
)  # fmt: skip


def classify(
    endpoint: Endpoint, reply: Reply, attempts: int, *, secrets: tuple[str, ...] = ()
) -> Rejected | Deferred | Unauthorized | None:
    """What a 4xx answer to the publishing call proves; None: nothing, the post may be live.

    ``attempts``: how many were begun before this one. ``secrets`` are taken out of the detail.
    """
    complaint = Complaint.read(reply)
    if complaint is None or not 400 <= reply.status < 500:  # noqa: PLR2004 - HTTP's client errors
        return None
    row = row_for(endpoint, complaint)
    if row is None or (row.first_only and attempts > 0):
        return None
    return _outcome(row, reply, _hidden(complaint.detail, secrets))


def row_for(endpoint: Endpoint, complaint: Complaint) -> Row | None:
    """The row that decides, or None where the list has none or it proves nothing."""
    for row in CLOSED_LIST:
        if row.fits(endpoint, complaint):
            # "Transient" means Graph itself does not know how far it got.
            doubtful = complaint.is_transient and not row.transient
            return None if doubtful or row.meaning is Meaning.DOUBT else row
    return None


def step_failure(
    endpoint: Endpoint, reply: Reply, *, secrets: tuple[str, ...] = ()
) -> Rejected | Deferred | Unauthorized:
    """What a reply without the wished-for id means for a step.

    A step publishes nothing, so what proves nothing about a publish is a mere failure here.
    """
    complaint = Complaint.read(reply)
    row = None if complaint is None else row_for(endpoint, complaint)
    if complaint is None or row is None:
        words = f"HTTP {reply.status}" if complaint is None else complaint.detail
        return Deferred(
            Reason.STEP_FAILED,
            f"Graph did not take the file: {_hidden(words, secrets)}",
            retry_after=seconds_to_wait(reply.headers),
            answer=reply.answer,
        )
    outcome = _outcome(row, reply, _hidden(complaint.detail, secrets))
    # No attempt was begun, so there is nothing a row could be the proof of.
    if isinstance(outcome, Deferred):
        return replace(outcome, row="", proof=Proof.NOT_SENT)
    return replace(outcome, row="")


def _outcome(row: Row, reply: Reply, detail: str) -> Rejected | Deferred | Unauthorized:
    match row.meaning:
        case Meaning.REJECTED:
            return Rejected(
                row.reason, detail, row.name, row.validated_before_storing, reply.answer
            )
        case Meaning.UNAUTHORIZED:
            return Unauthorized(
                row.reason, detail, row.name, row.validated_before_storing, reply.answer
            )
        case Meaning.DEFERRED:
            return Deferred(
                row.reason,
                detail,
                Proof.REFUSED,
                row.name,
                seconds_to_wait(reply.headers) or row.wait_for,
                row.rest_channel,
                row.validated_before_storing,
                reply.answer,
            )
        case Meaning.DOUBT:
            message = f"{row.name} proves nothing"
            raise ValueError(message)
        case _:
            assert_never(row.meaning)


def _hidden(text: str, secrets: tuple[str, ...]) -> str:
    """Take secrets out of Graph's words: it quotes a token that it finds malformed."""
    return Redaction(secrets)(text, _DETAIL_LIMIT)
