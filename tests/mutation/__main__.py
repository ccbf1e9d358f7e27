"""Try mutants: ``python -m tests.mutation``, which ``make mutants`` is. See docs/mutation.md."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.mutation import book
from tests.mutation.catalogue import ROOT, Mutant, mutants, pieces
from tests.mutation.lane import Broken, Lane, Result

KEPT = ROOT / ".publisher-mutation"
ASKED = KEPT / "asked.json"
"""Which tests run which SQL, and in what time: written by ``--record``, and only a help."""

FAR_SECONDS = 60.0
"""How long the tests of other modules are asked about one mutant at most, by the record."""


def main() -> int:
    """Do as the command line says; 1 where a survivor is neither killed nor argued."""
    for ends in (signal.SIGINT, signal.SIGTERM):  # also where a shell has them ignored
        signal.signal(ends, signal.default_int_handler)
    asked = _arguments()
    found = _chosen(mutants(), asked.only)
    if asked.list:
        for mutant in found:
            _say(_shown(mutant))
        return 0
    if asked.report:
        return _report(found)
    with Lane.open(kept=KEPT / "tree") as lane:
        if asked.record:
            return _record(lane)
        found = _chosen(mutants(lane.tree), asked.only)
        _try(lane, found, asked)
        # As it is committed, and as it stands: an edit that is under way loses nothing.
        every = {each.key: each for each in (*mutants(lane.tree), *mutants())}
    book.tidy(every.values())
    lines = book.read()
    book.shorten(each for each in every.values() if each.key not in lines)
    return _report(found)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("--budget", type=float, metavar="MINUTES", help="begin nothing after them")
    parser.add_argument("--only", metavar="PATTERN", help="mutants whose id holds these words")
    parser.add_argument("--list", action="store_true", help="say which mutants there are")
    parser.add_argument("--report", action="store_true", help="say how the source stands")
    parser.add_argument("--again", action="store_true", help="try survivors again")
    parser.add_argument("--anew", action="store_true", help="try again what was noticed, too")
    parser.add_argument(
        "--far",
        type=float,
        default=FAR_SECONDS,
        metavar="SECONDS",
        help="how long far tests are asked about a survivor",
    )
    parser.add_argument(
        "--near", action="store_true", help="ask the nearest tests alone; go on with --again"
    )
    parser.add_argument("--record", action="store_true", help="learn which tests run which SQL")
    return parser.parse_args()


def _chosen(found: Sequence[Mutant], pattern: str | None) -> list[Mutant]:
    """Those whose id holds one of the words, in the order of the words."""
    if pattern is None:
        return list(found)
    chosen = {each.id: each for word in pattern.split(",") for each in found if word in each.id}
    return list(chosen.values())


def _shown(mutant: Mutant) -> str:
    return f"{mutant.id}\n    {mutant.was[:160]}\n    → {mutant.now[:100]}"


def _record(lane: Lane) -> int:
    """Run what tests the engine and the reconciler, and note what each of them runs."""
    where = lane.temporary / "pieces.json"
    where.write_text(json.dumps(pieces(lane.tree)))
    tests = [path.as_posix() for path in sorted(lane.tree.glob("tests/engine/test_*.py"))]
    tests += [f"{lane.tree}/{each}" for each in ("tests/engine/ledger", "tests/engine/worker")]
    tests.append(f"{lane.tree}/tests/reconciler")
    ran = lane.run(tests, seconds=3600.0, to_the_end=True, MUTATION_PIECES=str(where))
    _say(ran.said[-400:])
    if not ran.ran:
        return 2
    ASKED.parent.mkdir(exist_ok=True)
    failed = {each["test"] for each in ran.failed}
    ASKED.write_text(json.dumps({test: row for test, row in ran.ran.items() if test not in failed}))
    _say(f"{len(ran.ran)} tests in {ran.seconds:.0f} s; see {ASKED.relative_to(ROOT)}")
    return 0


def _try(lane: Lane, found: Sequence[Mutant], given: argparse.Namespace) -> None:
    lines = book.read()
    until = time.monotonic() + 60 * given.budget if given.budget else None
    waiting = [
        mutant
        for mutant in found
        if given.anew
        or mutant.key not in lines
        or (given.again and lines[mutant.key].result not in book.NOTICED)
    ]
    asked: dict[str, Any] = json.loads(ASKED.read_text()) if ASKED.exists() else {}
    sound: set[str] = set()
    for number, mutant in enumerate(waiting, 1):
        if until is not None and time.monotonic() > until:
            _say(f"{len(waiting) - number + 1} are left; the time is up")
            return
        try:
            stages = _stages(mutant, asked, lane.tree, given.far)
            result = lane.try_mutant(mutant, stages[:1] if given.near else stages)
            _check(lane, result, sound)
        except Broken as error:
            _say(f"{number}/{len(waiting)} says nothing  {mutant.id}\n{error}")
            continue
        line = book.Line(mutant.id, mutant.digest, result.result, result.by, result.seconds)
        book.add(line)
        said = f"{number}/{len(waiting)} {result.result} in {result.seconds} s  {mutant.id}"
        if result.result == "survived":
            said += f"\n    {mutant.was[:160]}"
        _say(said)


def _check(lane: Lane, result: Result, sound: set[str]) -> None:
    """Whoever noticed passes without a mutant: what always fails would notice anything."""
    file = (result.by or "").split("::")[0].split(" ")[0]
    if result.result != "killed" or not file or file in sound:
        return
    clean = lane.run([file])
    if clean.code != 0 and "conftest" not in file:
        message = f"{file} fails without a mutant\n{clean.said[-2000:]}"
        raise Broken(message)
    sound.add(file)


def _stages(
    mutant: Mutant, asked: dict[str, Any], tree: Path, far_seconds: float
) -> list[list[str]]:
    """What to ask, quick and near tests first."""
    first, wider = mutant.tests()
    first = tuple(each for each in first if (tree / each.split("::")[0]).exists())
    ran = {test: row["seconds"] for test, row in asked.items() if mutant.literal in row["pieces"]}
    if mutant.literal is None or mutant.is_of_the_schema or not asked:
        return [list(each) for each in (first, wider) if each]
    if not ran:  # nothing runs it, so nothing can notice
        return [list(first)]
    own = {test.split("::")[0] for test in first}
    near = [test for test in ran if test.split("::")[0] in own]
    far = [test for test in ran if test.split("::")[0] not in own]
    files: dict[str, float] = {}
    for test in far:
        files[test.split("::")[0]] = min(files.get(test.split("::")[0], 1e9), ran[test])
    # A guard that only an hour's tests would miss has no test of its own.
    far = _within(far_seconds, sorted(far, key=ran.__getitem__), ran)
    far.sort(key=lambda test: (files[test.split("::")[0]], test.split("::")[0], ran[test]))
    near.sort(key=lambda test: (test.split("::")[0], ran[test]))
    recorded = {test.split("::")[0] for test in asked}
    # New tests were written for what the others did not notice, so they are asked before them.
    new = [each for each in first if each.split("::")[0] not in recorded]
    near = [each for each in new if "::" not in each] + near
    near += [each for each in new if "::" in each]
    return [each for each in (near, far) if each]


def _within(seconds: float, tests: list[str], ran: dict[str, float]) -> list[str]:
    chosen = []
    for test in tests:
        seconds -= ran[test]
        if seconds < 0:
            break
        chosen.append(test)
    return chosen


def _say(words: str) -> None:
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


def _report(found: Sequence[Mutant]) -> int:
    stands = book.report(found, book.read(), book.argued())
    for mutant in stands.survivors:
        _say(f"survived: {_shown(mutant)}")
    told = ", ".join(f"{count} {result}" for result, count in sorted(stands.counts.items()))
    _say(f"{len(found)} mutants: {told or 'none tried'}; {len(stands.settled)} survivors argued")
    if stands.missing:
        _say(f"{len(stands.missing)} not tried yet: about {stands.minutes} minutes, make mutants")
    return 1 if stands.survivors else 0


if __name__ == "__main__":
    sys.exit(main())
