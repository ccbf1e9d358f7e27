"""Takes a rehearsal's posts down again, and only those.

A post is touched only when it is bound to a job of a rehearsal **and** carries that job's mark: on
the page itself where the platform shows it to us, otherwise in what we sent and the platform's own
answer named. A person's word for a link is not enough to delete by.
"""

from __future__ import annotations

import time
from typing import Final

from publisher.engine.adapter import LivePost
from publisher.engine.evidence import Candidate, Found, Mismatch, NotThisPost
from publisher.engine.job import Channel, Hold, State, public_id
from publisher.engine.outcome import (
    AlreadyGone,
    CannotWithdraw,
    NotWithdrawn,
    Withdrawal,
    Withdrawn,
)
from publisher.engine.queries import RehearsalJob
from publisher.rehearsal.real.ground import (
    Ground,
    Question,
    carries_mark,
    is_marked,
    is_over,
    mark_of,
    where,
)
from publisher.rehearsal.real.results import How, LeftBehind, Removed
from publisher.words import _

_MAY_BE_LIVE: Final = (State.UNKNOWN, State.SENDING)
_LONGEST_WAIT: Final = 30.0


def remove(ground: Ground, channel: Channel, job: RehearsalJob) -> Removed | LeftBehind | None:
    """Take one post down, or say why it stays; None where there is nothing to do."""
    if is_over(job):
        return None
    if job.row.state is not State.PUBLISHED:
        return _open(ground, channel, job)
    if not is_marked(job):
        return _left(channel, job, _("what was sent does not carry the mark"), _by_hand())
    can = ground.adapter(channel).capabilities(job.content, job.progress)
    if job.live is None:
        why = _("a person saw it, and gave no link")
    elif not can.can_delete:
        why = _("this platform deletes nothing")
    elif can.can_look:
        return _seen(ground, channel, job, job.live)
    elif job.answered:
        return _withdraw(ground, channel, job, job.live, can_look=False)
    else:
        why = _("its id is a person's word, which is not enough to delete by")
    return _by_a_person(ground, channel, job, why)


def _open(ground: Ground, channel: Channel, job: RehearsalJob) -> Removed | LeftBehind:
    """One whose end is not known: nobody may say that it is not there."""
    name = public_id(job.row.id)
    if job.row.state is State.DROPPED:
        return _by_a_person(ground, channel, job, _("a person stopped following it"))
    if job.row.state in _MAY_BE_LIVE:
        then = _("look at the page, then: publisher unknowns show {id}").format(id=name)
        why = _("it may be live: nobody could say whether it is on the page")
        return _left(channel, job, why, then)
    if job.row.hold_reason == Hold.QUARANTINE:
        why = _("it may be live from before the database was restored")
        return _left(channel, job, why, "publisher quarantine status")
    why = _("it is still {state}").format(state=job.row.state)
    return _left(channel, job, why, f"publisher jobs cancel {name}")


def _seen(
    ground: Ground, channel: Channel, job: RehearsalJob, live: LivePost
) -> Removed | LeftBehind:
    """Read the very post first; what does not carry the mark there is not touched."""
    shown = _identified(ground, channel, job, live.remote_id)
    if isinstance(shown, Candidate):
        if not carries_mark(shown.text, job):
            why = _("what stands on the page under its id does not carry the mark")
            return _left(channel, job, why, _by_hand(), shown.permalink)
        return _withdraw(ground, channel, job, live, can_look=True, link=shown.permalink)
    if shown.code is Mismatch.NOT_FOUND:
        if job.answered:
            # What is not shown may be there: the platform named it, and it knows whether it is.
            return _withdraw(ground, channel, job, live, can_look=True)
        return _done(ground, channel, job, How.GONE)
    if shown.code is Mismatch.UNREADABLE:
        why = _("it cannot be read just now, so it is not touched")
        return _left(channel, job, why, "publisher rehearse clean")
    if shown.code is Mismatch.TEXT_DIFFERS:
        why = _("what stands on the page under its id does not carry the mark")
    else:
        why = _("what stands on the page under its id is not what was sent")
    return _left(channel, job, why, _by_hand())


def _withdraw(
    ground: Ground,
    channel: Channel,
    job: RehearsalJob,
    live: LivePost,
    *,
    can_look: bool,
    link: str | None = None,
) -> Removed | LeftBehind:
    end = _asked(ground, channel, live)
    if isinstance(end, CannotWithdraw):
        return _left(channel, job, end.detail, _by_hand(), link)
    doubt = _still_there(ground, channel, job, live.remote_id) if can_look else None
    if doubt is not None:
        why, other = doubt
        return _left(channel, job, why, _by_hand(), other or link)
    how = How.DELETED if isinstance(end, Withdrawn) else How.GONE
    return _done(ground, channel, job, how)


def _asked(ground: Ground, channel: Channel, live: LivePost) -> Withdrawal:
    """Ask until it says; a deletion may be repeated."""
    adapter, patience = ground.adapter(channel), ground.patience
    end = adapter.withdraw(channel, live)
    asked_before = False
    for _again in range(patience.tries - 1):
        if not isinstance(end, CannotWithdraw) or end.reason not in (
            NotWithdrawn.UNCLEAR,
            NotWithdrawn.RATE_LIMITED,
        ):
            break
        asked_before = True
        time.sleep(min(end.retry_after or patience.pause, _LONGEST_WAIT))
        end = adapter.withdraw(channel, live)
    # An earlier call of ours, unanswered, is who took it down.
    return Withdrawn() if asked_before and isinstance(end, AlreadyGone) else end


def _still_there(
    ground: Ground, channel: Channel, job: RehearsalJob, remote_id: str
) -> tuple[str, str | None] | None:
    """Why it, or a copy with a link of its own, is there still when patience ends; None: gone."""
    until = time.monotonic() + ground.patience.look
    while True:
        shown = _identified(ground, channel, job, remote_id)
        query = job.query(channel, ground.bound_elsewhere(job))
        found = ground.adapter(channel).look(query)
        code = shown.code if isinstance(shown, NotThisPost) else None
        if code is Mismatch.NOT_FOUND and not isinstance(found, Found):
            return None
        if time.monotonic() > until:
            if isinstance(found, Found) and found.remote_id != remote_id:
                why = _("a copy of it is there, which no job of ours is bound to: not touched")
                return why, found.permalink or found.remote_id
            if code is Mismatch.UNREADABLE:
                return _("the platform says that it is deleted, and cannot be read"), None
            return _("the platform says that it is deleted, and shows it still"), None
        time.sleep(ground.patience.pause)


def _identified(
    ground: Ground, channel: Channel, job: RehearsalJob, remote_id: str
) -> Candidate | NotThisPost:
    """Read the post by its id; asked again while it cannot be read."""
    adapter, left = ground.adapter(channel), ground.patience.tries
    while True:
        shown = adapter.identify(job.query(channel, frozenset()), remote_id)
        left -= 1
        unread = isinstance(shown, NotThisPost) and shown.code is Mismatch.UNREADABLE
        if not unread or left <= 0:
            return shown
        time.sleep(ground.patience.pause)


def _by_a_person(
    ground: Ground, channel: Channel, job: RehearsalJob, why: str
) -> Removed | LeftBehind:
    """Only somebody who sees the page can take it down, and say that they did."""
    left = _left(channel, job, why, _by_hand())
    if ground.ask is not None and ground.ask(Question.IS_IT_DELETED, left.mark, left.where):
        return _done(ground, channel, job, How.BY_HAND)
    return left


def _done(ground: Ground, channel: Channel, job: RehearsalJob, how: How) -> Removed:
    ground.tell(job.row.id, {"how": how.value, "remote_id": job.row.remote_id})
    return Removed(
        job.row.id, channel.name, job.run, mark_of(job), how, remote_id=job.row.remote_id
    )


def _left(
    channel: Channel, job: RehearsalJob, why: str, then: str, link: str | None = None
) -> LeftBehind:
    place = link or where(job, channel)
    return LeftBehind(job.row.id, channel.name, job.run, mark_of(job), place, why, then)


def _by_hand() -> str:
    return _("delete it there by hand, then: publisher rehearse clean")
