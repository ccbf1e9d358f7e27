"""What people are told whose act the ledger refuses."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Row

from publisher.engine.errors import Conflict
from publisher.engine.job import State, public_id
from publisher.engine.transitions import Event

_WORDS = {
    Event.CANCEL: ("cancel", "cancelled"),
    Event.RESCHEDULE: ("move", "moved"),
    Event.HOLD: ("hold", "put on hold"),
    Event.RELEASE_HOLD: ("release", "released from a hold"),
    Event.REPLACE: ("change", "changed"),
    Event.REQUEUE: ("requeue", "requeued"),
    Event.RESTORE: ("restore", "restored"),
}


def conflict(job: Row[Any], event: Event) -> Conflict:
    """What is done to a job in a state in which nobody may."""
    name = public_id(job.id)
    verb, past = _WORDS[event]
    match State(job.state):
        case State.SENDING:
            code = "sending-now"
            message = (
                f"Too late to {verb} job {name}: it is being sent. Nothing was changed. "
                "Wait for its end; afterwards it can be copied to a new time."
            )
        case State.UNKNOWN:
            code = "unknown-not-retryable"
            message = (
                f"Job {name} may already be live, so it cannot be {past}. "
                "Look at the page and record what you see."
            )
        case State.PUBLISHED:
            code = "already-live"
            message = f"Job {name} is live already. Nothing was changed."
        case state:
            code = "conflict"
            message = f"Job {name} is {state}; from there it cannot be {past}."
    return Conflict(message, code=code, state=job.state)


def stands_already(job: Row[Any], event: Event) -> Conflict:
    """A job that would put a post there once more."""
    message = (
        f"Job {public_id(job.id)} cannot be {past(event)}: its post is on this channel, or "
        "may be, by another job. Nothing was changed."
    )
    return Conflict(message, code="already-live", state=job.state)


def past(event: Event) -> str:
    """Say what was not done to it, after “cannot be”."""
    return _WORDS[event][1]
