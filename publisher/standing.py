"""Where a job stands, told to a person: four questions, always in the same order.

Is it on the page? Why do we say so? What happens by itself, and when? What may I do?
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import assert_never

from publisher import reasons
from publisher.engine.job import DELETE, Hold, State
from publisher.engine.queries import JobRow
from publisher.words import _


class OnPage(StrEnum):
    """The first question's three answers."""

    YES = "yes"
    NO = "no"
    MAYBE = "maybe"


@dataclass(frozen=True, slots=True)
class Standing:
    """``mark`` and ``label`` for lists; the four answers for a page.

    ``next_at`` is when ``by_itself`` happens, where that is known. ``verbs``: what a person may
    do, the safe one first, as names of commands under ``publisher jobs``.
    """

    mark: str
    label: str
    on_page: OnPage
    why: str
    by_itself: str
    next_at: datetime | None = None
    verbs: tuple[str, ...] = ()
    needs_a_person: bool = False


def stand(row: JobRow, *, tries: int) -> Standing:
    """Tell where ``row`` stands; ``tries`` is how many a job has before it is given up.

    Of a job that takes a post down, the first question is about that post.
    """
    at = _stand(row, tries)
    return _removal(row, at) if row.kind == DELETE else at


def _removal(row: JobRow, at: Standing) -> Standing:
    """``at``, as it is said of a post that is to go: there until the job is through."""
    match row.state:
        case State.SCHEDULED | State.CLAIMED:
            doubted = row.possibly_live or row.hold_reason == Hold.QUARANTINE
            on_page = OnPage.MAYBE if doubted else OnPage.YES
            closed = row.channel_paused or row.channel_blocked is not None
            by_itself = _("its deletion will be asked for")
            if row.state is State.SCHEDULED and (closed or row.hold_reason is not None):
                by_itself = at.by_itself
            return replace(at, on_page=on_page, by_itself=by_itself)
        case State.SENDING:
            return replace(at, label=_("Deleting"))
        case State.UNKNOWN:
            return _removal_in_doubt(at)
        case _:
            return _removal_ended(row, at)


def _removal_in_doubt(at: Standing) -> Standing:
    if at.needs_a_person:
        return replace(at, label=_("May still be there: needs a person"))
    by_itself = _("it is looked for, and its deletion asked for again where that is safe")
    return replace(at, label=_("May still be there: checking"), by_itself=by_itself, next_at=None)


def _removal_ended(row: JobRow, at: Standing) -> Standing:
    if row.state is State.PUBLISHED:
        why = _("The platform says that it is gone.")
        if row.remote_id is None:
            why = _("A person saw that it is gone.")
        return replace(at, label=_("Deleted"), on_page=OnPage.NO, why=why)
    if row.state is State.DROPPED:
        return replace(at, label=_("Dropped: may still be there, no longer followed"))
    label = _("Not deleted: cancelled") if row.state is State.CANCELLED else _("Not deleted")
    return replace(at, label=label, on_page=OnPage.YES)


def _stand(row: JobRow, tries: int) -> Standing:
    match row.state:
        case State.SCHEDULED:
            return _scheduled(row, tries)
        case State.CLAIMED:
            return Standing(
                "…",
                _("Preparing"),
                _not_yet(row),
                _("A worker holds it; sending has not begun."),
                _("will be sent in a moment"),
                verbs=("wait", "cancel", "hold"),
            )
        case State.SENDING:
            return Standing(
                "➤",
                _("Sending"),
                OnPage.MAYBE,
                _("The send has begun and its end is not recorded yet."),
                _("its end will be recorded by itself"),
                verbs=("wait",),
            )
        case State.PUBLISHED:
            return _published(row)
        case State.UNKNOWN:
            return _unknown(row)
        case _:
            return _ended(row)


def _published(row: JobRow) -> Standing:
    by_itself = _("nothing more will be sent")
    if row.withdrawn:
        label, why = _("Was live, then deleted"), _("A rehearsal published it, and deleted it.")
        return Standing("✔", label, OnPage.NO, why, by_itself)
    if row.deleted_at is not None:
        at = f"{row.deleted_at:%Y-%m-%d %H:%M %Z}"
        why = _("It was deleted from the page by {at}.").format(at=at)
        return Standing("✔", _("Was live, then deleted"), OnPage.NO, why, by_itself)
    return Standing("✔", _("Live"), OnPage.YES, _live(row), by_itself)


def _unknown(row: JobRow) -> Standing:
    """May be live. While looks alone may decide it, nobody need do anything."""
    why = reasons.sentence(row.reason)
    verbs = ("unknowns show",)
    next_at = row.next_look_at
    if next_at is not None and next_at <= row.now:
        by_itself, next_at = _("nothing is sent by itself; a look at the page is due"), None
    elif next_at is not None:
        by_itself = _("nothing is sent by itself; the next look is at")
    else:
        by_itself = _("nothing will be sent by itself")
    if row.asked_at is None and row.next_look_at is not None:
        label = _("May be live: checking")
        return Standing("?", label, OnPage.MAYBE, why, by_itself, next_at, verbs)
    asked = why if row.asked_reason is None else f"{why} {_asked(row.asked_reason)}".strip()
    return Standing(
        "‽",
        _("May be live: needs a person"),
        OnPage.MAYBE,
        asked,
        by_itself,
        next_at,
        verbs,
        needs_a_person=True,
    )


def _asked(reason: str) -> str:
    """Why a person must decide, as a sentence: journal entries begin small and end without one."""
    sentence = f"{reason[:1].upper()}{reason[1:]}"
    return sentence if sentence.endswith((".", "?", "!")) else f"{sentence}."


def _scheduled(row: JobRow, tries: int) -> Standing:
    if row.hold_reason is not None:
        return _held(row)
    if row.channel_blocked is not None or row.channel_paused:
        return _channel_closed(row)
    if row.failures > 0:
        return Standing(
            "↻",
            _("Waiting: {used} of {tries} tries used").format(used=row.failures, tries=tries),
            _not_yet(row),
            reasons.sentence(row.reason),
            _("will be tried again"),
            _next_at(row),
            ("wait", "reschedule --at TIME", "hold", "cancel"),
        )
    waits = _("Its time has not come.") if row.run_at > row.now else _("It waits for a worker.")
    return Standing(
        "○",
        _("Scheduled"),
        _not_yet(row),
        reasons.sentence(row.reason) or waits,
        _("will be sent"),
        _next_at(row),
        ("wait", "reschedule --at TIME", "hold", "cancel"),
    )


def _held(row: JobRow) -> Standing:
    """Scheduled, but not claimed although it may be due."""
    if row.hold_reason == Hold.QUARANTINE:
        return Standing(
            "?",
            _("In quarantine: looked for first"),
            OnPage.MAYBE,
            _("The database may lack the record of its send, as one that was restored does."),
            _("it is looked for on its page, and sent only when it is not there"),
            verbs=("quarantine status",),
        )
    if row.hold_reason in (Hold.APPROVAL, Hold.EDITED):
        return _awaits_approval(row)
    if row.hold_reason == Hold.REPLACED:
        return Standing(
            "‖",
            _("On hold: {reason}").format(reason=row.hold_reason),
            _not_yet(row),
            reasons.sentence(row.reason) or _("The post whose place it takes may be on the page."),
            _("look at the page for the earlier text: not there, release it; there, cancel it"),
            verbs=("release", "cancel"),
            needs_a_person=True,
        )
    if row.hold_reason == Hold.LIVE:
        return Standing(
            "‖",
            _("On hold: {reason}").format(reason=row.hold_reason),
            _not_yet(row),
            _("Its post was found on the page, or may be there, by another job."),
            _("it is not sent; to post once more on purpose, cancel it and publish again"),
            verbs=("cancel",),
            needs_a_person=True,
        )
    if row.hold_reason == Hold.BACKLOG:
        return Standing(
            "‖",
            _("On hold: {reason}").format(reason=row.hold_reason),
            _not_yet(row),
            _("It was due while nothing could be sent."),
            _("fresh posts go first, then it is sent or missed, as its channel's rule is"),
            row.useful_until,
            ("release", "reschedule --at TIME", "cancel", "channels set"),
        )
    return Standing(
        "‖",
        _("On hold: {reason}").format(reason=row.hold_reason),
        _not_yet(row),
        _("It is on hold: {reason}.").format(reason=row.hold_reason),
        _("nothing is sent until it is released"),
        verbs=("release", "cancel"),
        needs_a_person=True,
    )


def _awaits_approval(row: JobRow) -> Standing:
    """Held for its post's sake: nobody but an approver lets it go."""
    why = _("Its post was changed after it was approved.")
    if row.hold_reason == Hold.APPROVAL:
        why = _("The approval of its version was withdrawn.")
    return Standing(
        "‖",
        _("On hold: {reason}").format(reason=row.hold_reason),
        _not_yet(row),
        why,
        _("nothing is sent until its post is approved; it is missed if its time passes"),
        row.useful_until,
        ("cancel",),
        needs_a_person=True,
    )


def _channel_closed(row: JobRow) -> Standing:
    """Scheduled, but its channel takes nothing until a person opens it."""
    if row.channel_blocked is not None:
        label, verb = _("Waiting: the channel needs reconnecting"), "channels reconnect"
        why = reasons.sentence(row.channel_blocked)
    else:
        label, verb = _("Waiting: the channel is paused"), "channels resume"
        why = _("A person paused the channel.")
    return Standing(
        "‖",
        label,
        _not_yet(row),
        why,
        _("nothing is sent until the channel is open again"),
        verbs=(verb, "reschedule --at TIME", "cancel"),
        needs_a_person=True,
    )


def _ended(row: JobRow) -> Standing:
    match row.state:
        case State.FAILED:
            return Standing(
                "✕",
                _("Not published"),
                OnPage.NO,
                reasons.sentence(row.reason),
                _("nothing will be sent by itself"),
                verbs=("requeue",),
                needs_a_person=True,
            )
        case State.MISSED:
            return Standing(
                "⌀",
                _("Missed its time, not published"),
                OnPage.NO,
                reasons.sentence(row.reason) or _("Its useful time was over."),
                _("nothing will be sent by itself"),
                verbs=("requeue --useful-until TIME",),
                needs_a_person=True,
            )
        case State.CANCELLED:
            return Standing(
                "–",
                _("Cancelled"),
                OnPage.NO,
                _("A person cancelled it before it was sent."),
                _("nothing will be sent by itself"),
                verbs=("restore",) if row.attempts == 0 else (),
            )
        case State.DROPPED:
            return Standing(
                "⊘",
                _("Dropped: may be live, no longer followed"),
                OnPage.MAYBE,
                _("A person stopped following it; it may be on the page."),
                _("nothing will be sent by itself"),
            )
        case (
            State.SCHEDULED | State.CLAIMED | State.SENDING | State.PUBLISHED | State.UNKNOWN
        ):  # pragma: no cover - stand() has told these already
            raise AssertionError(row.state)
        case _:  # pragma: no cover - mypy proves that nothing gets here
            assert_never(row.state)


def _not_yet(row: JobRow) -> OnPage:
    """Not on the page, unless a repeat that is safe hides whether the first one is."""
    return OnPage.MAYBE if row.possibly_live else OnPage.NO


def _live(row: JobRow) -> str:
    if row.remote_id is None:
        return _("A person saw it on the page.")
    return _("The platform gave it the id {id}.").format(id=row.remote_id)


def _next_at(row: JobRow) -> datetime:
    if row.channel_not_before is None:
        return row.run_at
    return max(row.run_at, row.channel_not_before)
