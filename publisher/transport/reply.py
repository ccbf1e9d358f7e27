"""What comes back from a call: a whole answer, or why there is none."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from publisher.engine.outcome import Answer, Reason
from publisher.transport.phases import End


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole answer. Header names are lower-case.

    ``body`` is what the platform said, secrets included; ``answer`` is what may be kept.
    """

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)
    answer: Answer

    def json(self) -> object | None:
        """The body as JSON; None when it is not."""
        try:
            value: object = json.loads(self.body)
        except (ValueError, RecursionError):
            return None
        return value


@dataclass(frozen=True, slots=True)
class Failed:
    """A step or a read that gave no whole answer. ``sent``: a request byte may have left.

    ``end``: how it ended, where that makes a difference to what a person is told.
    """

    reason: Reason
    detail: str
    sent: bool
    answer: Answer | None = None
    end: End | None = None
