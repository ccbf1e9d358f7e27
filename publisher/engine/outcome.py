"""How an attempt ended, as the adapter saw it, and what may be proved from that.

Also how a deletion ended: unlike a publish it is safe to repeat, so it has no doubt to keep.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime
from enum import StrEnum


class Proof(StrEnum):
    """Why a further send is allowed although this one was begun."""

    NOT_SENT = "not_sent"
    """No request byte left this machine."""
    REFUSED = "refused"
    """The platform said no, in words on its closed list; the detail names the row."""
    ABSENT = "absent"
    """It is not on the page."""
    REPEAT_SAFE = "repeat_safe"
    """It may be on the page; a repeat cannot double it."""
    FORCED = "forced"
    """A person took the risk."""


class Reason(StrEnum):
    """Why an outcome is what it is. What people read is made from these."""

    # Certainly not published.
    CONNECT_FAILED = "connect_failed"
    PERMIT_LATE = "permit_late"
    NOT_STARTED = "not_started"
    BEGIN_UNACKNOWLEDGED = "begin_unacknowledged"
    SPOOL_FAILED = "spool_failed"
    RATE_LIMITED = "rate_limited"
    BLOCKED_FOR_A_WHILE = "blocked_for_a_while"
    BUSY = "busy"
    STEP_FAILED = "step_failed"
    CONTENT_REFUSED = "content_refused"
    DUPLICATE_CONTENT = "duplicate_content"
    MEDIA_REFUSED = "media_refused"
    NEEDS_RECONNECTING = "needs_reconnecting"
    MISSING_PERMISSION = "missing_permission"
    NO_ADAPTER = "no_adapter"
    TRIES_USED_UP = "tries_used_up"
    POISON = "poison"
    TOO_LATE = "too_late"
    BACKLOG = "backlog"
    CANNOT_LOOK = "cannot_look"
    REPLACED_IS_LIVE = "replaced_is_live"
    REPLACED_UNCLEAR = "replaced_unclear"
    REMOVAL_REFUSED = "removal_refused"
    # May be published.
    NO_ANSWER = "no_answer"
    CONNECTION_LOST = "connection_lost"
    ANSWER_CUT = "answer_cut"
    ANSWER_UNREADABLE = "answer_unreadable"
    SERVER_ERROR = "server_error"
    REDIRECTED = "redirected"
    UNLISTED_REFUSAL = "unlisted_refusal"
    NO_ID = "no_id"
    ID_OF_ANOTHER_JOB = "id_of_another_job"
    WORKER_DIED = "worker_died"
    DRAINED = "drained"
    ADAPTER_BROKE = "adapter_broke"
    LOOK_UNCLEAR = "look_unclear"
    REPEAT_ENDED = "repeat_ended"
    REMOVAL_UNCLEAR = "removal_unclear"


@dataclass(frozen=True, slots=True)
class Answer:
    """What the wire gave back, as far as it came; kept with the attempt, without secrets.

    ``sent``: bytes handed to the kernel, None when it is not known. ``body``: at most a few
    thousand characters. ``error``: the exception, in words, when there was one.
    """

    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str = ""
    sent: int | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Published:
    """It is on the page."""

    remote_id: str
    permalink: str | None = None
    at: datetime | None = None
    answer: Answer | None = None
    not_before: float | None = None
    """Seconds for which the channel should rest, when the platform's answer asks for it."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """Refused for good. ``row``: the line of the closed list that says so; empty for a step."""

    reason: Reason
    detail: str
    row: str = ""
    validated_before_storing: bool = False
    answer: Answer | None = None


@dataclass(frozen=True, slots=True)
class Deferred:
    """Certainly not published; may be tried again, no sooner than ``retry_after`` seconds.

    ``proof`` is ``not_sent`` or ``refused``; ``row`` names the line of the closed list.
    ``rest_channel``: the wait holds for the channel's other jobs too.
    """

    reason: Reason
    detail: str
    proof: Proof = Proof.NOT_SENT
    row: str = ""
    retry_after: float | None = None
    rest_channel: bool = False
    validated_before_storing: bool = False
    answer: Answer | None = None


@dataclass(frozen=True, slots=True)
class Unauthorized:
    """Certainly not published; the channel needs a person."""

    reason: Reason
    detail: str
    row: str = ""
    validated_before_storing: bool = False
    answer: Answer | None = None


@dataclass(frozen=True, slots=True)
class Unknown:
    """May or may not be published. ``remote_handle``: a clue to look for, such as a video id."""

    reason: Reason
    detail: str
    remote_handle: str | None = None
    answer: Answer | None = None


Outcome = Published | Rejected | Deferred | Unauthorized | Unknown

Certain = Rejected | Deferred | Unauthorized
"""Outcomes that say for certain that nothing was published."""


class NotWithdrawn(StrEnum):
    """Why a post could not be taken down."""

    UNSUPPORTED = "unsupported"
    """The platform deletes nothing, or not this."""
    REFUSED = "refused"
    NEEDS_RECONNECTING = "needs_reconnecting"
    RATE_LIMITED = "rate_limited"
    UNCLEAR = "unclear"
    """No answer, or none that says how it went; it may be gone, and asking again is harmless."""


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """It was on the page and was taken down."""


@dataclass(frozen=True, slots=True)
class AlreadyGone:
    """It is not on the page, and was not before we asked."""


@dataclass(frozen=True, slots=True)
class CannotWithdraw:
    """It is, or may be, still there. ``retry_after``: seconds, where the platform names them."""

    reason: NotWithdrawn
    detail: str
    retry_after: float | None = None


Withdrawal = Withdrawn | AlreadyGone | CannotWithdraw


def cannot_withdraw(failure: Certain) -> CannotWithdraw:
    """What a refusal, in the words of a step, means for a deletion."""
    match failure:
        case Unauthorized(reason=Reason.NEEDS_RECONNECTING):
            return CannotWithdraw(NotWithdrawn.NEEDS_RECONNECTING, failure.detail)
        case Deferred(reason=Reason.RATE_LIMITED):
            return CannotWithdraw(NotWithdrawn.RATE_LIMITED, failure.detail, failure.retry_after)
        case Deferred():
            return CannotWithdraw(NotWithdrawn.UNCLEAR, failure.detail, failure.retry_after)
        case _:
            return CannotWithdraw(NotWithdrawn.REFUSED, failure.detail)


_KINDS: dict[str, type[Outcome]] = {
    kind.__name__: kind for kind in (Published, Rejected, Deferred, Unauthorized, Unknown)
}
_NAMES = {kind: tuple(each.name for each in fields(kind)) for kind in _KINDS.values()}


def outcome_json(outcome: Outcome) -> dict[str, object]:
    """An outcome as plain JSON values."""
    facts: dict[str, object] = {"kind": type(outcome).__name__}
    # Not ``asdict`` of the whole: it copies each value deeply, on every send.
    for name in _NAMES[type(outcome)]:
        value = getattr(outcome, name)
        if isinstance(value, Answer):
            value = asdict(value)
        elif isinstance(value, datetime):
            value = value.isoformat()
        facts[name] = value
    return facts


def outcome_from_json(facts: Mapping[str, object]) -> Outcome:
    """Read what ``outcome_json`` wrote."""
    values = dict(facts)
    kind = _KINDS[str(values.pop("kind"))]
    if isinstance(answer := values.get("answer"), dict):
        values["answer"] = Answer(**answer)
    if isinstance(at := values.get("at"), str):
        values["at"] = datetime.fromisoformat(at)
    if "reason" in values:
        values["reason"] = Reason(str(values["reason"]))
    if "proof" in values:
        values["proof"] = Proof(str(values["proof"]))
    return kind(**values)  # type: ignore[arg-type]
