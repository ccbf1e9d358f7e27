"""Actors: threads of which one runs at a time, each only as far as it is let.

What a process would do by itself is done here in steps that a test chooses. Nothing depends on
which thread the system would have run, so a sequence of steps always ends the same.
"""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable
from typing import Any

_LIMIT = 60.0
_here = threading.local()


class Death(BaseException):
    """The end of a process, met wherever its threads stand."""


class Stuck(AssertionError):
    """An actor neither ended nor came to a pause."""


class Actor:
    """Somebody who does ``act``, from one pause to the next.

    ``at``: where it stands. ``orders``: what the test wants of it, read by what it calls.
    ``of``: whom it belongs to.
    """

    def __init__(self, name: str, act: Callable[[], Any], *, of: Any = None) -> None:  # noqa: ANN401 - a seat
        self.name = name
        self.at = "the start"
        self.orders: Any = None
        self.of = of
        self.over = False
        self.error: BaseException | None = None
        self.trace = ""
        self._act = act
        self._dies = False
        self._go = threading.Semaphore(0)
        self._rest = threading.Semaphore(0)
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._started = False

    def step(self) -> None:
        """Let it go on to its next pause, or to its end; raises what it raised."""
        assert not self.over, f"{self.name} is over"
        if self._started:
            self._go.release()
        else:
            self._started = True
            self._thread.start()
        if not self._rest.acquire(timeout=_LIMIT):
            message = f"{self.name} went on from {self.at} and does not come to a pause"
            raise Stuck(message)
        if self.over:
            self._thread.join()
        if self.error is not None:
            message = f"{self.name} broke after {self.at}:\n{self.trace}"
            raise AssertionError(message) from self.error

    def until(self, *places: str, at_most: int = 500) -> None:
        """Step until it stands at one of ``places``, or is over."""
        for _ in range(at_most):
            if self.over:
                return
            self.step()
            if self.over or self.at in places:
                return
        message = f"{self.name} goes round in circles at {self.at}"
        raise Stuck(message)

    def die(self) -> None:
        """Do nothing more, from here on."""
        self._dies = True
        if not self._started:
            self.over = True
        if self.over:
            return
        self._go.release()
        if not self._rest.acquire(timeout=_LIMIT):
            message = f"{self.name} does not die at {self.at}"
            raise Stuck(message)
        self._thread.join()

    def _run(self) -> None:
        _here.actor = self
        try:
            self._act()
        except Death:
            pass
        except BaseException as error:  # noqa: BLE001 - raised again by ``step``
            if not self._dies:
                self.error = error
                self.trace = traceback.format_exc()
        finally:
            self.over = True
            self._rest.release()

    def _pause(self, at: str) -> None:
        if self._dies:
            raise Death
        self.at = at
        self._rest.release()
        self._go.acquire()
        if self._dies:
            raise Death


def current() -> Actor | None:
    """The actor whose thread this is; None in the test's own."""
    return getattr(_here, "actor", None)


def pause(at: str) -> None:
    """Let the others go on; an actor stands ``at`` this place until it is let go on."""
    actor = current()
    if actor is not None:
        actor._pause(at)
