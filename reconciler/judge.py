"""What follows from a look: a verdict, another look, or a question to a person. Pure.

The default is another look, and after the last one a person. Nothing here guesses.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import assert_never

from publisher.engine.adapter import Capabilities
from publisher.engine.evidence import Absent, Evidence, Found, Inconclusive
from publisher.engine.retry import is_storable_id, storable_link
from publisher.engine.sender import Sender


@dataclass(frozen=True, slots=True)
class Patience:
    """How often to look and how long to wait, in seconds; ``limit`` looks, then a person."""

    first: float = 30.0
    longest: float = 900.0
    limit: int = 8
    horizon: timedelta = timedelta(seconds=60)
    requeue_absent: bool = False
    """A channel's policy: send again by itself what is proved absent. The default is to ask."""

    def pause(self, looks: int) -> float:
        """Seconds until the next look, after ``looks`` of them."""
        return float(min(self.first * 2.0 ** min(looks, 30), self.longest))


@dataclass(frozen=True, slots=True)
class Case:
    """The facts a judgement is made of, as they were when the look began.

    ``looks`` were made before this one. ``latest``: sends begun so far; ``attempt``: the one in
    question, 0 where the database lost it. ``repeat_until`` is when the platform forgets the first
    attempt's key; None where it never does, or takes none. ``repeat_ended``: a repeat was to be
    made, and somebody called it off, it was refused, or it came too late. ``arrives_until``: what
    a database lacks that was put back may arrive until then. ``removes``: it takes a post down, so
    ``Absent`` says of it that the post is there still.
    """

    capabilities: Capabilities
    sender: Sender
    began_at: datetime
    now: datetime
    looks: int
    latest: int
    attempt: int
    repeat_until: datetime | None = None
    useful_until: datetime | None = None
    repeat_ended: bool = False
    arrives_until: datetime | None = None
    removes: bool = False


@dataclass(frozen=True, slots=True)
class ItIsLive:
    """Beyond doubt."""

    remote_id: str
    permalink: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class ItIsAbsent:
    """Beyond doubt; ``send`` it again, as the channel's policy says."""

    reason: str
    send: bool


@dataclass(frozen=True, slots=True)
class RepeatIt:
    """A repeat cannot double it, made in ``after`` seconds.

    ``until``: no longer than that; None: for ever.
    """

    reason: str
    until: datetime | None
    after: float


@dataclass(frozen=True, slots=True)
class LookAgain:
    """Nothing is proved yet; look again in ``pause`` seconds."""

    pause: float
    why: str


@dataclass(frozen=True, slots=True)
class AskAPerson:
    """No machine can decide it. ``pause``: go on looking meanwhile, in case it shows; or None."""

    reason: str
    pause: float | None = None


_REMOVE = "not known to be gone, and asking for its deletion again deletes nothing else"

Judgement = ItIsLive | ItIsAbsent | RepeatIt | LookAgain | AskAPerson


def judge(case: Case, evidence: Evidence, patience: Patience) -> Judgement:
    """Decide what follows from ``evidence``."""
    if isinstance(evidence, Found):
        if not is_storable_id(evidence.remote_id):
            return _again(case, patience, "what was found has an id that cannot be kept")
        reason = "found on the page, and it can be no other"
        if case.removes:
            reason = "the post is gone from the page"
        return ItIsLive(evidence.remote_id, storable_link(evidence.permalink), reason)
    after = patience.pause(case.latest - 1)
    if _may_repeat(case, evidence, patience, case.now + timedelta(seconds=after)):
        reason = "not seen, and the platform keeps one post per key: a repeat cannot double it"
        return RepeatIt(_REMOVE if case.removes else reason, case.repeat_until, after)
    match evidence:
        case Absent(searched):
            return _absent(case, searched, patience)
        case Inconclusive():
            return _inconclusive(case, evidence, patience)
        case _:  # pragma: no cover - mypy proves that nothing gets here
            assert_never(evidence)


def _may_repeat(
    case: Case, evidence: Absent | Inconclusive, patience: Patience, at: datetime
) -> bool:
    """Whether a platform key makes another send harmless ``at`` that instant.

    An atomic key does at any time, the first sender alive or not. Any other only when nothing of
    the first can arrive any more and a look saw nothing that could be it. What was called off is
    not taken up again, and what stands in the key's place is no reason to press on.
    """
    capabilities = case.capabilities
    if capabilities.repeat_for is None or case.latest >= patience.limit or case.repeat_ended:
        return False
    if case.repeat_until is not None and at >= case.repeat_until:
        return False
    if case.useful_until is not None and at >= case.useful_until:
        return False
    if isinstance(evidence, Inconclusive) and evidence.candidates:
        return False
    if capabilities.repeat_is_atomic:
        return True
    unseen = isinstance(evidence, Absent) or evidence.clean
    return unseen and _nothing_can_arrive(case, patience)


def before_looking(case: Case, patience: Patience | None = None) -> Judgement | None:
    """What no look can help: then it is repeated where that is safe, or a person is asked.

    An atomic key needs no proof that the first send is absent, only somebody who knows it: a
    receiver of webhooks does. The pauses between such repeats grow as those between looks do.
    """
    if case.attempt == 0:
        return AskAPerson("the database lost the record of this send")
    if case.capabilities.can_look:
        return None
    patience = patience or Patience()
    after = patience.pause(case.latest - 1)
    at = case.now + timedelta(seconds=after)
    nothing_seen = Inconclusive("this platform cannot be looked at")
    if case.capabilities.repeat_is_atomic and _may_repeat(case, nothing_seen, patience, at):
        reason = "whoever has it knows it by its key: a repeat cannot double it"
        return RepeatIt(_REMOVE if case.removes else reason, case.repeat_until, after)
    return AskAPerson(nothing_seen.reason)


def _absent(case: Case, searched: int, patience: Patience) -> Judgement:
    """A complete listing without it counts only when nothing can arrive any more."""
    if case.removes:
        return _still_there(case, patience)
    if not _nothing_can_arrive(case, patience):
        return _again(case, patience, f"not among {searched}, but it may still arrive")
    if patience.requeue_absent and _still_useful(case) and not case.repeat_ended:
        return ItIsAbsent(f"a complete listing of {searched} does not hold it", send=True)
    return AskAPerson(f"it is not on the page ({searched} looked through); send it again?")


def _still_there(case: Case, patience: Patience) -> Judgement:
    """A post that is to go, and was just seen: nobody need be asked what that means.

    It is asked for again while tries remain and nobody called it off, else it has failed.
    """
    if not _nothing_can_arrive(case, patience):
        return _again(case, patience, "the post is still there, and may yet go")
    send = case.latest < patience.limit and not case.repeat_ended
    return ItIsAbsent("the post is still there", send=send)


def _inconclusive(case: Case, evidence: Inconclusive, patience: Patience) -> Judgement:
    if len(evidence.candidates) > 1:
        return _ask(case, patience, f"{len(evidence.candidates)} posts on the page could be it")
    return _again(case, patience, evidence.reason)


def _again(case: Case, patience: Patience, why: str) -> Judgement:
    if case.looks + 1 >= patience.limit:
        return AskAPerson(why)
    return LookAgain(patience.pause(case.looks), why)


def _ask(case: Case, patience: Patience, why: str) -> Judgement:
    """Ask now, and go on looking while looks remain: a late post may make it plain."""
    if case.looks + 1 >= patience.limit:
        return AskAPerson(why)
    return AskAPerson(why, patience.pause(case.looks))


def _nothing_can_arrive(case: Case, patience: Patience) -> bool:
    unlocks_at = case.sender.unlocks_at(patience.horizon)
    if unlocks_at is None or unlocks_at > case.began_at:
        return False
    return case.arrives_until is None or case.arrives_until <= case.began_at


def _still_useful(case: Case) -> bool:
    return case.useful_until is None or case.now < case.useful_until
