"""The closed list: which of a server's answers prove that a post was not published.

Whatever is not a row here may be live. A row is an error's name with the statuses it comes with,
never a bare status: a gateway in front of a server speaks HTTP too, and knows nothing of records.
The sources are files of bluesky-social/atproto, ``@atproto/pds`` 0.5.35; all that ``putRecord``
refuses, it refuses before or inside the one transaction that stores the record.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import assert_never

from publisher.adapters.bluesky.xrpc import Complaint, Server, words_of
from publisher.engine.outcome import Deferred, Proof, Reason, Rejected, Unauthorized
from publisher.transport import Reply


class Call(StrEnum):
    """Calls whose refusals are told apart. All but ``PUT`` are steps."""

    PUT = "com.atproto.repo.putRecord"
    UPLOAD = "com.atproto.repo.uploadBlob"
    DELETE = "com.atproto.repo.deleteRecord"
    RESOLVE = "com.atproto.identity.resolveHandle"
    CREATE_SESSION = "com.atproto.server.createSession"
    REFRESH_SESSION = "com.atproto.server.refreshSession"


class Meaning(StrEnum):
    """What a row proves."""

    REJECTED = "rejected"
    DEFERRED = "deferred"
    UNAUTHORIZED = "unauthorized"
    DOUBT = "doubt"
    """Nothing."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the list. ``wait_for``: seconds, where the answer names none."""

    name: str
    calls: frozenset[Call]
    errors: frozenset[str]
    statuses: frozenset[int]
    meaning: Meaning
    reason: Reason
    says: str
    source: str
    wait_for: float | None = None
    rest_channel: bool = False

    def fits(self, call: Call, complaint: Complaint) -> bool:
        """Whether the row is about this answer of this call."""
        return (
            call in self.calls
            and complaint.error in self.errors
            and complaint.status in self.statuses
        )


EVERY = frozenset(Call)
PUT = frozenset({Call.PUT})
UPLOAD = frozenset({Call.UPLOAD})
WITH_A_SESSION = frozenset({Call.PUT, Call.UPLOAD, Call.DELETE, Call.RESOLVE})
LOG_IN = frozenset({Call.CREATE_SESSION})
BAD = frozenset({400})
BAD_OR_REFUSED = frozenset({400, 401, 403})
REFUSED = frozenset({401, 403})

_PUT = "pds/src/api/com/atproto/repo/putRecord.ts"
_AUTH = "pds/src/auth-verifier.ts"
_BLOBS = "pds/src/actor-store/blob/transactor.ts"
_LOGIN = "pds/src/account-manager/account-manager.ts"
_RECONNECT = "Make a new app password in Bluesky and reconnect this account."

CLOSED_LIST: tuple[Row, ...] = (
    # Another record lies under our key: an earlier attempt of ours that was built otherwise, or
    # somebody else's. Only the record itself can tell.
    Row("bluesky/InvalidSwap", PUT, frozenset({"InvalidSwap"}), BAD,
        Meaning.DOUBT, Reason.UNLISTED_REFUSAL,
        "There is a record under this post's key already.", _PUT),
    Row("bluesky/RateLimitExceeded", EVERY, frozenset({"RateLimitExceeded"}), frozenset({429}),
        Meaning.DEFERRED, Reason.RATE_LIMITED,
        "Bluesky takes no more from this account for a while.",
        "xrpc-server/src/rate-limiter-http.ts: counted before the call is handled",
        wait_for=300.0, rest_channel=True),
    # The session: two hours long, and its end comes as HTTP 400.
    Row("bluesky/ExpiredToken", WITH_A_SESSION, frozenset({"ExpiredToken"}), BAD_OR_REFUSED,
        Meaning.DEFERRED, Reason.BUSY,
        "The session had ended; it is renewed before the next try.", _AUTH),
    Row("bluesky/InvalidToken", WITH_A_SESSION, frozenset({"InvalidToken"}), BAD_OR_REFUSED,
        Meaning.UNAUTHORIZED, Reason.NEEDS_RECONNECTING,
        f"Bluesky does not know this session. {_RECONNECT}", _AUTH),
    Row("bluesky/AuthMissing", WITH_A_SESSION,
        frozenset({"AuthMissing", "AuthenticationRequired"}), REFUSED,
        Meaning.UNAUTHORIZED, Reason.NEEDS_RECONNECTING,
        f"Bluesky does not accept this access. {_RECONNECT}", f"{_AUTH}; {_PUT}"),
    Row("bluesky/login", LOG_IN, frozenset({"AuthenticationRequired"}), REFUSED,
        Meaning.UNAUTHORIZED, Reason.NEEDS_RECONNECTING,
        f"Bluesky does not accept the app password. {_RECONNECT}", _LOGIN),
    Row("bluesky/AuthFactorTokenRequired", LOG_IN, frozenset({"AuthFactorTokenRequired"}), REFUSED,
        Meaning.UNAUTHORIZED, Reason.NEEDS_RECONNECTING,
        f"Bluesky asks for a code by mail, as it does for the main password. {_RECONNECT}",
        "lexicons/com/atproto/server/createSession.json"),
    Row("bluesky/AccountTakedown", EVERY, frozenset({"AccountTakedown"}), BAD_OR_REFUSED,
        Meaning.UNAUTHORIZED, Reason.NEEDS_RECONNECTING,
        "Bluesky has taken this account down. Its owner must ask Bluesky why.", _AUTH),
    Row("bluesky/AccountDeactivated", EVERY, frozenset({"AccountDeactivated"}), REFUSED,
        Meaning.UNAUTHORIZED, Reason.NEEDS_RECONNECTING,
        "This account is switched off. Its owner can switch it on again in Bluesky.", _AUTH),
    Row("bluesky/AccountNotFound", EVERY, frozenset({"AccountNotFound"}), BAD_OR_REFUSED,
        Meaning.UNAUTHORIZED, Reason.NEEDS_RECONNECTING,
        "There is no such account on this server. It may have moved; reconnect it.", _AUTH),
    # What the post holds.
    Row("bluesky/BlobNotFound", PUT, frozenset({"BlobNotFound"}), BAD,
        Meaning.DEFERRED, Reason.BUSY,
        "Bluesky no longer has a picture; it is uploaded again before the next try.", _BLOBS),
    Row("bluesky/blob", PUT, frozenset({"InvalidMimeType", "InvalidSize"}), BAD,
        Meaning.REJECTED, Reason.MEDIA_REFUSED, "Bluesky refuses a picture.", _BLOBS),
    Row("bluesky/InvalidRequest", PUT, frozenset({"InvalidRequest", "InvalidRecord"}), BAD,
        Meaning.REJECTED, Reason.CONTENT_REFUSED, "Bluesky refuses this post.", _PUT),
    Row("bluesky/PayloadTooLarge", PUT, frozenset({"PayloadTooLarge"}), frozenset({413}),
        Meaning.REJECTED, Reason.CONTENT_REFUSED, "Bluesky refuses this post.",
        "xrpc-server/src/util.ts"),
    Row("bluesky/upload", UPLOAD, frozenset({"InvalidRequest", "PayloadTooLarge"}),
        frozenset({400, 413}),
        Meaning.REJECTED, Reason.MEDIA_REFUSED, "Bluesky refuses a picture.", _BLOBS),
)  # fmt: skip

_LONGEST_SECONDS = 86_400.0
"""No header makes us wait longer: the longest of the limits is a day's."""


def row_for(call: Call, complaint: Complaint) -> Row | None:
    """The row about an answer, or None where the list has none."""
    return next((row for row in CLOSED_LIST if row.fits(call, complaint)), None)


def classify(server: Server, reply: Reply) -> Rejected | Deferred | Unauthorized | None:
    """What a 4xx answer to ``putRecord`` proves; None: nothing, the post may be live."""
    complaint = Complaint.read(reply)
    row = None if complaint is None else row_for(Call.PUT, complaint)
    if row is None or row.meaning is Meaning.DOUBT:
        return None
    return _outcome(row, server, reply)


def step_failure(
    call: Call, server: Server, reply: Reply, *, keeps_answer: bool = True
) -> Rejected | Deferred | Unauthorized:
    """What a reply that is not the wished-for one means for a step.

    A step publishes nothing, so what proves nothing about a publish is a mere failure here.
    ``keeps_answer``: False for calls whose answers hold tokens that no redaction can know yet.
    """
    complaint = Complaint.read(reply)
    row = None if complaint is None else row_for(call, complaint)
    if row is None or row.meaning is Meaning.DOUBT:
        detail = f"Bluesky did not do {call}: {words_of(server, reply)}"
        wait = seconds_to_wait(reply.headers)
        failure: Rejected | Deferred | Unauthorized = Deferred(
            Reason.STEP_FAILED, detail, retry_after=wait, answer=reply.answer
        )
    else:
        failure = _outcome(row, server, reply)
    # No attempt was begun, so there is nothing a row could be the proof of.
    answer = failure.answer if keeps_answer else None
    if isinstance(failure, Deferred):
        return replace(failure, row="", proof=Proof.NOT_SENT, answer=answer)
    return replace(failure, row="", answer=answer)


def seconds_to_wait(headers: Mapping[str, str]) -> float | None:
    """Seconds until the server takes calls again, or None when the headers do not say.

    ``Retry-After`` is in seconds; ``RateLimit-Reset`` is an instant, in seconds since 1970 on the
    server's clock, which its ``Date`` shows (xrpc-server ``rate-limiter-http.ts``).
    """
    waits = [_number(headers.get("retry-after", ""))]
    reset, date = _number(headers.get("ratelimit-reset", "")), headers.get("date", "")
    if reset > 0:
        try:
            waits.append(reset - parsedate_to_datetime(date).timestamp())
        except (ValueError, TypeError, OverflowError):
            waits.append(0.0)
    longest = max(waits)
    return min(longest, _LONGEST_SECONDS) if longest > 0 else None


def seconds_to_rest(headers: Mapping[str, str]) -> float | None:
    """Seconds a channel should rest after a success: only when that used its limit up."""
    remaining = headers.get("ratelimit-remaining", "").strip()
    return seconds_to_wait(headers) if remaining == "0" else None


def _outcome(row: Row, server: Server, reply: Reply) -> Rejected | Deferred | Unauthorized:
    detail = f"{row.says} It said: {words_of(server, reply)}"
    match row.meaning:
        case Meaning.REJECTED:
            return Rejected(row.reason, detail, row.name, True, reply.answer)
        case Meaning.UNAUTHORIZED:
            return Unauthorized(row.reason, detail, row.name, True, reply.answer)
        case Meaning.DEFERRED:
            return Deferred(
                row.reason,
                detail,
                Proof.REFUSED,
                row.name,
                seconds_to_wait(reply.headers) or row.wait_for,
                row.rest_channel,
                validated_before_storing=True,
                answer=reply.answer,
            )
        case Meaning.DOUBT:
            message = f"{row.name} proves nothing"
            raise ValueError(message)
        case _:
            assert_never(row.meaning)


def _number(value: str) -> float:
    """A finite, positive number, or 0."""
    try:
        number = float(value)
    except ValueError:
        return 0.0
    return number if math.isfinite(number) and number > 0 else 0.0
