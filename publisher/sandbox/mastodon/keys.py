"""What an ``Idempotency-Key`` does on each kind of server; see ``Keys``."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from publisher.sandbox.mastodon.settings import Keys

if TYPE_CHECKING:
    from publisher.sandbox.mastodon.settings import Settings
    from publisher.sandbox.pages import Pages
    from publisher.sandbox.wire import Answer


def known(page: str, key: str | None, settings: Settings, state: Pages) -> str | None:
    """Return the id of the status that a key stands for now, None when it stands for none."""
    if key is None or settings.keys in (Keys.IGNORED, Keys.CACHED):
        return None
    now, wait = time.time(), settings.late_by if settings.keys is Keys.LATE else 0.0
    made = state.keyed.get((page, key), [])
    alive = (post for post, at in made if at + wait <= now < at + settings.keys_for)
    return next(alive, None)


class AnswerCache:
    """Answers kept by key alone, not by account or path, as Pleroma's plug has it.

    After ``lib/pleroma/web/plugs/idempotency_plug.ex`` of pleroma-social/pleroma.
    """

    def __init__(self) -> None:
        self._answers: dict[str, tuple[float, Answer]] = {}
        self._lock = threading.Lock()

    def find(self, key: str, settings: Settings) -> Answer | None:
        """Return the answer kept under a key, marked as a replay."""
        with self._lock:
            at, answer = self._answers.get(key, (0.0, None))
        if answer is None or time.time() >= at + settings.keys_for:
            return None
        headers = answer.headers | {"x-idempotency-key": key, "idempotent-replayed": "true"}
        return replace(answer, headers=headers)

    def keep(self, key: str, answer: Answer) -> None:
        """Keep an answer, an error too, just before it is given."""
        with self._lock:
            self._answers[key] = (time.time(), replace(answer, headers=dict(answer.headers)))
