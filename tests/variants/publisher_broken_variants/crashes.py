"""Broken variants of the engine: a harness that lets one of them pass proves nothing.

Each is a patch of a forked process of the harness alone, and, where the database itself would
refuse what the variant does, the guard is taken out of that schedule's own database. ``aim`` is
what brings the fault to light: it says how the schedule must be, not what it must find.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from publisher.engine.points import Point
from publisher.rehearsal.plan.blows import Blow
from publisher.rehearsal.plan.catalogue import Hit
from publisher.rehearsal.plan.places import Fault
from publisher.rehearsal.plan.variants import Variant
from publisher.sandbox.behaviours import Behaviour
from publisher_broken_variants import patches, patches_of_doubt

_NO_PROMISE = "DROP INDEX attempts_promise"
_NO_TRIGGER = "DROP TRIGGER jobs_moved ON jobs"


def _at(place: Point, fault: Fault) -> Hit:
    return Hit("worker", str(place), "at", str(fault))


_SENT_THEN_KILLED = (_at(Point.AFTER_PUBLISH, Fault.KILL),)
_LATE_NOT_SENT: Mapping[str, Any] = {
    # Frozen before its begin, which is then cut: it knows that it has sent nothing. Meanwhile
    # another has sent, and lost the answer.
    "hits": (_at(Point.BEFORE_BEGIN, Fault.FREEZE),),
    "companions": (Hit("database", "begin", "before", str(Blow.CUT)),),
    "behaviours": (Behaviour.LOSE_ANSWER,),
}

VARIANTS: dict[str, Variant] = {
    "rescue requeues sending": Variant(
        "duplicate", patches.rescue_requeues_sending, _SENT_THEN_KILLED, is_blind=True,
        guards=[_NO_PROMISE, _NO_TRIGGER],
    ),
    "begin without the fence": Variant(
        "duplicate", patches.begin_without_the_fence,
        (_at(Point.BEFORE_BEGIN, Fault.FREEZE),), guards=[_NO_PROMISE],
    ),
    "send before begin commits": Variant(
        "duplicate", patches.send_before_begin_commits, _SENT_THEN_KILLED
    ),
    "timeout read as failure": Variant(
        "duplicate", patches.timeout_read_as_failure,
        behaviours=(Behaviour.ACCEPT_AND_HANG,), seconds=4.0, is_blind=True,
    ),
    "5xx read as failure": Variant(
        "duplicate", patches.server_error_read_as_failure,
        behaviours=(Behaviour.ACCEPT_AND_500, Behaviour.ACCEPT_AND_502, Behaviour.ACCEPT_AND_504),
        is_blind=True,
    ),
    "late not-sent unfenced": Variant(
        "duplicate", patches.late_not_sent_unfenced, **_LATE_NOT_SENT
    ),
    "fence by number": Variant("duplicate", patches.fence_by_number, **_LATE_NOT_SENT),
    "lost COMMIT acknowledgement then sends": Variant(
        "duplicate", patches.lost_acknowledgement_then_sends,
        (Hit("database", "begin", "before", str(Blow.HOLD_AND_CUT)),),
    ),
    "cancel ignores sending": Variant(
        "unreported", patches.nothing, (_at(Point.AFTER_START, Fault.EDIT),),
        behaviours=(Behaviour.ANSWER_SLOWLY,), seconds=0.5, edits=6, guards=[_NO_TRIGGER],
    ),
    "a late published ignored": Variant(
        "unreported", patches.late_published_ignored, (_at(Point.AFTER_ANSWER, Fault.KILL),)
    ),
    "spool says not started unread": Variant(
        "duplicate", patches.spool_says_not_started, _SENT_THEN_KILLED
    ),
    "file read without its lock": Variant(
        "duplicate", patches.file_read_without_its_lock,
        (_at(Point.BEFORE_START, Fault.FREEZE),),
    ),
    "an answer without an id believed": Variant(
        "false success", patches.answer_without_an_id_believed,
        behaviours=(Behaviour.ANSWER_WITHOUT_ID,),
    ),
    "nobody rescues a claim": Variant(
        "lost", patches.nobody_rescues_a_claim, (_at(Point.AFTER_CLAIM, Fault.KILL),)
    ),
    "reconciler trusts absence": Variant(
        "duplicate", patches_of_doubt.reconciler_trusts_absence,
        behaviours=(Behaviour.LOSE_ANSWER,), is_blind=True, reconcilers=1,
    ),
    "strict matching used for absence": Variant(
        "duplicate", patches_of_doubt.strict_matching_for_absence,
        behaviours=(Behaviour.LOSE_ANSWER,), reconcilers=1, platform="mastodon", keys="ignored",
    ),
    "resend without proof the old process is gone": Variant(
        "duplicate", patches_of_doubt.resend_without_a_proof,
        (_at(Point.AFTER_START, Fault.FREEZE),), frozen_for="decided",
        acts=("absent, send now",),
    ),
    "resend before the horizon": Variant(
        "duplicate", patches_of_doubt.horizon_not_waited_for,
        behaviours=(Behaviour.ACCEPT_LATE,), seconds=1.8, acts=("absent, send now",),
    ),
    "a verdict of an old look applied to a new attempt": Variant(
        "duplicate", patches_of_doubt.old_look_believed, behaviours=(Behaviour.DROP,),
        then=Behaviour.LOSE_ANSWER, is_blind=True, reconcilers=1, acts=("from memory",), late=True,
        guards=[_NO_TRIGGER],
    ),
    "a doubt that nobody is told of": Variant(
        "unreported", patches_of_doubt.nobody_is_told, behaviours=(Behaviour.DROP,), reconcilers=1,
    ),
    "a new time for a post that is unknown": Variant(
        "duplicate", patches_of_doubt.new_time_for_an_unknown,
        behaviours=(Behaviour.LOSE_ANSWER,), is_blind=True, acts=("drop",),
        guards=[_NO_PROMISE, _NO_TRIGGER],
    ),
}  # fmt: skip
