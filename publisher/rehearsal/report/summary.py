"""What a run prints: the page against the journal, what was reached, and whether it can fail."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from publisher.rehearsal.plan.catalogue import BEHAVIOURS, HITS, OTHER_WAYS, POINTS
from publisher.rehearsal.report import cumulative
from publisher.rehearsal.report.tally import Tally
from publisher.rehearsal.stage.run import Result
from publisher.rehearsal.verdict import doubts

WORDS = ("duplicates", "lost", "unreported", "false success")


def table(tally: Tally, caught: dict[str, str | None] | None) -> str:
    """The table. ``caught``: variant → the rule that caught it, None where none did."""
    counts = tally.counts
    elsewhere = ", ".join(
        f"{counts[state]} {word}"
        for state, word in (
            ("failed", "not published"), ("missed", "missed"), ("cancelled", "cancelled"),
            ("on hold", "on hold"),
        )
        if counts[state]
    )  # fmt: skip
    rules = "   ".join(f"{word} {tally.rules[word]}" for word in WORDS)
    other = f"   other {tally.rules['other']}" if tally.rules["other"] else ""
    lied = f"; {tally.lied} where the platform lied, counted apart" if tally.lied else ""
    page = f"{counts['approved']:,} approved · {counts['on the page']:,} on the page"
    lines = [
        f"Page against journal   {page} · {counts['live in the journal']:,} live in the journal",
        f"  not on the page: {elsewhere or 'none'}",
        f"  {rules}{other}     {counts['in doubt']:,} doubts, all visible{lied}",
        *_settled(tally),
        _reached(tally),
    ]
    if caught is not None:
        found = sum(rule is not None for rule in caught.values())
        lines.append(f"Can it fail?  {found} of {len(caught)} broken variants caught")
    lines.append(bound(cumulative.read()))
    return "\n".join(lines)


def _settled(tally: Tally) -> list[str]:
    """Of the doubts whose post was on the page: how many needed nobody, and why the rest did."""
    settled = tally.settled
    shares = " · ".join(
        f"{share.platform} {share.settled:,} of {share.of:,}"
        f" ({100 * share.settled / share.of:.1f} %)"
        for share in settled.shares()
    )
    how = " · ".join(f"{settled.sum(what):,} {what}" for what in doubts.BY_ITSELF)
    rest = ", ".join(
        f"{n:,} {what} ({platform})" for (platform, what), n in sorted(settled.rest().items())
    )
    return [
        f"On the page and in doubt, settled by itself   {shares or 'none'}",
        f"  {how}",
        f"  the rest: {rest or 'none'}",
        *(f"    {what}" for what in tally.asked),
    ]


def _reached(tally: Tally) -> str:
    points = len(POINTS) - len(tally.unreached_points)
    every = len(BEHAVIOURS) + len(OTHER_WAYS)
    ways = every - len(tally.unreached_behaviours)
    acts = sum(tally.edits.values()) + sum(tally.verdicts.values())
    return (
        f"Reached   {points}/{len(POINTS)} crash points · {ways}/{every} platform"
        f" behaviours · {len(tally.hits)}/{len(HITS)} points × faults · {tally.faults:,} faults in"
        f" {tally.schedules:,} schedules · {acts:,} acts of people"
    )


def bound(parts: Sequence[cumulative.Part]) -> str:
    """What zero failures are worth so far: the rule of three, over faults that struck.

    Several strike in one schedule, so they are trials that know a little of one another.
    """
    faults = sum(part.faults for part in parts)
    failures = sum(part.failures for part in parts)
    schedules = sum(part.schedules for part in parts)
    if failures or not faults:
        return f"Bound     {failures} failures in {faults:,} faults so far; see the ledger"
    return (
        f"Bound     0 in {faults:,} faults ({schedules:,} schedules) so far:"
        f" below 1 in {max(faults // 3, 1):,} (95 %)"
    )


def failures(failed: Iterable[Result]) -> str:
    """What broke, and how to run it again."""
    lines = []
    for result in failed:
        lines.append(f"FAILED  seed {result.seed}: publisher rehearse replay {result.seed}")
        lines += [f"  {broken}" for broken in result.broken]
        lines += [f"  struck: {hit.place} ({hit.when}) {hit.fault}" for hit in result.fired]
    return "\n".join(lines)


def unreached(tally: Tally) -> str:
    """What was never met."""
    points = [f"  {place} ({layer}, {when})" for layer, place, when in tally.unreached_points]
    ways = [f"  {name} (platform)" for name in tally.unreached_behaviours]
    acts = [f"  {said} (a person, about a doubt)" for said in tally.unreached_acts]
    missed = [*points, *ways, *acts]
    return "\n".join(["Never reached:", *missed]) if missed else ""


def matrix(tally: Tally) -> list[dict[str, object]]:
    """Points × faults, with how often each struck, for a file."""
    return [
        {"layer": h.layer, "place": h.place, "when": h.when, "fault": h.fault, "times": n}
        for h, n in sorted(tally.hits.items())
    ]


def write_matrix(tally: Tally, file: Path) -> None:
    """Write points × faults and behaviours."""
    facts = {"hits": matrix(tally), "behaviours": dict(tally.behaviours.most_common()),
        "verdicts": dict(tally.verdicts.most_common()),
    }  # fmt: skip
    file.write_text(json.dumps(facts, indent=1) + "\n")
