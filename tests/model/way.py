"""The way a job went, as a rehearsal recorded it: each change of its state, in order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from publisher.engine.outcome import Reason
from tests.model.state import State, Step, World
from tests.model.tidying import canonical

At = tuple[State, int]
"""A state, and how many of the recorded changes led to it."""

_READINGS: Final = {"read a file": 3, "read a file, interrupted": 3}
"""Steps of the model that are several statements: so many changes may be one of them."""
_APART: Final = 0.5
"""Seconds: a row and the record of its change are written by one statement, a moment apart."""
_LEAVE: Final = frozenset({"release", "wait"})


@dataclass(frozen=True, slots=True)
class Way:
    """What every step must keep to: the world, and the recorded changes of state in their order.

    ``has_page``: what the platform did was seen.
    """

    world: World
    moves: list[list[Any]] | None
    has_page: bool

    def after(self, at: At, step: Step) -> At | None:
        """Where the step leads, None where the job went another way."""
        state, done = at
        was, became = state.journal.job.state, step.state.journal.job.state
        if self.moves is not None and (was != became or step.event in _LEAVE):
            done = self._followed(done, was, became, step)
            if done < 0:
                return None
        return canonical(self.world, step.state), done

    def _followed(self, done: int, was: str, became: str, step: Step) -> int:
        """How many were made once it went from the one to the other; -1: it did not."""
        assert self.moves is not None
        for _, before, now, reason in self.moves[done : done + _READINGS.get(step.verb, 1)]:
            done += 1
            if before != was:
                break
            if now == became:
                return done if _fits(step.event, reason) else -1
            was = now
        return -1

    def bounds(self, at: float) -> tuple[int, int]:
        """How many had been made, at least and at most, when this was seen."""
        if self.moves is None:
            return 0, 0
        before = sum(move[0] < at - _APART for move in self.moves)
        return before, sum(move[0] <= at + _APART for move in self.moves)

    def is_over(self, at: At) -> bool:
        """Whether all that was recorded has come about."""
        return self.moves is None or at[1] == len(self.moves)


def _fits(event: str, reason: str | None) -> bool:
    """A claim given back says why only where it waits for its platform, or has no adapter."""
    if event not in _LEAVE:
        return True
    return (event == "wait") == (reason not in {None, Reason.NO_ADAPTER})
