"""Real runs for the model: schedules of the rehearsal, and the traces their jobs left.

    python -m tests.model.runs random:1..20 late-answers:1..3 [FILE]

explains every job of those seeds, says which of the model's moves were seen, and adds the traces
to FILE, one JSON line each.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from publisher.rehearsal.plan.schedule import Schedule, with_victims
from publisher.rehearsal.scenarios import SCENARIOS
from publisher.rehearsal.stage import run as stage
from publisher.rehearsal.stage.lane import Lane
from tests.model import trace
from tests.model.coverage import Coverage
from tests.model.replay import TooWide, Unexplained, beyond, explain
from tests.model.schedules import OWN, Staff
from tests.model.trace import Trace


def real(schedules: Iterable[Schedule]) -> Iterator[tuple[Schedule, list[Trace]]]:
    """Run these, one after the other on one lane. Raises what a run says is broken."""
    for schedule, result, traces in _run(schedules):
        if result.broken:
            message = f"{schedule.scenario} {schedule.seed}: {result.broken}"
            raise AssertionError(message)
        yield schedule, traces


def broken(schedules: Iterable[Schedule]) -> Iterator[list[Trace]]:
    """Run schedules of broken engines; what they leave is what they leave."""
    for _, _, traces in _run(schedules):
        yield traces


def drawn(words: Iterable[str]) -> Iterator[Schedule]:
    """The schedules meant by words such as ``edits:1..3`` or ``poison:7``."""
    for word in words:
        name, _, seeds = word.partition(":")
        first, _, last = seeds.partition("..")
        for seed in range(int(first), int(last or first) + 1):
            yield OWN[name](seed) if name in OWN else SCENARIOS[name].draw(seed)


def _run(schedules: Iterable[Schedule]) -> Iterator[tuple[Schedule, stage.Result, list[Trace]]]:
    with Lane.open() as lane:
        for schedule in map(with_victims, schedules):
            lane.renew()
            with stage._database(lane, schedule) as (ground, home):
                run = stage.Run(lane, schedule, ground, home)
                run.staff = Staff(lane, schedule, ground, home)
                result = run.go()
                with lane.server.admin(ground.name) as conn:
                    of = f"{schedule.scenario} {schedule.seed}"
                    yield schedule, result, trace.read(conn, lane.sandbox.log, of=of)


def _main(*words: str) -> int:
    files = [Path(word) for word in words if ":" not in word]
    coverage, refused = Coverage(), 0
    for schedule, result, traces in _run(drawn(word for word in words if ":" in word)):
        for file in files:
            with file.open("a") as lines:
                lines.writelines(json.dumps(one, separators=(",", ":")) + "\n" for one in traces)
        for rule in result.broken:
            refused += 1
            sys.stdout.write(f"{schedule.scenario} {schedule.seed} BROKE {rule}\n")
        for one in traces:
            if beyond(one):
                continue
            try:
                coverage.add([explain(one)])
            except (Unexplained, TooWide) as error:
                refused += 1
                sys.stdout.write(f"{one['of']}: {error}\n")
        struck = Counter(f"{hit.place} × {hit.fault}" for hit in result.fired) + result.verdicts
        told = ", ".join(f"{n} {what}" for what, n in struck.items())
        sys.stdout.write(
            f"{schedule.scenario} {schedule.seed}: {coverage.jobs} jobs by now; {told}\n"
        )
        sys.stdout.flush()
    sys.stdout.write(f"{coverage.told()}\n")
    return int(refused > 0)


if __name__ == "__main__":
    sys.exit(_main(*sys.argv[1:]))
