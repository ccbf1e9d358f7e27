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

OF_LOST_COMMITS: Final = frozenset({
    (state, "spool_found", "unknown") for state in ("scheduled", "claimed", "failed", "missed")
})  # fmt: skip
"""Rows that only a restored database comes to; its traces are judged by the restores' own runs."""

_GONE_FIRST: Final = (
    "who may still answer must be stated gone first, and a minute pass: only then can a person end"
    " the doubt so"
)
NEVER: Final[dict[Move, str]] = {
    ("failed", "late_publish", "published"): _GONE_FIRST,
    ("missed", "late_publish", "published"): _GONE_FIRST,
}
"""Rows that no kept trace takes, each with its reason; this may only become shorter."""

ROWS: Final = frozenset(
    (str(was), str(event), str(to)) for (was, event), ends in TABLE.items() for to in ends
)
OBSERVABLE: Final = ROWS - UNMADE.keys() - OF_LOST_COMMITS


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
