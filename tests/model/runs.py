"""Real runs for the model: schedules of the crash harness, and the traces their jobs left.

    python -m tests.model.runs 1..20 [FILE]

explains every job of those seeds, says which of the model's moves were seen, and writes the traces
to FILE, one JSON line each.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from publisher.rehearsal.plan.schedule import Schedule, scheduled, with_victims
from publisher.rehearsal.stage import run as stage
from publisher.rehearsal.stage.lane import Lane
from tests.model import trace
from tests.model.coverage import Coverage
from tests.model.replay import TooWide, Unexplained, beyond, explain
from tests.model.trace import Trace


def real(seeds: Iterable[int]) -> Iterator[tuple[int, list[Trace]]]:
    """Run these seeds, one after the other on one lane. Raises what a run says is broken."""
    for schedule, result, traces in _run(map(scheduled, seeds)):
        if result.broken:
            message = f"seed {schedule.seed}: {result.broken}"
            raise AssertionError(message)
        yield schedule.seed, traces


def broken(schedules: Iterable[Schedule]) -> Iterator[list[Trace]]:
    """Run schedules of broken engines; what they leave is what they leave."""
    for _, _, traces in _run(schedules):
        yield traces


def _run(schedules: Iterable[Schedule]) -> Iterator[tuple[Schedule, stage.Result, list[Trace]]]:
    with Lane.open() as lane:
        for schedule in map(with_victims, schedules):
            lane.renew()
            with stage._database(lane, schedule) as (ground, home):
                result = stage.Run(lane, schedule, ground, home).go()
                with lane.server.admin(ground.name) as conn:
                    yield schedule, result, trace.read(conn, lane.sandbox.log)


def _main(seeds: str, *files: str) -> int:
    first, _, last = seeds.partition("..")
    coverage, refused = Coverage(), 0
    lines: list[str] = []
    for seed, traces in real(range(int(first), int(last or first) + 1)):
        for one in traces:
            lines.append(json.dumps(one, separators=(",", ":")))
            if beyond(one):
                continue
            try:
                coverage.add([explain(one)])
            except (Unexplained, TooWide) as error:
                refused += 1
                sys.stdout.write(f"seed {seed}: {error}\n")
    for file in files:
        Path(file).write_text("".join(f"{line}\n" for line in lines))
    sys.stdout.write(f"{coverage.told()}\n")
    return int(refused > 0)


if __name__ == "__main__":
    sys.exit(_main(*sys.argv[1:]))
