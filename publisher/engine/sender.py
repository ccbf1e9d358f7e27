"""Whether the process that began a send can still write (R4), and until when others must wait.

Pure. Before anybody may say "it is not there, send again", the sender must be proved gone and
what it wrote must have had its time to land.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Self

DECLARED_MARGIN = timedelta(minutes=15)
"""A person's word that a machine is gone takes effect this much later than a proof would."""


@dataclass(frozen=True, slots=True)
class Sender:
    """What the journal knows of the hand that made a send.

    ``returned_at``: the hand came back and said how the call ended. ``ended_at``: its worker run
    is over, by a clean end, by its file's lock or by a restart of its machine.
    ``declared_gone_at``: an operator stated that its machine is gone.
    """

    run: int
    host: str
    returned_at: datetime | None = None
    ended_at: datetime | None = None
    declared_gone_at: datetime | None = None

    @classmethod
    def read(cls, facts: Mapping[str, Any]) -> Self:
        """Take what the database said as JSON: times in ISO 8601."""
        at = {
            name: None if facts[name] is None else datetime.fromisoformat(facts[name])
            for name in ("returned_at", "ended_at", "declared_gone_at")
        }
        return cls(run=facts["run"] or 0, host=facts["host"] or "an unknown host", **at)

    def sure_gone_at(self) -> datetime:
        """``gone_at`` of one that is proved gone."""
        gone_at = self.gone_at()
        assert gone_at is not None  # noqa: S101 - its callers ask that first
        return gone_at

    def gone_at(self) -> datetime | None:
        """Since when it can write no more, or None while nothing proves that."""
        declared = self.declared_gone_at
        proofs = [
            self.returned_at,
            self.ended_at,
            None if declared is None else declared + DECLARED_MARGIN,
        ]
        return min((at for at in proofs if at is not None), default=None)

    def unlocks_at(self, horizon: timedelta) -> datetime | None:
        """When another send may be thought of; None until the sender is proved gone."""
        gone_at = self.gone_at()
        return None if gone_at is None else gone_at + horizon
