"""A word that a signal handler may say to whoever waits for it."""

from __future__ import annotations

from contextlib import suppress
from queue import Empty, SimpleQueue


class Bell:
    """Rung once, by a signal handler or another thread; one thread waits for it.

    Not ``threading.Event``: its ``set`` takes a lock that the very thread which the handler
    interrupts may hold, in the middle of its ``wait``, and then neither goes on. Putting into a
    ``SimpleQueue`` is allowed there.
    """

    def __init__(self) -> None:
        self._is_rung = False
        self._waking: SimpleQueue[None] = SimpleQueue()

    def ring(self) -> None:
        """Tell whoever waits, now or later."""
        self._is_rung = True
        self._waking.put(None)

    def is_rung(self) -> bool:
        """Whether it was rung."""
        return self._is_rung

    def wait(self, seconds: float) -> bool:
        """Wait for it, up to so many seconds; returns whether it was rung."""
        if not self._is_rung:
            with suppress(Empty):
                self._waking.get(timeout=seconds)
        return self._is_rung
