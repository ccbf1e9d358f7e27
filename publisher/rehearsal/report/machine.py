"""A report for programs: one JSON object whose keys stay, and stay what they are.

schema        of this description; a change that breaks a reader raises it
outcome       "kept", "broken" or "proves too little"; exit_code goes with it
why           sentences for people: why it is not kept; empty where it is
run, version, commit, server
began         UTC, ISO 8601; seconds: how long it took
scenarios     name, first and last seed, schedules, faults, broken, seconds
counts        words of the table → posts
rules         duplicates, lost, unreported, false success (and other, where there are) → count
platform_lied how often, counted apart from the rules
settled       platform ("all" for all), count, of, enough; unsettled: why not → posts
checklist     says, count, of, met; of is 0 where the run had no case of it
reached       what, count, of, missing: the names of what was not met
proof         variant, caught_at: what it was caught at or null; null where nobody asked
bound         schedules, faults, failures over all runs in the ledger; one_in: the rate of
              failures per fault is below one in so many (95 %), 0 where nothing can be said
failures      scenario, seed, rules, struck, posts, replay: the command; log: the file beside
              it, or null; posts: key, rule, page and journal, a line each, oldest first
left_behind   links; notes: sentences
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import Any, Final

from publisher.rehearsal.report import phrases
from publisher.rehearsal.report.report import Failure, Report

SCHEMA: Final = 1


def as_json(report: Report) -> dict[str, Any]:
    """The report as the module describes it; nothing in it but what JSON has."""
    names = log_names(report)
    return {
        "schema": SCHEMA,
        "outcome": str(report.outcome),
        "exit_code": report.exit_code,
        "why": phrases.reasons(report),
        "run": report.run,
        "version": report.version,
        "commit": report.commit,
        "server": report.server,
        "began": report.began,
        "seconds": round(report.seconds, 3),
        "scenarios": [
            {"name": ran.scenario, **_without(asdict(ran), "scenario")} for ran in report.ran
        ],
        "counts": {**report.counts},
        "rules": {**report.rules},
        "platform_lied": report.lied,
        "settled": [
            {"platform": one.platform, "count": one.count, "of": one.of, "enough": one.is_enough}
            for one in report.settled
        ],
        "unsettled": {**report.unsettled},
        "checklist": [
            {"says": one.says, "count": one.count, "of": one.of, "met": one.is_met}
            for one in report.checklist
        ],
        "reached": [
            {"what": one.what, "count": one.count, "of": one.of, "missing": [*one.missing]}
            for one in report.reached
        ],
        "proof": _proof(report),
        "bound": {**asdict(report.bound), "one_in": report.bound.one_in},
        "failures": [
            _failure(failure, name) for failure, name in zip(report.failures, names, strict=True)
        ],
        "left_behind": [*report.left_behind],
        "notes": [*report.notes],
    }


def log_names(report: Report) -> list[str | None]:
    """The file of each failure's log, in their order; None where it has none.

    ``seed-217.log``, and where several failed with that seed ``seed-217-2.log`` and so on.
    """
    seen: Counter[int] = Counter()
    names: list[str | None] = []
    for failure in report.failures:
        if not failure.log:
            names.append(None)
            continue
        seen[failure.seed] += 1
        again = f"-{seen[failure.seed]}" if seen[failure.seed] > 1 else ""
        names.append(f"seed-{failure.seed}{again}.log")
    return names


def _proof(report: Report) -> list[dict[str, str | None]] | None:
    if report.proof is None:
        return None
    return [{"variant": name, "caught_at": said} for name, said in report.proof.items()]


def _failure(failure: Failure, log: str | None) -> dict[str, Any]:
    return {
        "scenario": failure.scenario,
        "seed": failure.seed,
        "rules": [*failure.rules],
        "struck": [*failure.struck],
        "posts": [
            {"key": told.key, "rule": told.rule, "page": [*told.page], "journal": [*told.journal]}
            for told in failure.stories
        ],
        "replay": failure.replay,
        "log": log,
    }


def _without(facts: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in facts.items() if key != name}
