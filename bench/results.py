"""Rows of figures: kept as JSON lines while the run goes on, and summed up at its end."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

Row = dict[str, float]


@dataclass(slots=True)
class Results:
    """Every row of one run, by measure and contestant."""

    lines: Path
    rows: dict[str, dict[str, list[Row]]] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    def measure(self, measure: str, name: str, number: int, make: Callable[[], Row]) -> None:
        """Add the row of round ``number``, or note why there is none."""
        try:
            row = {"round": number, **make()}
        except Exception as error:  # noqa: BLE001 - one failed run must not end the others
            # The last line says it; those before name folders of this machine.
            said = (str(error).strip().splitlines() or [""])[-1][:200]
            failure = f"{measure}, {name}, round {number}: {type(error).__name__}: {said}"
            self.failures.append(failure)
            self._write({"measure": measure, "contestant": name, "failed": repr(error)})
            print(failure, flush=True)
            return
        self.rows.setdefault(measure, {}).setdefault(name, []).append(row)
        self._write({"measure": measure, "contestant": name, **row})
        shown = " ".join(f"{key}={value:.4g}" for key, value in row.items())
        print(f"{measure:<12} {name:<24} {shown}", flush=True)

    def _write(self, facts: Mapping[str, object]) -> None:
        self.lines.parent.mkdir(parents=True, exist_ok=True)
        with self.lines.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"at": time.strftime("%FT%TZ", time.gmtime()), **facts}) + "\n")

    def of(self, measure: str, name: str) -> list[Row]:
        """The rows of one contestant."""
        return self.rows.get(measure, {}).get(name, [])

    def names(self, measure: str) -> list[str]:
        """Who has rows for this measure, in the order they came."""
        return list(self.rows.get(measure, {}))

    def median(self, measure: str, name: str, key: str) -> float | None:
        """The median of one figure, or None where nothing was measured."""
        values = [row[key] for row in self.of(measure, name)]
        return statistics.median(values) if values else None


def quantile(values: Sequence[float], share: float) -> float:
    """The value below which that share of ``values`` lies."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
