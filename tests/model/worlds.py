"""Which worlds are searched: each turns some features on, so that each can be gone through whole.

``QUICK`` is what every test run searches; ``WIDE`` is ``make model``: more of everything.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from tests.model.state import World

_QUICK: Final = (
    World("kernel", faults=(("crash", 1), ("unacknowledged", 1), ("drain", 1)), foreign=True),
    World("edits", edits=True, faults=(("crash", 1),)),
    World(
        "doubts", requeues=True, reconciler=True, people=True, late=True, workers=1,
        faults=(("crash", 1),),
    ),
    World(
        "listing", exhaustive=True, requeues=True, reconciler=True, people=True, strangers=True,
        late=True, workers=1,
    ),
    World(
        "key", key="life", reconciler=True, people=True, edits=True, late=True,
        workers=1, answers=("published", "unclear"),
    ),
    World(
        "key for ever", key="atomic", exhaustive=True, reconciler=True, edits=True, workers=1,
        faults=(("crash", 1),),
    ),
    World("no page", can_look=False, people=True, workers=1, faults=(("crash", 1), ("lie", 1))),
    World(
        "lies", exhaustive=True, people=True, workers=1, faults=(("lie", 1), ("wrong", 1)),
    ),
    World(
        "host", people=True, workers=1,
        attempts=1, faults=(("crash", 1), ("reboot", 1), ("damage", 1), ("interrupt", 1)),
    ),
    World(
        "two lookers", reconciler=True, people=True, exhaustive=True, requeues=True, looks=2,
        workers=1, answers=("published",),
    ),
    World(
        "lost commits", people=True, workers=1, attempts=1, runs=2, answers=("published",),
        faults=(("restore", 1), ("crash", 1)),
    ),
    World(
        "lost settles", workers=1, runs=2, answers=(), faults=(("restore", 1), ("crash", 1)),
    ),
    World(
        "lost, compacted", workers=1, attempts=1, runs=1, answers=("published",),
        faults=(("restore", 1), ("crash", 1), ("compact", 1)),
    ),
    World(
        "lost, and looked for", reconciler=True, exhaustive=True, edits=True, workers=1,
        attempts=1, runs=2, answers=("published",), faults=(("restore", 1),),
    ),
)  # fmt: skip

QUICK: Final = {world.name: world for world in _QUICK}


def _wider(name: str, **more: object) -> World:
    return replace(QUICK[name], **more)  # type: ignore[arg-type]


_WIDE: Final = (
    _wider("kernel", faults=(("crash", 2), ("unacknowledged", 2), ("drain", 1)), attempts=3),
    _wider("edits", faults=(("crash", 2), ("unacknowledged", 1)), attempts=3),
    _wider("doubts", workers=2, edits=True),
    _wider("listing", workers=2, faults=(("crash", 1),)),
    _wider("key", workers=2, faults=(("crash", 1),)),
    _wider("key for ever", attempts=3, edits=False),
    replace(
        QUICK["key for ever"],
        name="key for ever, and people",
        people=True,
        edits=False,
        faults=(("crash", 1),),
    ),
    _wider("no page", workers=2, edits=True),
    _wider("lies", workers=2, reconciler=True),
    _wider("host", workers=2, faults=(("crash", 1), ("reboot", 1), ("damage", 1))),
    _wider("two lookers", workers=2, faults=(("crash", 1),)),
    _wider("lost commits", attempts=2),
    World(
        "lost while it settles",
        workers=2,
        runs=2,
        answers=(),
        faults=(("restore", 1), ("unacknowledged", 1)),
    ),
    World(
        "lost while it is judged",
        reconciler=True,
        exhaustive=True,
        requeues=True,
        workers=1,
        runs=2,
        answers=(),
        faults=(("restore", 1),),
    ),
    replace(QUICK["lost commits"], name="two runs, one number", workers=2),
    _wider("lost settles", people=True),
    _wider("lost, and looked for", workers=2, faults=(("restore", 1), ("crash", 1))),
)
WIDE: Final = {world.name: world for world in _WIDE}
