"""Which of the model's moves were seen in real runs, and which are still to be.

Add up what ``replay.explain`` returns; ``unseen`` names the rest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from publisher.engine.transitions import TABLE
from tests.model.replay import Explained

Move = tuple[str, str, str]

UNMADE: Final[dict[Move, str]] = {
    (state, "unauthorized", "failed"): "an unauthorized channel waits for a person, and that uses"
    " up no tries (retry.settle)"
    for state in ("claimed", "sending", "unknown")
}
"""Rows of the table that neither the model nor the code makes, each with its reason."""

_SAME: Final = "its event is that of a scheduled job, and a claim that began nothing leaves no row"
UNSEEN: Final[dict[Move, str]] = {
    ("claimed", "release", "scheduled"): "a claim given back unharmed leaves no row",
    ("claimed", "wait", "scheduled"): "so does one that waits for its platform",
    ("unknown", "look_again", "unknown"): "counted by its looks",
    ("claimed", "cancel", "cancelled"): _SAME,
    ("claimed", "hold", "scheduled"): _SAME,
    ("claimed", "reschedule", "scheduled"): _SAME,
}
"""Rows that leave nothing to see by themselves, each with its reason."""

OF_LOST_COMMITS: Final = frozenset({
    (state, "spool_found", "unknown") for state in ("scheduled", "claimed", "failed", "missed")
})  # fmt: skip
"""Rows that only a restored database comes to; its traces are judged by the restores' own runs."""

ROWS: Final = frozenset(
    (str(was), str(event), str(to)) for (was, event), ends in TABLE.items() for to in ends
)
OBSERVABLE: Final = ROWS - UNMADE.keys() - UNSEEN.keys() - OF_LOST_COMMITS


@dataclass(slots=True)
class Coverage:
    """What explained traces add up to."""

    jobs: int = 0
    events: Counter[Move] = field(default_factory=Counter)
    verbs: Counter[str] = field(default_factory=Counter)

    def add(self, many: Iterable[Explained]) -> None:
        """Count these too."""
        for explained in many:
            self.jobs += 1
            self.events += explained.events
            self.verbs += explained.verbs

    def unseen(self) -> frozenset[Move]:
        """The observable rows of the transition table that no trace took."""
        return OBSERVABLE - self.events.keys()

    def told(self) -> str:
        """For people: how many rows were seen, and which were not."""
        seen = len(OBSERVABLE) - len(self.unseen())
        lines = [f"{self.jobs} jobs explained; {seen} of {len(OBSERVABLE)} observable moves seen"]
        lines += [
            f"  not seen: {was} --{event}--> {to}" for was, event, to in sorted(self.unseen())
        ]
        return "\n".join(lines)
