"""What follows from an outcome: the event, the next state, and when to try again. Pure.

Never a retry of a doubt: ``Unknown`` has one way out of here, and it is ``unknown``.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import assert_never

from publisher.engine.job import Hold, State, Token
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
from publisher.engine.transitions import Event

_ID_LIMIT = 500
_LINK_LIMIT = 2000


@dataclass(frozen=True, slots=True)
class Policy:
    """How often and how patiently. Durations are seconds."""

    tries: int = 5
    first: float = 30.0
    longest: float = 1800.0
    settling: float = 30.0
    deaths: int = 3
    jitter: Callable[[float, float], float] = random.uniform


@dataclass(frozen=True, slots=True)
class Standing:
    """What the policy needs to know of a job.

    ``ends_at``: its useful-until, or a day after it was due where it has none. ``begun``: there
    is an attempt to prove something about. ``sent``: its permit was used, so bytes may have left.
    ``can_look``: a refusal that was a lie would be found before the next send.
    """

    failures: int
    ends_at: datetime
    begun: bool
    sent: bool
    can_look: bool = True
    attempt: int | None = None


@dataclass(frozen=True, slots=True)
class Rest:
    """What an outcome means for the whole channel.

    ``seconds``: nothing is sent to it for that long. ``blocked``: a person must reconnect it.
    """

    seconds: float | None = None
    blocked: Reason | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Settlement:
    """How one claim or attempt ends: everything ``ledger.settle`` writes, decided.

    ``outcome`` is None for an end that is no outcome of a send, such as ``wait`` or ``release``.
    ``attempt`` is the begun attempt it is about, None where nothing was begun; ``about`` is that
    attempt's token where it is not the claim's own, as after a look. ``delay``: seconds until it
    runs again, where ``state`` is scheduled. ``failed`` is added to the count of failures.
    """

    event: Event
    state: State
    outcome: str | None = None
    reason: str | None = None
    detail: str = ""
    delay: float = 0.0
    failed: int = 0
    remote_id: str | None = None
    permalink: str | None = None
    proof: Proof | None = None
    proof_detail: str = ""
    answer: Answer | None = None
    remote_handle: str | None = None
    hold_reason: str | None = None
    rest: Rest | None = None
    attempt: int | None = None
    about: Token | None = None

    @property
    def may_be_live(self) -> bool:
        """Whether bytes of a begun send may have left."""
        return self.attempt is not None and self.proof is not Proof.NOT_SENT


def pause(policy: Policy, failures: int, at_least: float = 0.0) -> float:
    """Seconds to wait after the ``failures``-th failure (1 is the first).

    The step doubles from ``first`` to ``longest``; jitter takes between half and the whole of
    it; the result is never below ``first`` nor below ``at_least`` (a platform's Retry-After).
    """
    step = min(policy.first * 2.0 ** min(failures - 1, 60), policy.longest)
    return max(policy.jitter(step / 2, step), policy.first, at_least)


def settle(outcome: Outcome, standing: Standing, policy: Policy, now: datetime) -> Settlement:
    """Decide what follows from ``outcome``, seen at ``now`` on the database's clock.

    ``standing.begun`` says whether a send had been begun: only then does a certain failure need
    a proof, and only then can there be an ``Unknown``.
    """
    match outcome:
        case Published():
            return _published(outcome, standing)
        case Unknown():
            return _unknown(outcome.reason, outcome.detail, outcome.answer, outcome.remote_handle)
        case Rejected() | Unauthorized() | Deferred() if _could_be_a_lie(outcome, standing):
            detail = f"{outcome.detail} (this platform cannot be looked at to make sure)"
            return _unknown(outcome.reason, detail, outcome.answer, None)
        case Rejected():
            return Settlement(
                Event.REJECT,
                State.FAILED,
                outcome="rejected",
                reason=outcome.reason,
                detail=outcome.detail,
                proof=_proof(standing),
                proof_detail=outcome.row,
                answer=outcome.answer,
            )
        case Unauthorized():
            return Settlement(
                Event.UNAUTHORIZED,
                State.SCHEDULED,
                outcome="unauthorized",
                reason=outcome.reason,
                detail=outcome.detail,
                delay=max(policy.settling, policy.first),
                proof=_proof(standing),
                proof_detail=outcome.row,
                answer=outcome.answer,
                rest=Rest(blocked=outcome.reason, detail=outcome.detail),
            )
        case Deferred():
            return _deferred(outcome, standing, policy, now)
        case _:  # pragma: no cover - mypy proves that nothing gets here
            assert_never(outcome)


def _published(outcome: Published, standing: Standing) -> Settlement:
    if not is_storable_id(outcome.remote_id):
        detail = "the id in the answer is none that can be kept"
        return _unknown(Reason.NO_ID, detail, outcome.answer, None)
    return Settlement(
        Event.PUBLISH,
        State.PUBLISHED,
        outcome="published",
        remote_id=outcome.remote_id,
        permalink=storable_link(outcome.permalink),
        answer=outcome.answer,
        rest=Rest(seconds=outcome.not_before) if outcome.not_before else None,
        attempt=standing.attempt,
    )


def _could_be_a_lie(outcome: Rejected | Unauthorized | Deferred, standing: Standing) -> bool:
    """A refusal of a begun send that no look could check and that is not validated first."""
    return standing.sent and not standing.can_look and not outcome.validated_before_storing


def _proof(standing: Standing) -> Proof | None:
    if not standing.begun:
        return None
    return Proof.REFUSED if standing.sent else Proof.NOT_SENT


def _unknown(reason: Reason, detail: str, answer: Answer | None, handle: str | None) -> Settlement:
    return Settlement(
        Event.LOSE_ANSWER,
        State.UNKNOWN,
        outcome="unknown",
        reason=reason,
        detail=detail,
        answer=answer,
        remote_handle=handle,
    )


def _deferred(outcome: Deferred, standing: Standing, policy: Policy, now: datetime) -> Settlement:
    failures = standing.failures + 1
    at_least = outcome.retry_after or 0.0
    if standing.sent:
        at_least = max(at_least, policy.settling)
    delay = pause(policy, failures, at_least)
    used_up = failures >= policy.tries
    too_late = now + timedelta(seconds=delay) >= standing.ends_at
    rest = Rest(seconds=delay, detail=outcome.detail) if outcome.rest_channel else None
    ended = used_up or too_late
    why = "no tries left" if used_up else "no time left before it stops being useful"
    return Settlement(
        Event.DEFER,
        State.FAILED if ended else State.SCHEDULED,
        outcome="deferred",
        reason=outcome.reason,
        detail=f"{outcome.detail} ({why})" if ended else outcome.detail,
        delay=0.0 if ended else delay,
        failed=1,
        proof=_proof(standing),
        proof_detail=outcome.row,
        answer=outcome.answer,
        rest=rest,
    )


def release(reason: str = "", delay: float = 0.0) -> Settlement:
    """Give a claimed job back unharmed."""
    return Settlement(Event.RELEASE, State.SCHEDULED, reason=reason or None, delay=delay)


def wait(reason: str, seconds: float) -> Settlement:
    """Give a claimed job back until its platform has worked on."""
    return Settlement(Event.WAIT, State.SCHEDULED, reason=reason, delay=seconds)


def expire() -> Settlement:
    """End a claimed job whose useful time is over."""
    return Settlement(
        Event.EXPIRE, State.MISSED, reason=Reason.TOO_LATE, detail="its useful time was over"
    )


def is_storable_id(remote_id: str) -> bool:
    """Whether this can be a remote id: a key of at most 500 printable characters."""
    return 0 < len(remote_id) <= _ID_LIMIT and remote_id.isprintable()


def storable_link(permalink: str | None) -> str | None:
    """The address, where it can be kept and shown."""
    if permalink is None or len(permalink) > _LINK_LIMIT or not permalink.isprintable():
        return None
    return permalink


def found(remote_id: str, permalink: str | None, *, attempt: int, about: Token) -> Settlement:
    """A look before a second send found the first one on the page."""
    if not is_storable_id(remote_id):
        return look_unclear("what was found has an id that cannot be kept")
    return Settlement(
        Event.CONFIRM_PUBLISHED,
        State.PUBLISHED,
        outcome="published",
        remote_id=remote_id,
        permalink=storable_link(permalink),
        detail="found on the page before a second send",
        attempt=attempt,
        about=about,
    )


def lost_by_the_database(attempt: int) -> Settlement:
    """A send under way whose record is gone: the database was restored, or failed over."""
    return Settlement(
        Event.SPOOL_FOUND,
        State.UNKNOWN,
        outcome="unknown",
        reason=Reason.WORKER_DIED,
        detail="the database lost the record of this send while it was under way",
        attempt=attempt,
    )


def repeat_ended() -> Settlement:
    """The platform has forgotten the key that made a repeat safe; the first send may be live."""
    return Settlement(
        Event.REPEAT_ENDED,
        State.UNKNOWN,
        reason=Reason.REPEAT_ENDED,
        detail="the platform's key has lapsed, so a repeat could double it",
    )


def look_unclear(detail: str) -> Settlement:
    """A look before a second send could not rule out that the first one is on the page."""
    return Settlement(Event.LOOK_UNCLEAR, State.UNKNOWN, reason=Reason.LOOK_UNCLEAR, detail=detail)


def replaced_is_live(detail: str) -> Settlement:
    """What the job was to take the place of is on the page, so it is not sent."""
    return Settlement(Event.CANCEL, State.CANCELLED, reason=Reason.REPLACED_IS_LIVE, detail=detail)


def replaced_unclear(detail: str) -> Settlement:
    """Nobody knows whether what the job replaces is on the page: a person looks first."""
    return Settlement(
        Event.HOLD,
        State.SCHEDULED,
        reason=Reason.REPLACED_UNCLEAR,
        detail=detail,
        hold_reason=Hold.REPLACED,
    )


def begin_unacknowledged(delay: float) -> Settlement:
    """``begin_send`` was not acknowledged, so nothing was sent, whatever the database holds.

    Counts no failure: it says nothing about the post or its platform.
    """
    return not_sent(
        Reason.BEGIN_UNACKNOWLEDGED,
        "the record of the send was not confirmed, so it was not sent",
        delay,
    )


def not_sent(reason: Reason, detail: str, delay: float) -> Settlement:
    """A begun attempt under which no byte left, through no fault of the job's."""
    return Settlement(
        Event.DEFER,
        State.SCHEDULED,
        outcome="deferred",
        reason=reason,
        detail=detail,
        delay=delay,
        proof=Proof.NOT_SENT,
    )
