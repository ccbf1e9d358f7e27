"""What keeps a rehearsal from beginning."""

from __future__ import annotations

from publisher.engine.errors import PublisherError


class SetUpError(PublisherError):
    """The message says what is missing and what to do; nothing was sent."""

    code = "rehearsal-set-up"
    exit_code = 2
