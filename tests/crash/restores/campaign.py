"""Runs plans and the proof, adds up what they came to, and prints it."""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.crash import cumulative
from tests.crash.restores.broken import TRIES, VARIANTS
from tests.crash.restores.crew import each
from tests.crash.restores.plan import Plan, planned
from tests.crash.restores.result import Result
from tests.postgres import ServerName

LEDGER: Final = Path(__file__).parent.with_name("restores.jsonl")
PART: Final = 7
"""Plans in a part of the ledger: each way once."""
WORDS: Final = ("duplicates", "lost", "unreported", "false success")
_RULES: Final = {
    "duplicate": "duplicates", "lost": "lost", "unreported": "unreported",
    "false success": "false success",
}  # fmt: skip
Say = Callable[[object], object]


@dataclass(slots=True)
class Tally:
    """What plans came to."""

    plans: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    rules: Counter[str] = field(default_factory=Counter)
    ways: Counter[str] = field(default_factory=Counter)
    causes: Counter[str] = field(default_factory=Counter)
    did: Counter[str] = field(default_factory=Counter)
    failed: list[Result] = field(default_factory=list)

    def add(self, result: Result) -> None:
        """Count one plan."""
        self.plans += 1
        self.counts.update(result.verdict.counts)
        self.ways[result.plan.way] += 1
        self.causes.update(result.verdict.causes)
        self.did.update(result.did)
        for broken in result.broken:
            self.rules[_RULES.get(broken.partition(":")[0], "other")] += 1
        if result.broken:
            self.failed.append(result)


def run_all(
    plans: Iterable[Plan], tally: Tally, *, lanes: int, server: ServerName, say: Say
) -> None:
    """Run these plans, and count them; what broke is kept with all that was said."""
    for result in each(plans, lanes=lanes, server=server):
        tally.add(result)
        if result.broken:
            file = Path(tempfile.gettempdir()) / f"publisher-restores-{result.plan.seed}.log"
            file.write_text(f"{told(result)}\n{result.log}")
            say(f"  plan {result.plan.seed} broke a rule; what was said: {file}")


def many(count: int, *, lanes: int, server: ServerName, say: Say) -> Tally:
    """So many plans more, from the first seed that the ledger does not have, in kept parts."""
    tally = Tally()
    first = cumulative.next_seed(cumulative.read(LEDGER))
    for start in range(first, first + count, PART):
        part = cumulative.new_part(start, min(start + PART, first + count) - 1)
        of_part = Tally()
        seeds = range(part.first, part.last + 1)
        run_all(map(planned, seeds), of_part, lanes=lanes, server=server, say=say)
        part.schedules = part.faults = of_part.plans
        part.approved = of_part.counts["approved"]
        part.outcomes = {word: of_part.rules[word] for word in cumulative.WORDS}
        cumulative.add(part, LEDGER)
        say(f"  {part.first}..{part.last}  {dict(part.outcomes)}")
        _add(tally, of_part)
    return tally


def _add(tally: Tally, part: Tally) -> None:
    tally.plans += part.plans
    tally.failed += part.failed
    for name in ("counts", "rules", "ways", "causes", "did"):
        getattr(tally, name).update(getattr(part, name))


def prove(*, lanes: int, say: Say, names: Iterable[str] = tuple(VARIANTS)) -> dict[str, str | None]:
    """Run variants until they are caught; returns variant → what it was caught at, or None."""
    caught: dict[str, str | None] = dict.fromkeys(names)
    for seed in range(1, TRIES + 1):
        left = [name for name, found in caught.items() if found is None]
        for result in each([VARIANTS[name].aim(name, seed) for name in left], lanes=lanes):
            name = result.plan.variant
            assert name is not None
            rule = VARIANTS[name].rule
            found = next((b for b in result.broken if b.startswith(f"{rule}: ")), None)
            caught[name] = found
            if found is not None:
                say(f"  caught after {seed}  {name:44} {found[:100]}")
    return caught


def told(result: Result) -> str:
    """What broke, and how to run it again."""
    seed = result.plan.seed
    lines = [f"FAILED  plan {seed}: python -m tests.crash --restores-seed {seed}"]
    lines += [f"  {broken}" for broken in result.broken]
    return "\n".join([*lines, f"  {result.plan}", f"  the person: {dict(result.did)}"])


def table(tally: Tally, caught: Mapping[str, str | None] | None, *, seconds: float) -> str:
    """What a run prints."""
    counts = tally.counts
    rules = "   ".join(f"{word} {tally.rules[word]}" for word in WORDS)
    other = f"   other {tally.rules['other']}" if tally.rules["other"] else ""
    rest = ", ".join(
        f"{counts[word]} {word}"
        for word in ("failed", "missed", "cancelled", "dropped", "unknown", "gone with the journal")
        if counts[word]
    )
    head = f"Restores and clones   {tally.plans} plans in {seconds:.0f} s"
    posts = (
        f"  {counts['approved']:,} approved · {counts['on the page']:,} on the page"
        f" · {counts['published']:,} live in the journal · {rest or 'nothing else'}"
    )
    lines = [
        head,
        posts,
        f"  {rules}{other}",
        f"  how: {_listed(tally.ways)}",
        f"  noticed by: {_listed(tally.causes)}",
        f"  a person: {_listed(tally.did)}",
    ]
    if caught is not None:
        found = sum(rule is not None for rule in caught.values())
        lines.append(f"Can it fail?  {found} of {len(caught)} broken variants caught")
    return "\n".join(lines)


def campaign(
    count: int, *, lanes: int, server: ServerName, say: Say, proves: bool, seed: int | None = None
) -> int:
    """Run, and print what came of it; returns the exit code of the command."""
    began = time.monotonic()
    caught = prove(lanes=lanes, say=say) if proves and seed is None else None
    if seed is None:
        tally = many(count, lanes=lanes, server=server, say=say)
    else:
        tally = Tally()
        run_all([planned(seed)], tally, lanes=1, server=server, say=say)
    for result in tally.failed:
        say(told(result))
    say(table(tally, caught, seconds=time.monotonic() - began))
    through = [name for name, rule in (caught or {}).items() if rule is None]
    for name in through:
        say(f"  {name} got through")
    failed = bool(tally.failed or through)
    say("FAILED" if failed else "PASSED")
    return int(failed)


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{n} {what}" for what, n in counts.most_common()) or "none"
