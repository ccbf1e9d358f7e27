"""Every actor's next moves, in a fixed order."""

from __future__ import annotations

from collections.abc import Iterator

from tests.model.acts import losses, people, platform, reconciler, rescue, sending, worker
from tests.model.state import State, Step, World

_ACTORS = (worker, sending, platform, rescue, reconciler, people, losses)


def steps(world: World, state: State) -> Iterator[Step]:
    """Everything that may happen next. States are not yet canonical."""
    for actor in _ACTORS:
        yield from actor.steps(world, state)
