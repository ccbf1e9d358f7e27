"""The closed list: which answers prove that a post was not published.

Mastodon has no error codes; what it has is a JSON object whose ``error`` is a sentence, often in
the language of the account. An answer without one comes from something else on the way, and so
proves nothing; neither does a status that stands on no row, such as the 400, 404 and 410 that
compatible servers use as they please.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import assert_never

from publisher.engine.outcome import Deferred, Proof, Reason, Rejected, Unauthorized
from publisher.transport import Reply
from publisher.transport.redaction import Redaction

_DETAIL_LIMIT = 300
_LONGEST_SECONDS = 86_400.0
_LIMITED_SECONDS = 300.0
"""The window of ``content/en/api/rate-limits.md``, where an answer names no end."""
_BEARER_CODE = re.compile(r'\berror="?([a-z_]+)"?')


class Meaning(StrEnum):
    """What a row proves."""

    REJECTED = "rejected"
    DEFERRED = "deferred"
    UNAUTHORIZED = "unauthorized"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the list. The first that fits decides.

    ``says``: words (lower case) of which one must be in the sentence; empty: any sentence.
    ``bearer``: the code of RFC 6750 in ``WWW-Authenticate`` fits in their place.
    ``first_only``: proves something on a first attempt alone.
    """

    name: str
    status: int
    meaning: Meaning
    reason: Reason
    source: str
    says: tuple[str, ...] = ()
    bearer: str | None = None
    first_only: bool = False
    validated_before_storing: bool = False

    def fits(self, complaint: Complaint) -> bool:
        """Whether the row is about this answer."""
        if self.status != complaint.status:
            return False
        if self.bearer is not None and complaint.bearer == self.bearer:
            return True
        words = complaint.message.casefold()
        return not self.says or any(part in words for part in self.says)


@dataclass(frozen=True, slots=True)
class Complaint:
    """What a server says is wrong. ``bearer``: the code in ``WWW-Authenticate``."""

    status: int
    message: str
    bearer: str | None = None

    @classmethod
    def read(cls, reply: Reply) -> Complaint | None:
        """The complaint in a reply, or None when its body is not one."""
        body = reply.json()
        error = body.get("error") if isinstance(body, dict) else None
        if not isinstance(error, str) or not error.strip():
            return None
        more = body.get("error_description") if isinstance(body, dict) else None
        message = f"{error}: {more}" if isinstance(more, str) and more else error
        code = _BEARER_CODE.search(reply.headers.get("www-authenticate", ""))
        return cls(reply.status, " ".join(message.split()), None if code is None else code[1])


_DOCS = "mastodon/documentation@2903485 content/en/methods/statuses.md"
_RESCUES = "mastodon/mastodon app/controllers/concerns/api/error_handling.rb"
_RFC6750 = "RFC 6750, section 3.1"

# Pleroma keeps a refusal for six hours per key and gives it again, so on a later attempt a 422
# may be the echo of an earlier one: there none is believed.
CLOSED_LIST: tuple[Row, ...] = (
    Row("mastodon/401-token", 401, Meaning.UNAUTHORIZED, Reason.NEEDS_RECONNECTING, _RFC6750,
        says=("access token", "invalid_token"), bearer="invalid_token",
        validated_before_storing=True),
    Row("mastodon/401", 401, Meaning.UNAUTHORIZED, Reason.NEEDS_RECONNECTING, _DOCS),
    Row("mastodon/403-scope", 403, Meaning.UNAUTHORIZED, Reason.MISSING_PERMISSION, _RFC6750,
        says=("authorized scopes", "insufficient_scope"), bearer="insufficient_scope",
        validated_before_storing=True),
    Row("mastodon/403", 403, Meaning.UNAUTHORIZED, Reason.NEEDS_RECONNECTING, _RESCUES),
    Row("mastodon/429", 429, Meaning.DEFERRED, Reason.RATE_LIMITED,
        f"{_RESCUES}; content/en/api/rate-limits.md", validated_before_storing=True),
    Row("mastodon/422-not-processed", 422, Meaning.DEFERRED, Reason.BUSY,
        "config/locales/en.yml media_attachments.validations.not_ready",
        says=("finished processing", "not finished"), first_only=True,
        validated_before_storing=True),
    Row("mastodon/422-media", 422, Meaning.REJECTED, Reason.MEDIA_REFUSED,
        "config/locales/en.yml media_attachments.validations",
        says=("media", "attach", "file"), first_only=True, validated_before_storing=True),
    Row("mastodon/422-text", 422, Meaning.REJECTED, Reason.CONTENT_REFUSED, _RESCUES,
        says=("validation failed", "can't be blank", "too long", "character limit"),
        first_only=True, validated_before_storing=True),
    # The same in the account's own language, which no list of words can hold.
    Row("mastodon/422", 422, Meaning.REJECTED, Reason.CONTENT_REFUSED, _RESCUES, first_only=True),
)  # fmt: skip


def classify(
    reply: Reply, attempts: int, *, secrets: tuple[str, ...] = ()
) -> Rejected | Deferred | Unauthorized | None:
    """What a 4xx answer to the publishing call proves; None: nothing, the post may be live.

    ``attempts``: how many were begun before this one.
    """
    complaint = Complaint.read(reply)
    row = None if complaint is None else row_for(complaint)
    if complaint is None or row is None or (attempts > 0 and (row.first_only or _is_echo(reply))):
        return None
    return _outcome(row, reply, hidden(complaint.message, secrets))


def row_for(complaint: Complaint) -> Row | None:
    """The row that decides, or None where the list has none."""
    return next((row for row in CLOSED_LIST if row.fits(complaint)), None)


def step_failure(
    what: str, reply: Reply, *, secrets: tuple[str, ...] = ()
) -> Rejected | Deferred | Unauthorized:
    """What a reply that is no success means for a step, which publishes nothing."""
    complaint = Complaint.read(reply)
    row = None if complaint is None else row_for(complaint)
    if complaint is None or row is None:
        words = f"HTTP {reply.status}" if complaint is None else complaint.message
        return Deferred(
            Reason.STEP_FAILED,
            f"{what}: {hidden(words, secrets)}",
            retry_after=seconds_to_wait(reply),
            answer=reply.answer,
        )
    outcome = _outcome(row, reply, f"{what}: {hidden(complaint.message, secrets)}")
    # No attempt was begun, so there is nothing a row could be the proof of.
    if isinstance(outcome, Deferred):
        return replace(outcome, row="", proof=Proof.NOT_SENT)
    return replace(outcome, row="")


def seconds_to_wait(reply: Reply) -> float | None:
    """Seconds until the server takes requests again, or None when it does not say.

    ``Retry-After`` in seconds, or ``X-RateLimit-Reset``: an ISO 8601 time, or on some servers
    seconds since 1970. It is held against the answer's own ``Date``, not against our clock.
    """
    seconds = _number(reply.headers.get("retry-after", ""))
    reset = _instant(reply.headers.get("x-ratelimit-reset", ""))
    if reset is not None:
        seconds = max(seconds, (reset - _date(reply)).total_seconds())
    return min(seconds, _LONGEST_SECONDS) if seconds > 0 else None


def seconds_to_rest(reply: Reply) -> float | None:
    """Seconds the channel should rest after a success: until the reset when nothing is left."""
    left = reply.headers.get("x-ratelimit-remaining", "").strip()
    return seconds_to_wait(reply) if left == "0" else None


def hidden(text: str, secrets: tuple[str, ...]) -> str:
    """Take secrets out of a server's words, and cut them to a line."""
    return Redaction(secrets)(text, _DETAIL_LIMIT)


def _is_echo(reply: Reply) -> bool:
    """Whether the server says that it gave an earlier answer again."""
    return reply.headers.get("idempotent-replayed", "").casefold() == "true"


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
            limited = row.reason is Reason.RATE_LIMITED
            return Deferred(
                row.reason,
                detail,
                Proof.REFUSED,
                row.name,
                seconds_to_wait(reply) or (_LIMITED_SECONDS if limited else None),
                limited,
                row.validated_before_storing,
                reply.answer,
            )
        case _:
            assert_never(row.meaning)


def _number(text: str) -> float:
    return float(text) if re.fullmatch(r"[0-9]{1,10}", text.strip()) else 0.0


def _instant(text: str) -> datetime | None:
    if (epoch := _number(text)) > 0:
        return datetime.fromtimestamp(epoch, UTC)
    try:
        at = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def _date(reply: Reply) -> datetime:
    try:
        at = parsedate_to_datetime(reply.headers.get("date", ""))
    except ValueError:
        return datetime.now(UTC)
    return at if at.tzinfo else at.replace(tzinfo=UTC)
