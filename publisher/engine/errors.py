"""What can be refused or go wrong.

PublisherError                 a sentence for a person: what, where it stands, what to do
├── EnqueueError
│   ├── KeyConflict            the key exists, in any state, for ever
│   ├── DuplicateJob           the same work is unique for a while, and still is
│   ├── OpenJobExists          this post is already under way on this channel
│   ├── AlreadyDeleted         its post was taken off the page meanwhile
│   └── KeyBusy                another transaction holds the key and has not ended
├── Conflict                   the job's state does not allow that
├── NotFound                   no such job, channel or post
├── PermitError                a send that may not be made any more
│   ├── PermitLate             its window has closed
│   └── PermitUsed             it was used already
└── Lost                       this hand no longer holds the job
"""

from __future__ import annotations

from datetime import datetime


class PublisherError(Exception):
    """Base of every refusal that is told to a person.

    ``code`` is stable; ``exit_code`` follows the commands' contract: 2 bad usage or set-up,
    3 needs a person, 4 conflict.
    """

    code = "error"
    exit_code = 2


class EnqueueError(PublisherError):
    """A job that was not added."""

    exit_code = 4


class KeyConflict(EnqueueError):
    """A job with this key exists. It carries that job; nothing was added."""

    code = "key-exists"

    def __init__(self, key: str, job_id: int, state: str) -> None:
        super().__init__(
            f"This job already exists: {key} is {state}. Nothing was added. "
            "To post again on purpose, give a new time."
        )
        self.key = key
        self.job_id = job_id
        self.state = state


class DuplicateJob(EnqueueError):
    """The same kind, queue and content as a job that still holds them."""

    code = "duplicate-job"

    def __init__(self, key: str, holder: int, lapses_at: datetime) -> None:
        super().__init__(
            f"{key}: same kind, content and queue as a job that is still current. Nothing was "
            f"added. Allowed again at {lapses_at:%Y-%m-%d %H:%M:%S %Z} or when that job is live."
        )
        self.key = key
        self.holder = holder
        self.lapses_at = lapses_at


class OpenJobExists(EnqueueError):
    """This post has a job on this channel whose end is not known yet."""

    code = "open-job-exists"

    def __init__(self, key: str, holder: int, state: str) -> None:
        super().__init__(
            f"{key}: this post already has a job on this channel that is {state}. Nothing was "
            "added. Wait for its end, or cancel it while it is scheduled."
        )
        self.key = key
        self.holder = holder
        self.state = state


class AlreadyDeleted(EnqueueError):
    """The post that was to be taken down is gone by now."""

    code = "already-deleted"

    def __init__(self, key: str) -> None:
        super().__init__(f"{key}: the post is deleted from the page already. Nothing was added.")
        self.key = key


class KeyBusy(EnqueueError):
    """Another transaction is adding the same key and has not ended."""

    code = "key-busy"

    def __init__(self, key: str) -> None:
        super().__init__(f"{key} is being added by someone else just now. Ask again in a moment.")
        self.key = key


class Conflict(PublisherError):
    """The state does not allow that; the message names the state and what is possible."""

    code = "conflict"
    exit_code = 4

    def __init__(self, message: str, *, code: str = "conflict", state: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.state = state


class NotFound(PublisherError):
    """Nothing there by that name."""

    code = "not-found"


class PermitError(Exception):
    """A send that may not be made."""


class PermitLate(PermitError):
    """The window in which the first byte had to leave has closed. Nothing was sent."""


class PermitUsed(PermitError):
    """One permit is one write; this one was used. Nothing more was sent."""


class Lost(Exception):
    """This hand no longer holds the job: its lease ran out or a person moved it."""
