"""Why, in a sentence of fact: what people read for each of the journal's reasons."""

from __future__ import annotations

from enum import StrEnum

from publisher.engine.outcome import Reason
from publisher.words import _

R = Reason


class Remedy(StrEnum):
    """The three kinds of not published, and what each asks of a person."""

    WAITED_OUT = "waited out"
    FIX_THE_POST = "fix the post"
    RECONNECT = "reconnect"


_FIX = frozenset({R.CONTENT_REFUSED, R.DUPLICATE_CONTENT, R.MEDIA_REFUSED, R.STEP_FAILED, R.POISON})
_RECONNECT = frozenset({R.NEEDS_RECONNECTING, R.MISSING_PERMISSION})


def remedy(reason: str | None) -> Remedy:
    """What helps against ``reason``; whatever is not a post's or channel's fault passes."""
    if reason in _FIX:
        return Remedy.FIX_THE_POST
    if reason in _RECONNECT:
        return Remedy.RECONNECT
    return Remedy.WAITED_OUT


def remedy_words(of: Remedy) -> str:
    """The remedy as a heading."""
    return {
        Remedy.WAITED_OUT: _("will try again by itself"),
        Remedy.FIX_THE_POST: _("fix the post"),
        Remedy.RECONNECT: _("reconnect the channel"),
    }[of]


def sentence(reason: str | None) -> str:
    """What ``reason`` means; the word itself where it is none of ours, nothing where there is none.

    Looked up at each call, so that it is said in the reader's language.
    """
    if not reason:
        return ""
    words: dict[str, str] = {
        # Certainly not published.
        R.CONNECT_FAILED: _("The platform could not be reached; nothing was sent."),
        R.PERMIT_LATE: _("The time for sending was over before the first byte; nothing was sent."),
        R.NOT_STARTED: _("The worker stopped before the first byte; nothing was sent."),
        R.BEGIN_UNACKNOWLEDGED: _(
            "The database did not confirm the record of this send, so nothing was sent."
        ),
        R.SPOOL_FAILED: _("The second record on disk could not be written; nothing was sent."),
        R.RATE_LIMITED: _("The platform takes no more from us for a while."),
        R.BLOCKED_FOR_A_WHILE: _("The platform has blocked posting for a while."),
        R.BUSY: _("The platform is busy."),
        R.STEP_FAILED: _("A step before sending failed; nothing was sent."),
        R.CONTENT_REFUSED: _("The platform refuses this content."),
        R.DUPLICATE_CONTENT: _("The platform says that this was posted before."),
        R.MEDIA_REFUSED: _("The platform refuses a picture or video of it."),
        R.NEEDS_RECONNECTING: _("The channel no longer accepts our access."),
        R.MISSING_PERMISSION: _("Our access to the channel does not include posting."),
        R.NO_ADAPTER: _("This worker does not know the channel's platform."),
        R.TRIES_USED_UP: _("All tries are used up."),
        R.POISON: _("Workers ended each time they prepared it; nothing was sent."),
        R.TOO_LATE: _("Its useful time was over before it could be sent."),
        R.BACKLOG: _("It was due while nothing could be sent; this channel sends nothing late."),
        R.CANNOT_LOOK: _("This platform cannot be looked at."),
        R.REPLACED_IS_LIVE: _(
            "The post whose place it was to take is on the page after all; this one was not sent."
        ),
        R.REPLACED_UNCLEAR: _(
            "The post whose place it takes may be on the page; nothing of this one was sent."
        ),
        R.REMOVAL_REFUSED: _("The platform does not let us delete it."),
        # May be published.
        R.NO_ANSWER: _("It was sent; no answer came in time."),
        R.CONNECTION_LOST: _("It was sent; the connection was cut before an answer came."),
        R.ANSWER_CUT: _("It was sent; the answer broke off."),
        R.ANSWER_UNREADABLE: _("It was sent; the answer cannot be read."),
        R.SERVER_ERROR: _(
            "It was sent; the platform answered with an error that does not say whether it is live."
        ),
        R.REDIRECTED: _("It was sent; the platform answered with another address."),
        R.UNLISTED_REFUSAL: _(
            "It was sent; the platform answered with a refusal that proves nothing."
        ),
        R.NO_ID: _("It was sent and accepted; the answer holds no id."),
        R.ID_OF_ANOTHER_JOB: _("It was sent; the answer names another job's post."),
        R.WORKER_DIED: _("The worker died after it had begun to send."),
        R.DRAINED: _("The worker was stopped while it was sending."),
        R.ADAPTER_BROKE: _("It was begun; then our own code failed."),
        R.LOOK_UNCLEAR: _("An earlier try may be live: what the page shows proves nothing."),
        R.REPEAT_ENDED: _("A repeat was safe for a while; that time is over."),
        R.REMOVAL_UNCLEAR: _("Its deletion was asked for; no answer says how that went."),
    }
    return words.get(reason, reason)


def brief(reason: str | None) -> str:
    """Why something may be live, in a few words for a column; the sentence where there are none."""
    words: dict[str, str] = {
        R.NO_ANSWER: _("no answer in time"),
        R.CONNECTION_LOST: _("cut before an answer"),
        R.ANSWER_CUT: _("answer broke off"),
        R.ANSWER_UNREADABLE: _("answer unreadable"),
        R.SERVER_ERROR: _("server error after sending"),
        R.REDIRECTED: _("redirected after sending"),
        R.UNLISTED_REFUSAL: _("refusal that proves nothing"),
        R.NO_ID: _("accepted without an id"),
        R.ID_OF_ANOTHER_JOB: _("answer names another post"),
        R.WORKER_DIED: _("worker died while sending"),
        R.DRAINED: _("stopped while sending"),
        R.ADAPTER_BROKE: _("our own code failed"),
        R.LOOK_UNCLEAR: _("an earlier try may be live"),
        R.REPEAT_ENDED: _("time for a safe repeat over"),
        R.REMOVAL_UNCLEAR: _("no answer to its deletion"),
    }
    return words.get(reason or "", sentence(reason))
