"""Our protocol with receivers: what we send, how it is signed, and what an answer means.

It is ours to define, so a status alone is a row here, which it is for no other platform:

* The body is JSON with ``id``, ``type``, ``created_at`` and ``data``; ``id`` is also in the header
  ``Publisher-Event-Id``. One event keeps its id and its body however often it comes; a receiver
  acts once for each id.
* ``Publisher-Signature: t=SECONDS,v1=HEX`` holds the HMAC-SHA256, under the channel's secret, of
  the time, a full stop and the body as it came. A receiver compares in constant time and refuses
  what is older than five minutes.
* **2xx**: taken. **400, 410, 413, 415, 422**: not taken, and not to be sent again. **401, 403**:
  the signature is not accepted; the channel needs a new secret. **404, 405**: nobody receives here
  at present, and **429**: too much at present (``Retry-After`` is kept to); it was not taken and
  comes again. Anything else says nothing, and the event comes again under the same id.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

from publisher.engine.adapter import Capabilities, Problem, Promise, TextUnit
from publisher.engine.content import ContentError, Happening, canonical
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
from publisher.words import N_, _

BODY_LIMIT: Final = 256_000
SECRET_LENGTH: Final = 16
_LONGEST_REST: Final = 3600.0

CAPABILITIES: Final = Capabilities(
    format="event",
    noun="webhook",
    # Not "exactly once": that is kept by the receiver, who must act once for each id. What we
    # promise is that it comes at least once, and that a repeat can be told from a second event.
    promise=Promise.SAFE_WHILE_THE_KEY_LIVES,
    can_look=False,
    listing_is_exhaustive=False,
    text_limit=BODY_LIMIT,
    text_unit=TextUnit.BYTES,
    repeat_for=float("inf"),
    # A receiver may be given the same id twice at once as well as twice in a row.
    repeat_is_atomic=True,
    queue="webhook",
    in_flight=8,
    name=N_("A webhook"),
    takes_posts=False,
)


@dataclass(frozen=True, slots=True)
class Row:
    """What one status means."""

    kind: type[Rejected | Deferred | Unauthorized]
    reason: Reason
    says: str


_NOT_AGAIN = Row(Rejected, Reason.CONTENT_REFUSED, "the receiver refuses this event")
_ACCESS = Row(Unauthorized, Reason.NEEDS_RECONNECTING, "the receiver refuses our signature")
_NOBODY = Row(Deferred, Reason.BUSY, "nobody receives at this address at present")
ROWS: Final[Mapping[int, Row]] = {
    400: _NOT_AGAIN,
    401: _ACCESS,
    403: _ACCESS,
    404: _NOBODY,
    405: _NOBODY,
    410: Row(Rejected, Reason.CONTENT_REFUSED, "the receiver takes no more events here"),
    413: _NOT_AGAIN,
    415: _NOT_AGAIN,
    422: _NOT_AGAIN,
    429: Row(Deferred, Reason.RATE_LIMITED, "the receiver takes no more just now"),
}


def event_id(key: str) -> str:
    """The id of a job's event, the same for ever."""
    return f"evt_{hashlib.sha256(key.encode()).hexdigest()[:32]}"


def body(event: str, content: str) -> bytes:
    """The body of an event, the same on every attempt. Raises ``ContentError``."""
    happening = Happening.from_json(content)
    parts = {
        "created_at": happening.at.isoformat(),
        "data": happening.data,
        "id": event,
        "type": happening.type,
    }
    return canonical(parts).encode()


def signature(secret: str, body: bytes, at: int) -> str:
    """What proves that the body is ours and from ``at``, in seconds since 1970."""
    digest = hmac.new(secret.encode(), b"%d." % at + body, hashlib.sha256).hexdigest()
    return f"t={at},v1={digest}"


def problems(content: str) -> tuple[Problem, ...]:
    """What could not be sent."""
    try:
        size = len(body(event_id(""), content))
    except ContentError as error:
        message = _("This event cannot be read: {why}.").format(why=error)
        return (Problem("text", "unreadable", message),)
    if size > BODY_LIMIT:
        message = _("An event has at most {limit:,} bytes; this one has {size:,}.").format(
            limit=BODY_LIMIT, size=size
        )
        return (Problem("text", "text-too-long", message),)
    return ()


def classify(event: str, reply: Reply, now: datetime) -> Outcome:
    """What a whole answer means, by the rows above."""
    if 200 <= reply.status < 300:  # noqa: PLR2004 - HTTP's successes
        return Published(event, answer=reply.answer)
    row = ROWS.get(reply.status)
    if row is None:
        detail = f"The receiver answered HTTP {reply.status}, which says nothing."
        return Unknown(Reason.UNLISTED_REFUSAL, detail, answer=reply.answer)
    return _refused(row, reply.status, reply.headers, reply.answer, now)


def _refused(
    row: Row, status: int, headers: Mapping[str, str], answer: Answer, now: datetime
) -> Rejected | Deferred | Unauthorized:
    detail, name = f"HTTP {status}: {row.says}.", f"webhook:{status}"
    if row.kind is Deferred:
        return Deferred(
            row.reason,
            detail,
            Proof.REFUSED,
            row=name,
            retry_after=retry_after(headers.get("retry-after"), now),
            rest_channel=row.reason is Reason.RATE_LIMITED,
            validated_before_storing=True,
            answer=answer,
        )
    refusal = Rejected if row.kind is Rejected else Unauthorized
    return refusal(row.reason, detail, name, validated_before_storing=True, answer=answer)


def retry_after(value: str | None, now: datetime) -> float | None:
    """Seconds that ``Retry-After`` asks for (RFC 9110, 10.2.3), an hour at most."""
    if value is None:
        return None
    text = value.strip()
    if text.isascii() and text.isdigit() and len(text) <= 10:  # noqa: PLR2004 - no more is meant
        return min(float(text), _LONGEST_REST)
    try:
        at = parsedate_to_datetime(text)
    except ValueError:
        return None
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return min(max((at - now).total_seconds(), 0.0), _LONGEST_REST)
