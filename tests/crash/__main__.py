"""Crash it on purpose, then compare the page with the journal.

    python -m tests.crash                  the quick mode: everything reached, the proof, ≤ 5 min
    python -m tests.crash --runs 2000      more schedules, in parts that the ledger keeps
    python -m tests.crash --seed 217       one schedule again, with all it said
    python -m tests.crash --restores 14    backups put back and clones: the journal itself goes back

Exit codes: 0 passed, 1 a rule was broken, a broken variant got through or too few doubts settled by
themselves, 3 it proves too little (some point, behaviour or act of a person was never reached).
"""

from __future__ import annotations

import argparse
import logging
import signal
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from types import FrameType

import structlog

from tests.crash import cumulative, doubts, proof, summary
from tests.crash.crew import LANES, each
from tests.crash.restores import campaign
from tests.crash.run import Result
from tests.crash.schedule import scheduled
from tests.crash.tally import Tally

QUICK_SEEDS = range(1, 51)
"""A round of the catalogue: each point × fault once, each behaviour several times."""
QUICK_SECONDS = 270.0
"""For all of the quick mode, proof and all."""
PART = 50


def say(text: object) -> None:
    """Print a line at once: somebody is waiting for it."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> int:
    """Run as told; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description=__doc__)
    parser.add_argument("--seed", type=int, help="run this schedule alone, and show what it said")
    parser.add_argument("--runs", type=int, default=0, help="so many schedules, in kept parts")
    parser.add_argument("--lanes", type=int, default=LANES)
    parser.add_argument("--server", choices=("embedded", "15"), default="embedded")
    parser.add_argument("--variant", help="with --seed: a broken copy of the engine")
    parser.add_argument("--restores", type=int, default=0, help="so many plans that lose commits")
    parser.add_argument("--restores-seed", type=int, help="run this plan of those alone")
    parser.add_argument("--no-proof", action="store_true", help="leave the broken variants out")
    given = parser.parse_args()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _stop)
    if given.seed is not None:
        return one(given)
    # Of templates that are migrated there is nothing to tell.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    if given.restores or given.restores_seed is not None:
        return campaign.campaign(
            given.restores, lanes=given.lanes, server=given.server, say=say,
            proves=not given.no_proof, seed=given.restores_seed,
        )  # fmt: skip
    until = time.monotonic() + QUICK_SECONDS
    caught = None if given.no_proof else proof.prove(given.lanes, said=say)
    tally = many(given) if given.runs else quick(given, until=until)
    return tell(tally, caught)


def _stop(_number: int, _frame: FrameType | None) -> None:
    """End in order, and once: servers and relays are stopped by who started them."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def one(given: argparse.Namespace) -> int:
    """One seed, with everything."""
    schedule = scheduled(given.seed)
    if given.variant:
        schedule = proof.VARIANTS[given.variant].aim(given.variant, given.seed)
    say(schedule)
    (result,) = each([schedule], lanes=1, server=given.server)
    say(result.log)
    say(summary.failures([result]) if result.broken else "passed")
    struck = ", ".join(f"{hit.place} ({hit.when}) {hit.fault}" for hit in result.fired)
    say(f"{dict(result.verdict.counts)}, struck: {struck}")
    say(f"doubts: {dict(result.verdict.doubts)}, verdicts: {dict(result.verdicts)}")
    for what in result.verdict.asked:
        say(f"  {what}")
    return 1 if result.broken else 0


def quick(given: argparse.Namespace, *, until: float) -> Tally:
    """One round of the catalogue; what was missed is tried again while there is time."""
    tally = Tally()
    seeds: Iterable[int] = QUICK_SEEDS
    for _ in range(4):
        run_all(seeds, tally, given, until=until)
        missing = set(tally.unreached_points)
        seeds = [
            seed for seed in QUICK_SEEDS
            if missing & {hit.point for hit in scheduled(seed).hits}
        ]  # fmt: skip
        if not seeds or time.monotonic() > until:
            break
    return tally


def many(given: argparse.Namespace) -> Tally:
    """More schedules, from the first seed that the ledger does not have."""
    tally = Tally()
    first = cumulative.next_seed(cumulative.read())
    for start in range(first, first + given.runs, PART):
        part = cumulative.new_part(start, min(start + PART, first + given.runs) - 1)
        of_part = Tally()
        run_all(range(part.first, part.last + 1), tally, given, also=of_part)
        part.schedules, part.faults = of_part.schedules, of_part.faults
        part.approved = of_part.counts["approved"]
        part.outcomes = {
            **{word: of_part.rules[word] for word in cumulative.WORDS},
            "doubts": of_part.counts["in doubt"], "platform lied": of_part.lied,
            "live": of_part.counts["live in the journal"],
            "doubts on the page": sum(of_part.settled.counts.values()),
            "settled by themselves": of_part.settled.sum(*doubts.BY_ITSELF),
        }  # fmt: skip
        cumulative.add(part)
        say(f"  {part.first}..{part.last}  {summary.bound(cumulative.read())}")
    return tally


def run_all(
    seeds: Iterable[int],
    tally: Tally,
    given: argparse.Namespace,
    *,
    until: float = float("inf"),
    also: Tally | None = None,
) -> None:
    """Run these seeds, and count them."""
    for result in each(
        map(scheduled, seeds), lanes=given.lanes, server=given.server,
        goes_on=lambda: time.monotonic() < until,
    ):  # fmt: skip
        tally.add(result)
        if also is not None:
            also.add(result)
        _keep_log(result)


def tell(tally: Tally, caught: dict[str, str | None] | None) -> int:
    """Print what came of it."""
    if tally.failed:
        say(summary.failures(tally.failed))
    say(summary.table(tally, caught))
    if missed := summary.unreached(tally):
        say(missed)
    reached = Path(tempfile.gettempdir()) / "publisher-crash-reached.json"
    summary.write_matrix(tally, reached)
    say(f"Each point × fault with how often it struck: {reached}")
    few = [share for share in tally.settled.shares() if not share.is_enough]
    uncaught = [name for name, rule in (caught or {}).items() if rule is None]
    if tally.failed or uncaught or few:
        through = [f"{name} got through" for name in uncaught]
        through += [f"too few doubts settled by themselves: {share.platform}" for share in few]
        say("FAILED" + "".join(f"\n  {line}" for line in through))
        return 1
    say("PROVES TOO LITTLE" if missed else "PASSED")
    return 3 if missed else 0


def _keep_log(result: Result) -> None:
    if not result.broken:
        return
    file = Path(tempfile.gettempdir()) / f"publisher-crash-{result.seed}.log"
    file.write_text(f"{summary.failures([result])}\n{result.log}")
    say(f"  seed {result.seed} broke a rule; what its workers said: {file}")


if __name__ == "__main__":
    sys.exit(main())
