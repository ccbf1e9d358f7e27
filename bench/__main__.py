"""``python -m bench``: run every measure, contestants in turn, and write the tables."""

from __future__ import annotations

import argparse
import logging
import shutil
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import structlog

from bench import tables
from bench.contestants import HERE, PEERS, Contestant, ours
from bench.drain import drain
from bench.fairness import fairness
from bench.history import claimed, drained
from bench.lateness import lateness
from bench.pickup import pickup
from bench.results import Results, Row
from bench.server import Server

MEASURES = ("drain", "pickup", "fairness", "history", "sends")


@dataclass(frozen=True, slots=True)
class Size:
    """How much of everything."""

    rounds: int
    scale: float
    samples: int
    finished: int
    crowd: int
    posts: int

    def jobs(self, contestant: Contestant) -> int:
        """How many jobs a drain has."""
        return max(500, int(contestant.jobs * self.scale))


WHOLE = Size(rounds=3, scale=1, samples=200, finished=1_000_000, crowd=10_000, posts=10_000)
QUICK = Size(rounds=1, scale=0.2, samples=60, finished=50_000, crowd=3_000, posts=1_000)


@dataclass(slots=True)
class Run:
    """One run: contestants take turns within each round, so that noise falls on all alike."""

    server: Server
    size: Size
    results: Results
    ends_at: float
    ours: Contestant
    against: Contestant | None
    peers: tuple[Contestant, ...]
    number: int = 0

    @property
    def entrants(self) -> list[Contestant]:
        """Ours first, then the peers."""
        return [self.ours, *([] if self.against is None else [self.against]), *self.peers]

    def measure(self, measure: str, name: str, make: Callable[[], Row]) -> None:
        """Make one row unless the time is up."""
        if time.monotonic() > self.ends_at:
            self.results.failures.append(f"{measure}, {name}: the time was up")
            return
        self.results.measure(measure, name, self.number, make)

    def drain(self) -> None:
        """Drain with one and with two processes, and ours on a single channel."""
        for processes in (1, 2):
            for entrant in self.entrants:
                jobs = self.size.jobs(entrant)
                make = partial(drain, entrant, self.server, processes=processes, jobs=jobs)
                self.measure(f"drain {processes}", entrant.name, make)
        one = replace(
            self.ours,
            name="ours, 1 channel",
            settings={**self.ours.settings, "BENCH_CHANNELS": "1"},
            jobs=4_000,
            setting="256 hands, 1 channel with 1 in flight",
        )
        make = partial(drain, one, self.server, processes=1, jobs=self.size.jobs(one))
        self.measure("drain 1", one.name, make)

    def pickup(self) -> None:
        """Pickup from an idle queue."""
        for entrant in self.entrants:
            make = partial(pickup, entrant, self.server, samples=self.size.samples)
            self.measure("pickup", entrant.name, make)

    def fairness(self) -> None:
        """One beside a crowd."""
        make = partial(fairness, self.ours, self.server, crowd=self.size.crowd)
        self.measure("fairness", "ours", make)

    def history(self) -> None:
        """With and without finished jobs, in turn."""
        for finished in (0, self.size.finished):
            name = f"{finished:,} finished"
            jobs = self.size.jobs(self.ours)
            self.measure(
                "history drain",
                name,
                partial(drained, self.ours, self.server, finished=finished, jobs=jobs),
            )
            self.measure(
                "history claim", name, partial(claimed, self.ours, self.server, finished=finished)
            )

    def sends(self) -> None:
        """Real HTTP, through the real adapter."""
        for processes in (1, 2):
            self.measure(
                "lateness",
                f"{processes} process{'es' * (processes > 1)}",
                partial(
                    lateness,
                    self.ours,
                    self.server,
                    processes=processes,
                    posts=self.size.posts,
                    pages=500,
                    delay_ms=200,
                ),
            )
        self.measure(
            "publishes",
            "1 process",
            partial(
                lateness,
                self.ours,
                self.server,
                processes=1,
                posts=self.size.posts * 2 // 5,
                pages=500,
                delay_ms=0,
            ),
        )


def main() -> int:
    """Run what is asked for; exit 1 when a run failed."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    add = parser.add_argument
    add("measures", nargs="*", metavar="measure", help=f"of: {', '.join(MEASURES)}; default: all")
    add("--quick", action="store_true", help="one small round, about two minutes; ratios mislead")
    add("--rounds", type=int, help="rounds instead of three")
    add("--postgres", type=int, default=18, help="18 (embedded wheel) or Debian's, such as 15")
    add("--minutes", type=float, default=40, help="stop starting runs after this long")
    add("--against", type=Path, metavar="TREE", help="another source tree of ours to take part")
    add("--only-ours", action="store_true", help="leave the peers out")
    add("--out", type=Path, help="where the tables go; default: bench/results/latest.md")
    given = parser.parse_args()
    if unknown := set(given.measures) - set(MEASURES):
        parser.error(f"no such measure: {', '.join(sorted(unknown))}")
    # So that whoever ends it, with timeout for one, ends its server and workers, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    size = QUICK if given.quick else WHOLE
    size = replace(size, rounds=given.rounds or size.rounds)
    whole = not (given.quick or given.measures or given.against or given.only_ours)
    out = given.out or HERE / "results" / ("latest.md" if whole else "partial.md")
    against = None if given.against is None else ours("ours, other tree", tree=given.against)
    lines = HERE / "results" / "lines" / f"{time.strftime('%Y%m%d-%H%M%S')}.jsonl"
    results = Results(lines)
    with Server(given.postgres) as server:
        ends_at = time.monotonic() + given.minutes * 60
        peers = () if given.only_ours else PEERS
        # A copy, so that a tree that is being edited is measured as it stood.
        tree = server.folder / "tree"
        for part in ("publisher", "migrations"):
            shutil.copytree(HERE.parent / part, tree / part)
        run = Run(server, size, results, ends_at, ours(tree=tree), against, peers)
        conditions = tables.conditions(server, size.rounds)
        for number in range(1, size.rounds + 1):
            print(f"Round {number} of {size.rounds}", flush=True)
            run.number = number
            for measure in given.measures or MEASURES:
                getattr(run, measure)()
        text = tables.document(results, conditions, run.entrants)
    out.write_text(text, encoding="utf-8")
    print(f"\n{text}\nWritten to {out}")
    return 1 if results.failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
